"""Sort packed edges of one bucket, and reduce those that are there more than once."""

from __future__ import annotations

import numpy as np

from seedrank.kernels.arrays import DuplicateRule, Float64Array, Int64Array
from seedrank.kernels.building.adjacency import COMPILED_ROWS
from seedrank.kernels.building.duplicates import reduce_weights
from seedrank.kernels.numba_support import why_not_compiled
from seedrank.kernels.runs import run_starts


def reduce_keys(
    key: Int64Array, weight: Float64Array | None, *, bits: int, duplicate_edges: DuplicateRule
) -> tuple[Int64Array, Float64Array | None]:
    """Sort packed edges and reduce the weights of equal ones.

    Parameters
    ----------
    key : int64 (m)
        Not negative; used up.
    weight : float64 (m) or None
        None: every row counts 1. Used up.
    bits : int
        Bits of a key that may be set.
    duplicate_edges : "sum", "max", "min" or "mean"
        As in `seedrank.kernels.building.duplicates.reduce_duplicates`, to the bit.

    Returns
    -------
    key : int64 (distinct keys)
        Ascending.
    weight : float64 (distinct keys) or None
        None when all are exactly 1.
    """
    if _compiled(key):
        from numba import get_num_threads  # noqa: PLC0415  # small builds should not wait for Numba

        from seedrank.kernels._cpu.radix_sort import sort_by_bits  # noqa: PLC0415
        from seedrank.kernels._cpu.reduce_runs import reduce_runs  # noqa: PLC0415

        spare = np.empty_like(key), None if weight is None else np.empty_like(weight)
        rows, _ = sort_by_bits((key, weight), spare, low=0, high=max(bits, 1), threads=get_num_threads())
        distinct, reduced = reduce_runs(rows, duplicate_edges, get_num_threads())
        return distinct, None if reduced is None else reduced.astype(np.float64, copy=False)
    order = np.argsort(key, kind="stable") if weight is None else np.lexsort((weight, key))
    ordered = key[order]
    starts = run_starts(ordered)
    weights = reduce_weights(np.ones(len(key)) if weight is None else weight[order], starts, duplicate_edges)
    return ordered[starts], None if bool((weights == 1).all()) else weights


def sort_rows(
    key: Int64Array, weight: Float64Array | None, *, low: int, high: int
) -> tuple[Int64Array, Float64Array | None]:
    """Sort packed edges by the bits of their row, ``low`` to ``high - 1``; stable; uses them up."""
    if _compiled(key):
        from numba import get_num_threads  # noqa: PLC0415

        from seedrank.kernels._cpu.radix_sort import sort_by_bits  # noqa: PLC0415

        spare = np.empty_like(key), None if weight is None else np.empty_like(weight)
        (ordered, weights), _ = sort_by_bits((key, weight), spare, low=low, high=high, threads=get_num_threads())
        return ordered, None if weights is None else weights.astype(np.float64, copy=False)
    order = np.argsort(key >> low, kind="stable")
    return key[order], None if weight is None else weight[order]


def _compiled(key: Int64Array) -> bool:
    return len(key) >= COMPILED_ROWS and why_not_compiled() is None
