"""Two ways to turn columns of ids into dense numbers, both streaming and both exact.

`HashEncoder` serves every type: some batches at a time are dictionary-encoded, the dictionaries are merged from
time to time, and of the values only the distinct ones stay. `OffsetEncoder` serves integers that lie close together,
the usual case of generated ids: it keeps 32-bit distances and ranks them with one table instead of a hash
map.

Both number by position among the sorted distinct values; nulls become -1. What grows with the rows, the codes, is
kept in sequences that the caller may have in files (`seedrank.io.storage.spill`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from seedrank.io.edge_list.code_chunks import CodeChunks, CodeList, Codes, Encoded, MakeChunks, in_threads, look_up

_Place = tuple[int, int]  # column, number of the chunk

# Rows wait until they take this many bytes: each dictionary has most of the frequent ids again, so few are better.
GROUP_BYTES = 128 << 20
# Dictionaries are merged when this many entries wait, or as many as are known already: amortised linear work.
MERGE_ENTRIES = 1 << 22
# A table over the range of the ids is allowed this many entries, or one per value seen if that is more. It
# never depends on how large the ids are, only on how far they are apart. Positions in it are 32-bit numbers.
TABLE_ENTRIES = 1 << 20
MAX_TABLE_ENTRIES = 2**31 - 1
_NULL_OFFSET = np.iinfo(np.int32).min
_NO_CODES = np.empty(0, np.int32)


class HashEncoder:
    """Encode any type that Arrow can hash and sort.

    Parameters
    ----------
    value_type : pyarrow.DataType
        Type of the distinct values; what is appended is cast to it, dictionaries through their values.
    columns : int
        Number of columns that share one numbering.
    chunks : callable
        Makes an empty sequence for the codes of one column.
    """

    def __init__(self, value_type: pa.DataType, *, columns: int, chunks: MakeChunks = CodeList) -> None:
        self._type = value_type
        self._known = pa.array([], value_type)
        self._codes: list[CodeChunks] = [chunks() for _ in range(columns)]
        self._rows: list[list[tuple[pa.Array, _Place | None]]] = [[] for _ in range(columns)]
        self._row_bytes = 0
        self._waiting: list[tuple[pa.Array, list[_Place]]] = []
        self._waiting_entries = 0

    def append(self, arrays: Sequence[pa.Array], *, keep: bool) -> None:
        """Take one batch, one array per column; with ``keep`` false only the values are noted, not the rows."""
        for column, array in enumerate(arrays):
            if pa.types.is_dictionary(array.type):
                codes, dictionary = without_unused(array)
                place = self._place(column, codes) if keep else None
                self._wait(dictionary.cast(self._type), [] if place is None else [place])
            elif len(array):  # Arrow drops empty chunks, which would shift the ones behind them
                self._rows[column].append((array, self._place(column, _NO_CODES) if keep else None))
                self._row_bytes += array.nbytes
        if self._row_bytes >= GROUP_BYTES:
            self._encode()
        if self._waiting_entries >= max(len(self._known), MERGE_ENTRIES):
            self._merge()

    def finish(self) -> Encoded:
        """Number everything; nothing can be appended any more."""
        self._encode()
        self._merge()
        order = pc.sort_indices(self._known)
        rank = np.full(len(order) + 1, -1, np.int32)  # the last entry answers code -1
        rank[order.to_numpy()] = np.arange(len(order), dtype=np.int32)
        return Encoded(self._codes, rank, self._known.take(order))

    def _place(self, column: int, codes: Codes) -> _Place:
        self._codes[column].append(codes)
        return column, len(self._codes[column]) - 1

    def _encode(self) -> None:
        """Dictionary-encode the rows that wait, the columns side by side."""
        groups = [rows for rows in self._rows if rows]
        encoded = in_threads(self._dictionary_encode, ([array for array, _ in rows] for rows in groups))
        for rows, chunks in zip(groups, encoded, strict=True):
            places = [place for _, place in rows]
            for place, chunk in zip(places, chunks, strict=True):
                if place is not None:
                    self._codes[place[0]][place[1]] = indices_of(chunk)
            self._wait(chunks[0].dictionary.cast(self._type), [place for place in places if place is not None])
            rows.clear()
        self._row_bytes = 0

    def _dictionary_encode(self, arrays: list[pa.Array]) -> list[pa.Array]:
        """Encode arrays with one dictionary."""
        types = {array.type for array in arrays}
        if len(types) > 1 or pa.types.is_null(arrays[0].type):
            arrays = [array.cast(self._type) for array in arrays]
        chunks: list[pa.Array] = pa.chunked_array(arrays).dictionary_encode().chunks
        return chunks

    def _wait(self, dictionary: pa.Array, places: list[_Place]) -> None:
        if len(dictionary):  # else all codes are -1 and stay so
            self._waiting.append((dictionary, places))
            self._waiting_entries += len(dictionary)

    def _merge(self) -> None:
        """Number all waiting dictionaries; what is known comes first and therefore keeps its numbers."""
        if not self._waiting:
            return
        head = [self._known] if len(self._known) else []
        merged = pa.chunked_array(head + [dictionary for dictionary, _ in self._waiting]).dictionary_encode()
        self._known = merged.chunk(0).dictionary
        for chunk, (_, places) in zip(merged.chunks[len(head) :], self._waiting, strict=True):
            numbers = np.append(indices_of(chunk), np.int32(-1))
            in_threads(partial(self._renumber, numbers), places)
        self._waiting.clear()
        self._waiting_entries = 0

    def _renumber(self, numbers: Codes, place: _Place) -> None:
        column, i = place
        self._codes[column][i] = look_up(numbers, self._codes[column][i])


class OffsetEncoder:
    """Encode integers as 32-bit distances from the first one, while they stay within reach.

    Parameters
    ----------
    value_type : pyarrow.DataType
        An integer type that holds every value to come.
    columns : int
        Number of columns that share one numbering.
    chunks : callable
        Makes an empty sequence for the distances of one column.
    """

    def __init__(self, value_type: pa.DataType, *, columns: int, chunks: MakeChunks = CodeList) -> None:
        self._type = value_type
        self._base: int | None = None
        self._low = self._high = 0
        self._values = 0
        self._make_chunks = chunks
        self._offsets: list[CodeChunks] = [chunks() for _ in range(columns)]
        self._noted = chunks()

    def append(self, arrays: Sequence[pa.Array], *, keep: bool) -> bool:
        """Take one batch like `HashEncoder.append`; False, and nothing taken, if an id is out of reach."""
        plain = [
            (array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array).cast(self._type)
            for array in arrays
        ]
        bounds = [pc.min_max(array) for array in plain if len(array) > array.null_count]
        if bounds:
            lows, highs = [b["min"].as_py() for b in bounds], [b["max"].as_py() for b in bounds]
            base = min(lows) if self._base is None else self._base
            low = min(lows) if self._base is None else min(self._low, *lows)
            high = max(highs) if self._base is None else max(self._high, *highs)
            if low - base <= _NULL_OFFSET or high - base > np.iinfo(np.int32).max:
                return False
            self._base, self._low, self._high = base, low, high
        for column, array in enumerate(plain):
            offsets = self._distance(array)
            self._values += len(offsets)
            (self._offsets[column] if keep else self._noted).append(offsets)
        return True

    def move_to(self, encoder: HashEncoder) -> None:
        """Hand everything taken so far to the other encoder, chunk by chunk."""
        for offsets in self._noted:
            encoder.append([self._restore(offsets)], keep=False)
        self._noted.clear()
        for position in range(len(self._offsets[0])):
            rows = [self._restore(chunks[position]) for chunks in self._offsets]
            for chunks in self._offsets:
                chunks[position] = _NO_CODES
            encoder.append(rows, keep=True)
        for chunks in self._offsets:
            chunks.clear()

    def finish(self) -> Encoded:
        """Number everything; nothing can be appended any more."""
        span = self._high - self._low + 1
        if self._base is None or span > min(max(self._values, TABLE_ENTRIES), MAX_TABLE_ENTRIES):
            encoder = HashEncoder(self._type, columns=len(self._offsets), chunks=self._make_chunks)
            self.move_to(encoder)
            return encoder.finish()
        # Entry i stands for the id low + i; one entry more, addressed as -1, swallows the nulls.
        present = np.zeros(span + 1, np.bool_)
        mark = partial(_mark_present, present, np.int32(self._low - self._base))
        columns = (self._noted, *self._offsets)
        in_threads(mark, [(chunks, i) for chunks in columns for i in range(len(chunks))])
        present[-1] = False
        rank = np.cumsum(present, dtype=np.int32)
        rank -= np.int32(1)
        rank[-1] = -1
        distance = np.flatnonzero(present).astype(np.uint64)
        # Two's complement arithmetic is exact for every 64-bit type, signed or not.
        ids = distance + np.uint64(self._low % (1 << 64))
        values = ids.view(np.int64) if pa.types.is_signed_integer(self._type) else ids
        return Encoded(self._offsets, rank, pa.array(values).cast(self._type))

    def _distance(self, array: pa.Array) -> Codes:
        if self._base is None:  # only nulls so far
            return np.full(len(array), _NULL_OFFSET, np.int32)
        numbers = array.fill_null(self._base).to_numpy(zero_copy_only=False)
        wide = numbers.astype(_wide(numbers.dtype), copy=False)
        # The difference fits 32 bits (checked by the caller), so that wrapping subtraction is exact.
        offsets = np.empty(len(wide), np.int32)
        np.subtract(wide, wide.dtype.type(self._base), out=offsets, casting="unsafe")
        if array.null_count:
            offsets[array.is_null().to_numpy(zero_copy_only=False)] = _NULL_OFFSET
        return offsets

    def _restore(self, offsets: Codes) -> pa.Array:
        base = 0 if self._base is None else self._base
        ids = offsets.astype(np.int64).view(np.uint64) + np.uint64(base % (1 << 64))
        values = ids.view(np.int64) if pa.types.is_signed_integer(self._type) else ids
        return pa.array(values, mask=offsets == _NULL_OFFSET).cast(self._type)


def indices_of(array: Any) -> Codes:
    """Indices of a dictionary array as int32, -1 for null."""
    indices = array.indices.cast(pa.int32())
    if indices.null_count:
        indices = indices.fill_null(-1)
    return np.asarray(indices.to_numpy(zero_copy_only=False), dtype=np.int32)


def without_unused(array: Any) -> tuple[Codes, pa.Array]:
    """Codes and dictionary of a dictionary array, without the entries that no row refers to.

    Writers hand over dictionaries of whole files; an entry that occurs in no row is not an id of the table.
    """
    codes, dictionary = indices_of(array), array.dictionary
    used = np.zeros(len(dictionary) + 1, np.bool_)
    used[codes] = True
    if used[:-1].all():
        return codes, dictionary
    numbers = np.cumsum(used, dtype=np.int32) - np.int32(1)
    numbers[-1] = -1
    return numbers[codes], dictionary.filter(pa.array(used[:-1]))


def _wide(dtype: np.dtype[Any]) -> type[np.int64 | np.uint64]:
    return np.uint64 if dtype.kind == "u" else np.int64


def _mark_present(present: npt.NDArray[np.bool_], shift: np.int32, place: tuple[CodeChunks, int]) -> None:
    """Turn distances from the base into positions of the table and mark these. Threads write only True."""
    chunks, i = place
    offsets = chunks[i]
    nulls = offsets == _NULL_OFFSET
    offsets -= shift
    offsets[nulls] = -1
    present[offsets.astype(np.intp)] = True
    chunks[i] = offsets
