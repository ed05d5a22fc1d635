"""The nodes that a traversal has reached, what it knows of each, and how they become a ranking."""

from __future__ import annotations

from typing import Any

import numpy as np

from seedrank.kernels._cpu.best import is_worse, offer, sort_best
from seedrank.kernels._cpu.borrowed import borrowed
from seedrank.kernels._cpu.compiled import compiled
from seedrank.kernels._cpu.neighbors import row_bounds

_MOST = np.iinfo(np.int64).max


@compiled()
def new_reached(nodes: int) -> Any:
    """Memory for one query after the other: a sparse set, of which only what is written is ever touched.

    Nothing is cleared in between (Briggs, Torczon, "An efficient representation for sparse sets", 1993).

    Returns
    -------
    tuple
        slots : int32 (n), by node: its place among `found`, or anything if it is not there;
        found, hops, origins : int32 (n), by slot: node, steps from the anchor, place of the anchor in its query;
        counts : int64 (n), by slot: number of shortest node sequences from that anchor.
    """
    slots, found = np.empty(nodes, np.int32), np.empty(nodes, np.int32)
    return slots, found, np.empty(nodes, np.int32), np.empty(nodes, np.int32), np.empty(nodes, np.int64)


@compiled(inline=True)
def slot_of(slots: Any, found: Any, count: Any, node: Any) -> Any:
    """Slot of a node among the first `count`, or -1.

    Indices here are unsigned: a signed one costs a test for counting from the end.
    """
    slot = np.uint32(slots[np.uint32(node)])
    if slot < count and found[slot] == node:
        return np.int64(slot)
    return np.int64(-1)


@compiled()
def start_at(anchors: Any, reached: Any) -> int:
    """Begin with the anchors, by ascending tie rank; returns their number."""
    anchors, (slots, found, hops, origins, counts) = borrowed((anchors, reached))
    for place in range(anchors.shape[0]):
        slots[anchors[place]], found[place] = place, anchors[place]
        hops[place], origins[place], counts[place] = 0, place, 1
    return int(anchors.shape[0])


@compiled(inline=True)
def reach(reached: Any, slot: Any, node: Any, parent: Any) -> None:
    """Enter a new node that was reached from the node in slot `parent`."""
    slots, found, hops, origins, counts = reached
    slot, parent = np.uint32(slot), np.uint32(parent)
    slots[np.uint32(node)], found[slot] = slot, node
    hops[slot], origins[slot], counts[slot] = hops[parent] + 1, origins[parent], counts[parent]


@compiled(inline=True)
def reach_again(reached: Any, slot: Any, parent: Any) -> None:
    """Note one more way, of the same length, to a node: the lower anchor wins, ways from the same anchor add up."""
    _, _, _, origins, counts = reached
    slot, parent = np.uint32(slot), np.uint32(parent)
    if origins[parent] < origins[slot]:
        origins[slot], counts[slot] = origins[parent], counts[parent]
    elif origins[parent] == origins[slot]:
        counts[slot] = counts[slot] + counts[parent] if counts[slot] <= _MOST - counts[parent] else _MOST


@compiled()
def cut_by_hops(rows: Any, reached: Any, count: int, most_hops: int) -> bool:
    """Whether a node at the hop limit has an edge, which was not followed then."""
    rows, (_, found, hops, _, _) = borrowed((rows, reached))
    for slot in range(count):
        if hops[slot] == most_hops:
            first, last, other_first, other_last = row_bounds(rows, found[slot])
            if first < last or other_first < other_last:
                return True
    return False


@compiled()
def rank_reached(
    query: int, reached: Any, count: int, ranks: Any, decay: float, queries: Any, filters: Any, result: Any
) -> None:
    """Score what a query has reached, filter, and keep the k best.

    Parameters
    ----------
    count : int
        Nodes reached.
    ranks : int32 (n)
    decay : float
        The score is decay ** hops, and the smallest positive number where that is too small for the precision.
    queries, filters, result : tuple
        See `seedrank.kernels._cpu.arguments`.
    """
    reached, ranks, queries, filters, result = borrowed((reached, ranks, queries, filters, result))
    anchor_offsets, anchors, exclude_offsets, exclude_nodes = queries
    eligible, least, smallest = filters
    out_nodes, out_scores, out_hops, out_anchors, out_counts, out_found = result[:6]
    slots, found, hops, origins, counts = reached
    for i in range(exclude_offsets[query], exclude_offsets[query + 1]):
        slot = slot_of(slots, found, count, exclude_nodes[i])
        if slot >= 0:
            counts[slot] = 0
    score_at = np.empty(1 + (hops[:count].max() if count > 0 else 0), out_scores.dtype)
    exact = 1.0
    for hop in range(score_at.shape[0]):
        score_at[hop] = exact
        score_at[hop] = max(score_at[hop], smallest)
        exact *= decay
    k = out_nodes.shape[1]
    best_scores, best_ranks = np.empty(k, out_scores.dtype), np.empty(k, np.int32)
    best_slots = np.empty(k, np.int64)
    kept = 0
    for slot in range(count):
        node, score = found[slot], score_at[hops[slot]]
        # Most of what is found is worse than what is kept already: no call for that.
        if score < least or (kept == k and is_worse(score, ranks[node], best_scores[0], best_ranks[0])):
            continue
        if counts[slot] > 0 and (eligible.shape[0] == 0 or eligible[node]):
            kept = offer(best_scores, best_ranks, best_slots, kept, score, ranks[node], slot)
    sort_best(best_scores, best_ranks, best_slots, kept)
    out_found[query] = kept
    for i in range(kept):
        slot = best_slots[i]
        out_nodes[query, i], out_scores[query, i], out_hops[query, i] = found[slot], best_scores[i], hops[slot]
        out_anchors[query, i] = anchors[anchor_offsets[query] + origins[slot]]
        out_counts[query, i] = counts[slot]
