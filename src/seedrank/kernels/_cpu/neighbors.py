"""The distinct neighbours of a node by ascending tie rank: parallel edges and both directions seen as one list."""

from __future__ import annotations

from typing import Any

import numpy as np

from seedrank.kernels._cpu.compiled import compiled


@compiled(inline=True)
def row_bounds(rows: Any, node: Any) -> Any:
    """Where the edges of a node begin and end, in the first direction and in the other (empty if there is none).

    `rows` holds offsets and neighbors of one direction, the same of the other, and whether the other is followed too.
    """
    offsets, _, other_offsets, _, both = rows
    if both:
        return offsets[node], offsets[node + 1], other_offsets[node], other_offsets[node + 1]
    return offsets[node], offsets[node + 1], np.int64(0), np.int64(0)


@compiled(inline=True)
def next_neighbor(rows: Any, ranks: Any, first: Any, last: Any, other_first: Any, other_last: Any) -> Any:
    """Take the neighbour of lowest tie rank off two stretches of sorted entries.

    Returns
    -------
    node : int
        -1 if both stretches are empty.
    first, other_first : int
        Where the stretches go on, after all entries of this neighbour.
    """
    # Unsigned indices: a signed one costs a test for counting from the end.
    _, neighbors, _, other_neighbors, _ = rows
    node = np.int64(-1)
    if first < last:
        node = np.int64(neighbors[np.uint64(first)])
    if other_first < other_last:
        other = np.int64(other_neighbors[np.uint64(other_first)])
        if node < 0 or ranks[np.uint32(other)] < ranks[np.uint32(node)]:
            node = other
    while first < last and neighbors[np.uint64(first)] == node:
        first += 1
    while other_first < other_last and other_neighbors[np.uint64(other_first)] == node:
        other_first += 1
    return node, first, other_first
