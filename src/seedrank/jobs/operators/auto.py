"""``--method auto``: every query by the plan that a planner chose; queries with the same plan are scored together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seedrank.config import ScoreOptions
from seedrank.io.graphstore import GraphStore
from seedrank.io.records import BackendRecord
from seedrank.jobs.clock import Clock
from seedrank.jobs.operators.fuse import fuse_requirements
from seedrank.jobs.operators.outcome import Outcome, Requirements, Runner
from seedrank.jobs.operators.ppr import ppr_requirements
from seedrank.jobs.prepare import block_size, memory_budget
from seedrank.jobs.progress import Stopwatch
from seedrank.jobs.queries.query_set import PlannedJob, PlannedQueries, QuerySet

#: Queries that are sorted by plan together; each plan then takes as many at once as its method does.
WIDEST_BLOCK = 1024


class StartMethod(Protocol):
    """`seedrank.jobs.methods.start_method`, with the runners that are there already."""

    def __call__(
        self,
        store: GraphStore,
        queries: Callable[[], QuerySet],
        options: ScoreOptions,
        stopwatch: Stopwatch,
        clock: Clock,
        *,
        shared: dict[str, Runner],
    ) -> Runner:
        """Start a method."""
        ...


def auto_requirements(options: ScoreOptions, nodes: int) -> Requirements:
    """Say who would compute in the graph, or without one, and what a query of a block takes there."""
    return ppr_requirements(options, nodes) if nodes else fuse_requirements(options, nodes)


def start_auto(
    store: GraphStore,
    queries: Callable[[], QuerySet],
    options: ScoreOptions,
    stopwatch: Stopwatch,
    clock: Clock,
    *,
    start: StartMethod,
) -> AutoRunner:
    """Start the method of every plan that occurs; plans with the same method in the graph share what it loads.

    Raises
    ------
    ConfigError, InputDataError, ResourceError
        What the methods raise.
    """
    query_set = queries()
    plans = query_set.plans
    assert plans is not None
    shared: dict[str, Runner] = {}

    def start_jobs(jobs: tuple[PlannedJob, ...]) -> tuple[Runner, ...]:
        # A run that goes on keeps the backend that it began with.
        changed = [job.options.model_copy(update={"backend": options.backend}) for job in jobs]
        return tuple(
            start(store, partial(_query_set, job), own, stopwatch, clock, shared=shared)
            for job, own in zip(jobs, changed, strict=True)
        )

    runners = start_jobs(plans.jobs)
    with stopwatch.stage("load_backend"):
        needs = auto_requirements(options, store.facts.nodes)
        budget = memory_budget(options.memory_limit)
        width = block_size(options, needs, budget=budget, queries=len(query_set))
    record = needs.record(options, solver="by plan", width=width, budget=budget)
    return AutoRunner(record.model_copy(update={"block_size": WIDEST_BLOCK}), plans, runners, start_jobs)


def _query_set(job: PlannedJob) -> QuerySet:
    return job.query_set


@dataclass(frozen=True)
class AutoRunner:
    """The runners of all plans, ready to score; see `seedrank.jobs.operators.outcome.Runner`.

    Attributes
    ----------
    backend : who computes in the graph; its ``block_size`` counts the queries that are sorted by plan together.
    plans : how every query runs.
    runners : one for each of the plans' jobs.
    start_jobs : starts these for other jobs; what is loaded is shared.
    """

    backend: BackendRecord
    plans: PlannedQueries
    runners: tuple[Runner, ...]
    start_jobs: Callable[[tuple[PlannedJob, ...]], tuple[Runner, ...]]

    def on(self, query_set: QuerySet) -> AutoRunner:
        """Return the same for other queries, and the plans of these."""
        assert query_set.plans is not None
        return replace(self, plans=query_set.plans, runners=self.start_jobs(query_set.plans.jobs))

    def score(self, queries: npt.NDArray[np.int64]) -> Outcome:
        """Score some queries, plan by plan."""
        group = self.plans.group[queries]
        places: list[npt.NDArray[np.int64]] = []
        outcomes: list[Outcome] = []
        for number, runner in enumerate(self.runners):
            mine = np.flatnonzero(group == number)
            for first in range(0, len(mine), runner.backend.block_size):
                some = mine[first : first + runner.backend.block_size]
                places.append(some)
                outcomes.append(runner.score(queries[some]))
        return in_order(np.concatenate(places), outcomes)


def in_order(places: npt.NDArray[np.int64], outcomes: Sequence[Outcome]) -> Outcome:
    """Join outcomes of different queries.

    Parameters
    ----------
    places : int64 (B,), position that each row shall have, outcome after outcome.
    outcomes : at least one; a column that one of them lacks is null there.
    """
    by_place = np.argsort(places)
    counts = np.concatenate([outcome.counts for outcome in outcomes])
    row = np.repeat(places, counts)
    by_row = np.argsort(row, kind="stable")
    return Outcome(
        status=np.concatenate([outcome.status for outcome in outcomes])[by_place],
        counts=counts[by_place],
        nodes=np.concatenate([outcome.nodes for outcome in outcomes])[by_row],
        scores=np.concatenate([outcome.scores for outcome in outcomes])[by_row],
        query_columns=_columns([(outcome.query_columns, len(outcome.counts)) for outcome in outcomes], by_place),
        candidate_columns=_columns([(outcome.candidate_columns, len(outcome.nodes)) for outcome in outcomes], by_row),
    )


def _columns(parts: Sequence[tuple[Mapping[str, pa.Array], int]], order: npt.NDArray[np.int64]) -> dict[str, pa.Array]:
    kinds: dict[str, pa.DataType] = {}
    for columns, _ in parts:
        for name, values in columns.items():
            # A column of nothing but nulls may have no type of its own.
            if name not in kinds or pa.types.is_null(kinds[name]):
                kinds[name] = values.type
    return {
        name: pa.concat_arrays(
            [columns[name].cast(kind) if name in columns else pa.nulls(rows, kind) for columns, rows in parts]
        ).take(pa.array(order))
        for name, kind in kinds.items()
    }
