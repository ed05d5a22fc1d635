"""Breadth-first traversal: everything within reach, the nearest first."""

from __future__ import annotations

from seedrank.kernels.arrays import BoolArray, Precision
from seedrank.kernels.recall.forms import RecallLimits, RecallQueries, RecallResult, StopFlags
from seedrank.kernels.recall.recall_graph import RecallGraph


def breadth_first(
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
    """Reach nodes level by level from all anchors of a query, and rank them by ``hop_decay ** hops``.

    The nodes of a level take turns, by ascending tie rank: in each turn a node follows the edge to its next neighbour
    by ascending tie rank. So under a budget nobody's many edges keep the others from their first. Parallel edges, also
    those of both directions, are one edge. The budget is checked before each step: the traversal ends where another
    edge would have to be followed, or the next edge leads to a new node, that the budget does not allow.

    The anchor of a node is its nearest, ties going to the lower tie rank; ``visit_counts`` are the numbers of distinct
    shortest node sequences from that anchor (at most 2**63 - 1), among the edges followed. ``max_hops`` counts as met
    if a node at that distance has an edge that was not followed.

    Parameters
    ----------
    graph : RecallGraph
    queries : RecallQueries
    hop_decay : float
        0 < hop_decay <= 1. A score too small for the precision becomes its smallest positive number.
    limits : RecallLimits
    k : int
        >= 1, most nodes returned for a query.
    eligible : bool (n) or None
        Nodes that may be returned; None: all. Others are still walked through.
    min_score : float
        Lowest score that counts, compared in the precision of the scores.
    precision : "float32" or "float64"
        Of the scores.
    threads : int
        >= 1; results do not depend on it.
    flags : StopFlags, optional

    Returns
    -------
    RecallResult
    """
    # Numba is loaded when the first traversal is made.
    from seedrank.kernels._cpu.chunks import run_traversal  # noqa: PLC0415
    from seedrank.kernels._cpu.traverse import new_memory, traverse_queries  # noqa: PLC0415

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
