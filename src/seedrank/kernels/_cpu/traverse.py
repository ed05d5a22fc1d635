"""Breadth-first traversal: level by level; under a budget the nodes of a level take turns."""

from __future__ import annotations

from typing import Any

import numpy as np

from seedrank.kernels._cpu.borrowed import borrowed
from seedrank.kernels._cpu.compiled import compiled
from seedrank.kernels._cpu.neighbors import next_neighbor, row_bounds
from seedrank.kernels._cpu.reached import cut_by_hops, new_reached, rank_reached, reach, reach_again, slot_of, start_at
from seedrank.kernels.recall.forms import LIMITS

_MAX_HOPS, _MAX_NODES, _MAX_EDGES, _STOPPED = (
    LIMITS.index(name) for name in ("max_hops", "max_visited_nodes", "max_visited_edges", "timeout_s")
)


@compiled()
def new_memory(nodes: int) -> Any:
    """Memory for one query after the other.

    Returns
    -------
    tuple
        See `new_reached`; two int64 (n), by slot: where the two stretches of edges of a node go on.
    """
    return new_reached(nodes), np.empty(nodes, np.int64), np.empty(nodes, np.int64)


@compiled()
def _turn(
    slot: Any,
    rows: Any,
    ranks: Any,
    level_end: int,
    whole: bool,
    anchors: int,
    limits: Any,
    so_far: Any,
    memory: Any,
) -> Any:
    """Let a node follow the edge to its next neighbour, or to all neighbours that are left.

    Parameters
    ----------
    level_end : int
        First slot after those of the node's level.
    whole : bool
        Whether the node takes all of its turns at once.
    anchors : int
        Their number.
    limits : tuple
        Most hops, visited nodes and visited edges.
    so_far : tuple
        Nodes reached, anchors included, and edges followed.

    Returns
    -------
    count, edges : int
        `so_far`, after the turn.
    more : bool
        Whether the node has neighbours left.
    limit : int
        The limit that did not allow the turn, or 0.
    """
    rows, ranks, memory = borrowed((rows, ranks, memory))
    reached, place, other_place = memory
    slots, found = reached[0], reached[1]
    count, edges = so_far
    _, last, _, other_last = row_bounds(rows, found[slot])
    first, other_first = place[slot], other_place[slot]
    while first < last or other_first < other_last:
        if edges == limits[2]:
            return count, edges, True, _MAX_EDGES
        node, first, other_first = next_neighbor(rows, ranks, first, last, other_first, other_last)
        there = slot_of(slots, found, count, node)
        if there < 0:
            if count - anchors == limits[1]:
                return count, edges, True, _MAX_NODES
            reach(reached, count, node, slot)
            count += 1
        elif there >= level_end:
            reach_again(reached, there, slot)
        edges += 1
        if not whole:
            break
    place[slot], other_place[slot] = first, other_first
    return count, edges, first < last or other_first < other_last, 0


@compiled()
def _traverse(query: int, rows: Any, ranks: Any, start: Any, limits: Any, stop: Any, memory: Any) -> Any:
    """Reach what the limits of one query allow.

    Parameters
    ----------
    start : int32
        The anchors.
    limits : tuple
        Most hops, visited nodes and visited edges.
    memory : tuple
        See `new_memory`.

    Returns
    -------
    count, edges, limit : int
        Nodes reached, anchors included; edges followed; the limit that was met, or 0.
    """
    rows, ranks, stop, memory = borrowed((rows, ranks, stop, memory))
    most_hops, most_nodes, most_edges = limits
    reached, place, other_place = memory
    found: Any = reached[1]
    count, edges, level_start, hop = start_at(start, reached), 0, 0, 0
    anchors = level_end = count
    while level_start < level_end and hop < most_hops:
        waiting = np.arange(level_start, level_end)
        ahead = 0
        for slot in waiting:
            place[slot], last, other_place[slot], other_last = row_bounds(rows, found[slot])
            ahead += last - place[slot] + other_last - other_place[slot]
        # If the budget lasts for all edges of the level, all turns will be made, in whatever order.
        whole = ahead <= most_edges - edges and ahead <= most_nodes - (count - anchors)
        if not whole:
            waiting = waiting[np.argsort(ranks[found[level_start:level_end]])]
        while waiting.shape[0] > 0:
            kept = 0
            for slot in waiting:
                if stop[query]:
                    return count, edges, _STOPPED
                count, edges, more, limit = _turn(
                    slot, rows, ranks, level_end, whole, anchors, limits, (count, edges), memory
                )
                if limit:
                    return count, edges, limit
                waiting[kept] = slot
                kept += more
            waiting = waiting[:kept]
        hop, level_start, level_end = hop + 1, level_end, count
    return count, edges, _MAX_HOPS if cut_by_hops(rows, reached, count, most_hops) else 0


@compiled()
def traverse_queries(
    begin: int,
    end: int,
    rows: Any,
    ranks: Any,
    queries: Any,
    setting: Any,
    filters: Any,
    flags: Any,
    result: Any,
    memory: Any,
) -> None:
    """Traverse for the queries ``begin … end - 1``.

    Arguments as `seedrank.kernels._cpu.arguments` makes them; `setting` is the decay and the three limits.
    """
    rows, ranks, queries, filters, result, memory = borrowed((rows, ranks, queries, filters, result, memory))
    anchor_offsets, anchors = queries[:2]
    stop, started = borrowed(flags)
    visited, visited_edges, limit_met = result[6:]
    for query in range(begin, end):
        started[query] = 1
        start = anchors[anchor_offsets[query] : anchor_offsets[query + 1]]
        count, edges, limit = _traverse(query, rows, ranks, start, setting[1:], stop, memory)
        visited[query], visited_edges[query], limit_met[query] = count - start.shape[0], edges, limit
        rank_reached(query, memory[0], count, ranks, setting[0], queries, filters, result)
        started[query] = 2
