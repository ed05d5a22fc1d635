"""Metrics of rankings against the nodes that should have been found, from the ranks of the latter alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

#: What a metric with a cut k says of a query with R gold nodes; every one lies in 0 … 1.
METRICS = {
    "recall": "share of the gold nodes among the first k candidates",
    "all": "1 if all gold nodes are among the first k candidates, else 0",
    "hit": "1 if a gold node is among the first k candidates, else 0",
    "precision": "gold nodes among the first k candidates, divided by k",
    "mrr": "1 / rank of the first gold node, 0 beyond k",
    "map": "sum of the precision at the rank of each gold node found, divided by R",
    "ndcg": "sum of relevance / log2(1 + rank), divided by that of the best ranking; relevance 1 where none is given",
}
#: Metrics that mean nothing without a cut.
NEEDS_CUT = frozenset({"recall", "all", "hit", "precision"})


@dataclass(frozen=True)
class GoldRanks:
    """The gold nodes of q queries, and where a ranking has them; g nodes in all.

    Attributes
    ----------
    offsets : int64 (q + 1,), entries of each query; none is empty.
    ranks : int64 (g,), best rank of the node, from 1; 0: it is not in the ranking.
    gains : float64 (g,), relevance, positive.
    """

    offsets: npt.NDArray[np.int64]
    ranks: npt.NDArray[np.int64]
    gains: npt.NDArray[np.float64]


def ranking_metric(gold: GoldRanks, name: str, cut: int | None) -> npt.NDArray[np.float64]:
    """Compute one metric of every query, float64 (q,) in 0 … 1.

    A node that a ranking repeats counts once, at its best rank; the repeats keep their places.

    Parameters
    ----------
    gold : ranks of the gold nodes.
    name : one of `METRICS`.
    cut : k, positive; None: the whole ranking.

    Notes
    -----
    nDCG has linear gains, and the ideal ranking is cut at k, too (Järvelin and Kekäläinen 2002, as trec_eval has it);
    MAP divides by all gold nodes, also those beyond k.
    """
    within = gold.ranks > 0
    if cut is not None:
        within &= gold.ranks <= cut
    sizes = np.diff(gold.offsets)
    if name in NEEDS_CUT:
        assert cut is not None
        found = _sums(within.astype(np.float64), gold.offsets)
        by_name = {"recall": found / sizes, "all": found == sizes, "hit": found > 0, "precision": found / cut}
        return np.asarray(by_name[name], dtype=np.float64)
    reciprocal = np.divide(1.0, gold.ranks, out=np.zeros(len(gold.ranks)), where=within)
    place = _places(gold, gold.ranks.astype(np.float64), within)
    if name == "mrr":
        return _sums(np.where(place == 1, reciprocal, 0.0), gold.offsets)
    if name == "map":
        return _sums(place * reciprocal, gold.offsets) / sizes
    return _sums(_discounted(gold.gains, gold.ranks, within), gold.offsets) / _best_sums(gold, cut)


def _discounted(
    gains: npt.NDArray[np.float64], ranks: npt.NDArray[Any], counted: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float64]:
    return np.divide(gains, np.log2(1.0 + ranks), out=np.zeros(len(gains)), where=counted)


def _best_sums(gold: GoldRanks, cut: int | None) -> npt.NDArray[np.float64]:
    """Discounted gains of a ranking that begins with all gold nodes, the most relevant first."""
    place = _places(gold, -gold.gains, np.ones(len(gold.gains), dtype=np.bool_))
    within = np.ones(len(place), dtype=np.bool_) if cut is None else place <= cut
    return _sums(_discounted(gold.gains, place, within), gold.offsets)


def _places(gold: GoldRanks, keys: npt.NDArray[np.float64], counted: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """Position from 1 of every counted entry among those of its query, by ascending key; 0 for the others."""
    query = np.repeat(np.arange(len(gold.offsets) - 1), np.diff(gold.offsets))
    order = np.lexsort((keys, ~counted, query))
    place = np.empty(len(keys))
    place[order] = np.arange(1, len(keys) + 1) - gold.offsets[query[order]]
    return np.where(counted, place, 0.0)


def _sums(values: npt.NDArray[np.float64], offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    sums: npt.NDArray[np.float64] = np.add.reduceat(values, offsets[:-1]) if len(offsets) > 1 else np.zeros(0)
    return sums
