"""Random walk with restart: where a walker that keeps returning to its anchor spends its steps."""

from __future__ import annotations

import numpy as np

from seedrank.kernels.arrays import BoolArray, Precision
from seedrank.kernels.recall.forms import RecallLimits, RecallQueries, RecallResult, StopFlags
from seedrank.kernels.recall.walk_graph import WalkGraph
from seedrank.kernels.recall.walk_numbers import largest_restart, walk_keys


def random_walk(
    walk_graph: WalkGraph,
    queries: RecallQueries,
    *,
    restart: float,
    steps: int,
    random_seed: int,
    limits: RecallLimits,
    k: int,
    eligible: BoolArray | None,
    min_score: float,
    precision: Precision,
    threads: int,
    flags: StopFlags | None = None,
) -> RecallResult:
    """Walk from every anchor of every query, and rank the nodes by the share of steps that ended on them.

    From each anchor on its own, `steps` steps are made. A step ends on a node, which gets the visit. With probability
    `restart`, at a node that no edge leaves, and where the next edge would be one more than ``max_hops`` since the
    last return, the step lands on the anchor; otherwise on a neighbour chosen by weight. A node's score is visits /
    `steps`; of several anchors the one with the most visits gives score, visits and hops, ties going to the lower tie
    rank. Without a hop limit the shares converge to personalized PageRank of that anchor (dangling rule ``seeds``).

    The hops of a node are the fewest edges since the last return with which a step ended there: an upper bound on the
    distance. The anchors of a query take turns, one step each, so a limit cuts all of them at the same step; the score
    is still a share of all `steps`, so a cut can only lower it. ``visited_edges`` counts steps along an edge.

    Random numbers are Philox4x32-10 of (random seed and query key; anchor key, step): one says whether to return, one
    which edge to take. Both are compared as integers (the second with the running sums of `build_walk_graph`; without
    weights it is scaled to the degree, which prefers no edge by more than degree / 2**64). So every result is the same
    on any machine, in any block, on any number of threads.

    Parameters
    ----------
    walk_graph : WalkGraph
    queries : RecallQueries
    restart : float
        λ, 0 < λ <= 1, taken to a whole multiple of 2**-64.
    steps : int
        >= 1, from each anchor.
    random_seed : int
        0 … 2**64 - 1.
    limits : RecallLimits
    k : int
        >= 1, most nodes returned for a query.
    eligible : bool (n) or None
        Nodes that may be returned; None: all.
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
        ``visit_counts`` are visits of the anchor's walk.
    """
    # Numba is loaded when the first walk is made.
    from seedrank.kernels._cpu import arguments  # noqa: PLC0415
    from seedrank.kernels._cpu.chunks import run_in_chunks  # noqa: PLC0415
    from seedrank.kernels._cpu.walk import walk_queries  # noqa: PLC0415

    graph, width = walk_graph.graph, queries.width
    result = RecallResult.empty(width, k, precision)
    anchor_offsets, anchors, *exclusions = arguments.query_arguments(queries)
    query_keys = walk_keys(queries.query_keys, random_seed)
    sums = [arguments.read_only(side) for side in walk_graph.cumulative or (np.zeros(0, dtype=np.int64),)]
    offsets, neighbors, other_offsets, other_neighbors, both = arguments.row_arguments(graph.rows)
    shared = (
        (offsets, neighbors, sums[0], other_offsets, other_neighbors, sums[-1], both, bool(walk_graph.cumulative)),
        arguments.read_only(graph.order),
        (anchor_offsets, anchors, query_keys, arguments.read_only(queries.anchor_keys), *exclusions),
        (steps, largest_restart(restart), *arguments.limit_arguments(limits)),
        arguments.filter_arguments(eligible, min_score, precision),
        arguments.flag_arguments(flags, width),
        arguments.result_arguments(result),
    )
    run_in_chunks(width, lambda: lambda first, last: walk_queries(first, last, *shared), threads=threads)
    return result
