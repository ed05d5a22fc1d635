"""``--method ppr``: personalized PageRank of a job's queries, block by block."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seedrank.config import ScoreOptions
from seedrank.io.graphstore import GraphStore
from seedrank.io.records import BackendRecord
from seedrank.jobs.clock import Clock
from seedrank.jobs.outcome import Outcome, Requirements
from seedrank.jobs.paths import followed_graph, path_columns
from seedrank.jobs.prepare import adjacency, block_size, memory_budget, type_weights
from seedrank.jobs.progress import Stopwatch
from seedrank.jobs.query_set import QuerySet
from seedrank.jobs.resources import processors
from seedrank.kernels.backend import Backend, QueryBlock, create_backend, resolve_backend
from seedrank.kernels.block_size import choose_block_size
from seedrank.kernels.ppr import BlockResult, personalized_pagerank
from seedrank.kernels.recall_graph import RecallGraph
from seedrank.kernels.relaxation import Relaxation, choose_relaxation
from seedrank.kernels.transition import Transition, build_transition
from seedrank.kernels.within_hops import within_hops


def ppr_requirements(options: ScoreOptions, nodes: int) -> Requirements:
    """Say who would compute, and what a query of a block takes on a graph of so many nodes."""
    decision = resolve_backend(options.backend)
    backend = create_backend(decision.name)
    return Requirements(
        decision=decision,
        bytes_per_query=backend.bytes_per_query(nodes, options.precision),
        widest=backend.widest_block(nodes, options.precision),
    )


def followed_transition(store: GraphStore, options: ScoreOptions) -> Transition:
    """Return transition probabilities of a store under direction, type weights and dangling rule; one pass.

    Raises
    ------
    InputDataError
        An edge type that no edge has.
    """
    return build_transition(
        adjacency(store.by_source),
        adjacency(store.by_destination),
        direction=options.direction,
        type_weights=type_weights(options, store.facts.edge_types),
        dangling=options.dangling,
    )


def start_ppr(
    store: GraphStore, query_set: QuerySet, options: ScoreOptions, stopwatch: Stopwatch, clock: Clock
) -> PprRunner:
    """Load the transition matrix of the store into the backend, choose a solver and fix the block size.

    Raises
    ------
    InputDataError
        An edge type that no edge has.
    ResourceError
        Memory does not hold a single query.
    """
    with stopwatch.stage("transition"):
        transition = followed_transition(store, options)
        graph = followed_graph(store, options) if options.paths or options.max_hops is not None else None
    with stopwatch.stage("load_backend"):
        needs = ppr_requirements(options, transition.nodes)
        backend = create_backend(needs.decision.name, threads=options.threads)
        backend.load(transition, precision=options.precision, order=np.asarray(store.order))
        budget = memory_budget(options.memory_limit)
        if budget < needs.bytes_per_query:
            # Refuses, before the probe of the solver takes the memory.
            choose_block_size(needs.bytes_per_query, budget, queries=len(query_set))
        relaxation = choose_relaxation(
            backend,
            transition,
            restart=options.restart_probability,
            tolerance=options.tolerance,
            max_iterations=options.max_iterations,
            symmetric=options.direction == "both",
        )
        record = BackendRecord(
            name=needs.decision.name,
            requested=needs.decision.requested,
            reason=needs.decision.reason,
            precision=options.precision,
            solver="steps" if relaxation is None else f"sweeps (factor {relaxation.factor:.4f})",
            block_size=block_size(options, needs, budget=budget, queries=len(query_set)),
            bytes_per_query=needs.bytes_per_query,
            memory_budget_bytes=budget,
        )
    return PprRunner(record, backend, relaxation, graph, store, query_set, options, clock)


@dataclass(frozen=True)
class PprRunner:
    """Personalized PageRank, ready to score; see `seedrank.jobs.outcome.Runner`."""

    backend: BackendRecord
    machine: Backend
    relaxation: Relaxation | None
    graph: RecallGraph | None
    store: GraphStore
    query_set: QuerySet
    options: ScoreOptions
    clock: Clock

    def score(self, queries: npt.NDArray[np.int64]) -> Outcome:
        """Score some queries together.

        Raises
        ------
        KernelError
            A self-check of the backend failed.
        InterruptedRunError
            The job was cancelled.
        """
        options = self.options
        block = self._within_hops(self.query_set.block(queries))
        timer = self.clock.timer()
        result = personalized_pagerank(
            self.machine,
            block,
            restart=options.restart_probability,
            max_iterations=options.max_iterations,
            tolerance=options.tolerance,
            k=max(1, min(options.top_k, self.store.facts.nodes)),
            eligible=self.query_set.eligible,
            min_score=options.min_score,
            precision=options.precision,
            relaxation=self.relaxation,
            on_step=lambda _: self.clock.check_cancelled(),
            should_stop=timer if self.clock.limited else None,
        )
        filled = np.arange(result.nodes.shape[1]) < result.counts[:, None]
        status = np.select([result.stopped, ~result.converged], ["timed_out", "not_converged"], "ok")
        return Outcome(
            status=status.astype(object),
            counts=result.counts,
            nodes=result.nodes[filled],
            scores=result.scores[filled],
            query_columns={
                "iterations": pa.array(result.iterations),
                "error_bound": pa.array(result.error_bound),
                "budget_hit": pa.array(np.full(len(queries), timer.limit, dtype=object), mask=~result.stopped),
                "truncated": pa.array(result.stopped, mask=~result.stopped),
            },
            candidate_columns=self._paths(block, result, result.nodes[filled]) if options.paths else {},
        )

    def _within_hops(self, block: QueryBlock) -> QueryBlock:
        """Restrict a block to what `max_hops` allows."""
        if self.options.max_hops is None:
            return block
        assert self.graph is not None
        reachable = within_hops(
            self.graph,
            block.seed_offsets,
            block.seed_nodes,
            max_hops=self.options.max_hops,
            threads=self.options.threads or processors(),
        )
        return replace(block, reachable=reachable)

    def _paths(self, block: QueryBlock, result: BlockResult, targets: npt.NDArray[np.int32]) -> dict[str, Any]:
        assert self.graph is not None
        return path_columns(
            self.graph,
            self.store,
            anchor_offsets=block.seed_offsets,
            anchors=block.seed_nodes,
            counts=result.counts,
            targets=targets,
            from_anchors=None,
            threads=self.options.threads or processors(),
        )
