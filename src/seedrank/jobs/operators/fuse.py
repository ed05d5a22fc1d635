"""``--method fuse``: the hits of a job's queries as one ranking each, block by block; needs no graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from seedrank.config import ScoreOptions
from seedrank.io.graphstore import GraphStore
from seedrank.io.records import BackendRecord
from seedrank.jobs.clock import Clock
from seedrank.jobs.operators.fusion import component_columns, fused_lists
from seedrank.jobs.operators.groups import group_columns
from seedrank.jobs.operators.outcome import Outcome, Requirements
from seedrank.jobs.prepare import planned_blocks
from seedrank.jobs.progress import Stopwatch
from seedrank.jobs.queries.query_set import QuerySet
from seedrank.jobs.queries.vector_hits import hits_decision

#: Queries of a block: enough for arrays to pay, few enough for a bar that moves.
WIDEST_BLOCK = 1024
#: Bytes of a hit while it is ranked, and the hits of a query that are planned with.
HIT_BYTES = 200
HITS_OF_A_QUERY = 300


def fuse_requirements(options: ScoreOptions, nodes: int) -> Requirements:
    """Say who would compute, and what a query of a block takes; the graph has no part in it."""
    return Requirements(
        decision=hits_decision(options),
        bytes_per_query=HIT_BYTES * HITS_OF_A_QUERY,
        stored_columns=lambda width: width,
        widest=WIDEST_BLOCK,
    )


def start_fuse(
    store: GraphStore,
    queries: Callable[[], QuerySet],
    options: ScoreOptions,
    stopwatch: Stopwatch,
    clock: Clock,
) -> FuseRunner:
    """Fix the block size; ``queries`` waits for the query set.

    Raises
    ------
    ResourceError
        Memory does not hold a single query.
    """
    query_set = queries()
    with stopwatch.stage("load_backend"):
        needs = fuse_requirements(options, store.facts.nodes)
        record = planned_blocks(options, needs, queries=len(query_set), solver=options.fusion)
    return FuseRunner(record, query_set, options)


@dataclass(frozen=True)
class FuseRunner:
    """Fusion of hits, ready to score; see `seedrank.jobs.operators.outcome.Runner`."""

    backend: BackendRecord
    query_set: QuerySet
    options: ScoreOptions

    def on(self, query_set: QuerySet) -> FuseRunner:
        """Return the same for other queries."""
        return replace(self, query_set=query_set)

    def score(self, queries: npt.NDArray[np.int64]) -> Outcome:
        """Score some queries together."""
        options, lists = self.options, self.query_set.hit_lists
        assert lists is not None
        assert options.fusion != "none"
        ranking, members = fused_lists(
            lists.of(queries), self.query_set, options, rule=options.fusion, min_score=options.min_score
        )
        return Outcome(
            status=np.full(len(queries), "ok", dtype=object),
            counts=ranking.counts,
            nodes=ranking.nodes,
            scores=ranking.scores,
            query_columns={},
            candidate_columns=component_columns(self.query_set, options, ranking.components)
            | group_columns(self.query_set, ranking.nodes, members),
        )
