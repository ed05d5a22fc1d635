"""``--method ppr``: personalized PageRank of a job's queries, block by block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seedrank.config import ScoreOptions
from seedrank.io.graphstore import GraphStore
from seedrank.io.records import BackendRecord
from seedrank.jobs.outcome import Outcome, Requirements
from seedrank.jobs.prepare import adjacency, block_size, memory_budget, type_weights
from seedrank.jobs.progress import Stopwatch
from seedrank.jobs.query_set import QuerySet
from seedrank.kernels.backend import Backend, QueryBlock, SummingBackend, create_backend, resolve_backend
from seedrank.kernels.block_result import CERTIFICATES, BlockResult, interleaved
from seedrank.kernels.block_size import choose_block_size
from seedrank.kernels.ppr import personalized_pagerank
from seedrank.kernels.ppr_shared import personalized_pageranks
from seedrank.kernels.relaxation import Relaxation, choose_relaxation
from seedrank.kernels.transition import build_transition


def ppr_requirements(options: ScoreOptions, nodes: int) -> Requirements:
    """Say who would compute, and what a query of a block takes on a graph of so many nodes."""
    decision = resolve_backend(options.backend)
    backend = create_backend(decision.name)
    return Requirements(
        decision=decision,
        bytes_per_query=backend.bytes_per_query(nodes, options.precision, sums=_sums(options)),
        widest=backend.widest_block(nodes, options.precision),
    )


def start_ppr(store: GraphStore, query_set: QuerySet, options: ScoreOptions, stopwatch: Stopwatch) -> PprRunner:
    """Load the transition matrix of the store into the backend, choose a solver and fix the block size.

    Raises
    ------
    InputDataError
        An edge type that no edge has.
    ResourceError
        Memory does not hold a single query.
    """
    with stopwatch.stage("transition"):
        transition = build_transition(
            adjacency(store.by_source),
            adjacency(store.by_destination),
            direction=options.direction,
            type_weights=type_weights(options, store.facts.edge_types),
            # Several restart probabilities share vectors that know none: what would go back to the seeds is dropped.
            dangling="drop" if _sums(options) and options.dangling == "seeds" else options.dangling,
        )
    with stopwatch.stage("load_backend"):
        needs = ppr_requirements(options, transition.nodes)
        backend = create_backend(needs.decision.name, threads=options.threads)
        backend.load(transition, precision=options.precision, order=np.asarray(store.order))
        budget = memory_budget(options.memory_limit)
        if budget < needs.bytes_per_query:
            # Refuses, before the probe of the solver takes the memory.
            choose_block_size(needs.bytes_per_query, budget, queries=len(query_set))
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
        record = BackendRecord(
            name=needs.decision.name,
            requested=needs.decision.requested,
            reason=needs.decision.reason,
            precision=options.precision,
            solver=_solver(options, relaxation),
            block_size=block_size(options, needs, budget=budget, queries=len(query_set)),
            bytes_per_query=needs.bytes_per_query,
            memory_budget_bytes=budget,
        )
    loses_mass = transition.dangling == "drop" and len(transition.dangling_nodes) > 0
    return PprRunner(record, backend, relaxation, loses_mass, store, query_set, options)


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
    """Personalized PageRank, ready to score; see `seedrank.jobs.outcome.Runner`."""

    backend: BackendRecord
    machine: Backend
    relaxation: Relaxation | None
    loses_mass: bool
    store: GraphStore
    query_set: QuerySet
    options: ScoreOptions

    def score(self, queries: npt.NDArray[np.int64]) -> Outcome:
        """Score some queries together.

        Raises
        ------
        KernelError
            A self-check of the backend failed.
        """
        result = self._score(self.query_set.block(queries))
        filled = np.arange(result.nodes.shape[1]) < result.counts[:, None]
        return Outcome(
            status=np.where(result.converged, "ok", "not_converged").astype(object),
            counts=result.counts,
            nodes=result.nodes[filled],
            scores=result.scores[filled],
            query_columns={
                "iterations": pa.array(result.iterations),
                "error_bound": pa.array(result.error_bound),
                "certificate": pa.array([CERTIFICATES[code] for code in result.certificate], pa.string()),
            },
        )

    def _score(self, block: QueryBlock) -> BlockResult:
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
        )
