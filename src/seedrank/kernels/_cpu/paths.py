"""Shortest paths by search from both ends; the end nearer to the anchors is shared by all targets of a group."""

from __future__ import annotations

from typing import Any

import numpy as np

from seedrank.kernels._cpu.borrowed import borrowed
from seedrank.kernels._cpu.compiled import compiled
from seedrank.kernels._cpu.neighbors import next_neighbor, row_bounds


@compiled()
def new_search(nodes: int) -> Any:
    """Memory of a search from one end: a sparse set of the nodes found, in the order in which they were found.

    Only what is written is ever touched, so nothing is cleared between searches (Briggs, Torczon, "An efficient
    representation for sparse sets", 1993).

    Returns
    -------
    tuple
        slots : int32 (n), where a node would be among `found`, anything for others;
        found, parents : int32 (n), nodes by level, and the slot from which each was found;
        starts : int64 (n + 2), the first slot of every level, and one more.
    """
    slots, found, parents = np.empty(nodes, np.int32), np.empty(nodes, np.int32), np.empty(nodes, np.int32)
    return slots, found, parents, np.empty(nodes + 2, np.int64)


@compiled(inline=True)
def _slot(search: Any, count: Any, node: Any) -> Any:
    """The slot of a node among the first `count`, or -1."""
    slot = search[0][node]
    if 0 <= slot < count and search[1][slot] == node:
        return slot
    return np.int32(-1)


@compiled(inline=True)
def _add(search: Any, count: Any, node: Any, parent: Any) -> Any:
    """Add a node that is not there yet; returns the new number of nodes."""
    slots, found, parents, _ = search
    slots[node], found[count], parents[count] = count, node, parent
    return count + 1


@compiled()
def _entries(rows: Any, search: Any, level: int) -> int:
    """Edges that leave the nodes of a level."""
    rows, search = borrowed((rows, search))
    total = 0
    for slot in range(search[3][level], search[3][level + 1]):
        first, last, other_first, other_last = row_bounds(rows, search[1][slot])
        total += last - first + other_last - other_first
    return total


@compiled()
def _expand(rows: Any, ranks: Any, search: Any, level: int, stop: Any, query: int) -> None:
    """Find the next level, in the order of this one and, within it, of tie ranks; part of it once `stop` is set.

    A node is found first from the first of its possible parents; if slots of this level are in the order of the
    smallest paths (compared node by node by tie rank) to it, so are those of the next, and `parents` are those paths.
    """
    rows, ranks, search, stop = borrowed((rows, ranks, search, stop))
    found, starts = search[1], search[3]
    count = starts[level + 1]
    for slot in range(starts[level], starts[level + 1]):
        if stop[query]:
            break
        first, last, other_first, other_last = row_bounds(rows, found[slot])
        while first < last or other_first < other_last:
            node, first, other_first = next_neighbor(rows, ranks, first, last, other_first, other_last)
            if _slot(search, count, node) < 0:
                count = _add(search, count, node, slot)
    starts[level + 2] = count


@compiled()
def _meeting(ahead: Any, depth: int, back: Any, level: int) -> int:
    """The first slot of the last level from the anchors that the search from the target has found too, or -1.

    As long as no path was found that is shorter, a common node can only be on the last level of either search; the
    last level of the search from the target is given and is the one to look through where it is smaller.
    """
    ahead, back = borrowed((ahead, back))
    starts, back_starts = ahead[3], back[3]
    back_count = back_starts[level + 1]
    if starts[depth + 1] - starts[depth] <= back_count - back_starts[level]:
        for slot in range(starts[depth], starts[depth + 1]):
            if _slot(back, back_count, ahead[1][slot]) >= 0:
                return slot
        return -1
    best = -1
    for back_slot in range(back_starts[level], back_count):
        slot = _slot(ahead, starts[depth + 1], back[1][back_slot])
        if slot >= 0 and (best < 0 or slot < best):
            best = slot
    return best


@compiled()
def _search(
    rows: Any,
    incoming: Any,
    ranks: Any,
    ahead: Any,
    depth: int,
    back: Any,
    target: int,
    left: int,
    stop: Any,
    query: int,
) -> Any:
    """Search from both ends until they meet.

    Parameters
    ----------
    ahead, depth
        Search from the anchors, complete to this level.
    back
        Memory for the search from the target.
    left : int
        Targets that still need the search from the anchors, this one included: they share its cost.
    stop, query
        Flags of queries, and which of them ends this search.

    Returns
    -------
    depth : int
        Level to which the search from the anchors is complete now.
    level : int
        Level of the search from the target on which they meet; -1: the target cannot be reached, or the search was
        ended.
    slot : int
        Where they meet, in the search from the anchors.
    """
    rows, incoming, ranks, ahead, back, stop = borrowed((rows, incoming, ranks, ahead, back, stop))
    starts, back_starts = ahead[3], back[3]
    slot = _slot(ahead, starts[depth + 1], target)
    if slot >= 0:
        return depth, 0, slot
    back_starts[0], back_starts[1] = 0, _add(back, 0, target, -1)
    level = 0
    while starts[depth] < starts[depth + 1] and back_starts[level] < back_starts[level + 1]:
        if _entries(rows, ahead, depth) <= left * _entries(incoming, back, level):
            _expand(rows, ranks, ahead, depth, stop, query)
            depth += 1
        else:
            _expand(incoming, ranks, back, level, stop, query)
            level += 1
        if stop[query]:
            break
        slot = _meeting(ahead, depth, back, level)
        if slot >= 0:
            return depth, level, slot
    return depth, -1, -1


@compiled()
def find_paths(
    rows: Any, incoming: Any, ranks: Any, anchors: Any, targets: Any, ahead: Any, back: Any, stop: Any, query: int
) -> Any:
    """Find the smallest of the shortest paths from any of the anchors to each target.

    Parameters
    ----------
    rows, incoming : tuple
        See `row_bounds`; steps by the node they leave, and by the node they lead to.
    ranks : int32 (n)
    anchors : int32
        By ascending tie rank.
    targets : int32 (t)
    ahead, back : tuple
        Memory of `new_search`.
    stop, query : uint8, int
        Flags of queries, and which of them ends the search.

    Returns
    -------
    hops : int32 (t)
        -1 without a path, also for the targets that were left when the search was ended.
    nodes : int32
        The hops + 1 nodes of every path, one path after the other.
    ended : bool
        Whether the search was ended before its last target.
    """
    rows, incoming, ranks, ahead, back, stop = borrowed((rows, incoming, ranks, ahead, back, stop))
    hops = np.full(targets.shape[0], -1, np.int32)
    nodes = np.empty(16, np.int32)
    end = 0
    count = 0
    for anchor in anchors:
        count = _add(ahead, count, anchor, -1)
    ahead[3][0], ahead[3][1] = 0, count
    depth = 0
    for i in range(targets.shape[0]):
        if stop[query]:
            return hops, nodes[:end], True
        left = targets.shape[0] - i
        depth, level, slot = _search(rows, incoming, ranks, ahead, depth, back, targets[i], left, stop, query)
        if level < 0:
            if stop[query]:
                return hops, nodes[:end], True
            continue
        length = 0
        while ahead[3][length + 1] <= slot:
            length += 1
        hops[i] = length + level
        while nodes.shape[0] < end + hops[i] + 1:
            nodes = np.concatenate((nodes, np.empty_like(nodes)))
        for position in range(length, -1, -1):
            nodes[end + position] = ahead[1][slot]
            slot = ahead[2][slot]
        for position in range(length, length + level):
            to_go = length + level - position - 1
            nodes[end + position + 1] = _step_towards(rows, ranks, nodes[end + position], back, to_go)
        end += hops[i] + 1
    return hops, nodes[:end], False


@compiled()
def _step_towards(rows: Any, ranks: Any, node: int, back: Any, level: int) -> Any:
    """The neighbour of lowest tie rank among those on a level of the search from the target; there is one."""
    rows, ranks, back = borrowed((rows, ranks, back))
    first, last, other_first, other_last = row_bounds(rows, node)
    while True:
        neighbor, first, other_first = next_neighbor(rows, ranks, first, last, other_first, other_last)
        slot = _slot(back, back[3][level + 1], neighbor)
        if slot >= back[3][level]:
            return neighbor


@compiled()
def heaviest_entries(
    offsets: Any, neighbors: Any, weights: Any, ranks: Any, sources: Any, targets: Any, entries: Any
) -> None:
    """For each step the entry of largest weight among its parallel edges, the first of equals; -1 if there is none.

    Parameters
    ----------
    offsets, neighbors : int64 (n + 1), int32 (m)
        Neighbours by tie rank, then by type code.
    weights : float64 (m), or of length 0
        Length 0: all are equal.
    ranks : int32 (n)
    sources, targets : int32 (s)
        Steps.
    entries : int64 (s)
        Filled with positions in `neighbors`.
    """
    offsets, neighbors, weights, ranks = borrowed((offsets, neighbors, weights, ranks))
    for i in range(sources.shape[0]):
        first, end = offsets[sources[i]], offsets[sources[i] + 1]
        last = end
        while first < last:
            middle = (first + last) // 2
            if ranks[neighbors[middle]] < ranks[targets[i]]:
                first = middle + 1
            else:
                last = middle
        best = -1
        while first < end and neighbors[first] == targets[i]:
            if best < 0 or (weights.shape[0] > 0 and weights[first] > weights[best]):
                best = first
            first += 1
        entries[i] = best
