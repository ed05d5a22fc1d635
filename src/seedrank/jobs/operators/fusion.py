"""Fusion in a job: the hits as one ranking, alone or together with what a method found in the graph."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seedrank.config import ScoreOptions
from seedrank.io.candidates import component_column
from seedrank.io.records import BackendRecord
from seedrank.jobs.operators.groups import Members, group_columns
from seedrank.jobs.operators.outcome import Outcome, Runner
from seedrank.jobs.queries.query_set import QuerySet
from seedrank.kernels.collapse import collapse
from seedrank.kernels.fuse import FusedRanking, FusionRule, RankedLists, fuse
from seedrank.kernels.fuse_groups import fuse_groups
from seedrank.kernels.runs import offsets_of

_EVERY_NODE = np.iinfo(np.int32).max


def channel_options(options: ScoreOptions) -> ScoreOptions:
    """Return the options under which a method ranks nodes, for what is made of its ranking.

    The graph's list of a fusion has a depth, and no threshold. To find groups, every node is ranked.
    """
    if options.fusion != "none":
        return options.model_copy(update={"top_k": options.fusion_depth, "min_score": 0.0})
    if options.group_by is not None:
        return options.model_copy(update={"top_k": _EVERY_NODE})
    return options


def fused_lists(
    entries: RankedLists, query_set: QuerySet, options: ScoreOptions, *, rule: FusionRule, min_score: float
) -> tuple[FusedRanking, Members | None]:
    """Fuse lists of some queries with the weights of the job: into a ranking of nodes, or of groups with members."""
    lists = query_set.hit_lists
    assert lists is not None
    settings: dict[str, Any] = {
        "rule": rule,
        "rrf_k": options.rrf_k,
        "weights": lists.weights,
        "lower_is_better": lists.lower_is_better,
        "order": query_set.space.order,
        "k": options.top_k,
        "min_score": min_score,
        "precision": options.precision,
    }
    if query_set.groups is None:
        return fuse(entries, **settings), None
    found = fuse_groups(entries, query_set.groups.codes, **settings)
    return found.ranking, Members(found.offsets, found.members, found.scores)


def component_columns(query_set: QuerySet, options: ScoreOptions, components: npt.NDArray[Any]) -> dict[str, pa.Array]:
    """Return what every list contributes to each candidate, by column; null where it does not have the candidate."""
    if options.fusion == "none":
        return {}
    assert query_set.hit_lists is not None
    return {
        component_column(name): pa.array(values, mask=np.isnan(values))
        for name, values in zip(query_set.hit_lists.names, components, strict=True)
    }


@dataclass(frozen=True)
class _Rows:
    """Candidates of some queries of a block, query after query: c of them from L lists.

    Attributes
    ----------
    query : int64 (c,), position of the query in the block.
    nodes, scores : int32 (c,), float (c,).
    components : float (L, c).
    channel_row : int64 (c,), row of the candidate in what the graph brought; -1: not among it.
    members : of the groups whose best members the candidates are; None without groups.
    """

    query: npt.NDArray[np.int64]
    nodes: npt.NDArray[np.int32]
    scores: npt.NDArray[np.floating[Any]]
    components: npt.NDArray[np.floating[Any]]
    channel_row: npt.NDArray[np.int64]
    members: Members | None


@dataclass(frozen=True)
class FusingRunner:
    """A method whose result is fused with the hits, or replaced by them where it is empty.

    See `seedrank.jobs.operators.outcome.Runner`; ``channel`` is the method, started with `channel_options`.
    """

    backend: BackendRecord
    channel: Runner
    query_set: QuerySet
    options: ScoreOptions

    def on(self, query_set: QuerySet) -> FusingRunner:
        """Return the same for other queries."""
        return replace(self, channel=self.channel.on(query_set), query_set=query_set)

    def score(self, queries: npt.NDArray[np.int64]) -> Outcome:
        """Score some queries together; those without a seed in the graph have hits."""
        lists = self.query_set.hit_lists
        assert lists is not None
        seeded = self.query_set.seeded[queries]
        found = self.channel.score(queries[seeded]) if seeded.any() else None
        brought = np.zeros(len(queries), dtype=np.int64)
        status = np.full(len(queries), "ok", dtype=object)
        if found is not None:
            brought[seeded], status[seeded] = found.counts, found.status
        empty = brought == 0
        status[empty & (status == "ok") & lists.usable[queries]] = "fallback_rrf"

        parts = [self._fallback(queries, empty)]
        if found is not None:
            parts.append(self._fused(queries, brought, found))
        rows = _in_order(parts)
        row_of_query = pa.array(np.cumsum(seeded) - 1, mask=~seeded)
        row_of_candidate = pa.array(rows.channel_row, mask=rows.channel_row < 0)
        query_columns = {} if found is None else found.query_columns
        candidate_columns = {} if found is None else found.candidate_columns
        return Outcome(
            status=status,
            counts=np.bincount(rows.query, minlength=len(queries)).astype(np.int32),
            nodes=rows.nodes,
            scores=rows.scores,
            query_columns={name: column.take(row_of_query) for name, column in query_columns.items()},
            candidate_columns={name: column.take(row_of_candidate) for name, column in candidate_columns.items()}
            | component_columns(self.query_set, self.options, rows.components)
            | group_columns(self.query_set, rows.nodes, rows.members),
        )

    def _fallback(self, queries: npt.NDArray[np.int64], empty: npt.NDArray[np.bool_]) -> _Rows:
        """Rank the hits of the queries for which the graph brings nothing.

        A threshold holds where it speaks of reciprocal ranks, too.
        """
        assert self.query_set.hit_lists is not None
        fused = fused_lists(
            self.query_set.hit_lists.of(queries[empty]),
            self.query_set,
            self.options,
            rule="rrf",
            min_score=self.options.min_score if self.options.fusion == "rrf" else 0.0,
        )
        return _rows(*fused, np.flatnonzero(empty), np.full(len(fused[0].nodes), -1))

    def _fused(self, queries: npt.NDArray[np.int64], brought: npt.NDArray[np.int64], found: Outcome) -> _Rows:
        """Fuse the hits of the queries for which the graph brings something with that."""
        lists, space = self.query_set.hit_lists, self.query_set.space
        assert lists is not None
        full = np.flatnonzero(brought)
        of_query = np.repeat(np.arange(len(full)), brought[full])
        if self.options.fusion == "none":
            return self._of_the_graph(full[of_query], brought[full], found)
        ranking, members = fused_lists(
            _joined(lists.of(queries[full]), found, of_query, code=len(lists.names) - 1),
            self.query_set,
            self.options,
            rule=self.options.fusion,
            min_score=self.options.min_score,
        )
        keys = of_query * len(space) + found.nodes
        wanted = np.repeat(np.arange(len(full)), ranking.counts) * len(space) + ranking.nodes
        by_key = np.argsort(keys)
        place = by_key[np.searchsorted(keys, wanted, sorter=by_key).clip(max=len(keys) - 1)]
        return _rows(ranking, members, full, np.where(keys[place] == wanted, place, -1))

    def _of_the_graph(self, query: npt.NDArray[np.int64], counts: npt.NDArray[np.int64], found: Outcome) -> _Rows:
        """Take what the graph brings as it is, as groups where there are any."""
        assert self.query_set.hit_lists is not None
        row, members = np.arange(len(found.nodes)), None
        if self.query_set.groups is not None:
            codes = self.query_set.groups.codes[found.nodes]
            groups = collapse(counts.astype(np.int32), codes, k=self.options.top_k)
            row = groups.best
            members = Members(groups.offsets, found.nodes[groups.members], found.scores[groups.members])
        return _Rows(
            query=query[row],
            nodes=found.nodes[row],
            scores=found.scores[row],
            components=np.full((len(self.query_set.hit_lists.names), len(row)), np.nan),
            channel_row=row,
            members=members,
        )


def _joined(entries: RankedLists, found: Outcome, of_query: npt.NDArray[np.int64], *, code: int) -> RankedLists:
    """Put what the graph brought into the lists of the same queries, as the list with this code."""
    queries = len(entries.offsets) - 1
    count = len(found.nodes)
    query = np.concatenate((np.repeat(np.arange(queries), np.diff(entries.offsets)), of_query))
    by_query = np.argsort(query, kind="stable")
    offsets = offsets_of(np.bincount(query, minlength=queries))
    ranks = None
    if entries.ranks is not None:
        first = np.searchsorted(of_query, of_query)
        ranks = np.concatenate((entries.ranks, np.arange(count) - first + 1))[by_query]
    return RankedLists(
        offsets=offsets,
        lists=np.concatenate((entries.lists, np.full(count, code, dtype=np.int32)))[by_query],
        nodes=np.concatenate((entries.nodes, found.nodes))[by_query],
        scores=np.concatenate((entries.scores, found.scores.astype(np.float64)))[by_query],
        ranks=ranks,
        returnable=np.concatenate((entries.returnable, np.ones(count, dtype=np.bool_)))[by_query],
    )


def _rows(
    ranking: FusedRanking,
    members: Members | None,
    positions: npt.NDArray[np.int64],
    channel_row: npt.NDArray[np.int64],
) -> _Rows:
    """Rows of the queries at some positions of the block."""
    return _Rows(
        query=np.repeat(positions, ranking.counts),
        nodes=ranking.nodes,
        scores=ranking.scores,
        components=ranking.components,
        channel_row=channel_row,
        members=members,
    )


def _in_order(parts: list[_Rows]) -> _Rows:
    """Join the rows of different queries, sorted by query."""
    joined = _Rows(
        query=np.concatenate([part.query for part in parts]),
        nodes=np.concatenate([part.nodes for part in parts]),
        scores=np.concatenate([part.scores for part in parts]),
        components=np.concatenate([part.components for part in parts], axis=1),
        channel_row=np.concatenate([part.channel_row for part in parts]),
        members=None,
    )
    members = [part.members for part in parts if part.members is not None]
    by_query = np.argsort(joined.query, kind="stable")
    return replace(
        joined,
        query=joined.query[by_query],
        nodes=joined.nodes[by_query],
        scores=joined.scores[by_query],
        components=joined.components[:, by_query],
        channel_row=joined.channel_row[by_query],
        members=Members.joined(members).take(by_query) if members else None,
    )
