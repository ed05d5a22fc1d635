"""Filters on node attributes: which nodes of a graph pass all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from seedrank.errors import InputDataError
from seedrank.io.graph.globs import globs_pattern
from seedrank.io.graph.node_columns import node_column
from seedrank.io.graph.paths_of_tests import TEST_GLOBS
from seedrank.io.graphstore import GraphStore


def filter_nodes(
    store: GraphStore,
    *,
    where: Sequence[str] = (),
    require: Sequence[str] = (),
    include_glob: Sequence[str] = (),
    exclude_glob: Sequence[str] = (),
    no_tests: str | None = None,
) -> npt.NDArray[np.bool_] | None:
    """Return which nodes pass all filters, computed column by column.

    Parameters
    ----------
    store : the graph, of n nodes.
    where : ``COLUMN=VALUE``; the value is read in the type of the column. Values of one column are alternatives,
        different columns must all hold. A null is no value.
    require : columns that must not be null, an empty text or an empty list.
    include_glob : ``COLUMN=GLOB`` on columns of texts, combined like ``where``; a null matches no glob.
    exclude_glob : ``COLUMN=GLOB``; a node passes if none matches, with a null, too.
    no_tests : column of paths that must not be those of test code, see `seedrank.io.graph.paths_of_tests`.

    Returns
    -------
    bool (n,) over tie ranks; None where nothing filters.

    Raises
    ------
    InputDataError
        No node attributes, an unknown column, a value that the column's type does not have, a column that is not of
        the kind that the filter needs, a glob with an impossible range.
    """
    masks: list[pa.Array] = []
    for name, values in _by_column(where):
        column = _column(store, name, option="--where")
        masks.append(pc.is_in(column, value_set=_values(values, column.type, name)))
    masks.extend(_has_content(_column(store, name, option="--require")) for name in dict.fromkeys(require))
    for name, globs in _by_column(include_glob):
        masks.append(_matches(store, name, globs, option="--include-glob"))
    for name, globs in _by_column(exclude_glob):
        masks.append(pc.invert(_matches(store, name, globs, option="--exclude-glob")))
    if no_tests is not None:
        masks.append(pc.invert(_matches(store, no_tests, TEST_GLOBS, option="--no-tests")))
    if not masks:
        return None
    passed = np.ones(len(store.ids), dtype=np.bool_)
    for mask in masks:
        passed &= mask.to_numpy(zero_copy_only=False)
    return passed


def _column(store: GraphStore, name: str, *, option: str) -> pa.Array:
    """Return a column in a type that Arrow compares; one without any value may be of every type."""
    column = node_column(store, name, option=option)
    plain = pa.types.is_null(column.type) or pa.types.is_string_view(column.type)
    return column.cast(pa.large_string()) if plain else column


def _by_column(pairs: Iterable[str]) -> list[tuple[str, list[str]]]:
    """Gather what is said of each column; everything after the first ``=`` is the value."""
    found: dict[str, list[str]] = {}
    for pair in pairs:
        name, _, value = pair.partition("=")
        found.setdefault(name, []).append(value)
    return list(found.items())


def _values(texts: Sequence[str], kind: pa.DataType, column: str) -> pa.Array:
    """Read values in the type of their column."""
    if pa.types.is_nested(kind):
        raise InputDataError(
            f"--where {column}={texts[0]}: the column {column!r} has type {kind}, which is not compared with a value",
            expected="a column of texts, numbers, booleans, dates or times",
            fix=f"to ask for any content, --require {column}",
        )
    arrays = []
    for text in texts:
        try:
            arrays.append(pa.array([text]).cast(kind))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise InputDataError(
                f"--where {column}={text}: {text!r} is no value of type {kind}, which the column {column!r} has",
                expected=_example(kind),
                fix="correct the value",
            ) from None
    return pa.concat_arrays(arrays)


def _example(kind: pa.DataType) -> str:
    if pa.types.is_boolean(kind):
        return "true or false"
    if pa.types.is_date(kind):
        return "a date such as 2024-01-31"
    if pa.types.is_timestamp(kind):
        return "a time such as 2024-01-31T10:00:00" + ("Z, with its zone" if kind.tz else "")
    return f"a value of type {kind}"


def _has_content(column: pa.Array) -> pa.Array:
    filled = column.is_valid()
    if _is_text(column.type) or pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        length = pc.binary_length(column)
    elif pa.types.is_list(column.type) or pa.types.is_large_list(column.type) or pa.types.is_map(column.type):
        length = pc.list_value_length(column)
    else:
        return filled
    return pc.and_(filled, pc.greater(length, 0).fill_null(False))


def _matches(store: GraphStore, name: str, globs: Sequence[str], *, option: str) -> pa.Array:
    column = _column(store, name, option=option)
    if not _is_text(column.type):
        raise InputDataError(
            f"{option} {name!r}: the column has type {column.type}",
            expected="a column of texts",
            fix="name the column that holds the paths",
        )
    try:
        return pc.match_substring_regex(column.cast(pa.large_string()), pattern=globs_pattern(globs)).fill_null(False)
    except pa.ArrowInvalid as error:
        raise InputDataError(
            f"{option} {name}={globs[0]}: a glob cannot be understood ({error})",
            expected="*, **, ?, [a-z] and [!a-z]",
            fix="correct the range in brackets",
        ) from None


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
