"""Which nodes lie within some hops of the anchors, for a whole block of queries in one traversal."""

from __future__ import annotations

from functools import partial

import numpy as np

from seedrank.kernels.arrays import Int32Array, Int64Array, UInt64Array
from seedrank.kernels.recall.recall_graph import RecallGraph

PULLED_AT_ONCE = 1 << 14
"""Nodes that a thread takes at once."""

PULL_FROM = 0.1
"""Share of all edges that leave a level from which on every node looks for its own bits instead: that is done on all
threads, and a node stops looking when it has them all."""


def within_hops(
    graph: RecallGraph, anchor_offsets: Int64Array, anchors: Int32Array, *, max_hops: int, threads: int
) -> UInt64Array:
    """Mark the nodes within `max_hops` steps of each query's anchors.

    All queries advance together, level by level, as the bits of one word a node (Then et al., "The more the merrier:
    efficient multi-source graph traversal", VLDB 2014; pulling: Beamer et al., "Direction-optimizing breadth-first
    search", SC 2012).

    Parameters
    ----------
    graph : RecallGraph
    anchor_offsets, anchors : int64 (B + 1), int32
        Anchors of each query, internal nodes; B <= 64.
    max_hops : int
        >= 0
    threads : int
        >= 1; the result does not depend on it.

    Returns
    -------
    uint64 (n)
        Bit q of element v: node v can be reached from an anchor of query q in at most `max_hops` steps.
    """
    # Numba is loaded when it is first needed.
    from seedrank.kernels._cpu import arguments  # noqa: PLC0415
    from seedrank.kernels._cpu.chunks import run_in_chunks  # noqa: PLC0415
    from seedrank.kernels._cpu.within_hops import edges_of, pull, push  # noqa: PLC0415

    rows, incoming = arguments.row_arguments(graph.rows), arguments.row_arguments(graph.incoming)
    entries = sum(len(side.neighbors) for side in graph.rows)
    bits = np.uint64(1) << np.arange(len(anchor_offsets) - 1, dtype=np.uint64)
    every = np.bitwise_or.reduce(bits)
    fresh = np.zeros(graph.nodes, dtype=np.uint64)
    np.bitwise_or.at(fresh, anchors, np.repeat(bits, np.diff(anchor_offsets)))
    reached = fresh.copy()
    for _ in range(max_hops):
        nodes = np.flatnonzero(fresh)
        if not len(nodes):
            break
        coming = np.zeros(graph.nodes, dtype=np.uint64)
        if edges_of(rows, nodes) < PULL_FROM * entries:
            push(rows, nodes, fresh, reached, coming)
        else:
            begin = partial(partial, pull, incoming, every, fresh, reached, coming)
            run_in_chunks(graph.nodes, begin, threads=threads, most=PULLED_AT_ONCE)
        reached |= coming
        fresh = coming
    return reached
