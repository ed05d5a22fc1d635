"""Positions in ranked lists, of many lists at once."""

from __future__ import annotations

import numpy as np

from seedrank.kernels.arrays import Float64Array, Int32Array, Int64Array
from seedrank.kernels.runs import places_in_runs, run_starts


def ordinal_ranks(group: Int64Array, goodness: Float64Array, tie_rank: Int32Array) -> Int64Array:
    """Return the position of every entry in its list, from 1: best first, ties by tie rank.

    Parameters
    ----------
    group : int64 (h)
        The list that an entry is in.
    goodness : float64 (h)
        Larger is better.
    tie_rank : int32 (h)
        Entries that agree in this, too, keep their order.

    Returns
    -------
    int64 (h)
    """
    by_rank = np.lexsort((tie_rank, -goodness, group))
    ranks = np.empty(len(by_rank), dtype=np.int64)
    ranks[by_rank] = 1 + places_in_runs(run_starts(group[by_rank]), len(by_rank))
    return ranks
