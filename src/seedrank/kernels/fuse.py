"""Fusion: what several channels returned for a query becomes one ranking, for many queries at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from seedrank.kernels.arrays import BoolArray, Float64Array, Int32Array, Int64Array, Precision, ScoreArray
from seedrank.kernels.ordinal_ranks import ordinal_ranks
from seedrank.kernels.runs import places_in_runs, run_lengths, run_starts

FusionRule = Literal["rrf", "weighted"]


@dataclass(frozen=True)
class RankedLists:
    """Entries of the lists of B queries, h in total; within a query in any order.

    Attributes
    ----------
    offsets : int64 (B + 1)
        Query ``q`` has the entries ``offsets[q]`` to ``offsets[q + 1]``.
    lists : int32 (h)
        The list that an entry is from, 0 … L - 1.
    nodes : int32 (h)
        A node may occur several times in a list.
    scores : float64 (h)
        What the channel said of the node; finite, any sign.
    ranks : int64 (h) or None
        Position in its list, from 1; None: it follows from the scores.
    returnable : bool (h)
        Whether the query may return the node; entries that it may not return keep their position.
    """

    offsets: Int64Array
    lists: Int32Array
    nodes: Int32Array
    scores: Float64Array
    ranks: Int64Array | None
    returnable: BoolArray


@dataclass(frozen=True)
class FusedRanking:
    """The rankings of B queries, c nodes in total.

    Attributes
    ----------
    counts : int32 (B)
        Nodes of each query.
    nodes : int32 (c)
        Query after query, best first.
    scores : float32 or float64 (c)
    components : float32 or float64 (L, c)
        What each list contributes to a score; not a number where the list does not have the node.
    """

    counts: Int32Array
    nodes: Int32Array
    scores: ScoreArray
    components: ScoreArray


def fuse(
    entries: RankedLists,
    *,
    rule: FusionRule,
    rrf_k: int,
    weights: Float64Array,
    lower_is_better: BoolArray,
    order: Int32Array,
    k: int,
    min_score: float,
    precision: Precision,
) -> FusedRanking:
    """Fuse the lists of every query and keep the k best nodes: score descending, ties by tie rank.

    ``rrf`` (Cormack, Clarke and Büttcher, SIGIR 2009): the score of a node is Σ weight / (rrf_k + rank) over the lists
    that have it. Ranks count from 1; where none are given, a list is ordered by score, best first, ties by tie rank. A
    node that a list repeats counts once, at its best position, and occupies the others.

    ``weighted``: Σ weight · (score - worst) / (best - worst) over the lists, with 1 where all scores of a list are
    equal. Of a repeated node the best score counts.

    A node is a candidate when a list of positive weight has it, whatever its score. Contributions are added in
    ascending order and ranked in float64, before they are rounded to `precision`: neither the order of the entries nor
    that of the lists changes a bit, and nodes with the same ranks in different lists are exactly tied.

    Parameters
    ----------
    entries : RankedLists
    rule : "rrf" or "weighted"
    rrf_k : int
        >= 0; larger values make the first positions matter less.
    weights : float64 (L)
        Of each list; finite, >= 0.
    lower_is_better : bool (L)
        Lists whose scores are distances.
    order : int32
        Tie rank by node.
    k : int
        >= 1.
    min_score : float
        Lowest score that counts, compared in `precision`; 0: all.
    precision : "float32" or "float64"

    Returns
    -------
    FusedRanking
    """
    query = np.repeat(np.arange(len(entries.offsets) - 1, dtype=np.int32), np.diff(entries.offsets))
    # One number for the list of a query: sorting by it is cheaper than by two.
    group = query.astype(np.int64) * len(weights) + entries.lists
    goodness = np.where(lower_is_better[entries.lists], -entries.scores, entries.scores)
    if rule == "rrf":
        ranks = ordinal_ranks(group, goodness, order[entries.nodes]) if entries.ranks is None else entries.ranks
        values = weights[entries.lists] / (rrf_k + ranks)
    else:
        values = weights[entries.lists] * _min_max(group, goodness)

    kept = _best_of_repeats(group, entries, values)
    query, lists, nodes, values = query[kept], entries.lists[kept], entries.nodes[kept], values[kept]
    ascending = np.lexsort((values, query.astype(np.int64) * len(order) + order[nodes]))
    query, lists, nodes, values = query[ascending], lists[ascending], nodes[ascending], values[ascending]
    starts = run_starts(query, nodes)
    totals = np.add.reduceat(values, starts) if len(starts) else values
    heard = np.maximum.reduceat(weights[lists], starts) > 0 if len(starts) else np.zeros(0, np.bool_)
    if min_score > 0:
        heard &= totals.astype(precision) >= np.dtype(precision).type(min_score)

    candidates = np.flatnonzero(heard)
    of_query, of_node = query[starts[candidates]], nodes[starts[candidates]]
    ranking = np.lexsort((order[of_node], -totals[candidates], of_query))
    ranking = ranking[places_in_runs(run_starts(of_query[ranking]), len(ranking)) < k]
    chosen = candidates[ranking]

    row_of_group = np.full(len(starts), -1, dtype=np.int64)
    row_of_group[chosen] = np.arange(len(chosen))
    rows = np.repeat(row_of_group, run_lengths(starts, len(query)))
    shown = rows >= 0
    components = np.full((len(weights), len(chosen)), np.nan, dtype=precision)
    components[lists[shown], rows[shown]] = values[shown]
    return FusedRanking(
        counts=np.bincount(of_query[ranking], minlength=len(entries.offsets) - 1).astype(np.int32),
        nodes=of_node[ranking],
        scores=totals[chosen].astype(precision),
        components=components,
    )


def largest_fused_score(*, rule: FusionRule, rrf_k: int, weights: Float64Array) -> float:
    """Score of a node that is first in every list: no `fuse` can give more."""
    return float(np.sort(weights / (rrf_k + 1) if rule == "rrf" else weights).sum())


def _min_max(group: Int64Array, goodness: Float64Array) -> Float64Array:
    """Map the scores of every list to [0, 1]; 1 where all are equal."""
    by_list = np.argsort(group, kind="stable")
    starts = run_starts(group[by_list])
    if not len(starts):
        return goodness
    lengths = run_lengths(starts, len(goodness))
    # Scaled by a power of two, which is exact, no difference overflows.
    largest = np.repeat(np.maximum.reduceat(np.abs(goodness[by_list]), starts), lengths)
    scaled = np.ldexp(goodness[by_list], -np.frexp(largest)[1])
    worst = np.repeat(np.minimum.reduceat(scaled, starts), lengths)
    best = np.repeat(np.maximum.reduceat(scaled, starts), lengths)
    values = np.ones(len(scaled))
    np.divide(scaled - worst, best - worst, out=values, where=best > worst)
    unsorted = np.empty(len(values))
    unsorted[by_list] = values
    return unsorted


def _best_of_repeats(group: Int64Array, entries: RankedLists, values: Float64Array) -> Int64Array:
    """Positions of the returnable entries, of a node that a list repeats only the one of the largest value."""
    by_node = np.lexsort((-values, entries.nodes, group))
    by_node = by_node[entries.returnable[by_node]]
    return by_node[run_starts(group[by_node], entries.nodes[by_node])]
