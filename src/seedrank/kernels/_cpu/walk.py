"""Random walks with restart: all anchors of a query take turns, step by step, in integer arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np

from seedrank.kernels._cpu.best import offer, sort_best
from seedrank.kernels._cpu.borrowed import borrowed
from seedrank.kernels._cpu.compiled import compiled
from seedrank.kernels._cpu.philox import random_pair, scaled
from seedrank.kernels._cpu.visits import new_visits, place_of, with_room
from seedrank.kernels.recall.forms import LIMITS

_MAX_HOPS, _MAX_NODES, _MAX_EDGES, _STOPPED = (
    LIMITS.index(name) for name in ("max_hops", "max_visited_nodes", "max_visited_edges", "timeout_s")
)

_LINE = 8
"""Running sums in a cache line."""


@compiled(inline=True)
def _first_above(sums: Any, first: Any, last: Any, value: Any, below: Any, total: Any) -> Any:
    """First entry of a row whose running sum exceeds a value; the sums grow from above `below` to `total`.

    The search starts where equal weights would put the entry and widens from there, because a long row lies in many
    cache lines. Where it starts does not change what it finds, so a guess in floating point will do.
    """
    guess = min(last - 1, first + np.int64((last - first) * ((value - below) / (total - below))))
    step = _LINE
    if sums[guess] > value:
        last = guess + 1
        while guess - step >= first and sums[guess - step] > value:
            last = guess - step + 1
            step *= 2
        first = max(first, guess - step + 1)
    else:
        first = guess + 1
        while guess + step < last and sums[guess + step] <= value:
            first = guess + step + 1
            step *= 2
        last = min(last, guess + step + 1)
    length = last - first
    while length > 1:
        half = length >> 1
        # Adding 0 or half spares a branch that would be mispredicted every other time.
        first += half * np.int64(sums[first + half - 1] <= value)
        length -= half
    return first


@compiled(inline=True)
def _choose(draw: Any, rows: Any, node: Any) -> Any:
    """The next node by weight, or -1 at a dead end.

    `rows` holds offsets, neighbors and running sums of one direction, the same of the other, whether the other is
    followed too, and whether edges have weights.
    """
    offsets, neighbors, sums, other_offsets, other_neighbors, other_sums, both, weighted = rows
    first, last = offsets[node], offsets[node + 1]
    other_first, other_last = np.int64(0), np.int64(0)
    if both:
        other_first, other_last = other_offsets[node], other_offsets[node + 1]
    if weighted:
        here = sums[last - 1] if last > first else 0
        total = other_sums[other_last - 1] if other_last > other_first else here
    else:
        here = last - first
        total = here + other_last - other_first
    if total == 0:
        return -1
    chosen = np.int64(scaled(draw, np.uint64(total)))
    if chosen < here:
        return np.int64(neighbors[_first_above(sums, first, last, chosen, 0, here) if weighted else first + chosen])
    return np.int64(
        other_neighbors[
            _first_above(other_sums, other_first, other_last, chosen, here, total)
            if weighted
            else other_first + chosen - here
        ]
    )


@compiled()
def _walk(query: int, rows: Any, queries: Any, setting: Any, stop: Any, table: Any) -> Any:
    """Make the steps of one query.

    Entries of the table are of two kinds: of a node, for the whole query (key: the node; the anchors come first), and
    of a node and a walker (key: the walker's number from 1 in the upper 32 bits), with the visits of that walker and
    the fewest hops with which it came.

    Returns
    -------
    table : tuple
        As given, or enlarged.
    entries, visited nodes, visited edges, limit : int
    """
    rows, queries, stop = borrowed((rows, queries, stop))
    offsets, anchors, query_keys, anchor_keys = queries[:4]
    steps, restart, most_hops, most_nodes, most_edges = setting
    start, streams = anchors[offsets[query] : offsets[query + 1]], anchor_keys[offsets[query] : offsets[query + 1]]
    walkers = start.shape[0]
    position, hop = start.astype(np.int64), np.zeros(walkers, np.int64)
    table = with_room(table, 0, walkers)
    places, keys, visits, hops = borrowed(table)
    places[:] = -1
    entries, visited, edges, limit = 0, 0, 0, 0
    for walker in range(walkers):
        keys[entries], visits[entries] = start[walker], 0
        places[place_of(places, keys, keys[entries])] = entries
        entries += 1
    for step in range(steps if walkers > 0 else 0):
        if stop[query]:
            return table, entries, visited, edges, _STOPPED
        if keys.shape[0] < entries + 2 * walkers:
            table = with_room(table, entries, 2 * walkers)
            places, keys, visits, hops = borrowed(table)
        for walker in range(walkers):
            restart_draw, choice_draw = random_pair(query_keys[query], streams[walker], np.uint64(step))
            node: Any = np.int64(start[walker])
            length = 0
            if restart_draw > restart:
                chosen = _choose(choice_draw, rows, position[walker])
                if chosen >= 0 and hop[walker] == most_hops:
                    limit = _MAX_HOPS
                elif chosen >= 0:
                    if edges == most_edges:
                        return table, entries, visited, edges, _MAX_EDGES
                    if visited == most_nodes and places[place_of(places, keys, chosen)] < 0:
                        return table, entries, visited, edges, _MAX_NODES
                    edges += 1
                    node, length = chosen, hop[walker] + 1
            position[walker], hop[walker] = node, length
            key = ((walker + 1) << 32) | node
            place = place_of(places, keys, key)
            if places[place] >= 0:
                entry = places[place]
                visits[entry] += 1
                hops[entry] = min(hops[entry], length)
                continue
            places[place], keys[entries], visits[entries], hops[entries] = entries, key, 1, length
            entries += 1
            place = place_of(places, keys, node)
            if places[place] < 0:
                places[place], keys[entries], visits[entries] = entries, node, 0
                entries += 1
                visited += 1
    return table, entries, visited, edges, limit


@compiled()
def walk_queries(
    begin: int, end: int, rows: Any, ranks: Any, queries: Any, setting: Any, filters: Any, flags: Any, result: Any
) -> None:
    """Walk for the queries ``begin … end - 1``.

    Parameters
    ----------
    rows : tuple
        See `_choose`.
    ranks : int32 (n)
        Tie rank by node.
    queries : tuple
        Anchor offsets (B + 1), anchors, keys of the queries (B), keys of the anchors, exclusion offsets (B + 1),
        exclusions.
    setting : tuple
        Steps; the largest draw that restarts (uint64); most hops, visited nodes and visited edges.
    filters, flags, result : tuple
        See `seedrank.kernels._cpu.arguments`.
    """
    rows, ranks, queries, filters, flags, result = borrowed((rows, ranks, queries, filters, flags, result))
    offsets, anchors, exclude_offsets, exclude_nodes = queries[0], queries[1], queries[4], queries[5]
    eligible, least, _ = filters
    stop, started = flags
    out_nodes, out_scores, out_hops, out_anchors, out_visits, out_counts, out_visited, out_edges, out_limit = result
    k = out_nodes.shape[1]
    best_scores, best_ranks = np.empty(k, out_scores.dtype), np.empty(k, np.int32)
    best_entries = np.empty(k, np.int64)
    table = new_visits()
    for query in range(begin, end):
        started[query] = 1
        table, entries, visited, edges, limit = _walk(query, rows, queries, setting, stop, table)
        out_visited[query], out_edges[query], out_limit[query] = visited, edges, limit
        places, keys, visits, hops = borrowed(table)
        # The entry of each node gets the most visits of a walker; equal ones leave it to the lowest anchor.
        winner = np.zeros(entries, np.int64)
        for entry in range(entries):
            walker, node = keys[entry] >> 32, keys[entry] & 0xFFFFFFFF
            if walker > 0:
                of_node = places[place_of(places, keys, node)]
                if visits[entry] > visits[of_node] or (visits[entry] == visits[of_node] and walker < winner[of_node]):
                    visits[of_node], hops[of_node], winner[of_node] = visits[entry], hops[entry], walker
        for i in range(exclude_offsets[query], exclude_offsets[query + 1]):
            place = place_of(places, keys, exclude_nodes[i])
            if places[place] >= 0:
                visits[places[place]] = 0
        found = 0
        for entry in range(entries):
            node = keys[entry]
            if winner[entry] > 0 and (eligible.shape[0] == 0 or eligible[node]):
                score = out_scores.dtype.type(visits[entry] / setting[0])
                if score >= least:
                    found = offer(best_scores, best_ranks, best_entries, found, score, ranks[node], entry)
        sort_best(best_scores, best_ranks, best_entries, found)
        out_counts[query] = found
        for i in range(found):
            entry = best_entries[i]
            out_nodes[query, i], out_scores[query, i], out_hops[query, i] = keys[entry], best_scores[i], hops[entry]
            out_anchors[query, i] = anchors[offsets[query] + winner[entry] - 1]
            out_visits[query, i] = visits[entry]
        started[query] = 2
