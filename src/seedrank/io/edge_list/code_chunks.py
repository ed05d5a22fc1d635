"""Codes of ids, chunk by chunk, and the table that turns them into positions among the sorted ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Codes = npt.NDArray[np.int32]

_NO_CODES = np.empty(0, np.int32)
_ArgumentT = TypeVar("_ArgumentT")
_ResultT = TypeVar("_ResultT")


class CodeChunks(Protocol):
    """Arrays of codes of one column, in the order of rows: a list, or files (`seedrank.io.storage.spill.Chunks`)."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Codes]: ...
    def __getitem__(self, number: int, /) -> Codes: ...
    def __setitem__(self, number: int, array: Codes, /) -> None: ...
    def append(self, array: Codes, /) -> None:
        """Add an array at the end."""

    def clear(self) -> None:
        """Forget all arrays."""

    @property
    def lengths(self) -> list[int]:
        """Number of codes of each array."""
        ...


class CodeList(list[Codes]):
    """`CodeChunks` in memory."""

    @property
    def lengths(self) -> list[int]:
        """Number of codes of each array."""
        return [len(codes) for codes in self]


MakeChunks = Callable[[], CodeChunks]


@dataclass(eq=False)
class Encoded:
    """Columns whose ids are numbered.

    Parameters
    ----------
    chunks : list of CodeChunks
        One for each column: codes of the rows, all columns cut at the same rows.
    table : ndarray, shape (codes + 1,), int32
        Position among the sorted ids of each code; the last one, which is -1, answers code -1.
    values : pyarrow.Array
        The distinct ids, sorted.
    """

    chunks: list[CodeChunks]
    table: Codes
    values: pa.Array

    def arrays(self) -> list[Codes]:
        """Positions of all rows, one array a column; uses the chunks up."""
        return [self._drain(chunks) for chunks in self.chunks]

    def stream(self, column: int) -> Iterator[Codes]:
        """Positions of the rows of one column, chunk by chunk; chunks without rows are left out."""
        return (look_up(self.table, codes) for codes in self.chunks[column] if len(codes))

    def close(self) -> None:
        """Free what the rows and the table take; the values stay."""
        for chunks in self.chunks:
            chunks.clear()
        self.table = _NO_CODES

    def _drain(self, chunks: CodeChunks) -> Codes:
        """Map the chunks into one array, releasing each chunk as soon as it is copied."""
        ends = np.cumsum(chunks.lengths, dtype=np.int64)
        result = np.empty(ends[-1] if len(ends) else 0, np.int32)

        def drain(position: int) -> None:
            codes, end = chunks[position], ends[position]
            np.take(self.table, codes, mode="wrap", out=result[end - len(codes) : end])
            chunks[position] = _NO_CODES

        in_threads(drain, range(len(chunks)))
        return result


def look_up(table: Codes, codes: Codes) -> Codes:
    """Entries of a table; code -1 is the last one."""
    # wrap: several times faster than indexing.
    return np.take(table, codes, mode="wrap")


def in_threads(function: Callable[[_ArgumentT], _ResultT], arguments: Iterable[_ArgumentT]) -> list[_ResultT]:
    """``map`` on as many threads as Arrow uses; for work that releases the interpreter's lock."""
    given = list(arguments)
    if len(given) < 2:  # a thread would take longer to start than most work does
        return [function(argument) for argument in given]
    with ThreadPoolExecutor(pa.cpu_count()) as pool:
        return list(pool.map(function, given))
