"""Attributes of queries, one row a query: text, signals, budget, method, vector, and the nodes not to be returned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from seedrank.errors import InputDataError
from seedrank.io.arrow.columns import bad_rows, files_of, has_column, id_type_of, null_rows, require_column
from seedrank.io.ids import IdEncoder, common_id_type, is_string, match_ids, plain_type
from seedrank.io.records import InputFileRecord
from seedrank.io.tables import Batch, TableInput, TableSource
from seedrank.io.vectors import VectorReader, VectorTable

TEXT, BUDGET, METHOD, EXCLUDE = "text", "budget", "method", "exclude"


@dataclass(frozen=True, eq=False)
class QueryInfoTable:
    """Attributes of q queries, sorted by query id, so that the order of the rows cannot matter.

    Parameters
    ----------
    query_ids : pyarrow.Array, length q
        Sorted, each once.
    flags : mapping of str to ndarray, shape (q,), int8
        Boolean columns that are there: 1, 0, and -1 for null.
    text : pyarrow.Array of large_string, length q, or None
        None without the column.
    choices : mapping of str to pyarrow.Array of string, length q
        Columns of names, by column; a name or null.
    exclude_query : ndarray, shape (e,), int32
        Position in ``query_ids``, ascending.
    exclude_node_ids : pyarrow.Array
        Distinct ids of the nodes that queries must not return, sorted.
    exclude_node : ndarray, shape (e,), int32
        Position in ``exclude_node_ids``; ascending and distinct within a query.
    vectors : VectorTable or None
        Those of the queries that have one; None where they were not asked for, or there is no such column.
    records : list of InputFileRecord
        What was read.
    """

    query_ids: pa.Array
    flags: Mapping[str, npt.NDArray[np.int8]]
    text: pa.Array | None
    choices: Mapping[str, pa.Array]
    exclude_query: npt.NDArray[np.int32]
    exclude_node_ids: pa.Array
    exclude_node: npt.NDArray[np.int32]
    vectors: VectorTable | None
    records: list[InputFileRecord]

    def some(self, first: int, last: int) -> QueryInfoTable:
        """Return the attributes of the queries ``first`` … ``last - 1``."""
        rows = slice(first, last)
        query_ids, vectors = self.query_ids[rows], self.vectors
        if vectors is not None:
            mine = match_ids(vectors.ids, self.query_ids)
            vectors = vectors.some(*np.searchsorted(mine, [first, last]).tolist())
        excluded = slice(*np.searchsorted(self.exclude_query, [first, last]))
        return replace(
            self,
            query_ids=query_ids,
            flags={name: values[rows] for name, values in self.flags.items()},
            text=None if self.text is None else self.text[rows],
            choices={name: values[rows] for name, values in self.choices.items()},
            exclude_query=self.exclude_query[excluded] - np.int32(first),
            exclude_node=self.exclude_node[excluded],
            vectors=vectors,
        )

    def place(self, column: str) -> str:
        """Name a column of the attributes in messages."""
        return f"{column} of the query info in {self.records[0].uri}"


def read_query_info(
    source: TableSource,
    *,
    query_id_column: str = "query_id",
    flags: Sequence[str] = (),
    text: bool = False,
    choices: Mapping[str, Sequence[str]] | None = None,
    vector_column: str | None = None,
) -> QueryInfoTable:
    """Read and validate attributes of queries; only the columns that are named here and ``exclude`` are read.

    Parameters
    ----------
    source : TableSource
        Path, folder, glob, URL, table, Arrow stream, or a list of these.
    query_id_column : str
        Column of the query; must be there.
    flags : sequence of str
        Boolean columns, read where they are.
    text : bool
        Whether to read ``text``, where it is.
    choices : mapping of str to sequence of str, optional
        Columns of names, read where they are, and the names that each may hold.
    vector_column : str, optional
        Column of the vector of the query, read where it is; see `seedrank.io.vectors.read_vectors`.

    Raises
    ------
    InputDataError
        No query column, a column in some files only, a column of another type, a null or repeated query id, a name
        that is not known, bad vectors.
    """
    choices = choices or {}
    table = TableInput.open(source, what="query info")
    require_column(table, "query id", query_id_column)
    optional = [*flags, *([TEXT] if text else []), *choices, EXCLUDE]
    there = [name for name in optional if has_column(table, name, name, explicit=False)]
    _check_types(table, there, flags)
    queries = IdEncoder(id_type_of(table, query_id_column), what="query ids of the query info")
    nodes = IdEncoder(_node_type(table, there), what="node ids of the query info")
    vectors = None
    if vector_column is not None and has_column(table, "vector", vector_column, explicit=False):
        vectors = VectorReader(table, query_id_column, vector_column)
    columns: dict[str, list[pa.Array]] = {name: [] for name in there if name != EXCLUDE}
    owners: list[npt.NDArray[np.int64]] = []
    rows = 0
    read = [query_id_column, *there, *([] if vectors is None or vector_column is None else [vector_column])]
    for batch in table.batches(list(dict.fromkeys(read))):
        queries.append(_not_null(batch, query_id_column))
        for name, values in columns.items():
            found = _plain(batch.table.column(name), pa.bool_() if name in flags else pa.large_string())
            if name in choices:
                _check_names(batch, found, name, choices[name], query_id_column)
            values.append(found)
        if EXCLUDE in there:
            owner, node = _elements(batch.table.column(EXCLUDE))
            owners.append(owner + rows)
            nodes.append(node)
        if vectors is not None:
            vectors.append(batch)
        rows += batch.table.num_rows
    (codes,), query_ids = queries.finish()
    order = np.argsort(codes, kind="stable")
    _check_distinct(table, codes, order, query_ids)
    (node_codes,), node_ids = nodes.finish()
    owner_codes = codes[np.concatenate(owners)] if owners else np.zeros(0, np.int32)
    exclude_query, exclude_node = _distinct(owner_codes, node_codes)
    joined = {
        name: pa.concat_arrays([pa.array([], pa.bool_() if name in flags else pa.large_string()), *values]).take(
            pa.array(order)
        )
        for name, values in columns.items()
    }
    return QueryInfoTable(
        query_ids=query_ids,
        flags={
            name: joined[name].cast(pa.int8()).fill_null(-1).to_numpy(zero_copy_only=False)
            for name in flags
            if name in joined
        },
        text=joined.get(TEXT),
        choices={name: joined[name].cast(pa.string()) for name in choices if name in joined},
        exclude_query=exclude_query,
        exclude_node_ids=node_ids,
        exclude_node=exclude_node,
        vectors=None if vectors is None else vectors.finish("query vectors"),
        records=table.records,
    )


def _check_types(table: TableInput, columns: Sequence[str], flags: Sequence[str]) -> None:
    """Refuse a column of another type than its role has; one that is all null fits every role."""
    for part in table.filled_parts:
        for name in columns:
            kind = part.type_of(name)
            assert kind is not None
            plain = plain_type(kind)
            if name in flags:
                wanted, right = "booleans", pa.types.is_boolean(plain)
            elif name == EXCLUDE:
                wanted, right = "a list of node ids", _is_list(kind)
            else:
                wanted, right = "strings", is_string(plain)
            if not right and not pa.types.is_null(plain):
                raise InputDataError(
                    f"{part.place(name)} has type {kind}",
                    expected=f"{wanted}, or null",
                    fix="write the column with that type, or rename it",
                )


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _node_type(table: TableInput, columns: Sequence[str]) -> pa.DataType:
    kinds = []
    for part in table.filled_parts if EXCLUDE in columns else ():
        kind = part.type_of(EXCLUDE)
        if kind is not None and _is_list(kind):
            kinds.append((kind.value_type, part.place(EXCLUDE)))
    return common_id_type(kinds)


def _not_null(batch: Batch, column: str) -> pa.Array:
    values = batch.table.column(column)
    missing = null_rows(values)
    if missing.any():
        raise InputDataError(
            bad_rows(batch, missing, column, "is null", show=batch.table.schema.names),
            expected="a query id in every row",
            fix="remove these rows, or write the id",
        )
    return values


def _plain(values: pa.Array, kind: pa.DataType) -> pa.Array:
    return (values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values).cast(kind)


def _check_names(batch: Batch, values: pa.Array, column: str, known: Sequence[str], query_id_column: str) -> None:
    wrong = pc.and_(values.is_valid(), pc.invert(pc.is_in(values, value_set=pa.array(known, pa.large_string()))))
    bad = np.asarray(wrong.to_numpy(zero_copy_only=False), dtype=np.bool_)
    if bad.any():
        raise InputDataError(
            bad_rows(batch, bad, column, "is not known", show=[query_id_column, column]),
            expected=f"null, or one of {', '.join(known)}",
            fix="correct these rows",
        )


def _elements(lists: pa.Array) -> tuple[npt.NDArray[np.int64], pa.Array]:
    """Row and value of every element of the lists that is not null."""
    if pa.types.is_null(lists.type):
        lists = lists.cast(pa.list_(pa.null()))
    lengths = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
    parents = np.repeat(np.arange(len(lists)), lengths)
    elements = lists.flatten()
    there = ~null_rows(elements)
    return parents[there], elements.filter(pa.array(there))


def _check_distinct(
    table: TableInput, codes: npt.NDArray[np.int32], order: npt.NDArray[np.int64], query_ids: pa.Array
) -> None:
    repeated = np.flatnonzero(np.diff(codes[order]) == 0)
    if len(repeated):
        first = order[repeated[0] : repeated[0] + 2].tolist()
        name = query_ids[int(codes[first[0]])].as_py()
        raise InputDataError(
            f"query info: {len(repeated)} rows repeat a query id in {files_of(table)}; the first is {name!r}: "
            f"row {first[0]} and row {first[1]} (rows are counted from 0 over all files)",
            expected="one row a query",
            fix="keep one of the rows",
        )


def _distinct(
    query: npt.NDArray[np.int32], node: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Distinct pairs, sorted."""
    nodes = int(node.max()) + 1 if len(node) else 1
    keys = np.unique(query.astype(np.int64) * nodes + node)
    return (keys // nodes).astype(np.int32), (keys % nodes).astype(np.int32)
