"""From tuples and dictionaries through the kernels and back: what a job does, without files."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from seedrank.kernels.arrays import DanglingRule, Int32Array
from seedrank.kernels.backend import Backend, QueryBlock
from seedrank.kernels.building.adjacency import AdjacencyPair, build_adjacency
from seedrank.kernels.ppr import personalized_pagerank
from seedrank.kernels.runs import offsets_of
from seedrank.kernels.seeds import SeedSets, build_seeds
from seedrank.kernels.transition import Transition, build_transition
from seedrank.testing.toys import Edge


@dataclass(frozen=True)
class RankedQuery:
    """One query's result with ids.

    Attributes
    ----------
    ranking : list of (node id, score)
        Best first.
    iterations : int
    error_bound : float
    converged : bool
    """

    ranking: list[tuple[Any, float]]
    iterations: int
    error_bound: float
    converged: bool

    @property
    def scores(self) -> dict[Any, float]:
        """Node id → score."""
        return dict(self.ranking)


@dataclass(frozen=True)
class KernelGraph:
    """An edge list as the kernels see it.

    Attributes
    ----------
    ids : list
        Ascending; the position is the tie rank.
    rank : dict
        Node id → tie rank.
    type_names : list
        Ascending; the position is the type code.
    adjacency : AdjacencyPair
    """

    ids: list[Any]
    rank: dict[Any, int]
    type_names: list[Any]
    adjacency: AdjacencyPair

    def transition(
        self,
        *,
        direction: Literal["out", "in", "both"] = "out",
        type_weights: Mapping[Any, float] | None = None,
        dangling: DanglingRule = "seeds",
    ) -> Transition:
        """Transition matrix; `type_weights` maps type names, 1 for those that are not named."""
        factors = None
        if type_weights is not None:
            factors = np.array([type_weights.get(name, 1.0) for name in self.type_names], dtype=np.float64)
        return build_transition(
            self.adjacency.by_source,
            self.adjacency.by_destination,
            direction=direction,
            type_weights=factors,
            dangling=dangling,
        )

    def seeds(self, queries: Sequence[Mapping[Any, float]]) -> SeedSets:
        """Personalization vectors of seed sets (node id → weight); unknown ids are dropped."""
        rows = sorted(
            (query, self.rank.get(node, -1), weight)
            for query, seeds in enumerate(queries)
            for node, weight in seeds.items()
        )
        return build_seeds(
            np.array([row[0] for row in rows], dtype=np.int32),
            np.array([row[1] for row in rows], dtype=np.int32),
            np.array([row[2] for row in rows], dtype=np.float64),
            None,
            queries=len(queries),
            normalization="sum",
            source_weights=None,
            inverse_order=self.adjacency.inverse_order,
        )

    def internal(self, ids: Iterable[Any]) -> Int32Array:
        """Translate known ids to internal nodes."""
        return self.adjacency.inverse_order[[self.rank[node] for node in ids]].astype(np.int32)


def kernel_graph(
    edges: Sequence[Edge],
    *,
    nodes: Iterable[Any] = (),
    duplicate_edges: Literal["sum", "max", "min", "mean"] = "sum",
) -> KernelGraph:
    """Encode an edge list of tuples and build its adjacency.

    Parameters
    ----------
    edges : sequence of (src, dst), (src, dst, weight) or (src, dst, weight, type)
        All of one length.
    nodes : iterable, optional
        Ids that exist without an edge.
    duplicate_edges : "sum", "max", "min" or "mean"

    Returns
    -------
    KernelGraph
    """
    width = len(edges[0]) if edges else 2
    ids = sorted({*nodes, *(edge[0] for edge in edges), *(edge[1] for edge in edges)})
    rank = {node: position for position, node in enumerate(ids)}
    type_names = sorted({edge[3] for edge in edges}) if width > 3 else []
    code = {name: position for position, name in enumerate(type_names)}
    adjacency = build_adjacency(
        np.array([rank[edge[0]] for edge in edges], dtype=np.int32),
        np.array([rank[edge[1]] for edge in edges], dtype=np.int32),
        np.array([edge[2] for edge in edges], dtype=np.float64) if width > 2 else None,
        np.array([code[edge[3]] for edge in edges], dtype=np.int32) if width > 3 else None,
        nodes=len(ids),
        duplicate_edges=duplicate_edges,
    )
    return KernelGraph(ids, rank, type_names, adjacency)


def query_block(seeds: SeedSets, start: int, stop: int, *, excluded: Sequence[Int32Array] | None = None) -> QueryBlock:
    """Cut queries `start` to `stop` out as a block; `excluded` holds an array of internal nodes a query."""
    first, last = seeds.offsets[start], seeds.offsets[stop]
    lists = [np.zeros(0, np.int32)] * (stop - start) if excluded is None else list(excluded[start:stop])
    exclude_offsets = offsets_of([len(nodes) for nodes in lists])
    return QueryBlock(
        seed_offsets=seeds.offsets[start : stop + 1] - first,
        seed_nodes=seeds.nodes[first:last],
        seed_weights=seeds.weights[first:last],
        exclude_offsets=exclude_offsets,
        exclude_nodes=np.concatenate([*lists, np.zeros(0, np.int32)]).astype(np.int32),
    )


def kernel_personalized_pagerank(
    backend: Backend,
    edges: Sequence[Edge],
    queries: Sequence[Mapping[Any, float]],
    *,
    damping: float,
    direction: Literal["out", "in", "both"] = "out",
    dangling: Literal["seeds", "self", "uniform"] = "seeds",
    type_weights: Mapping[Any, float] | None = None,
    duplicate_edges: Literal["sum", "max", "min", "mean"] = "sum",
    nodes: Iterable[Any] = (),
    max_iterations: int = 1000,
    tolerance: float = 1e-13,
    precision: Literal["float32", "float64"] = "float64",
    block_size: int = 64,
    k: int | None = None,
    eligible: Collection[Any] | None = None,
    excluded: Sequence[Collection[Any]] | None = None,
    min_score: float = 0.0,
) -> list[RankedQuery]:
    """Score seed sets on an edge list through the kernels.

    Parameters
    ----------
    backend : Backend
        A fresh or a used one; the graph is loaded into it.
    edges, damping, direction, dangling, type_weights, duplicate_edges, nodes
        As in `seedrank.testing.reference.reference_personalized_pagerank`.
    queries : sequence of mappings
        Node id → weight.
    max_iterations, tolerance, precision, min_score
        As in `seedrank.kernels.ppr.personalized_pagerank`.
    block_size : int
        Queries scored together.
    k : int, optional
        None: all nodes.
    eligible : collection of ids, optional
    excluded : sequence of collections of ids, optional
        One for every query.

    Returns
    -------
    list of RankedQuery
        In the order of `queries`.
    """
    graph = kernel_graph(edges, nodes=nodes, duplicate_edges=duplicate_edges)
    transition = graph.transition(direction=direction, type_weights=type_weights, dangling=dangling)
    backend.load(transition, precision=precision, order=graph.adjacency.order)
    seeds = graph.seeds(queries)
    mask = None
    if eligible is not None:
        mask = np.zeros(len(graph.ids), dtype=np.bool_)
        mask[graph.internal(eligible)] = True
    excluded_nodes = None if excluded is None else [graph.internal(ids) for ids in excluded]
    results = []
    for start in range(0, len(queries), block_size):
        block = query_block(seeds, start, min(start + block_size, len(queries)), excluded=excluded_nodes)
        result = personalized_pagerank(
            backend,
            block,
            restart=1.0 - damping,
            max_iterations=max_iterations,
            tolerance=tolerance,
            k=max(len(graph.ids), 1) if k is None else k,
            eligible=mask,
            min_score=min_score,
            precision=precision,
        )
        for row in range(block.width):
            found = result.nodes[row, : result.counts[row]]
            ranking = [
                (graph.ids[tie_rank], float(score))
                for tie_rank, score in zip(graph.adjacency.order[found], result.scores[row], strict=False)
            ]
            results.append(
                RankedQuery(
                    ranking,
                    int(result.iterations[row]),
                    float(result.error_bound[row]),
                    bool(result.converged[row]),
                )
            )
    return results
