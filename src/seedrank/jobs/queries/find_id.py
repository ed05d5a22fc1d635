"""An id as a user writes it, among those of the data."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from seedrank.errors import InputDataError
from seedrank.io.ids import is_string, match_ids


def find_id(wanted: Any, known: pa.Array) -> int:
    """Position of an id among sorted ones, -1 if it is not there; text of digits names an integer id."""
    try:
        value = str(wanted) if is_string(known.type) else int(wanted)
        return int(match_ids(pa.array([value], known.type), known)[0])
    except (ValueError, OverflowError, pa.ArrowInvalid):
        return -1


def position_of(wanted: Any, known: pa.Array, *, what: str, place: str) -> int:
    """Position of an id among sorted ones, as `find_id` finds it.

    Raises
    ------
    InputDataError
        It is not there; ``what`` and ``place`` are named.
    """
    position = find_id(wanted, known)
    if position < 0:
        raise InputDataError(
            f"{what} {wanted!r} is not in {place}",
            expected=f"an id of type {known.type}",
            fix="check the id: strings are compared by every character",
        )
    return position
