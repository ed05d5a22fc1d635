"""Fusion of groups of nodes: every list becomes a list of groups, then these are fused."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seedrank.kernels.arrays import BoolArray, Float64Array, Int32Array, Int64Array, Precision, ScoreArray
from seedrank.kernels.collapse import Collapsed, collapse
from seedrank.kernels.fuse import FusedRanking, FusionRule, RankedLists, fuse
from seedrank.kernels.ordinal_ranks import ordinal_ranks
from seedrank.kernels.runs import gather, offsets_of, run_starts

_ALL = np.iinfo(np.int32).max


@dataclass(frozen=True)
class FusedGroups:
    """The rankings of groups of B queries, g groups in total.

    Attributes
    ----------
    ranking : FusedRanking
        Scores and components are those of the groups, nodes their best members.
    offsets : int64 (g + 1)
        Group i has the members ``offsets[i]`` to ``offsets[i + 1]``.
    members : int32
        Nodes, within a group best first.
    scores : float
        Of the members, as the fusion of nodes gives them.
    """

    ranking: FusedRanking
    offsets: Int64Array
    members: Int32Array
    scores: ScoreArray


def fuse_groups(
    entries: RankedLists,
    groups: Int32Array,
    *,
    rule: FusionRule,
    rrf_k: int,
    weights: Float64Array,
    lower_is_better: BoolArray,
    order: Int32Array,
    k: int,
    min_score: float,
    precision: Precision,
) -> FusedGroups:
    """Fuse the lists of every query into one ranking of groups, and keep the k best.

    Entries that a query may not return are left out. Every list is collapsed: a group stands where its best member
    stood, and positions count groups; its score there is that of its best member. These lists are fused as
    `seedrank.kernels.fuse.fuse` does, with groups in the place of nodes; ties by the tie rank of the best member.

    The best member of a group, and the order and scores of its members, are those of the fusion of nodes, in which
    entries that are left out keep their positions.

    Parameters
    ----------
    entries, rule, rrf_k, weights, lower_is_better, order, min_score, precision
        As in `seedrank.kernels.fuse.fuse`; the threshold is one of groups.
    groups : int32 (nodes)
        Group of each node, >= 0; -1 is a group of its own.
    k : int
        Groups to keep, >= 1.

    Returns
    -------
    FusedGroups
    """

    def fused(lists: RankedLists, most: int, least: float) -> FusedRanking:
        return fuse(
            lists,
            rule=rule,
            rrf_k=rrf_k,
            weights=weights,
            lower_is_better=lower_is_better,
            order=order,
            k=most,
            min_score=least,
            precision=precision,
        )

    nodes = fused(entries, _ALL, 0.0)
    every = collapse(nodes.counts, groups[nodes.nodes], k=_ALL)
    size = np.int64(len(order))
    query_of_row = np.repeat(np.arange(len(nodes.counts)), nodes.counts)
    keys = query_of_row * size + nodes.nodes
    group_of_row = np.empty(len(keys), dtype=np.int64)
    group_of_row[every.members] = np.repeat(np.arange(len(every.best)), np.diff(every.offsets))
    lists = _collapsed_lists(entries, keys, nodes.nodes[every.best][group_of_row], rule, lower_is_better, order)
    ranking = fused(lists, k, min_score)
    chosen = _places(keys[every.best], np.repeat(np.arange(len(ranking.counts)), ranking.counts) * size + ranking.nodes)
    offsets, rows = _members(every, chosen)
    return FusedGroups(ranking=ranking, offsets=offsets, members=nodes.nodes[rows], scores=nodes.scores[rows])


def _members(every: Collapsed, chosen: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Offsets and rows of the members of some groups."""
    offsets, entries = gather(every.offsets, chosen)
    return offsets, every.members[entries]


def _collapsed_lists(
    entries: RankedLists,
    keys: Int64Array,
    representative: Int32Array,
    rule: FusionRule,
    lower_is_better: BoolArray,
    order: Int32Array,
) -> RankedLists:
    """Lists of groups, each by its representative, of the candidates among the entries.

    `keys` are query and node of the candidates, `representative` is the best member of the group of each.
    """
    query = np.repeat(np.arange(len(entries.offsets) - 1), np.diff(entries.offsets))
    place = _places(keys, query * np.int64(len(order)) + entries.nodes)
    usable = np.flatnonzero(entries.returnable & (place >= 0))
    query, lists, nodes, scores = query[usable], entries.lists[usable], entries.nodes[usable], entries.scores[usable]
    stands_for = representative[place[usable]]
    if entries.ranks is None:
        goodness = np.where(lower_is_better[lists], -scores, scores)
    else:
        goodness = -entries.ranks[usable].astype(np.float64)
    group = query * len(lower_is_better) + lists
    # The best entry of a group in a list comes first; its position among those is the group's.
    by_group = np.lexsort((ordinal_ranks(group, goodness, order[nodes]), stands_for, group))
    best = np.sort(by_group[run_starts(group[by_group], stands_for[by_group])])
    ranks = None
    if rule == "rrf":
        ranks = ordinal_ranks(group[best], goodness[best], order[nodes[best]])
    return RankedLists(
        offsets=offsets_of(np.bincount(query[best], minlength=len(entries.offsets) - 1)),
        lists=lists[best],
        nodes=stands_for[best],
        scores=scores[best],
        ranks=ranks,
        returnable=np.ones(len(best), dtype=np.bool_),
    )


def _places(known: Int64Array, wanted: Int64Array) -> Int64Array:
    """Position of each wanted key among distinct known ones, -1 if it is not there."""
    if not len(known):
        return np.full(len(wanted), -1, dtype=np.int64)
    by_key = np.argsort(known)
    found = by_key[np.searchsorted(known, wanted, sorter=by_key).clip(max=len(known) - 1)]
    return np.where(known[found] == wanted, found, -1)
