"""The queries of a job as arrays: seeds, exclusions, ranked hits, plans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seedrank.config import ScoreOptions
from seedrank.io.graphstore import GraphStore
from seedrank.io.records import InputRecord
from seedrank.jobs.queries.exclusion_lists import ExclusionLists
from seedrank.jobs.queries.hit_lists import HitLists
from seedrank.jobs.queries.node_groups import NodeGroups
from seedrank.jobs.queries.node_space import NodeSpace
from seedrank.jobs.vectors import JobVectors
from seedrank.kernels.backend import QueryBlock
from seedrank.kernels.runs import gather
from seedrank.kernels.seeds import SeedSets

#: What stands in the column ``method`` of a query for which nothing can run.
NOTHING = "auto"


@dataclass(frozen=True)
class QuerySet:
    """All queries of a job, sorted by query id; q of them.

    Attributes
    ----------
    query_ids : (q,) Arrow array, sorted.
    seeds_given : int64 (q,), -1 where the query's seed list itself is null.
    seeds_missing : int64 (q,), hits that are null or not in the graph.
    seeds : seed distribution of every query; an empty range has no valid seed.
    exclusions : nodes that single queries must not return.
    eligible : bool (nodes,) over internal nodes, or None: nodes that any query may return.
    space : the nodes that candidates may be.
    groups : of these nodes, under ``--group-by``; else None.
    hit_lists : the hits as ranked lists, under fusion or fallback; else None.
    vectors : those of nodes and queries; None without.
    records : what was read, by input name.
    plans : how every query runs, where a planner chooses; else None.
    input_hashes : uint8 (q, 16), see `seedrank.jobs.queries.input_hashes`.
    """

    query_ids: pa.Array
    seeds_given: npt.NDArray[np.int64]
    seeds_missing: npt.NDArray[np.int64]
    seeds: SeedSets
    exclusions: ExclusionLists
    eligible: npt.NDArray[np.bool_] | None
    space: NodeSpace
    groups: NodeGroups | None
    hit_lists: HitLists | None
    vectors: JobVectors | None
    records: Mapping[str, InputRecord]
    plans: PlannedQueries | None
    input_hashes: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.query_ids)

    @property
    def seeded(self) -> npt.NDArray[np.bool_]:
        """Bool (q,): the query has at least one valid seed in the graph."""
        return np.diff(self.seeds.offsets) > 0

    @property
    def valid(self) -> npt.NDArray[np.bool_]:
        """Bool (q,): there is something to score, a valid seed, or hits that are ranked themselves."""
        if self.plans is not None:
            return self.plans.group >= 0
        return self.seeded if self.hit_lists is None else self.seeded | self.hit_lists.usable

    @property
    def components(self) -> tuple[str, ...]:
        """Names of the lists that a fusion fuses."""
        return () if self.hit_lists is None else self.hit_lists.names

    def on(self, store: GraphStore) -> QuerySet:
        """Return the same queries on the same graph that has been opened elsewhere."""
        plans = None if self.plans is None else self.plans.on(lambda query_set: query_set.on(store))
        return replace(self, space=replace(self.space, store=store), plans=plans)

    def block(self, queries: npt.NDArray[np.int64]) -> QueryBlock:
        """Return the arrays of some queries, in the order given."""
        seed_offsets, seed_entries = gather(self.seeds.offsets, queries)
        exclude_offsets, exclude_nodes = self.exclusions.of(queries)
        return QueryBlock(
            seed_offsets=seed_offsets,
            seed_nodes=self.seeds.nodes[seed_entries],
            seed_weights=self.seeds.weights[seed_entries],
            exclude_offsets=exclude_offsets,
            exclude_nodes=exclude_nodes,
        )


class PlannedJob(NamedTuple):
    """Queries that run together: the options of their method, and the query set with the hits that take part."""

    options: ScoreOptions
    query_set: QuerySet


@dataclass(frozen=True)
class PlannedQueries:
    """How each of q queries runs.

    Attributes
    ----------
    group : int32 (q,), position in ``jobs``; -1: nothing can run for the query.
    jobs : the groups that occur.
    plans, methods, traces : string (q,), columns of ``queries``.
    """

    group: npt.NDArray[np.int32]
    jobs: tuple[PlannedJob, ...]
    plans: pa.Array
    methods: pa.Array
    traces: pa.Array

    @property
    def counts(self) -> dict[str, int]:
        """Queries by plan, or by the method where the query names one; by name, ``none`` last."""
        named = [plan or method for plan, method in zip(self.plans.to_pylist(), self.methods.to_pylist(), strict=True)]
        counted = Counter("none" if name == NOTHING else name for name in named)
        return {name: counted[name] for name in sorted(counted, key=lambda name: (name == "none", name))}

    def on(self, moved: Callable[[QuerySet], QuerySet]) -> PlannedQueries:
        """Return the same plans with every query set moved."""
        return replace(self, jobs=tuple(job._replace(query_set=moved(job.query_set)) for job in self.jobs))
