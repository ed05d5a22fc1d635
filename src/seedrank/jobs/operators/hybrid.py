"""``--method semantic`` and ``hybrid``: hits by the scores of their stores, with or without what the graph adds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seedrank.config import ScoreOptions
from seedrank.io.candidates import component_column
from seedrank.io.graphstore import GraphStore
from seedrank.io.records import BackendRecord
from seedrank.jobs.clock import Clock
from seedrank.jobs.graphs.followed_graph import adjacency, followed_graph, type_weights
from seedrank.jobs.operators.fuse import fuse_requirements
from seedrank.jobs.operators.outcome import Outcome, Requirements
from seedrank.jobs.prepare import planned_blocks
from seedrank.jobs.progress import Stopwatch
from seedrank.jobs.queries.query_set import QuerySet
from seedrank.kernels.arrays import Float64Array, Int32Array, Int64Array
from seedrank.kernels.building.adjacency import Adjacency
from seedrank.kernels.hybrid import hybrid
from seedrank.kernels.recall.recall_graph import RecallGraph
from seedrank.kernels.runs import offsets_of
from seedrank.kernels.subgraph import Subgraphs, subgraphs

#: The terms of a hybrid score, in the order of their columns.
HYBRID_COMPONENTS = ("semantic", "edge", "centrality")
#: Bytes of a node of a subgraph, and nodes of a query that are planned with, beside its hits.
NODE_BYTES = 64
NODES_OF_A_QUERY = 2000


def hybrid_depth(options: ScoreOptions) -> int:
    """How far from the hits the graph is looked at; 0: it is not."""
    return options.expand_depth if options.method == "hybrid" else 0


def hybrid_requirements(options: ScoreOptions, nodes: int) -> Requirements:
    """Say who would compute, and what a query of a block takes on a graph of so many nodes."""
    around = min(nodes, NODES_OF_A_QUERY) if hybrid_depth(options) else 0
    hits = fuse_requirements(options, nodes)
    return replace(hits, bytes_per_query=hits.bytes_per_query + NODE_BYTES * around)


def start_hybrid(
    store: GraphStore,
    queries: Callable[[], QuerySet],
    options: ScoreOptions,
    stopwatch: Stopwatch,
    clock: Clock,
) -> HybridRunner:
    """Apply direction and edge types to the graph, where it is looked at, and fix the block size.

    ``queries`` waits for the query set.

    Raises
    ------
    InputDataError
        An edge type that no edge has.
    ResourceError
        Memory does not hold a single query.
    """
    graph = None
    if hybrid_depth(options):
        with stopwatch.stage("load_backend"):
            graph = _Graph(
                followed_graph(store, options),
                adjacency(store.by_source),
                type_weights(options, store.facts.edge_types),
                hybrid_depth(options),
            )
    query_set = queries()
    with stopwatch.stage("load_backend"):
        needs = hybrid_requirements(options, store.facts.nodes)
        record = planned_blocks(options, needs, queries=len(query_set), solver=options.method)
    return HybridRunner(record, graph, query_set, options)


@dataclass(frozen=True)
class _Graph:
    """The graph, as it is followed and as it is stored, and how far from the hits it is looked at."""

    followed: RecallGraph
    by_source: Adjacency
    type_weights: Float64Array | None
    depth: int

    def around(self, offsets: Int64Array, nodes: Int32Array) -> Subgraphs:
        """Subgraphs of some queries; nodes that the graph does not have are left out."""
        known = nodes < self.followed.nodes
        return subgraphs(
            self.followed,
            self.by_source,
            offsets_of(known)[offsets],
            nodes[known],
            depth=self.depth,
            type_weights=self.type_weights,
        )


@dataclass(frozen=True)
class HybridRunner:
    """Hits with semantic or hybrid scores, ready to score; see `seedrank.jobs.operators.outcome.Runner`."""

    backend: BackendRecord
    graph: _Graph | None
    query_set: QuerySet
    options: ScoreOptions

    def on(self, query_set: QuerySet) -> HybridRunner:
        """Return the same for other queries."""
        return replace(self, query_set=query_set)

    def score(self, queries: npt.NDArray[np.int64]) -> Outcome:
        """Score some queries together."""
        options, query_set = self.options, self.query_set
        assert query_set.hit_lists is not None
        hits = query_set.hit_lists.of(queries)
        exclude_offsets, exclude_nodes = query_set.exclusions.of(queries)
        ranking = hybrid(
            hits,
            None if self.graph is None else self.graph.around(hits.offsets, hits.nodes),
            graph_nodes=query_set.space.graph_nodes,
            include_expanded=options.include_expanded,
            edge_bonus=options.edge_bonus,
            centrality_bonus=options.centrality_bonus,
            eligible=query_set.eligible,
            exclude_offsets=exclude_offsets,
            exclude_nodes=exclude_nodes,
            order=query_set.space.order,
            k=options.top_k,
            min_score=options.min_score,
            precision=options.precision,
        )
        components = zip(HYBRID_COMPONENTS, ranking.components, strict=True) if options.method == "hybrid" else ()
        return Outcome(
            status=np.full(len(queries), "ok", dtype=object),
            counts=ranking.counts,
            nodes=ranking.nodes,
            scores=ranking.scores,
            query_columns={},
            candidate_columns={component_column(name): pa.array(values) for name, values in components},
        )
