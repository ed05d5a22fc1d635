"""Depth-first traversal: one way to its end before the next."""

from __future__ import annotations

from seedrank.kernels.arrays import BoolArray, Precision
from seedrank.kernels.recall.forms import RecallLimits, RecallQueries, RecallResult, StopFlags
from seedrank.kernels.recall.recall_graph import RecallGraph


def depth_first(
    graph: RecallGraph,
    queries: RecallQueries,
    *,
    hop_decay: float,
    limits: RecallLimits,
    k: int,
    eligible: BoolArray | None,
    min_score: float,
    precision: Precision,
    threads: int,
    flags: StopFlags | None = None,
) -> RecallResult:
    """Go into the depth from each anchor of a query in turn, and rank what was found by ``hop_decay ** hops``.

    Anchors and neighbours are taken by ascending tie rank. A node that is met at a smaller depth than before is gone on
    from once more, so that without a budget the result is that of `breadth_first` (only ``visited_edges``, which counts
    every step, is larger). On graphs with many ways that can take long: as often as a node's depth shrinks. A hop limit
    of a few, or a budget, keeps it short.

    Hops, anchors (the nearest, ties going to the lower tie rank) and ``visit_counts`` are those of the shortest node
    sequences along the edges that were followed; under a budget a shorter way may not be among them. Parallel edges are
    one edge, and ``max_hops`` counts as met as for `breadth_first`.

    Parameters
    ----------
    graph, queries, hop_decay, limits, k, eligible, min_score, precision, threads, flags
        As for `seedrank.kernels.recall.traverse.breadth_first`.

    Returns
    -------
    RecallResult
    """
    # Numba is loaded when the first traversal is made.
    from seedrank.kernels._cpu.chunks import run_traversal  # noqa: PLC0415
    from seedrank.kernels._cpu.depth_first import new_memory, traverse_queries  # noqa: PLC0415

    return run_traversal(
        traverse_queries,
        new_memory,
        graph,
        queries,
        (hop_decay,),
        limits=limits,
        k=k,
        eligible=eligible,
        min_score=min_score,
        precision=precision,
        threads=threads,
        flags=flags,
    )
