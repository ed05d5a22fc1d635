"""A ranking of nodes as a ranking of groups of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seedrank.kernels.arrays import Int32Array, Int64Array
from seedrank.kernels.runs import gather, places_in_runs, run_starts


@dataclass(frozen=True)
class Collapsed:
    """Groups of B rankings, g in total, query after query, best first.

    Attributes
    ----------
    counts : int32 (B)
        Groups of each ranking.
    best : int64 (g)
        Row of the best member.
    offsets : int64 (g + 1)
        Group i has the rows ``members[offsets[i]]`` to ``members[offsets[i + 1]]``.
    members : int64
        Rows of the members, within a group in the order of the ranking.
    """

    counts: Int32Array
    best: Int64Array
    offsets: Int64Array
    members: Int64Array


def collapse(counts: Int32Array, groups: Int32Array, *, k: int) -> Collapsed:
    """Rank groups by their best member, and keep the k best of every ranking.

    Parameters
    ----------
    counts : int32 (B)
        Rows of each ranking; c in total, ranking after ranking, best first.
    groups : int32 (c)
        Group of each row, >= 0; -1 is a group of its own.
    k : int
        >= 1.

    Returns
    -------
    Collapsed
    """
    rows = len(groups)
    query = np.repeat(np.arange(len(counts)), counts)
    alone = int(groups.max(initial=-1)) + 1 + np.arange(rows)
    keys = query * (alone[-1] + 1 if rows else 1) + np.where(groups >= 0, groups, alone)
    _, first, group_of_row = np.unique(keys, return_index=True, return_inverse=True)
    # Rows are in order, so that the first ones of groups rank them, query by query.
    by_rank = np.argsort(first)
    best = first[by_rank]
    kept = places_in_runs(run_starts(query[best]), len(best)) < k
    by_group = np.argsort(group_of_row, kind="stable")
    bounds = np.zeros(len(first) + 1, dtype=np.int64)
    np.cumsum(np.bincount(group_of_row, minlength=len(first)), out=bounds[1:])
    offsets, entries = gather(bounds, by_rank[kept])
    return Collapsed(
        counts=np.bincount(query[best[kept]], minlength=len(counts)).astype(np.int32),
        best=best[kept],
        offsets=offsets,
        members=by_group[entries],
    )
