"""What a single query brings along in Python, as the tables that a job reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seedrank.config import ScoreOptions
from seedrank.errors import InputDataError
from seedrank.io.graphstore import GraphStore
from seedrank.io.query_info import EXCLUDE
from seedrank.jobs.vectors import VectorSide

#: What PyArrow raises for values that are no column.
_NO_COLUMN = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError)
#: Ids and an array of two dimensions.
_Pair = tuple[pa.Array, npt.NDArray[np.floating[Any]]]


def hit_table(hits: Any, query_id: int | str, store: GraphStore, options: ScoreOptions) -> pa.Table:
    """Bring hits to a table with a column of the query.

    Parameters
    ----------
    hits : mapping, sequence or table; None: without hits
        See `seedrank.Ranker.rank`.
    query_id : of hits that have no such column.
    store, options : the graph, whose type ids take, and the names of columns.

    Raises
    ------
    InputDataError
        Rows of different lengths.
    """
    if hasattr(hits, "__arrow_c_stream__"):
        return _with_query(hits, pa.scalar(query_id), options)
    hits = [] if hits is None else hits
    rows = [(node, weight) for node, weight in hits.items()] if isinstance(hits, Mapping) else [*hits]
    widths = {len(row) for row in rows}
    if widths - {2} and widths - {3}:
        raise InputDataError(
            f"hits: rows of {' and '.join(map(str, sorted(widths)))} values",
            expected="(node id, weight) or (node id, weight, source), all alike",
            fix="write them alike, or pass an Arrow table",
        )
    names = (options.hit_node_column, options.hit_weight_column, options.hit_source_column)
    columns = [_ids([row[0] for row in rows], store), pa.array([float(row[1]) for row in rows], pa.float64())]
    columns += [pa.array([source for *_, source in rows], pa.string())] if widths == {3} else []
    return pa.table(
        {
            options.hit_query_column: pa.repeat(pa.scalar(query_id), len(rows)),
            **dict(zip(names, columns, strict=False)),
        }
    )


@dataclass(frozen=True)
class BroughtAlong:
    """What a query brings besides its hits.

    Attributes
    ----------
    query_ids : the id of the query, or none.
    store, options : the graph, whose type node ids take, and the names of columns.
    """

    query_ids: pa.Array
    store: GraphStore
    options: ScoreOptions

    def info(self, given: Any) -> pa.Table:
        """Return attributes: those of a mapping, or the table.

        Raises
        ------
        InputDataError
            It is neither, or has a value that no column has.
        """
        if _is_table(given):
            return _with_query(given, self.query_ids[0], self.options)
        if not isinstance(given, Mapping):
            raise _unlike("query_info", given, "a mapping of attributes, or a table of one row")
        columns: dict[str, pa.Array] = {self.options.hit_query_column: self.query_ids}
        for name, value in given.items():
            if name == EXCLUDE and value is not None:
                columns[name] = _list_of(self._nodes(value))
            elif name == self.options.vector_column and _is_vector(value):
                columns[name] = _list_of(pa.array(_numbers(value)))
            else:
                columns[name] = _of_one_value(name, value)
        return pa.table(columns)

    def exclusions(self, given: Any) -> pa.Table:
        """Return exclusions: some node ids, or the table.

        Raises
        ------
        InputDataError
            It is neither.
        """
        if _is_table(given):
            return _with_query(given, self.query_ids[0], self.options)
        ids = self._nodes(given)
        return pa.table(
            {
                self.options.hit_query_column: pa.repeat(self.query_ids[0], len(ids)),
                self.options.hit_node_column: ids,
            }
        )

    def _nodes(self, given: Any) -> pa.Array:
        if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
            raise _unlike("exclude", given, "ids of nodes, one after the other, or a table")
        return _ids(given.to_pylist() if isinstance(given, (pa.Array, pa.ChunkedArray)) else [*given], self.store)

    def vectors(self, given: Any) -> Any:
        """Return what a job takes as vectors of queries: with the id of the query beside a bare vector."""
        return (self.query_ids, _numbers(given)[np.newaxis]) if _is_vector(given) else given

    def no_vector(self, nodes: VectorSide) -> _Pair:
        """Return the vectors of queries of which none has one."""
        return self.query_ids[:0], np.zeros((0, nodes.table.width or 1), dtype=nodes.table.rows.dtype)


def _is_table(given: Any) -> bool:
    """Whether this is a table, and no Arrow array, which is a stream, too."""
    return hasattr(given, "__arrow_c_stream__") and (hasattr(given, "schema") or hasattr(given, "columns"))


def _is_vector(given: Any) -> bool:
    """Whether this is numbers, one after the other."""
    if isinstance(given, np.ndarray):
        return given.ndim == 1
    return isinstance(given, (list, tuple)) and all(isinstance(one, (int, float, np.number)) for one in given)


def _list_of(values: pa.Array) -> pa.Array:
    """One list that holds some values."""
    return pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)


def _unlike(name: str, given: Any, expected: str) -> InputDataError:
    return InputDataError(
        f"{name} is {given!r}" if isinstance(given, (str, int, float)) else f"{name} is a {type(given).__name__}",
        expected=expected,
        fix="pass one of these; seedrank.score takes files",
    )


def _numbers(given: Any) -> npt.NDArray[Any]:
    """Numbers as they are; whole ones in Python are no other vector than the same ones with a point."""
    row = np.asarray(given)
    return row.astype(np.float64) if row.dtype.kind in "iu" else row


def _of_one_value(name: str, value: Any) -> pa.Array:
    try:
        return pa.array([value])
    except _NO_COLUMN as error:
        raise InputDataError(
            f"query info: {name!r} has the value {value!r} ({error})",
            expected="a value that a column can hold",
            fix="write it as the column of --query-info would have it",
        ) from None


def _with_query(given: Any, query_id: pa.Scalar, options: ScoreOptions) -> pa.Table:
    table = given if isinstance(given, pa.Table) else pa.table(given)
    if options.hit_query_column in table.column_names:
        return table
    return table.append_column(options.hit_query_column, pa.repeat(query_id, table.num_rows))


def _ids(values: list[Any], store: GraphStore) -> pa.Array:
    """Ids in the type of the graph, where they fit it."""
    with suppress(*_NO_COLUMN):
        return pa.array(values, store.ids.type if len(store.ids) else None)
    try:
        return pa.array(values)
    except _NO_COLUMN as error:
        raise InputDataError(
            f"node ids are no column of ids ({error})",
            expected="integers, or strings, all alike",
            fix="write them alike",
        ) from None
