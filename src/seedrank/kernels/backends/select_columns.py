"""The best nodes of several columns of a block, column by column on the host."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from seedrank.kernels.arrays import BoolArray, Int32Array, Int64Array, Precision, ScoreArray
from seedrank.kernels.backend import QueryBlock, Selection
from seedrank.kernels.topk import top_k


def select_columns(
    vector: Callable[[int], ScoreArray],
    columns: Int64Array,
    query: QueryBlock,
    *,
    precision: Precision,
    order: Int32Array,
    k: int,
    eligible: BoolArray | None,
    min_score: float,
) -> Selection:
    """Select the top k of each column: `seedrank.kernels.topk` states the rules.

    Parameters
    ----------
    vector : callable
        Column of the block as it was started -> its scores (n), in the precision of the run, by internal node.
    columns : int64 (c)
    query : QueryBlock
        As the block was started: what is excluded and what is reachable, by column.
    precision : "float32" or "float64"
    order : int32 (n)
        Tie rank by internal node.
    k : int
        >= 1
    eligible : bool (n) or None
        Internal nodes that may be selected.
    min_score : float
        Lowest score that counts.

    Returns
    -------
    Selection
    """
    nodes = np.full((len(columns), k), -1, dtype=np.int32)
    scores = np.zeros((len(columns), k), dtype=precision)
    counts = np.zeros(len(columns), dtype=np.int32)
    offsets, reachable = query.exclude_offsets, query.reachable
    for row, column in enumerate(columns.tolist()):
        allowed = eligible
        if reachable is not None:
            near = (reachable >> np.uint64(column) & np.uint64(1)).astype(np.bool_)
            allowed = near if eligible is None else near & eligible
        found, values = top_k(
            vector(column),
            k=k,
            order=order,
            eligible=allowed,
            excluded=query.exclude_nodes[offsets[column] : offsets[column + 1]],
            min_score=min_score,
        )
        counts[row] = len(found)
        nodes[row, : len(found)] = found
        scores[row, : len(found)] = values
    return Selection(nodes=nodes, scores=scores, counts=counts)
