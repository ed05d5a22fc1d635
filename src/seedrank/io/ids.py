"""Ids of nodes and queries: integers of any width or strings, never converted into one another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from seedrank.errors import InputDataError
from seedrank.io.edge_list.code_chunks import CodeList, Encoded, MakeChunks
from seedrank.io.edge_list.encoders import HashEncoder, OffsetEncoder

# Nodes are numbered with int32.
MAX_IDS = 2**31 - 1
# Ids are found by bisection where the known ones are so many times more: a table of them would take longer.
BISECTED = 8
BISECTED_STRINGS = 256

_ID_TYPES = "integers of any width, string, large_string, string_view, or a dictionary of these"
_NOTHING_CONVERTED = "ids of one kind everywhere, all integers or all strings: nothing is converted silently"


def plain_type(data_type: pa.DataType) -> pa.DataType:
    """Value type of a dictionary type, else the type itself."""
    return data_type.value_type if pa.types.is_dictionary(data_type) else data_type


def is_string(data_type: pa.DataType) -> bool:
    """Whether the (plain) type is one of the three string layouts."""
    return bool(
        pa.types.is_string(data_type) or pa.types.is_large_string(data_type) or pa.types.is_string_view(data_type)
    )


def common_id_type(types: Iterable[tuple[pa.DataType, str]]) -> pa.DataType:
    """Find the one type that holds the ids of all columns without loss.

    Parameters
    ----------
    types : iterable of (pyarrow.DataType, str)
        Type of each column and its place for messages (file and column). Dictionaries count by their values.
        A column of type null (nothing but nulls) fits every other.

    Returns
    -------
    pyarrow.DataType
        The widest integer of one signedness (uint32 with int64 is int64), or string / large_string
        (string_view becomes string). int64 if there is no column, or none that says anything.

    Raises
    ------
    InputDataError
        A column that cannot be ids, integers against strings, or uint64 against a signed type.
    """
    first: dict[str, tuple[pa.DataType, str]] = {}
    signed = unsigned = 0
    large = False
    for data_type, place in types:
        plain = plain_type(data_type)
        if pa.types.is_null(plain):
            continue
        if not (pa.types.is_integer(plain) or is_string(plain)):
            raise InputDataError(
                f"{place} has type {data_type}, which cannot be an id",
                expected=_ID_TYPES,
                fix="write the column with one of these types; floats are refused because they merge large integers",
            )
        first.setdefault("string" if is_string(plain) else "integer", (plain, place))
        large |= bool(pa.types.is_large_string(plain))
        if pa.types.is_signed_integer(plain):
            signed = max(signed, plain.bit_width)
            first.setdefault("signed", (plain, place))
        elif pa.types.is_integer(plain):
            unsigned = max(unsigned, plain.bit_width)
            if plain.bit_width == 64:
                first.setdefault("uint64", (plain, place))
    if "string" in first and "integer" in first:
        raise InputDataError(
            _contradiction(first["integer"], first["string"]),
            expected=_NOTHING_CONVERTED,
            fix="write both with one type (strings keep leading zeros, integers do not)",
        )
    if "string" in first:
        return pa.large_string() if large else pa.string()
    if "signed" in first and "uint64" in first:
        raise InputDataError(
            _contradiction(first["signed"], first["uint64"]),
            expected="integer types that one 64-bit type can hold",
            fix="write both columns as uint64, or both as int64",
        )
    if signed:
        return _integer("int", max(signed, 2 * unsigned))
    return _integer("uint", unsigned) if unsigned else pa.int64()


class IdEncoder:
    """Number the ids of one or more columns in sorted order, batch by batch.

    Kept in memory: 4 bytes per row and column, and each distinct id once; never the rows' ids themselves.

    Parameters
    ----------
    id_type : pyarrow.DataType
        What `common_id_type` returned for the columns to come.
    columns : int, default 1
        Number of columns that share one numbering (2 for source and destination).
    what : str, default "ids"
        What the ids are, for messages.
    chunks : callable, optional
        Makes the sequences that the codes of the rows are kept in; by default lists.
    """

    def __init__(
        self, id_type: pa.DataType, *, columns: int = 1, what: str = "ids", chunks: MakeChunks = CodeList
    ) -> None:
        self._type = id_type
        self._what = what
        # A dictionary's 32-bit string offsets end at 2 GiB of text; the wider layout has no such limit.
        self._inner = pa.large_string() if is_string(id_type) else id_type
        self._offsets = None if is_string(id_type) else OffsetEncoder(id_type, columns=columns, chunks=chunks)
        self._hashes = HashEncoder(self._inner, columns=columns, chunks=chunks)

    def append(self, *arrays: pa.Array) -> None:
        """Take one batch of rows: one array per column, any of the id types; null becomes -1."""
        self._take(arrays, keep=True)

    def include(self, *arrays: pa.Array) -> None:
        """Note ids that exist without belonging to a row (isolated nodes, endpoints of dropped edges)."""
        for array in arrays:
            self._take((array,), keep=False)

    def finish(self) -> tuple[list[npt.NDArray[np.int32]], pa.Array]:
        """Number everything.

        Returns
        -------
        codes : list of ndarray, shape (rows,), int32
            For each column the positions in ``values``, in the order of appending; -1 for null.
        values : pyarrow.Array
            The distinct ids, sorted (integers numerically, strings by code point), in the type of the input.

        Raises
        ------
        InputDataError
            More than 2^31 - 1 distinct ids, or strings that are not UTF-8.
        """
        encoded = self.encode()
        return encoded.arrays(), encoded.values

    def encode(self) -> Encoded:
        """Number everything like `finish`, but leave the codes of the rows where they are."""
        encoded = self._hashes.finish() if self._offsets is None else self._offsets.finish()
        values = encoded.values
        if len(values) > MAX_IDS:
            raise InputDataError(
                f"{self._what}: {len(values):,} distinct values",
                expected=f"at most {MAX_IDS:,}: they are numbered with 32 bits",
                fix="split the input",
            )
        try:
            values.validate(full=True)
        except pa.ArrowInvalid as error:
            raise InputDataError(
                f"{self._what}: a string is not valid UTF-8 ({error})",
                expected="UTF-8 text",
                fix="write the column again with its proper encoding",
            ) from error
        if values.type != self._type and values.nbytes <= MAX_IDS:
            values = values.cast(self._type)
        return replace(encoded, values=values)

    def _take(self, arrays: Sequence[pa.Array], *, keep: bool) -> None:
        if self._offsets is not None:
            if self._offsets.append(arrays, keep=keep):
                return
            self._offsets.move_to(self._hashes)
            self._offsets = None
        self._hashes.append(arrays, keep=keep)


def match_ids(
    wanted: pa.Array, known: pa.Array, *, wanted_place: str = "wanted ids", known_place: str = "known ids"
) -> npt.NDArray[np.int32]:
    """Find ids of one table in the ids of another.

    Parameters
    ----------
    wanted, known : pyarrow.Array
        Ids without dictionary; ``known`` is sorted and unique. Integers are compared by value whatever their
        width.
    wanted_place, known_place : str
        What they are, for messages.

    Returns
    -------
    ndarray, shape (len(wanted),), int32
        Position in ``known``; -1 for unknown and for null.

    Raises
    ------
    InputDataError
        Integers against strings.
    """
    if pa.types.is_null(wanted.type) or pa.types.is_null(known.type):
        return np.full(len(wanted), -1, np.int32)
    if is_string(wanted.type) != is_string(known.type):
        raise InputDataError(
            _contradiction((wanted.type, wanted_place), (known.type, known_place)),
            expected=_NOTHING_CONVERTED,
            fix="write both with one type (strings keep leading zeros, integers do not)",
        )
    if is_string(wanted.type):
        if wanted.type != known.type or pa.types.is_string_view(known.type):
            wanted, known = wanted.cast(pa.large_string()), known.cast(pa.large_string())
        if len(wanted) * BISECTED_STRINGS <= len(known):
            return _bisect_strings(wanted, known)
    else:
        wanted, known = _same_integers(wanted, known)
        if len(wanted) * BISECTED <= len(known):
            return _bisect(wanted, known)
    positions = pc.index_in(wanted, value_set=known, skip_nulls=True).fill_null(-1)
    return np.asarray(positions.to_numpy(zero_copy_only=False), dtype=np.int32)


def resolve(position: npt.NDArray[np.integer[Any]], code: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Position of each row's id, from the position of every distinct one; -1 for null (code -1) and unknown ids."""
    if len(position) == 0:
        return np.full(len(code), -1, dtype=np.int32)
    return np.where(code >= 0, position[code], -1).astype(np.int32)


def insertion_points(wanted: pa.Array, known: pa.Array) -> npt.NDArray[np.int64]:
    """Count the known ids that come before each of some others, by bisection.

    Parameters
    ----------
    wanted, known : pyarrow.Array
        Ids of one type, without nulls; ``known`` is sorted.

    Returns
    -------
    ndarray, shape (len(wanted),), int64
    """
    low, high = np.zeros(len(wanted), np.int64), np.full(len(wanted), len(known), np.int64)
    while len(searching := np.flatnonzero(low < high)):
        middle = (low[searching] + high[searching]) // 2
        before = pc.less(known.take(pa.array(middle)), wanted.take(pa.array(searching))).to_numpy(zero_copy_only=False)
        low[searching[before]] = middle[before] + 1
        high[searching[~before]] = middle[~before]
    return low


def _bisect_strings(wanted: pa.Array, known: pa.Array) -> npt.NDArray[np.int32]:
    """Find few strings among many sorted ones, without a hash table of the many."""
    found = np.full(len(wanted), -1, dtype=np.int32)
    present = np.flatnonzero(wanted.is_valid().to_numpy(zero_copy_only=False))
    if not len(known) or not len(present):
        return found
    values = wanted.take(pa.array(present))
    places = np.minimum(insertion_points(values, known), len(known) - 1)
    equal = pc.equal(known.take(pa.array(places)), values).to_numpy(zero_copy_only=False)
    found[present[equal]] = places[equal]
    return found


def _bisect(wanted: pa.Array, known: pa.Array) -> npt.NDArray[np.int32]:
    """Find few integers among many sorted ones, without a hash table of the many."""
    present = wanted.is_valid().to_numpy(zero_copy_only=False)
    values, sorted_ids = wanted.fill_null(0).to_numpy(), known.to_numpy()
    positions = np.searchsorted(sorted_ids, values)
    found = present & (sorted_ids[np.minimum(positions, len(sorted_ids) - 1)] == values)
    return np.where(found, positions, -1).astype(np.int32)


def _same_integers(wanted: pa.Array, known: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Bring integers to the 64-bit type of ``known``'s signedness; what it cannot hold is null, thus unknown."""
    target = pa.int64() if pa.types.is_signed_integer(known.type) else pa.uint64()
    if pa.types.is_signed_integer(wanted.type) and target == pa.uint64():
        impossible = pc.less(wanted, pa.scalar(0, wanted.type))
    elif wanted.type == pa.uint64() and target == pa.int64():
        impossible = pc.greater(wanted, pa.scalar(2**63 - 1, pa.uint64()))
    else:
        return wanted.cast(target), known.cast(target)
    return pc.if_else(impossible, pa.scalar(None, wanted.type), wanted).cast(target), known.cast(target)


def _integer(family: str, bits: int) -> pa.DataType:
    return getattr(pa, f"{family}{bits}")()


def _contradiction(first: tuple[pa.DataType, str], second: tuple[pa.DataType, str]) -> str:
    return f"{first[1]} has {first[0]} ids, {second[1]} has {second[0]} ids"
