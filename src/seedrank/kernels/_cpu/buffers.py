"""Big arrays on huge pages: a product touches rows all over the block, and page walks cost more than the data."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
from numba import prange

from seedrank.kernels._cpu.compiled import compiled
from seedrank.kernels.arrays import Int64Array, Precision, ScoreArray

HUGE_PAGE = 1 << 21

_PRIVATE = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}


class BlockPair:
    """A block of vectors and its successor, in memory that is kept from block to block.

    Making and clearing pages costs as much as a product, so the two matrices are views of two flat arrays that only
    ever grow.

    Parameters
    ----------
    rows : int
    precision : "float32" or "float64"
    threads : int

    Attributes
    ----------
    current, following : float32 or float64 (rows, width)
        C order, rows start on cache lines.
    """

    current: ScoreArray
    following: ScoreArray

    def __init__(self, rows: int, precision: Precision, threads: int) -> None:
        self._rows = rows
        self._precision: Precision = precision
        self._threads = threads
        self._memory = [np.zeros(0, dtype=precision), np.zeros(0, dtype=precision)]

    def reset(self, width: int) -> None:
        """Begin a block of this width: `current` is zero, `following` holds anything."""
        if len(self._memory[0]) < self._rows * width:
            # What is too small goes first: memory may hold the larger pair, but not both.
            self._memory = [np.zeros(0, dtype=self._precision) for _ in range(2)]
            self.current, self.following = self._memory
            self._memory = [huge_array(self._rows * width, self._precision) for _ in range(2)]
        self.current, self.following = (self._view(side, width) for side in range(2))
        clear(self.current, self._threads)

    def swap(self) -> None:
        """Let the successor be the current block."""
        self._memory.reverse()
        self.current, self.following = self.following, self.current

    def narrow(self, columns: Int64Array, width: int) -> None:
        """Keep some columns of the current block, in a matrix of `width` columns filled up with zeros."""
        kept = self._view(1, width)
        take_columns(self.current, columns, kept, self._threads)
        self._memory.reverse()
        self.current, self.following = kept, self._view(1, width)

    def _view(self, side: int, width: int) -> ScoreArray:
        matrix: ScoreArray = self._memory[side][: self._rows * width].reshape(self._rows, width)
        return matrix


def huge_array(size: int, precision: Precision) -> ScoreArray:
    """Return a zeroed array that starts on a 2 MiB boundary.

    Linux is asked for huge pages (1.2 to 2.3 times the speed of the product on graphs up to some hundred thousand
    nodes); elsewhere the memory is ordinary. It is private to the process: what Python maps by itself is shared memory,
    which gets huge pages only where another setting of the system allows them, and by default none does.

    Raises
    ------
    MemoryError
        There is no room.
    """
    length = size * np.dtype(precision).itemsize
    try:
        memory = mmap.mmap(-1, length + HUGE_PAGE, **_PRIVATE)
    except OSError as error:
        # What NumPy says when an ordinary array does not fit.
        raise MemoryError(f"unable to allocate {length / 1e6:,.1f} MB for a block: {error.strerror}") from error
    if hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)
    raw = np.frombuffer(memory, dtype=np.uint8)
    start = -raw.ctypes.data % HUGE_PAGE
    array: ScoreArray = raw[start : start + length].view(precision)
    return array


@compiled(parallel=True)
def clear(matrix: Any, threads: int) -> None:
    """Set every element to 0, on all threads."""
    rows = matrix.shape[0]
    for thread in prange(threads):
        matrix[rows * thread // threads : rows * (thread + 1) // threads] = 0


@compiled(parallel=True)
def scale_rows(matrix: Any, factors: Any, threads: int) -> None:
    """Multiply every row by its factor, in place, on all threads."""
    rows, width = matrix.shape
    for thread in prange(threads):
        for row in range(rows * thread // threads, rows * (thread + 1) // threads):
            for j in range(width):
                matrix[row, j] *= factors[row]


@compiled(parallel=True)
def take_columns(matrix: Any, columns: Any, target: Any, threads: int) -> None:
    """``target = matrix[:, columns]``, its further columns 0, on all threads and without a copy in between."""
    rows, count, width = matrix.shape[0], columns.shape[0], target.shape[1]
    for thread in prange(threads):
        for row in range(rows * thread // threads, rows * (thread + 1) // threads):
            for j in range(count):
                target[row, j] = matrix[row, columns[j]]
            for j in range(count, width):
                target[row, j] = 0
