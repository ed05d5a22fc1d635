"""Stable parallel radix sort of packed keys, from the lowest digit to the highest."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import prange

from seedrank.kernels._cpu.compiled import compiled
from seedrank.kernels.arrays import Int64Array

DIGIT_BITS = 7
"""A pass deals the keys out into at most 2**DIGIT_BITS piles; with more, writing to their ends takes twice as long."""

Rows = tuple[Int64Array, npt.NDArray[np.float64 | np.int32 | np.int64] | None]
"""Keys, not negative, and the weights or counts that travel along."""


def sort_by_bits(rows: Rows, spare: Rows, *, low: int, high: int, threads: int) -> tuple[Rows, Rows]:
    """Sort rows by the bits ``low`` to ``high - 1`` of their keys; stable.

    The result depends neither on the number of threads nor on how the rows are shared out among them, and the time not
    on how the keys are distributed.

    Parameters
    ----------
    rows, spare : Rows (m)
        What to sort, and as much memory again.
    low, high : int
        0 <= low < high <= 63.
    threads : int

    Returns
    -------
    rows, spare : Rows (m)
        The arguments, the one way or the other: the sorted rows, and memory that holds anything.
    """
    passes = -(-(high - low) // DIGIT_BITS)
    for number in range(passes):
        bits = -(-(high - low) // (passes - number))
        _deal(*rows, *spare, low, 1 << bits, threads)
        rows, spare = spare, rows
        low += bits
    return rows, spare


@compiled(parallel=True)
def _deal(key: Any, weight: Any, out_key: Any, out_weight: Any, shift: int, piles: int, threads: int) -> None:
    """Deal rows out into piles by one digit; within a pile they stay in order."""
    rows = key.shape[0]
    # Unsigned digits and places: a signed index costs a test for counting from the end.
    low, mask = np.uint64(shift), np.uint64(piles - 1)
    place = np.zeros((threads, piles), np.uint64)
    for thread in prange(threads):
        count = np.zeros(piles, np.uint64)
        for i in range(rows * thread // threads, rows * (thread + 1) // threads):
            count[np.uint64(key[i]) >> low & mask] += np.uint64(1)
        place[thread] = count
    start = np.uint64(0)
    for pile in range(piles):
        for thread in range(threads):
            count_here = place[thread, pile]
            place[thread, pile] = start
            start += count_here
    for thread in prange(threads):
        free = place[thread].copy()
        for i in range(rows * thread // threads, rows * (thread + 1) // threads):
            digit = np.uint64(key[i]) >> low & mask
            position = free[digit]
            free[digit] = position + np.uint64(1)
            out_key[position] = key[i]
            if weight is not None:
                out_weight[position] = weight[i]
