"""Which columns a table has, which the user named, and the messages when the two do not agree."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seedrank.errors import InputDataError
from seedrank.io.ids import common_id_type, plain_type
from seedrank.io.tables import Batch, InputPart, TableInput

#: Option that names a column, by table and role.
COLUMN_OPTIONS = {
    ("edges", "source node"): "--src-column",
    ("edges", "destination node"): "--dst-column",
    ("edges", "weight"): "--weight-column",
    ("edges", "edge type"): "--type-column",
    ("nodes", "node id"): "--node-id-column",
    ("nodes", "node type"): "--node-type-column",
    ("queries", "query id"): "--hit-query-column",
    ("queries", "node id"): "--hit-node-column",
    ("exclusions", "query id"): "--hit-query-column",
    ("exclusions", "node id"): "--hit-node-column",
    ("node vectors", "id"): "--vector-node-column",
    ("node vectors", "vector"): "--vector-column",
    ("query vectors", "id"): "--vector-query-column",
    ("query vectors", "vector"): "--vector-column",
}

_SHOWN_ROWS = 5
_SHOWN_NAMES = 30
_SHOWN_CHARACTERS = 40


def require_column(table: TableInput, role: str, name: str, *, parts: Sequence[InputPart] = ()) -> None:
    """Refuse a table of which some non-empty part (or one of ``parts``) lacks a column that it must have."""
    for part in parts or table.filled_parts:
        if part.type_of(name) is None:
            raise InputDataError(
                f"{table.what}: {part.uri} has no column {name!r}{_suggestion(name, part.column_names)}",
                expected=f"a column {name!r} for the {role}; found {_listed(part.column_names)}",
                fix=f"name the column that holds the {role}{_by_option(table, role)}",
            )


def has_column(table: TableInput, role: str, name: str, *, explicit: bool) -> bool:
    """Tell whether an optional column is there: in all non-empty parts, or in none.

    Raises
    ------
    InputDataError
        Only some parts have it, or none although the user named it.
    """
    parts = table.filled_parts
    having = [part for part in parts if part.type_of(name) is not None]
    lacking = [part for part in parts if part.type_of(name) is None]
    if having and lacking:
        raise InputDataError(
            f"{table.what}: {len(lacking)} of {len(parts)} files with rows have no column {name!r}, "
            f"the first is {lacking[0].uri}",
            expected=f"the {role} column in every file, as in {having[0].uri}, or in none",
            fix=f"write the missing column, or name another {role} column{_by_option(table, role)}",
        )
    if explicit and not having:
        names = parts[0].column_names
        raise InputDataError(
            f"{table.what}: {files_of(table)} has no column {name!r}{_suggestion(name, names)}",
            expected=f"the {role} column that was named; found {_listed(names)}",
            fix=f"correct the name{_by_option(table, role)}, or leave the {role} column out",
        )
    return bool(having)


def id_type_of(table: TableInput, *columns: str) -> pa.DataType:
    """Find the common id type of columns over all non-empty parts."""
    return common_id_type(
        (data_type, part.place(column))
        for part in table.filled_parts
        for column in columns
        if (data_type := part.type_of(column)) is not None
    )


def bad_rows(
    batch: Batch,
    bad: npt.NDArray[np.bool_],
    column: str,
    complaint: str,
    *,
    show: Collection[str],
    hits: pa.RecordBatch | None = None,
    parents: npt.NDArray[np.int64] | None = None,
) -> str:
    """Describe the first bad rows of a batch.

    Parameters
    ----------
    batch : Batch
        The rows.
    bad : ndarray, shape (rows of the batch,) or (hits,), bool
        At least one True.
    column : str
        The column at fault.
    complaint : str
        What is wrong with it, such as ``"is null"``.
    show : collection of str
        Columns whose values are quoted.
    hits, parents : pyarrow.RecordBatch and ndarray, shape (hits,), int64, optional
        If ``bad`` speaks of the hits in the lists of the rows: their columns, and the row of the batch each
        is from.

    Returns
    -------
    str
        File, row group, column, and up to 5 row numbers (from 0 within the file) with their values.
    """
    positions = np.flatnonzero(bad)
    rows = positions if parents is None else parents[positions]
    table = batch.table if hits is None else hits
    group = batch.row_group_of(int(rows[0]))
    where = f"{batch.uri}, " + ("" if group is None else f"row group {group}, ") + f"column {column!r}"
    quoted = [name for name in show if name in table.schema.names]
    shown = []
    for position, row in zip(positions[:_SHOWN_ROWS].tolist(), rows[:_SHOWN_ROWS].tolist(), strict=True):
        values = ", ".join(f"{name}={_quote(table.column(name)[position])}" for name in quoted)
        shown.append(f"row {batch.first_row + row} ({values})")
    more = f", and {len(rows) - _SHOWN_ROWS} more nearby" if len(rows) > _SHOWN_ROWS else ""
    return f"{where} {complaint}: {', '.join(shown)}{more} (rows are counted from 0 in the file)"


def numbers_of(array: pa.Array, place: str, *, what: str = "weight") -> pa.Array:
    """Return a numeric column as float64 with its nulls, in any integer or float width.

    Raises
    ------
    InputDataError
        Not a number: booleans, strings, decimals, dates.
    """
    plain = plain_type(array.type)
    if not (pa.types.is_integer(plain) or pa.types.is_floating(plain) or pa.types.is_null(plain)):
        raise InputDataError(
            f"{place} has type {array.type}, which is not a {what}",
            expected="integers or floats of any width",
            fix="write the column as double",
        )
    if pa.types.is_dictionary(array.type):
        array = array.cast(plain)
    # safe=False: an integer weight above 2^53 is rounded to the nearest double, as any computation would do.
    return array.cast(pa.float64(), safe=False)


def null_rows(array: pa.Array) -> npt.NDArray[np.bool_]:
    """Mask of the null rows, those included of which only the dictionary says so."""
    if pa.types.is_dictionary(array.type) and array.dictionary.null_count:
        array = array.cast(array.type.value_type)
    if not array.null_count:
        return np.zeros(len(array), np.bool_)
    return np.asarray(array.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)


def files_of(table: TableInput) -> str:
    """Name the first of the files with rows, of which all or none are spoken of."""
    parts = table.filled_parts
    others = f", as {len(parts) - 1} further files," if len(parts) > 1 else ""
    return f"{parts[0].uri}{others}"


def _quote(value: pa.Scalar) -> str:
    try:
        return _shortened(value.as_py())
    except (OverflowError, ValueError):  # a time that Python's calendar does not have, a text that is not UTF-8
        return f"a {value.type} that Python has no value for"


def _shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"


def _by_option(table: TableInput, role: str) -> str:
    option = COLUMN_OPTIONS.get((table.what, role))
    return f" ({option})" if option else ""


def _suggestion(name: str, names: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, names, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def _listed(names: Sequence[str]) -> str:
    """Quote the first names of columns, the long ones shortened."""
    if not names:
        return "no columns"
    more = f" and {len(names) - _SHOWN_NAMES:,} more" if len(names) > _SHOWN_NAMES else ""
    return ", ".join(map(_shortened, names[:_SHOWN_NAMES])) + more
