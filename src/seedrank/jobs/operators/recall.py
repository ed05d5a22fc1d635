"""``--method walk``, ``bfs``, ``dfs`` and ``neighbors``: bounded recall of a job's queries, block by block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seedrank.config import ScoreOptions
from seedrank.io.graphstore import GraphStore
from seedrank.io.id_hashes import hash_ids
from seedrank.io.records import BackendRecord
from seedrank.jobs.clock import Clock
from seedrank.jobs.graphs.followed_graph import followed_graph
from seedrank.jobs.operators.outcome import Outcome, Requirements
from seedrank.jobs.operators.paths import id_column, path_columns
from seedrank.jobs.operators.recall_kernels import Kernel, on_device, recall_kernel
from seedrank.jobs.prepare import block_size, memory_budget
from seedrank.jobs.progress import Stopwatch
from seedrank.jobs.queries.query_set import QuerySet
from seedrank.jobs.resources import processors
from seedrank.kernels.backends.resolver import BackendDecision, resolve_backend
from seedrank.kernels.numba_support import require_compiled
from seedrank.kernels.recall.forms import LIMITS, RecallQueries
from seedrank.kernels.recall.recall_graph import RecallGraph
from seedrank.kernels.runs import gather

#: Queries of a block: enough for threads to share the work evenly, few enough for a bar that moves.
WIDEST_BLOCK = 256
#: The same on a GPU, where every walker is a thread; the kernels take as many together as its memory holds.
WIDEST_DEVICE_BLOCK = 4096
#: Bytes of a candidate in the result of a kernel and in the columns made of it.
CANDIDATE_BYTES = 64


def recall_requirements(options: ScoreOptions, nodes: int) -> Requirements:
    """Say who would compute, and what a query of a block takes on a graph of so many nodes.

    Raises
    ------
    ResourceError
        There are no compiled kernels here, or no GPU that was asked for.
    """
    if on_device(options):
        if options.paths:
            require_compiled("--paths")
        decision = resolve_backend("gpu", work="recall")
    else:
        require_compiled(f"--method {options.method}")
        decision = BackendDecision("cpu", options.backend, "the backend of walks and traversals")
    return Requirements(
        decision=decision,
        bytes_per_query=CANDIDATE_BYTES * max(1, min(options.top_k, nodes)),
        stored_columns=lambda width: width,
        widest=WIDEST_DEVICE_BLOCK if decision.name == "gpu" else WIDEST_BLOCK,
    )


def start_recall(
    store: GraphStore, queries: Callable[[], QuerySet], options: ScoreOptions, stopwatch: Stopwatch, clock: Clock
) -> RecallRunner:
    """Apply direction and edge types to the graph, prepare the kernel of the method and fix the block size.

    ``queries`` waits for the query set.

    Raises
    ------
    InputDataError
        An edge type that no edge has.
    ResourceError
        Memory does not hold the result of a single query, or that of the GPU not the graph.
    """
    with stopwatch.stage("load_backend"):
        graph = followed_graph(store, options)
    query_set = queries()
    with stopwatch.stage("load_backend"):
        needs = recall_requirements(options, store.facts.nodes)
        budget = memory_budget(options.memory_limit)
        width = block_size(options, needs, budget=budget, queries=len(query_set))
        record = needs.record(options, solver=options.method, width=width, budget=budget)
        kernel = recall_kernel(graph, query_set, options)
    return RecallRunner(record, graph, kernel, store, query_set, options, clock)


@dataclass(frozen=True)
class RecallRunner:
    """A walk or a traversal, ready to score; see `seedrank.jobs.operators.outcome.Runner`."""

    backend: BackendRecord
    graph: RecallGraph
    kernel: Kernel
    store: GraphStore
    query_set: QuerySet
    options: ScoreOptions
    clock: Clock

    def on(self, query_set: QuerySet) -> RecallRunner:
        """Return the same for other queries."""
        return replace(self, query_set=query_set)

    def score(self, queries: npt.NDArray[np.int64]) -> Outcome:
        """Score some queries together.

        Raises
        ------
        InterruptedRunError
            The job was cancelled.
        """
        block = self._block(queries)
        watched = self.clock.watch(lambda flags: self.kernel(block, flags), width=len(queries))
        result = watched.result
        filled = np.arange(result.nodes.shape[1]) < result.counts[:, None]
        anchors = result.anchors[filled]
        columns = {
            "hops": pa.array(result.hops[filled]),
            "anchor_id": id_column(self.store, anchors),
            "visit_count": pa.array(result.visit_counts[filled]),
        }
        timed_out = result.timed_out
        limit = np.where(timed_out, watched.limits, np.array(LIMITS, dtype=object)[result.limit])
        if self.options.paths:
            paths = path_columns(
                self.graph,
                self.store,
                anchor_offsets=block.anchor_offsets,
                anchors=block.anchors,
                counts=result.counts,
                targets=result.nodes[filled],
                from_anchors=anchors,
                threads=self.options.threads or processors(),
                clock=self.clock,
                spent_s=watched.spent_s,
            )
            columns["path"] = paths.columns["path"]
            limit = np.where(timed_out | (paths.limits == ""), limit, paths.limits)
            timed_out = timed_out | (paths.limits != "")
        truncated = result.truncated | timed_out
        return Outcome(
            status=np.select([timed_out, truncated], ["timed_out", "budget_exhausted"], "ok").astype(object),
            counts=result.counts,
            nodes=result.nodes[filled],
            scores=result.scores[filled],
            query_columns={
                "visited_nodes": pa.array(result.visited_nodes),
                "visited_edges": pa.array(result.visited_edges),
                "budget_hit": pa.array(limit, pa.string(), mask=limit == ""),
                "truncated": pa.array(truncated),
            },
            candidate_columns=columns,
        )

    def _block(self, queries: npt.NDArray[np.int64]) -> RecallQueries:
        """Return the arrays of some queries; the anchors of a query are its seeds, by tie rank."""
        seeds = self.query_set.seeds
        offsets, entries = gather(seeds.offsets, queries)
        exclude_offsets, exclude_nodes = self.query_set.exclusions.of(queries)
        anchors = seeds.nodes[entries]
        return RecallQueries(
            anchor_offsets=offsets,
            anchors=anchors,
            query_keys=self._keys(self.query_set.query_ids, queries),
            anchor_keys=self._keys(self.store.ids, self.store.order[anchors]),
            exclude_offsets=exclude_offsets,
            exclude_nodes=exclude_nodes,
        )

    def _keys(self, ids: pa.Array, positions: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
        """Hashes of some ids, which only walks need."""
        if self.options.method != "walk":
            return np.zeros(len(positions), dtype=np.uint64)
        return hash_ids(ids.take(pa.array(positions)))
