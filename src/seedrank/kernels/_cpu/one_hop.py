"""One-hop expansion: anchors take turns, and each takes a successor and a predecessor by turns."""

from __future__ import annotations

from typing import Any

import numpy as np

from seedrank.kernels._cpu.borrowed import borrowed
from seedrank.kernels._cpu.compiled import compiled
from seedrank.kernels._cpu.neighbors import row_bounds
from seedrank.kernels._cpu.reached import rank_reached, reach, reach_again, slot_of, start_at
from seedrank.kernels.recall.forms import LIMITS

_MAX_NODES, _MAX_EDGES, _STOPPED = (
    LIMITS.index(name) for name in ("max_visited_nodes", "max_visited_edges", "timeout_s")
)


@compiled()
def _is_among(neighbors: Any, ranks: Any, first: Any, last: Any, node: Any) -> bool:
    """Whether a stretch of entries, sorted by tie rank, holds a node."""
    neighbors, ranks = borrowed((neighbors, ranks))
    end = last
    while first < last:
        middle = (first + last) // 2
        if ranks[neighbors[middle]] < ranks[node]:
            first = middle + 1
        else:
            last = middle
    return bool(first < end and neighbors[first] == node)


@compiled()
def _next_in_turn(rows: Any, ranks: Any, anchor: Any, place: Any) -> Any:
    """Take the anchor's next neighbour, from the other direction than the one before; -1: there are none left.

    Parameters
    ----------
    place : int64 (3)
        Where the two stretches of edges go on, and the direction whose turn it is.
    """
    rows, ranks, place = borrowed((rows, ranks, place))
    first, last, other_first, other_last = row_bounds(rows, anchor)
    while place[0] < last or place[1] < other_last:
        side = place[2]
        place[2] = 1 - side
        neighbors, end = (rows[1], last) if side == 0 else (rows[3], other_last)
        while place[side] < end and neighbors[place[side]] == anchor:
            place[side] += 1
        if place[side] == end:
            continue
        node = np.int64(neighbors[place[side]])
        while place[side] < end and neighbors[place[side]] == node:
            place[side] += 1
        if side == 0:
            taken = _is_among(rows[3], ranks, other_first, place[1], node)
        else:
            taken = _is_among(rows[1], ranks, first, place[0], node)
        if not taken:
            return node
    return -1


@compiled()
def _take(query: int, rows: Any, ranks: Any, start: Any, setting: Any, stop: Any, reached: Any) -> Any:
    """Take neighbours until each anchor has its share or the budget ends.

    Returns
    -------
    count, edges, limit : int
        Nodes reached, anchors included; edges followed; the limit that was met, or 0.
    """
    rows, ranks, start, stop, reached = borrowed((rows, ranks, start, stop, reached))
    _, per_seed, _, most_nodes, most_edges = setting
    slots, found = reached[0], reached[1]
    anchors = start.shape[0]
    count, edges = start_at(start, reached), 0
    places = np.zeros((anchors, 3), np.int64)
    for slot in range(anchors):
        places[slot, 0], _, places[slot, 1], _ = row_bounds(rows, start[slot])
    waiting = np.arange(anchors)
    turn = 0
    while waiting.shape[0] > 0 and turn < per_seed:
        kept = 0
        for slot in waiting:
            if stop[query]:
                return count, edges, _STOPPED
            node = _next_in_turn(rows, ranks, np.int64(start[slot]), places[slot])
            if node < 0:
                continue
            if edges == most_edges:
                return count, edges, _MAX_EDGES
            there = slot_of(slots, found, count, node)
            if there < 0:
                if count - anchors == most_nodes:
                    return count, edges, _MAX_NODES
                reach(reached, count, node, slot)
                count += 1
            elif there >= anchors:
                reach_again(reached, there, slot)
            edges += 1
            waiting[kept] = slot
            kept += 1
        waiting = waiting[:kept]
        turn += 1
    return count, edges, 0


@compiled()
def expand_queries(
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
    """Expand the queries ``begin … end - 1``.

    Arguments as `seedrank.kernels._cpu.arguments` makes them; `setting` is the decay, the most neighbours of an anchor,
    and the three limits, of which the first is not used; `memory` is that of `new_reached`.
    """
    rows, ranks, queries, filters, result, memory = borrowed((rows, ranks, queries, filters, result, memory))
    anchor_offsets, anchors = queries[:2]
    stop, started = borrowed(flags)
    visited, visited_edges, limit_met = result[6:]
    for query in range(begin, end):
        started[query] = 1
        start = anchors[anchor_offsets[query] : anchor_offsets[query + 1]]
        count, edges, limit = _take(query, rows, ranks, start, setting, stop, memory)
        visited[query], visited_edges[query], limit_met[query] = count - start.shape[0], edges, limit
        rank_reached(query, memory, count, ranks, setting[0], queries, filters, result)
        started[query] = 2
