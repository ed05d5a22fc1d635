"""What one step leads to: the neighbours of sets of nodes, and how many different ones a node has."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from seedrank.kernels.arrays import BoolArray, Int32Array, Int64Array
from seedrank.kernels.recall.recall_graph import FollowedRows, RecallGraph
from seedrank.kernels.runs import gather

#: Edges that are looked at together: memory stays bounded whatever the degrees.
EDGES_AT_ONCE = 1 << 22


def neighbors_of_sets(rows: FollowedRows, offsets: Int64Array, nodes: Int32Array) -> tuple[Int64Array, Int32Array]:
    """Return the neighbours of every node of some sets, set after set.

    Parameters
    ----------
    rows : edges to follow.
    offsets, nodes : int64 (B + 1), int32: B sets of internal nodes.

    Returns
    -------
    int64 (B + 1), int32: B lists of internal nodes, with repeats where nodes share neighbours or edges are parallel.
    """
    of_node, edges = gather(rows.offsets, nodes.astype(np.int64))
    return of_node[offsets], rows.neighbors[edges]


def count_distinct_neighbors(graph: RecallGraph, nodes: Int32Array, counted: BoolArray | None) -> Int64Array:
    """Count the different nodes that one step from a node leads to, itself left out.

    Parameters
    ----------
    graph : n nodes; with two ways of following edges, what either leads to counts once.
    nodes : int32 (c), internal nodes.
    counted : bool (n), neighbours that count; None: all.

    Returns
    -------
    int64 (c)
    """
    counts = np.zeros(len(nodes), dtype=np.int64)
    degrees = np.zeros(len(nodes), dtype=np.int64)
    for rows in graph.rows:
        degrees += rows.offsets[nodes.astype(np.int64) + 1] - rows.offsets[nodes]
    for first, last in edge_ranges(degrees):
        pairs = []
        for rows in graph.rows:
            offsets, edges = gather(rows.offsets, nodes[first:last].astype(np.int64))
            place = np.repeat(np.arange(last - first), np.diff(offsets))
            neighbor = rows.neighbors[edges]
            keep = neighbor != nodes[first:last][place]
            if counted is not None:
                keep &= counted[neighbor]
            pairs.append(place[keep] * graph.nodes + neighbor[keep])
        distinct = np.unique(np.concatenate(pairs))
        counts[first:last] = np.bincount(distinct // max(graph.nodes, 1), minlength=last - first)
    return counts


def edge_ranges(degrees: Int64Array) -> Iterator[tuple[int, int]]:
    """Cut items with so many edges each into ranges of at most `EDGES_AT_ONCE`, or of one item with more."""
    total = np.cumsum(degrees)
    first = 0
    while first < len(degrees):
        before = int(total[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(total, before + EDGES_AT_ONCE, side="right")))
        yield first, last
        first = last
