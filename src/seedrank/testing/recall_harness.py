"""From tuples and ids through the recall kernels and back, without files."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from seedrank.kernels.arrays import Int32Array, Int64Array
from seedrank.kernels.paths import PathTable
from seedrank.kernels.recall.forms import LIMITS, RecallQueries, RecallResult
from seedrank.kernels.recall.recall_graph import RecallGraph, build_recall_graph
from seedrank.kernels.runs import offsets_of
from seedrank.testing.harness import KernelGraph
from seedrank.testing.reference_paths import ReferenceStep


@dataclass(frozen=True)
class Candidate:
    """One row of a result, with ids."""

    node: Any
    score: float
    hops: int
    anchor: Any
    visits: int


@dataclass(frozen=True)
class RecalledQuery:
    """One query's result, with ids; candidates best first."""

    candidates: list[Candidate]
    visited_nodes: int
    visited_edges: int
    limit: str

    @property
    def nodes(self) -> list[Any]:
        """Ids of the candidates, best first."""
        return [candidate.node for candidate in self.candidates]

    def __getitem__(self, node: Any) -> Candidate:
        return next(candidate for candidate in self.candidates if candidate.node == node)


def stream_key(value: Any) -> int:
    """Return 64 bits that depend on an id alone, as a job hashes ids of queries and anchors."""
    return int.from_bytes(hashlib.blake2b(repr(value).encode(), digest_size=8).digest(), "little")


def recall_graph(
    graph: KernelGraph,
    *,
    direction: Literal["out", "in", "both"] = "out",
    type_weights: Mapping[Any, float] | None = None,
) -> RecallGraph:
    """Build a recall graph; `type_weights` maps type names, 1 for those that are not named."""
    factors = None
    if type_weights is not None:
        factors = np.array([type_weights.get(name, 1.0) for name in graph.type_names], dtype=np.float64)
    pair = graph.adjacency
    return build_recall_graph(
        pair.by_source, pair.by_destination, pair.order, direction=direction, type_weights=factors
    )


def recall_queries(
    graph: KernelGraph,
    anchors: Sequence[Collection[Any]],
    *,
    names: Sequence[Any] | None = None,
    excluded: Sequence[Collection[Any]] | None = None,
) -> RecallQueries:
    """Queries from the ids of their anchors.

    Parameters
    ----------
    graph : KernelGraph
    anchors : sequence of collections of known ids
        One a query, in any order.
    names : sequence, optional
        Ids of the queries; None: 0, 1, ….
    excluded : sequence of collections of known ids, optional
        One a query.
    """
    sorted_anchors = [sorted(set(nodes)) for nodes in anchors]
    lists = [()] * len(anchors) if excluded is None else list(excluded)
    return RecallQueries(
        anchor_offsets=_offsets(sorted_anchors),
        anchors=_flat(graph, sorted_anchors),
        query_keys=np.array([stream_key(name) for name in (names or range(len(anchors)))], dtype=np.uint64),
        anchor_keys=np.array([stream_key(node) for nodes in sorted_anchors for node in nodes], dtype=np.uint64),
        exclude_offsets=_offsets(lists),
        exclude_nodes=_flat(graph, lists),
    )


def recalled(graph: KernelGraph, result: RecallResult) -> list[RecalledQuery]:
    """Translate a result back to ids, and check its padding."""
    order = graph.adjacency.order
    queries = []
    for query, count in enumerate(result.counts.tolist()):
        padding = (result.nodes, result.hops, result.anchors)
        assert all((column[query, count:] == -1).all() for column in padding)
        assert not result.scores[query, count:].any()
        assert not result.visit_counts[query, count:].any()
        candidates = [
            Candidate(
                node=graph.ids[order[result.nodes[query, place]]],
                score=float(result.scores[query, place]),
                hops=int(result.hops[query, place]),
                anchor=graph.ids[order[result.anchors[query, place]]],
                visits=int(result.visit_counts[query, place]),
            )
            for place in range(count)
        ]
        visited = int(result.visited_nodes[query]), int(result.visited_edges[query])
        queries.append(RecalledQuery(candidates, *visited, LIMITS[result.limit[query]]))
    return queries


def table_paths(graph: KernelGraph, table: PathTable) -> list[list[ReferenceStep] | None]:
    """Translate paths back to ids: the steps of each, None where there is no path."""
    ids = [graph.ids[rank] for rank in graph.adjacency.order]
    names = [None] * len(table.source) if table.types is None else [graph.type_names[code] for code in table.types]
    steps = [
        ReferenceStep(ids[source], ids[target], name, float(weight), bool(against))
        for source, target, name, weight, against in zip(
            table.source, table.target, names, table.weights, table.reversed, strict=True
        )
    ]
    parts = [steps[first:last] for first, last in pairwise(table.offsets.tolist())]
    return [None if hops < 0 else part for hops, part in zip(table.hops.tolist(), parts, strict=True)]


def _offsets(lists: Sequence[Collection[Any]]) -> Int64Array:
    return offsets_of([len(nodes) for nodes in lists])


def _flat(graph: KernelGraph, lists: Sequence[Collection[Any]]) -> Int32Array:
    return graph.internal([node for nodes in lists for node in nodes])
