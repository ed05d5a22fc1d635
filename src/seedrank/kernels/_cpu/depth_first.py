"""Depth-first traversal with an explicit stack; what it followed is then measured breadth-first."""

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
        See `new_reached`;
        two int64 (n), by slot: how far the two stretches of edges of a node were followed, at most;
        stack : int32 (n), slots;
        two int64 (n), by place in the stack: where the two stretches of edges go on.
    """
    return (
        new_reached(nodes),
        np.empty(nodes, np.int64),
        np.empty(nodes, np.int64),
        np.empty(nodes, np.int32),
        np.empty(nodes, np.int64),
        np.empty(nodes, np.int64),
    )


@compiled()
def _explore(query: int, rows: Any, ranks: Any, start: Any, limits: Any, stop: Any, memory: Any) -> Any:
    """Follow edges into the depth; `hops` are the smallest depths at which nodes were come to.

    A node on the stack is never pushed again: its depth is its place, which is smaller than that of the top.

    Returns
    -------
    count, edges, limit : int
        Nodes reached, anchors included; edges followed; the limit that ended it, or 0.
    """
    rows, ranks, start, stop, memory = borrowed((rows, ranks, start, stop, memory))
    most_hops, most_nodes, most_edges = limits
    reached, followed, other_followed, stack, place, other_place = memory
    slots, found, hops = reached[:3]
    count, edges = start_at(start, reached), 0
    for slot in range(count):
        followed[slot], _, other_followed[slot], _ = row_bounds(rows, found[slot])
    for anchor in range(start.shape[0]):
        stack[0] = anchor
        place[0], _, other_place[0], _ = row_bounds(rows, start[anchor])
        top = 0
        while top >= 0:
            if stop[query]:
                return count, edges, _STOPPED
            slot = stack[top]
            _, last, _, other_last = row_bounds(rows, found[slot])
            first, other_first = place[top], other_place[top]
            if top == most_hops or (first == last and other_first == other_last):
                top -= 1
                continue
            if edges == most_edges:
                return count, edges, _MAX_EDGES
            node, first, other_first = next_neighbor(rows, ranks, first, last, other_first, other_last)
            there = slot_of(slots, found, count, node)
            if there < 0 and count - start.shape[0] == most_nodes:
                return count, edges, _MAX_NODES
            edges += 1
            place[top], other_place[top] = first, other_first
            followed[slot] = max(followed[slot], first)
            other_followed[slot] = max(other_followed[slot], other_first)
            if there < 0:
                there = count
                reach(reached, there, node, slot)
                followed[there], _, other_followed[there], _ = row_bounds(rows, node)
                count += 1
            elif hops[there] > top + 1:
                hops[there] = top + 1
            else:
                continue
            top += 1
            stack[top] = there
            place[top], _, other_place[top], _ = row_bounds(rows, node)
    return count, edges, 0


@compiled()
def _measure(rows: Any, ranks: Any, anchors: int, count: int, memory: Any) -> None:
    """Put hops, origins and counts right: those of the shortest ways along the edges that were followed."""
    rows, ranks, memory = borrowed((rows, ranks, memory))
    reached, followed, other_followed, queue = memory[:4]
    slots, found, hops = reached[:3]
    hops[anchors:count] = -1
    queue[:anchors] = np.arange(anchors)
    end = anchors
    for i in range(count):
        slot = queue[i]
        first, _, other_first, _ = row_bounds(rows, found[slot])
        while first < followed[slot] or other_first < other_followed[slot]:
            node, first, other_first = next_neighbor(
                rows, ranks, first, followed[slot], other_first, other_followed[slot]
            )
            there = slot_of(slots, found, count, node)
            if hops[there] < 0:
                reach(reached, there, node, slot)
                queue[end] = there
                end += 1
            elif hops[there] == hops[slot] + 1:
                reach_again(reached, there, slot)


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
    decay, limits = setting[0], setting[1:]
    reached = memory[0]
    for query in range(begin, end):
        started[query] = 1
        start = anchors[anchor_offsets[query] : anchor_offsets[query + 1]]
        count, edges, limit = _explore(query, rows, ranks, start, limits, stop, memory)
        _measure(rows, ranks, start.shape[0], count, memory)
        if limit == 0 and cut_by_hops(rows, reached, count, limits[0]):
            limit = _MAX_HOPS
        visited[query], visited_edges[query], limit_met[query] = count - start.shape[0], edges, limit
        rank_reached(query, reached, count, ranks, decay, queries, filters, result)
        started[query] = 2
