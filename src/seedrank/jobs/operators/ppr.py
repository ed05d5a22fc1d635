"""``--method ppr``: personalized PageRank of a job's queries, block by block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seedrank.config import ScoreOptions
from seedrank.io.graph.mapped_pages import release_pages
from seedrank.io.graphstore import GraphStore
from seedrank.io.records import BackendRecord
from seedrank.jobs.clock import BlockTimer, Clock
from seedrank.jobs.graphs.followed_graph import adjacency, followed_graph, type_weights
from seedrank.jobs.graphs.graph_memory import GraphSize, graph_memory
from seedrank.jobs.graphs.streamed_graph import load_streamed
from seedrank.jobs.operators.groups import RANKED_NODE_BYTES
from seedrank.jobs.operators.outcome import Outcome, Requirements
from seedrank.jobs.operators.paths import Paths, path_columns
from seedrank.jobs.prepare import block_size, memory_budget
from seedrank.jobs.progress import Stopwatch
from seedrank.jobs.queries.query_set import QuerySet
from seedrank.jobs.resources import processors
from seedrank.kernels.arrays import BoolArray, DanglingRule
from seedrank.kernels.backend import AsynchronousBackend, Backend, QueryBlock, SummingBackend
from seedrank.kernels.backends.block_result import CERTIFICATES, BlockResult, interleaved
from seedrank.kernels.backends.resolver import create_backend, resolve_backend
from seedrank.kernels.numba_support import require_compiled
from seedrank.kernels.ppr import personalized_pagerank
from seedrank.kernels.ppr_shared import personalized_pageranks
from seedrank.kernels.recall.recall_graph import RecallGraph
from seedrank.kernels.recall.within_hops import within_hops
from seedrank.kernels.relaxation import Relaxation, choose_relaxation
from seedrank.kernels.streamed_transition import StreamedTransition
from seedrank.kernels.transition import Transition, build_transition


def ppr_requirements(options: ScoreOptions, nodes: int) -> Requirements:
    """Say who would compute, and what a query of a block takes on a graph of so many nodes.

    Raises
    ------
    ResourceError
        There are no compiled kernels here, and they were asked for.
    """
    for option in ("paths", "max_hops"):
        if getattr(options, option):
            require_compiled(f"--{option.replace('_', '-')}")
    decision = resolve_backend(options.backend)
    backend = create_backend(decision.name)
    return Requirements(
        decision=decision,
        bytes_per_query=backend.bytes_per_query(nodes, options.precision, sums=_sums(options))
        + (0 if options.group_by is None else RANKED_NODE_BYTES * min(options.top_k, nodes)),
        stored_columns=backend.stored_columns,
        widest=backend.widest_block(nodes, options.precision, sums=_sums(options)),
    )


def followed_transition(store: GraphStore, options: ScoreOptions, *, dangling: DanglingRule) -> Transition:
    """Return transition probabilities of a store under direction, type weights and a dangling rule; one pass.

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
        dangling=dangling,
    )


def start_ppr(
    store: GraphStore, queries: Callable[[], QuerySet], options: ScoreOptions, stopwatch: Stopwatch, clock: Clock
) -> PprRunner:
    """Load the transition matrix of the store into the backend, choose a solver and fix the block size.

    ``queries`` waits for the query set. A graph that memory does not hold is streamed
    (`seedrank.jobs.graphs.graph_memory`).

    Raises
    ------
    InputDataError
        An edge type that no edge has.
    ResourceError
        Memory does not hold a single query.
    StorageError
        There is no room for a streamed graph in the work folder.
    """
    needs = ppr_requirements(options, store.facts.nodes)
    memory = graph_memory(GraphSize.of(store.facts), options, needs)
    # Several restart probabilities share vectors that know none: what would go back to the seeds is dropped.
    drops = _sums(options) > 0 and options.dangling == "seeds"
    dangling: DanglingRule = "drop" if drops else options.dangling
    # The backend is loaded first: the hits may still be on their way.
    backend = create_backend(needs.decision.name, threads=options.threads)
    transition: Transition | StreamedTransition
    if memory.streamed:
        transition = load_streamed(backend, store, options, memory, stopwatch, dangling=dangling)
    else:
        with stopwatch.stage("transition"):
            transition = resident = followed_transition(store, options, dangling=dangling)
        with stopwatch.stage("load_backend"):
            backend.load(resident, precision=options.precision, order=np.asarray(store.order))
            # Backends copy what they go through; of the store they look at rows near seeds only.
            for rows in (store.by_source, store.by_destination):
                release_pages(rows)
    with stopwatch.stage("transition"):
        graph = followed_graph(store, options) if options.paths or options.max_hops is not None else None
    # Of the memory of a device, what the graph left.
    needs = replace(needs, widest=backend.widest_block(transition.nodes, options.precision, sums=_sums(options)))
    budget = memory.left_for_blocks(memory_budget(options.memory_limit), given=options.memory_limit is not None)
    query_set = queries()
    with stopwatch.stage("load_backend"):
        # Refuses, where there is no room, before the probe of the solver takes it.
        width = block_size(options, needs, budget=budget, queries=len(query_set))
        relaxation = None
        if not _sums(options):
            relaxation = choose_relaxation(
                backend,
                transition,
                restart=options.restart_probability,
                tolerance=options.tolerance,
                max_iterations=options.max_iterations,
                symmetric=options.direction == "both",
                stop=options.stop,
            )
        record = memory.noted(needs.record(options, solver=_solver(options, relaxation), width=width, budget=budget))
    loses_mass = drops and len(transition.dangling_nodes) > 0
    return PprRunner(record, backend, relaxation, loses_mass, graph, store, query_set, options, clock)


def _sums(options: ScoreOptions) -> int:
    """How many sums of vectors a block keeps: one for each of several restart probabilities."""
    count = len(options.restart_probabilities)
    return count if count > 1 else 0


def _solver(options: ScoreOptions, relaxation: Relaxation | None) -> str:
    if _sums(options):
        return f"steps, shared by {_sums(options)} restart probabilities"
    return "steps" if relaxation is None else f"sweeps (factor {relaxation.factor:.4f})"


@dataclass(frozen=True)
class PprRunner:
    """Personalized PageRank, ready to score; see `seedrank.jobs.operators.outcome.Runner`."""

    backend: BackendRecord
    machine: Backend
    relaxation: Relaxation | None
    loses_mass: bool
    graph: RecallGraph | None
    store: GraphStore
    query_set: QuerySet
    options: ScoreOptions
    clock: Clock

    def on(self, query_set: QuerySet) -> PprRunner:
        """Return the same for other queries."""
        return replace(self, query_set=query_set)

    @property
    def overlaps(self) -> bool:
        """Whether the backend works beside the host, and no limit counts the time of a block."""
        beside = isinstance(self.machine, AsynchronousBackend) and self.machine.works_beside_the_host
        return beside and not self.clock.limited

    def score(self, queries: npt.NDArray[np.int64]) -> Outcome:
        """Score some queries together.

        Raises
        ------
        KernelError
            A self-check of the backend failed.
        InterruptedRunError
            The job was cancelled.
        """
        return self.compute(queries, None)()

    def compute(self, queries: npt.NDArray[np.int64], meanwhile: Callable[[], None] | None) -> Callable[[], Outcome]:
        """Compute and select, and leave the rows for later; see `OverlappingRunner`."""
        timer, block = self.clock.timer(), self._within_hops(self.query_set.block(queries))
        return partial(self._rows, block, timer, self._score(block, timer, meanwhile))

    def _rows(self, block: QueryBlock, timer: BlockTimer, result: BlockResult) -> Outcome:
        filled = _filled(result)
        limit = np.where(result.stopped, timer.limit, "").astype(object)
        columns: dict[str, Any] = {}
        if self.options.paths:
            paths = self._paths(block, result, timer)
            columns = paths.columns
            # The rows of a query, one for each restart probability, stand together.
            limit = np.where(result.stopped, limit, np.repeat(paths.limits, len(limit) // max(block.width, 1)))
        timed_out = limit != ""
        status = np.select([timed_out, ~result.converged], ["timed_out", "not_converged"], "ok")
        return Outcome(
            status=status.astype(object),
            counts=result.counts,
            nodes=result.nodes[filled],
            scores=result.scores[filled],
            query_columns={
                "iterations": pa.array(result.iterations),
                "error_bound": pa.array(result.error_bound),
                "certificate": pa.array([CERTIFICATES[code] for code in result.certificate], pa.string()),
                "budget_hit": pa.array(limit, pa.string(), mask=~timed_out),
                "truncated": pa.array(timed_out, mask=~timed_out),
            },
            candidate_columns=columns,
        )

    def _score(self, block: QueryBlock, timer: BlockTimer, meanwhile: Callable[[], None] | None) -> BlockResult:
        options = self.options
        k = max(1, min(options.top_k, self.store.facts.nodes))
        if _sums(options):
            assert isinstance(self.machine, SummingBackend)
            return interleaved(
                personalized_pageranks(
                    self.machine,
                    block,
                    restarts=options.restart_probabilities,
                    max_iterations=options.max_iterations,
                    tolerance=options.tolerance,
                    k=k,
                    eligible=self.query_set.eligible,
                    min_score=options.min_score,
                    precision=options.precision,
                    loses_mass=self.loses_mass,
                    should_stop=timer,
                    meanwhile=meanwhile,
                )
            )
        return personalized_pagerank(
            self.machine,
            block,
            restart=options.restart_probability,
            max_iterations=options.max_iterations,
            tolerance=options.tolerance,
            k=k,
            eligible=self.query_set.eligible,
            min_score=options.min_score,
            precision=options.precision,
            stop=options.stop,
            relaxation=self.relaxation,
            on_step=lambda _: self.clock.check_cancelled(),
            # Asked, the driver has to be ready to end at any step, which costs something under a fixed number of them.
            should_stop=timer if self.clock.limited else None,
            meanwhile=meanwhile,
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

    def _paths(self, block: QueryBlock, result: BlockResult, timer: BlockTimer) -> Paths:
        assert self.graph is not None
        return path_columns(
            self.graph,
            self.store,
            anchor_offsets=block.seed_offsets,
            anchors=block.seed_nodes,
            counts=result.counts.reshape(block.width, -1).sum(axis=1),
            targets=result.nodes[_filled(result)],
            from_anchors=None,
            threads=self.options.threads or processors(),
            clock=self.clock,
            spent_s=timer.spent_s,
        )


def _filled(result: BlockResult) -> BoolArray:
    """Mask of the places of a result that hold a candidate."""
    return np.arange(result.nodes.shape[1]) < result.counts[:, np.newaxis]
