"""Node tables: one row a node, with its type and any attributes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from seedrank.errors import InputDataError
from seedrank.io.arrow.columns import (
    bad_rows,
    files_of,
    has_column,
    id_type_of,
    null_rows,
    require_column,
)
from seedrank.io.arrow.string_views import without_views
from seedrank.io.ids import IdEncoder, plain_type
from seedrank.io.names import check_name_type, name_dictionary
from seedrank.io.records import InputFileRecord
from seedrank.io.tables import Batch, TableInput, TableSource

TYPE = "type"


@dataclass(frozen=True, eq=False)
class NodeTable:
    """Nodes that exist whether edges mention them or not.

    Parameters
    ----------
    ids : pyarrow.Array, length n
        Unique ids in the order of the input.
    attributes : pyarrow.Table, n rows
        The other columns, row by row as ``ids``; dictionaries are decoded. The type column is called
        ``type`` and is a string whatever it was.
    type_column : str or None
        Name that the type column had in the input; None if there is none.
    place : str
        File and column of the ids, for messages.
    records : list of InputFileRecord
        What was read.
    """

    ids: pa.Array
    attributes: pa.Table
    type_column: str | None
    place: str
    records: list[InputFileRecord]


def read_nodes(
    source: TableSource,
    *,
    id_column: str = "id",
    type_column: str = TYPE,
    attributes: Sequence[str] | None = None,
) -> NodeTable:
    """Read and validate a node table.

    Parameters
    ----------
    source : TableSource
        Path, folder, glob, URL, table, Arrow stream, or a list of these.
    id_column : str, default "id"
        Column of the ids.
    type_column : str, default "type"
        Column of the types (strings or integers). A table without it is untyped; a column named otherwise
        must exist.
    attributes : sequence of str, optional
        Further columns to read; None reads all.

    Raises
    ------
    InputDataError
        A missing column, a null or repeated id, attributes whose types differ between files.
    """
    table = TableInput.open(source, what="nodes")
    require_column(table, "node id", id_column)
    typed = has_column(table, "node type", type_column, explicit=type_column != TYPE)
    if typed:
        check_name_type(table, "node type", type_column)
    others = _attribute_names(table, attributes, taken={id_column, type_column})
    if typed and TYPE in others:
        raise InputDataError(
            f"nodes: in {files_of(table)} column {type_column!r} holds the types, but there is also a column {TYPE!r}",
            expected=f"no attribute called {TYPE!r} beside the type column",
            fix=f"rename or drop the column {TYPE!r}",
        )
    encoder = IdEncoder(id_type_of(table, id_column), what="node ids")
    tables: list[pa.Table] = []
    batches: list[Batch] = []
    for batch in table.batches([id_column, *([type_column] if typed else []), *others]):
        missing = null_rows(batch.table.column(id_column))
        if missing.any():
            raise InputDataError(
                bad_rows(batch, missing, id_column, "is null", show=batch.table.schema.names[:3]),
                expected="an id in every row",
                fix="remove these rows",
            )
        encoder.append(batch.table.column(id_column))
        batches.append(Batch(batch.table.select([id_column]), batch.part, batch.first_row))
        tables.append(_attributes(batch, others, type_column if typed else None))
    (codes,), values = encoder.finish()
    _refuse_repeated(codes, values, batches, id_column)
    return NodeTable(
        ids=values.take(pa.array(codes)),
        attributes=_concatenate(tables, table) if tables else _no_rows(table, others, typed=typed),
        type_column=type_column if typed else None,
        place=table.filled_parts[0].place(id_column),
        records=table.records,
    )


def _attribute_names(table: TableInput, attributes: Sequence[str] | None, *, taken: set[str]) -> list[str]:
    if attributes is None:
        names = dict.fromkeys(name for part in table.filled_parts for name in part.column_names)
        return [name for name in names if name not in taken]
    for name in attributes:
        has_column(table, "attribute", name, explicit=True)
    return [name for name in dict.fromkeys(attributes) if name not in taken]


def _attributes(batch: Batch, names: Sequence[str], type_column: str | None) -> pa.Table:
    arrays = {name: array for name in names if (array := batch.column(name)) is not None}
    plain = {
        name: array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array
        for name, array in arrays.items()
    }
    if type_column is not None:
        plain = {TYPE: name_dictionary(batch.table.column(type_column)).cast(pa.string()), **plain}
    # A column of nulls keeps the length of a table that has no attributes.
    return pa.table({"": pa.nulls(batch.table.num_rows), **plain})


def _no_rows(table: TableInput, names: Sequence[str], *, typed: bool) -> pa.Table:
    """Attributes of a table without rows, with their types."""
    part = table.filled_parts[0]
    types = {name: data_type for name in names if (data_type := part.type_of(name)) is not None}
    columns = {name: without_views(pa.array([], plain_type(data_type))) for name, data_type in types.items()}
    return pa.table({**({TYPE: pa.array([], pa.string())} if typed else {}), **columns})


def _concatenate(tables: list[pa.Table], table: TableInput) -> pa.Table:
    try:
        joined = pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        raise InputDataError(
            f"nodes: {files_of(table)}: an attribute has different types in different files ({error})",
            expected="one type per attribute, or types of which one holds the other",
            fix="write the column with one type, or read only the attributes needed",
        ) from error
    return joined.drop_columns([""])


def _refuse_repeated(
    codes: np.ndarray[tuple[int], np.dtype[np.int32]], values: pa.Array, batches: list[Batch], column: str
) -> None:
    if len(codes) == len(values):
        return
    order = np.argsort(codes, kind="stable")
    repeat = np.zeros(len(codes), np.bool_)
    repeat[order[1:]] = codes[order[1:]] == codes[order[:-1]]
    start = 0
    for batch in batches:
        bad = repeat[start : start + batch.table.num_rows]
        if bad.any():
            raise InputDataError(
                bad_rows(batch, bad, column, "repeats an id that came before", show=[column]),
                expected="each node once",
                fix="remove the repeated rows",
            )
        start += batch.table.num_rows
