"""Exact selection of the k best nodes of one vector."""

from __future__ import annotations

import numpy as np

from seedrank.kernels.arrays import BoolArray, Int32Array, ScoreArray


def top_k(
    scores: ScoreArray,
    *,
    k: int,
    order: Int32Array,
    eligible: BoolArray | None = None,
    excluded: Int32Array | None = None,
    min_score: float = 0.0,
) -> tuple[Int32Array, ScoreArray]:
    """Select the k best nodes: score descending, ties by tie rank ascending, exact at the cut.

    All filters apply before the cut. A score of 0 (a node that the seeds cannot reach) is never selected.

    Parameters
    ----------
    scores : float32 or float64 (n)
        By internal node.
    k : int
        >= 1; more than there are candidates is fine.
    order : int32 (n)
        Tie rank by internal node.
    eligible : bool (n), optional
        Nodes that may be selected; None: all.
    excluded : int32, optional
        Internal nodes that may not be selected.
    min_score : float
        Lowest score that counts, compared in the precision of `scores`.

    Returns
    -------
    nodes : int32 (c)
        Internal nodes, c <= k.
    scores : float32 or float64 (c)
    """
    candidate = scores > 0
    if min_score > 0:
        candidate &= scores >= scores.dtype.type(min_score)
    if eligible is not None:
        candidate &= eligible
    if excluded is not None:
        candidate[excluded] = False
    nodes = np.flatnonzero(candidate)
    values = scores[nodes]
    if len(nodes) > k:
        lowest = np.partition(values, len(values) - k)[len(values) - k]
        chosen = nodes[values > lowest]
        tied = nodes[values == lowest]
        # Tie ranks are unique, so the lowest of them are an exact choice among equal scores.
        wanted = k - len(chosen)
        if wanted < len(tied):
            tied = tied[np.argpartition(order[tied], wanted - 1)[:wanted]]
        nodes = np.concatenate((chosen, tied))
        values = scores[nodes]
    ranking = np.lexsort((order[nodes], -values))
    return nodes[ranking].astype(np.int32), values[ranking]
