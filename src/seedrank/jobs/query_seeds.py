"""From hits to personalization vectors."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from seedrank.config import ScoreOptions
from seedrank.errors import InputDataError
from seedrank.io.graphstore import GraphStore
from seedrank.jobs.hit_lists import check_source_names, source_names
from seedrank.jobs.matched_hits import MatchedHits
from seedrank.kernels.seeds import SeedSets, build_seeds


def query_seeds(found: MatchedHits, store: GraphStore, options: ScoreOptions) -> SeedSets:
    """Personalization vectors; empty ones where the graph has no part in the method."""
    names = source_names(found.source_names)
    check_source_names("--lower-is-better", options.lower_is_better, names)
    if options.method == "fuse" or options.scores_hits:
        return SeedSets(np.zeros(len(found.query_ids) + 1, np.int64), np.zeros(0, np.int32), np.zeros(0))
    distance = np.array([name in options.lower_is_better for name in names], dtype=np.bool_)
    weight = found.weight
    if options.method != "ppr" and distance.any():
        # An anchor only has to have a positive weight, and 0 is the best distance.
        weight = np.where(distance[0 if found.source is None else found.source], 1.0, weight)
    return build_seeds(
        found.query,
        found.rank,
        weight,
        found.source,
        queries=len(found.query_ids),
        normalization=options.source_normalization,
        source_weights=_source_weights(options.seed_source_weight, found.source_names),
        lower_is_better=distance,
        inverse_order=store.inverse_order,
    )


def _source_weights(weights: Mapping[str, float], names: tuple[str | None, ...]) -> npt.NDArray[np.float64] | None:
    if not weights:
        return None
    unknown = sorted(set(weights) - set(names))
    if unknown:
        raise InputDataError(
            f"--seed-source-weight {unknown[0]!r}: no hit has this source",
            expected="one of " + ", ".join(repr(name) for name in names[:20]) if names else "hits with a source column",
            fix="correct the name",
        )
    return np.array([weights.get(name, 1.0) if name is not None else 1.0 for name in names])
