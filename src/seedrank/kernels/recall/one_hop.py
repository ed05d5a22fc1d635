"""One-hop expansion: some neighbours of every seed."""

from __future__ import annotations

from seedrank.kernels.arrays import BoolArray, Precision
from seedrank.kernels.recall.forms import RecallLimits, RecallQueries, RecallResult, StopFlags
from seedrank.kernels.recall.recall_graph import RecallGraph


def one_hop(
    graph: RecallGraph,
    queries: RecallQueries,
    *,
    hop_decay: float,
    per_seed: int | None,
    limits: RecallLimits,
    k: int,
    eligible: BoolArray | None,
    min_score: float,
    precision: Precision,
    threads: int,
    flags: StopFlags | None = None,
) -> RecallResult:
    """Take the first neighbours of every anchor of a query.

    A node's neighbours are its distinct successors and predecessors (as far as the graph follows them) by ascending tie
    rank, one of each by turns; parallel edges are one, also where a node is both, and a node is no neighbour of itself.
    The first `per_seed` of them are taken. Anchors take turns too, one neighbour each, by ascending tie rank, so a
    budget is shared among them; it is checked before each step.

    The score is ``hop_decay`` (1 for an anchor), the anchor of a node the one of lowest tie rank that took it, and
    ``visit_counts`` are 1.

    Parameters
    ----------
    per_seed : int or None
        >= 1, most neighbours of an anchor, other anchors included; None: all.
    limits : RecallLimits
        ``max_hops`` is not used.
    graph, queries, hop_decay, k, eligible, min_score, precision, threads, flags
        As for `seedrank.kernels.recall.traverse.breadth_first`.

    Returns
    -------
    RecallResult
    """
    # Numba is loaded when the first expansion is made.
    from seedrank.kernels._cpu.arguments import NO_LIMIT  # noqa: PLC0415
    from seedrank.kernels._cpu.chunks import run_traversal  # noqa: PLC0415
    from seedrank.kernels._cpu.one_hop import expand_queries  # noqa: PLC0415
    from seedrank.kernels._cpu.reached import new_reached  # noqa: PLC0415

    return run_traversal(
        expand_queries,
        new_reached,
        graph,
        queries,
        (hop_decay, NO_LIMIT if per_seed is None else per_seed),
        limits=limits,
        k=k,
        eligible=eligible,
        min_score=min_score,
        precision=precision,
        threads=threads,
        flags=flags,
    )
