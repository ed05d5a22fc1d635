"""The part of a graph around the hits of a query: which nodes, and how they hang together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from seedrank.kernels.arrays import Float64Array, Int32Array, Int64Array
from seedrank.kernels.building.adjacency import Adjacency
from seedrank.kernels.recall.recall_graph import RecallGraph
from seedrank.kernels.runs import gather, offsets_of, slices_within

EDGES_AT_ONCE = 1 << 20
"""Edges that are looked at together."""
NODES_AT_ONCE = 1 << 21
"""Nodes of subgraphs that are held together, unless a single query has more."""


@dataclass(frozen=True)
class Subgraphs:
    """The subgraphs of B queries.

    Attributes
    ----------
    offsets : int64 (B + 1)
    nodes : int32
        Internal nodes, within a query ascending, each once.
    edge_weights : float64, as long as `nodes`
        Sum of type weight · weight over the edges of the subgraph at the node.
    degrees : int64, as long as `nodes`
        Number of these edges.
    """

    offsets: Int64Array
    nodes: Int32Array
    edge_weights: Float64Array
    degrees: Int64Array


def subgraphs(
    graph: RecallGraph,
    by_source: Adjacency,
    offsets: Int64Array,
    nodes: Int32Array,
    *,
    depth: int,
    type_weights: Float64Array | None,
) -> Subgraphs:
    """Find the subgraph around the nodes of every query.

    Its nodes are those given and what at most `depth` steps along `graph` lead to. Its edges are all stored edges
    between two of its nodes, whatever direction the steps take, but for those whose type weighs 0; each counts at both
    its ends, a self loop once. Parallel edges of different types are several edges, and so are u → v and v → u.

    Sums are taken edge by edge in the order of the store, so that they depend neither on the other queries nor on how
    many edges are looked at together.

    Parameters
    ----------
    graph : RecallGraph
        What a step may follow.
    by_source : Adjacency
        All edges of the same graph, rows = sources.
    offsets : int64 (B + 1)
        Query ``q`` has the nodes ``offsets[q]`` to ``offsets[q + 1]``.
    nodes : int32
        Internal nodes, in any order; repeats are harmless.
    depth : int
        >= 0.
    type_weights : float64 (types) or None
        Finite, >= 0, by type code; None: all 1.

    Returns
    -------
    Subgraphs
    """
    parts = list(_parts(graph, by_source, offsets, nodes, depth, type_weights))
    return Subgraphs(
        offsets=offsets_of(np.concatenate([np.zeros(0, np.int64), *(np.diff(part.offsets) for part in parts)])),
        nodes=np.concatenate([np.zeros(0, np.int32), *(part.nodes for part in parts)]),
        edge_weights=np.concatenate([np.zeros(0), *(part.edge_weights for part in parts)]),
        degrees=np.concatenate([np.zeros(0, np.int64), *(part.degrees for part in parts)]),
    )


def _parts(
    graph: RecallGraph,
    by_source: Adjacency,
    offsets: Int64Array,
    nodes: Int32Array,
    depth: int,
    type_weights: Float64Array | None,
) -> Iterator[Subgraphs]:
    """Subgraphs of consecutive queries, of so many at a time as memory should hold."""
    queries = len(offsets) - 1
    keys = _reached(graph, offsets, nodes, depth)
    if keys is None:
        middle = queries // 2
        for first, last in ((0, middle), (middle, queries)):
            own = nodes[offsets[first] : offsets[last]]
            yield from _parts(graph, by_source, offsets[first : last + 1] - offsets[first], own, depth, type_weights)
        return
    edge_weights, degrees = _edges_within(by_source, keys, graph.nodes, type_weights)
    query, node = np.divmod(keys, max(graph.nodes, 1))
    yield Subgraphs(offsets_of(np.bincount(query, minlength=queries)), node.astype(np.int32), edge_weights, degrees)


def _reached(graph: RecallGraph, offsets: Int64Array, nodes: Int32Array, depth: int) -> Int64Array | None:
    """Keys query · n + node of the nodes of all subgraphs, ascending; None: too many for more than one query."""
    query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    reached = frontier = np.unique(query * graph.nodes + nodes)
    for _ in range(depth):
        frontier = np.setdiff1d(_one_step(graph, frontier), reached, assume_unique=True)
        if not len(frontier):
            break
        reached = np.sort(np.concatenate((reached, frontier)))
        if len(reached) > NODES_AT_ONCE and len(offsets) > 2:
            return None
    return reached


def _one_step(graph: RecallGraph, keys: Int64Array) -> Int64Array:
    """Keys of the nodes that one step leads to, ascending, each once."""
    node = keys % max(graph.nodes, 1)
    found = np.zeros(0, dtype=np.int64)
    for rows in graph.rows:
        lengths = rows.offsets[node + 1] - rows.offsets[node]
        for first, last in slices_within(lengths, EDGES_AT_ONCE):
            _, entries = gather(rows.offsets, node[first:last])
            base = np.repeat(keys[first:last] - node[first:last], lengths[first:last])
            found = np.union1d(found, base + rows.neighbors[entries])
    return found


def _edges_within(
    by_source: Adjacency, keys: Int64Array, nodes: int, type_weights: Float64Array | None
) -> tuple[Float64Array, Int64Array]:
    """Sum of the weights, and number, of the edges between the nodes of each subgraph, by position among the keys."""
    sums, degrees = np.zeros(len(keys)), np.zeros(len(keys), dtype=np.int64)
    node = keys % max(nodes, 1)
    lengths = by_source.offsets[node + 1] - by_source.offsets[node]
    for first, last in slices_within(lengths, EDGES_AT_ONCE):
        _, entries = gather(by_source.offsets, node[first:last])
        source = np.repeat(np.arange(first, last), lengths[first:last])
        wanted = keys[source] - node[source] + by_source.neighbors[entries]
        target = np.searchsorted(keys, wanted).clip(max=len(keys) - 1)
        weights = np.ones(len(entries)) if by_source.weights is None else by_source.weights[entries]
        if type_weights is not None and by_source.types is not None:
            weights = weights * type_weights[by_source.types[entries]]
        inside = np.flatnonzero((keys[target] == wanted) & (weights > 0))
        source, target, weights = source[inside], target[inside], weights[inside]
        # Both ends of an edge before the next one, so that the order of a sum does not depend on the slices.
        ends = np.stack((source, target), axis=1).ravel()
        once = np.ones(len(ends), dtype=np.bool_)
        once[1::2] = source != target
        with np.errstate(over="ignore"):
            np.add.at(sums, ends[once], np.repeat(weights, 2)[once])
        degrees += np.bincount(ends[once], minlength=len(keys))
    return sums, degrees
