"""Reachability for up to 64 queries at once: one bit a query, levels pushed from where they are sparse or pulled."""

from __future__ import annotations

from typing import Any

import numpy as np

from seedrank.kernels._cpu.borrowed import borrowed
from seedrank.kernels._cpu.compiled import compiled
from seedrank.kernels._cpu.neighbors import row_bounds


@compiled()
def edges_of(rows: Any, nodes: Any) -> int:
    """Edges that leave some nodes."""
    rows, nodes = borrowed((rows, nodes))
    total = 0
    for node in nodes:
        first, last, other_first, other_last = row_bounds(rows, node)
        total += last - first + other_last - other_first
    return total


@compiled()
def push(rows: Any, nodes: Any, fresh: Any, reached: Any, coming: Any) -> None:
    """Pass the bits of `fresh` on along the edges that leave some nodes, where they are new.

    Parameters
    ----------
    rows : tuple
        See `row_bounds`, by the node that a step leaves.
    nodes : int64
        Those whose bits in `fresh` are not 0.
    fresh, reached, coming : uint64 (n)
        Bits of the last level, of all levels, and of the next.
    """
    rows, nodes, fresh, reached, coming = borrowed((rows, nodes, fresh, reached, coming))
    _, neighbors, _, other_neighbors, _ = rows
    for node in nodes:
        first, last, other_first, other_last = row_bounds(rows, node)
        for i in range(first, last):
            coming[neighbors[i]] |= fresh[node] & ~reached[neighbors[i]]
        for i in range(other_first, other_last):
            coming[other_neighbors[i]] |= fresh[node] & ~reached[other_neighbors[i]]


@compiled()
def pull(incoming: Any, every: Any, fresh: Any, reached: Any, coming: Any, begin: int, end: int) -> None:
    """Let the nodes ``begin … end - 1`` take the bits of `fresh` that they lack from where edges come from.

    Parameters
    ----------
    incoming : tuple
        As `rows`, by the node that a step leads to.
    every : uint64
        The bits of all queries: a node that has them, or is getting them, needs no more.
    """
    incoming, fresh, reached, coming = borrowed((incoming, fresh, reached, coming))
    _, neighbors, _, other_neighbors, _ = incoming
    for node in range(begin, end):
        missing = every & ~reached[node]
        first, last, other_first, other_last = row_bounds(incoming, node)
        bits = np.uint64(0)
        while first < last and bits & missing != missing:
            bits |= fresh[neighbors[first]]
            first += 1
        while other_first < other_last and bits & missing != missing:
            bits |= fresh[other_neighbors[other_first]]
            other_first += 1
        coming[node] = bits & missing
