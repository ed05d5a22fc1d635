"""Rows of equal keys become one row: the duplicates of an edge list, compiled, on all threads."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from seedrank.kernels._cpu.compiled import compiled
from seedrank.kernels._cpu.radix_sort import Rows
from seedrank.kernels.arrays import DuplicateRule

SUM, MAX, MIN, MEAN = range(4)
_RULES: dict[DuplicateRule, int] = {"sum": SUM, "max": MAX, "min": MIN, "mean": MEAN}


def reduce_runs(rows: Rows, rule: DuplicateRule, threads: int) -> Rows:
    """Reduce the rows of each key to one.

    Parameters
    ----------
    rows : Rows (m)
        Sorted by key, weights in any order within a key; used up. Without weights every row counts 1.
    rule : "sum", "max", "min" or "mean"
        Weights of one key are sorted ascending and reduced in that order, whatever the order of the rows was.
    threads : int
        Changes no bit of the result.

    Returns
    -------
    Rows (distinct keys)
        In the memory of the argument; weights are None when all are exactly 1.
    """
    key, weight = rows
    # Rows without weights are counted, in 4 bytes each while they fit.
    reduced = np.empty(len(key), count_dtype(len(key))) if weight is None and rule == "sum" else weight
    # Shares begin where a run begins.
    begin = [0]
    for thread in range(1, threads + 1):
        at = len(key) * thread // threads
        begin.append(int(np.searchsorted(key, key[at], side="left")) if at < len(key) else at)
    kept = np.zeros(threads, dtype=np.int64)
    _reduce_runs(key, weight, reduced, np.array(begin), kept, _RULES[rule])
    distinct = 0
    for first, count in zip(begin, kept.tolist(), strict=False):
        for array in (key, reduced):
            if array is not None and distinct < first:
                array[distinct : distinct + count] = array[first : first + count]
        distinct += count
    if reduced is None or bool((reduced[:distinct] == 1).all()):
        return key[:distinct], None
    return key[:distinct], reduced[:distinct]


def count_dtype(most: int) -> type[np.int32 | np.int64]:
    """Integers that count so far, in as few bytes as that takes."""
    return np.int32 if most < 2**31 else np.int64


@compiled(parallel=True)
def _reduce_runs(key: Any, weight: Any, reduced: Any, begin: Any, kept: Any, rule: int) -> None:
    """Keep one row of each run of equal keys, at the start of each share ``begin[s] … begin[s + 1]``.

    ``kept[s]`` becomes the number of rows that are kept. `reduced` may be `weight`.
    """
    for share in prange(kept.shape[0]):
        i = free = begin[share]
        while i < begin[share + 1]:
            end = i + 1
            while end < begin[share + 1] and key[end] == key[i]:
                end += 1
            key[free] = key[i]
            if reduced is not None:
                reduced[free] = end - i if weight is None else _reduce_weights(weight[i:end], rule)
            free += 1
            i = end
        kept[share] = free - begin[share]


@compiled()
def _reduce_weights(weights: Any, rule: int) -> Any:
    """Reduce the weights of one edge in ascending order, whatever the order of the rows was."""
    if weights.shape[0] == 1:
        return weights[0]
    weights.sort()
    if rule == MIN:
        return weights[0]
    if rule == MAX:
        return weights[-1]
    total = 0.0
    for weight in weights:
        total += weight
    return total / weights.shape[0] if rule == MEAN else total
