"""From hits to personalization vectors."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from seedrank.config import ScoreOptions
from seedrank.errors import InputDataError
from seedrank.jobs.queries.graph_selection import GraphSelection
from seedrank.jobs.queries.hit_lists import check_source_names, source_names
from seedrank.jobs.queries.matched_hits import MatchedHits
from seedrank.kernels.ordinal_ranks import ordinal_ranks
from seedrank.kernels.recall.neighbor_sets import count_distinct_neighbors
from seedrank.kernels.seeds import SeedSets, build_seeds


def seed_hits(found: MatchedHits, graph: GraphSelection) -> npt.NDArray[np.bool_]:
    """Mask of the hits that may be seeds: those that the graph has, of a type of ``--seed-node-type``.

    Raises
    ------
    InputDataError
        A node type that no node has.
    """
    known = found.rank >= 0
    return known if graph.seeding is None or not known.any() else known & graph.seeding[found.rank]


def query_seeds(
    found: MatchedHits, seeding: npt.NDArray[np.bool_], graph: GraphSelection, options: ScoreOptions
) -> SeedSets:
    """Return personalization vectors; empty ones where the graph has no part in the method.

    Parameters
    ----------
    found : h hits.
    seeding : bool (h,), see `seed_hits`.
    graph : of the job.
    options : how hits become seeds; of a planner those of a plan.

    Raises
    ------
    InputDataError
        A source that no hit has; node types of a graph that has none.
    """
    names = source_names(found.source_names, found.name)
    check_source_names("--lower-is-better", options.lower_is_better, names, found.name)
    if options.method == "fuse" or options.scores_hits:
        return SeedSets(np.zeros(len(found.query_ids) + 1, np.int64), np.zeros(0, np.int32), np.zeros(0))
    distance = np.array([name in options.lower_is_better for name in names], dtype=np.bool_)
    weight = found.weight
    if options.seed_weighting == "uniform":
        weight, distance = np.ones(len(weight)), np.zeros_like(distance)
    elif options.seed_weighting == "rank":
        weight, distance = _reciprocal_ranks(found, distance), np.zeros_like(distance)
    elif options.seed_weighting == "specificity":
        weight = weight / _neighbors_to_return(found.rank, graph)
    elif options.method != "ppr" and distance.any():
        # An anchor only has to have a positive weight, and 0 is the best distance.
        weight = np.where(distance[0 if found.source is None else found.source], 1.0, weight)
    return build_seeds(
        found.query,
        np.where(seeding, found.rank, -1),
        weight,
        found.source,
        queries=len(found.query_ids),
        normalization=options.source_normalization,
        source_weights=_source_weights(options.seed_source_weight, found),
        lower_is_better=distance,
        inverse_order=graph.store.inverse_order,
    )


def _reciprocal_ranks(found: MatchedHits, distance: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """1 / position of every hit in the list of its source; hits that the graph does not have keep theirs."""
    if found.position is not None:
        return 1.0 / found.position
    source = np.zeros_like(found.query) if found.source is None else found.source
    goodness = np.where(distance[source], -found.weight, found.weight)
    # What has no node is nowhere in the list: behind all others, it moves none of them.
    group = found.query.astype(np.int64) * len(distance) + source
    group = np.where(found.node < 0, group + len(found.query_ids) * len(distance), group)
    return 1.0 / ordinal_ranks(group, goodness, found.node)


def _neighbors_to_return(rank: npt.NDArray[np.int32], graph: GraphSelection) -> npt.NDArray[np.int64]:
    """Number of neighbours of the output node types of every hit, at least 1; 1 where the graph does not have it."""
    distinct, place = np.unique(rank, return_inverse=True)
    known = distinct >= 0
    counts = np.ones(len(distinct), dtype=np.int64)
    nodes = graph.store.inverse_order[distinct[known]]
    counts[known] = count_distinct_neighbors(graph.followed, nodes, graph.counted).clip(min=1)
    return counts[place]


def _source_weights(weights: Mapping[str, float], found: MatchedHits) -> npt.NDArray[np.float64] | None:
    names = found.source_names
    if not weights:
        return None
    unknown = sorted(set(weights) - set(names))
    if unknown:
        raise InputDataError(
            f"--seed-source-weight {unknown[0]!r}: no hit has this source ({found.name})",
            expected="one of " + ", ".join(repr(name) for name in names[:20]) if names else "hits with a source column",
            fix="correct the name",
        )
    return np.array([weights.get(name, 1.0) if name is not None else 1.0 for name in names])
