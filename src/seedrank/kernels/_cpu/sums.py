"""Weighted sums of the vectors that a block goes through: several restart probabilities share its products."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from seedrank.kernels._cpu.buffers import huge_array, take_columns
from seedrank.kernels._cpu.compiled import compiled
from seedrank.kernels.arrays import Float64Array, Int64Array, Precision, ScoreArray


class RunningSums:
    """J matrices of the size of the block, in memory that is kept from block to block.

    Parameters
    ----------
    rows : int
    precision : "float32" or "float64"
    threads : int

    Attributes
    ----------
    matrices : float32 or float64 (J, rows, width)
    """

    matrices: ScoreArray

    def __init__(self, rows: int, precision: Precision, threads: int) -> None:
        self._rows = rows
        self._precision: Precision = precision
        self._threads = threads
        self._memory: ScoreArray = np.zeros(0, dtype=precision)

    def reset(self, count: int, width: int) -> None:
        """Begin `count` sums of a block of this width, at 0."""
        size = count * self._rows * width
        if len(self._memory) < size:
            # What is too small goes first, as in a `BlockPair`.
            self.matrices = self._memory = np.zeros(0, dtype=self._precision)
            self._memory = huge_array(size, self._precision)
        self.matrices = self._memory[:size].reshape(count, self._rows, width)
        self.matrices[...] = 0

    def add(self, block: ScoreArray, unscale: ScoreArray, weights: Float64Array, factors: Float64Array) -> None:
        """``sum j ← (sum j + weights[j] · block · unscale) · factors[j]``, by column: both are (J, width)."""
        dtype = self.matrices.dtype
        # Sums that are finished in all columns, as those of high restart probabilities are early, cost nothing more.
        growing = np.flatnonzero((weights != 0).any(axis=1) | (factors != 1).any(axis=1))
        weights, factors = weights.astype(dtype), factors.astype(dtype)
        add_weighted(self.matrices, growing, block, unscale, weights, factors, self._threads)

    def narrow(self, columns: Int64Array, width: int) -> None:
        """Keep some columns, in matrices of `width` columns filled up with zeros."""
        before = self.matrices
        # In place, sum after sum: each moves to where an earlier one was, through one matrix apart.
        after = self._memory[: len(before) * self._rows * width].reshape(len(before), self._rows, width)
        apart = np.empty((self._rows, width), dtype=before.dtype)
        for position in range(len(before)):
            take_columns(before[position], columns, apart, self._threads)
            after[position] = apart
        self.matrices = after


@compiled(parallel=True)
def add_weighted(sums: Any, positions: Any, block: Any, unscale: Any, weights: Any, factors: Any, threads: int) -> None:
    """Read the block once for the sums at these positions; see `RunningSums.add`."""
    _, rows, width = sums.shape
    for thread in prange(threads):
        values = np.empty(width, block.dtype)
        for row in range(rows * thread // threads, rows * (thread + 1) // threads):
            back = unscale[row]
            for column in range(width):
                values[column] = block[row, column] * back
            for position in positions:
                for column in range(width):
                    total = sums[position, row, column] + weights[position, column] * values[column]
                    sums[position, row, column] = total * factors[position, column]
