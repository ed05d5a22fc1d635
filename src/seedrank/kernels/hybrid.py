"""Hybrid scores: what a store says of a node, and how well the node hangs together with the rest of the query."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seedrank.kernels.arrays import BoolArray, Float64Array, Int32Array, Int64Array, Precision, ScoreArray
from seedrank.kernels.fuse import RankedLists
from seedrank.kernels.runs import places_in_runs, run_starts
from seedrank.kernels.subgraph import Subgraphs


@dataclass(frozen=True)
class HybridRanking:
    """The rankings of B queries, c nodes in total.

    Attributes
    ----------
    counts : int32 (B)
        Nodes of each query.
    nodes : int32 (c)
        Query after query, best first.
    scores : float32 or float64 (c)
    components : float32 or float64 (3, c)
        Semantic score, edge bonus and centrality bonus: a score is their sum.
    """

    counts: Int32Array
    nodes: Int32Array
    scores: ScoreArray
    components: ScoreArray


def hybrid(
    hits: RankedLists,
    around: Subgraphs | None,
    *,
    graph_nodes: int,
    include_expanded: bool,
    edge_bonus: float,
    centrality_bonus: float,
    eligible: BoolArray | None,
    exclude_offsets: Int64Array,
    exclude_nodes: Int32Array,
    order: Int32Array,
    k: int,
    min_score: float,
    precision: Precision,
) -> HybridRanking:
    """Score the hits of every query and keep the k best: score descending, ties by tie rank.

    score = semantic score + `edge_bonus` · sum of the weights of the node's edges in the subgraph of the query
    + `centrality_bonus` · number of these edges / (nodes of the subgraph - 1), the last term 0 if there is one node
    only. The semantic score of a node is the largest that a hit of the query gives it, and 0 for the nodes of the
    subgraph that no hit has. Hits that the graph does not have are nodes of the subgraph without edges.

    Sums are taken in this order, in float64, and ranked before they are rounded to `precision`. A score may have any
    sign; every returnable hit is a candidate whatever its score.

    Parameters
    ----------
    hits : RankedLists
        `scores` are semantic scores; what a query may not return is still a node of its subgraph. `lists` and `ranks`
        are not looked at.
    around : Subgraphs or None
        Of the same queries, from the hits that the graph has; None: the semantic score alone.
    graph_nodes : int
        Nodes below are of the graph, the others hits that it does not have.
    include_expanded : bool
        Whether nodes of the subgraph that are no hits are candidates.
    edge_bonus, centrality_bonus : float
        Finite, >= 0.
    eligible : bool (graph_nodes) or None
        Nodes of the graph that may be returned without being a hit; None: all.
    exclude_offsets, exclude_nodes : int64 (B + 1), int32
        Nodes of the graph that a query may not return without their being a hit.
    order : int32
        Tie rank by node.
    k : int
        >= 1.
    min_score : float
        Lowest score that counts, compared in `precision`; 0: all.
    precision : "float32" or "float64"

    Returns
    -------
    HybridRanking
    """
    queries, size = len(hits.offsets) - 1, max(len(order), 1)
    query = np.repeat(np.arange(queries), np.diff(hits.offsets))
    keys = query * size + hits.nodes
    best_first = np.lexsort((-hits.scores, keys))
    best_first = best_first[run_starts(keys[best_first])]
    keys, semantic, returnable = keys[best_first], hits.scores[best_first], hits.returnable[best_first]
    edge, centrality = np.zeros(len(keys)), np.zeros(len(keys))
    if around is not None:
        known = np.repeat(np.arange(queries), np.diff(around.offsets)) * size + around.nodes
        foreign = np.bincount(keys[keys % size >= graph_nodes] // size, minlength=queries)
        others = np.diff(around.offsets) + foreign - 1
        if include_expanded:
            new = np.setdiff1d(known, keys, assume_unique=True)
            allowed = np.ones(len(new), np.bool_) if eligible is None else eligible[new % size]
            excluded = np.repeat(np.arange(queries), np.diff(exclude_offsets)) * size + exclude_nodes
            keys = np.concatenate((keys, new))
            semantic = np.concatenate((semantic, np.zeros(len(new))))
            returnable = np.concatenate((returnable, allowed & ~np.isin(new, excluded)))
        edge, centrality = _bonuses(around, known, others[keys // size], keys, edge_bonus, centrality_bonus)
    totals = semantic + edge + centrality
    if min_score > 0:
        returnable = returnable & (_rounded(totals, precision) >= np.dtype(precision).type(min_score))

    candidates = np.flatnonzero(returnable)
    of_query, of_node = np.divmod(keys[candidates], size)
    ranking = np.lexsort((order[of_node], -totals[candidates], of_query))
    ranking = ranking[places_in_runs(run_starts(of_query[ranking]), len(ranking)) < k]
    chosen = candidates[ranking]
    return HybridRanking(
        counts=np.bincount(of_query[ranking], minlength=queries).astype(np.int32),
        nodes=of_node[ranking].astype(np.int32),
        scores=_rounded(totals[chosen], precision),
        components=_rounded(np.stack((semantic[chosen], edge[chosen], centrality[chosen])), precision),
    )


def _bonuses(
    around: Subgraphs,
    known: Int64Array,
    others: Int64Array,
    keys: Int64Array,
    edge_bonus: float,
    centrality_bonus: float,
) -> tuple[Float64Array, Float64Array]:
    """Edge and centrality bonus of some nodes; `known` are the keys of the nodes of the subgraphs, ascending."""
    edge, centrality = np.zeros(len(keys)), np.zeros(len(keys))
    if not len(known):
        return edge, centrality
    place = np.searchsorted(known, keys).clip(max=len(known) - 1)
    inside = known[place] == keys
    place = place[inside]
    if edge_bonus > 0:  # 0 · an overflowed sum would be no number
        edge[inside] = edge_bonus * around.edge_weights[place]
    centrality[inside] = centrality_bonus * (around.degrees[place] / np.maximum(others[inside], 1))
    centrality[others == 0] = 0.0
    return edge, centrality


def _rounded(values: Float64Array, precision: Precision) -> ScoreArray:
    with np.errstate(over="ignore"):  # a sum of weights beyond float32 is infinite there
        rounded: ScoreArray = values.astype(precision)
    return rounded
