"""From the hits of ``--method auto`` to plans: what each query has, and which hits take part in what runs."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from seedrank.config import ScoreOptions
from seedrank.config.names import SourceRole
from seedrank.io.graph.no_graph import NoGraph
from seedrank.io.ids import match_ids
from seedrank.io.queries import HitTable
from seedrank.io.query_info import QueryInfoTable
from seedrank.jobs.planning.queries import BUDGET_NAMES, check_possible, plan_queries, query_facts
from seedrank.jobs.queries.graph_selection import GraphSelection
from seedrank.jobs.queries.hit_lists import build_hit_lists, source_names
from seedrank.jobs.queries.matched_hits import MatchedHits
from seedrank.jobs.queries.query_seeds import query_seeds
from seedrank.jobs.queries.query_set import PlannedQueries, QuerySet
from seedrank.jobs.queries.source_roles import source_roles
from seedrank.kernels.seeds import SeedSets


class PlannedHits(NamedTuple):
    """All h hits of a job, and what is known of them.

    Attributes
    ----------
    query_set : the queries, with all hits.
    graph : of the job.
    hits, found : the hits, and against the graph.
    seeding : bool (h,), whether the hit may be a seed.
    nodes : int32 (h,), node of each hit in the space of the job; -1 without a node.
    returnable : bool (h,), whether the query may return the node.
    """

    query_set: QuerySet
    graph: GraphSelection
    hits: HitTable
    found: MatchedHits
    seeding: npt.NDArray[np.bool_]
    nodes: npt.NDArray[np.int32]
    returnable: npt.NDArray[np.bool_]

    def some(self, ranked: npt.NDArray[np.bool_], seeds: SeedSets, options: ScoreOptions) -> QuerySet:
        """Return the same queries with some of the hits in the lists, and other seeds, under other options."""
        lists = None
        if options.ranks_hits:
            lists = build_hit_lists(self._fewer(ranked, options), self.nodes[ranked], self.returnable[ranked], options)
        return replace(self.query_set, seeds=seeds, hit_lists=lists, plans=None)

    def _fewer(self, keep: npt.NDArray[np.bool_], options: ScoreOptions) -> HitTable:
        hits = self.hits
        return replace(
            hits,
            query=hits.query[keep],
            node=hits.node[keep],
            weight=hits.weight[keep],
            rank=None if hits.rank is None else hits.rank[keep],
            source=None if hits.source is None else hits.source[keep],
            fallback=None,
            # Only the methods that rank hits by their own scores have an eye for these.
            retriever_weight=hits.retriever_weight[keep]
            if options.scores_hits and hits.retriever_weight is not None
            else None,
        )

    def seeds(self, keep: npt.NDArray[np.bool_], options: ScoreOptions) -> SeedSets:
        """Return what some of the hits are as seeds."""
        return query_seeds(self.found, self.seeding & keep, self.graph, options)


def plan_hits(known: PlannedHits, info: QueryInfoTable | None, options: ScoreOptions) -> PlannedQueries:
    """Choose a plan for every query of a job.

    Raises
    ------
    ConfigError
        A source without a role, or no plan is possible.
    InputDataError
        ``--source-role`` names a source that no hit has; query ids of another kind.
    """
    query_set, hits = known.query_set, known.hits
    names = source_names(hits.source_names, hits.name)
    roles = source_roles(names, options, hits.name)
    graph = not isinstance(query_set.space.store, NoGraph)
    count = len(query_set)
    place = np.full(count, -1, dtype=np.int32)
    if info is not None:
        place = match_ids(query_set.query_ids, info.query_ids)
    facts = query_facts(info, place, options)
    if len(hits.query):
        check_possible(roles, names, {BUDGET_NAMES[code] for code in np.unique(facts.budget).tolist()}, graph=graph)
    source = np.zeros(len(hits.query), np.int32) if hits.source is None else hits.source

    def of_roles(wanted: tuple[SourceRole, ...]) -> npt.NDArray[np.bool_]:
        return np.array([role in wanted for role in roles], dtype=np.bool_)[source]

    def queries_with(wanted: SourceRole) -> npt.NDArray[np.bool_]:
        usable = of_roles((wanted,)) & (known.nodes >= 0) & known.returnable
        return np.bincount(hits.query[usable], minlength=count) > 0

    def variant(ranked: tuple[SourceRole, ...], seeding: tuple[SourceRole, ...], changed: ScoreOptions) -> QuerySet:
        chosen = of_roles(seeding)
        seeded = np.diff(known.seeds(chosen, changed).offsets) > 0
        seeds = known.seeds(chosen | ~seeded[hits.query], changed)
        return known.some(of_roles(ranked) if ranked else np.ones(len(source), dtype=np.bool_), seeds, changed)

    assert query_set.hit_lists is not None
    capabilities = np.column_stack((queries_with("dense"), queries_with("sparse"), query_set.seeded & graph))
    return plan_queries(facts, capabilities, query_set.hit_lists.usable, options, variant)
