"""From an edge list to two compressed adjacencies, relabelled for locality."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from seedrank.kernels.arrays import DuplicateRule, Float64Array, Int32Array, Int64Array, UnsignedArray
from seedrank.kernels.duplicates import ReducedEdges, reduce_duplicates


@dataclass(frozen=True)
class Adjacency:
    """Compressed rows of internal nodes, neighbours sorted by tie rank, then by type code.

    Attributes
    ----------
    offsets : int64 (n + 1)
        Row ``u`` holds the entries ``offsets[u]`` to ``offsets[u + 1]``.
    neighbors : int32 (m)
        Internal nodes.
    weights : float64 (m) or None
        Positive; None: all exactly 1.
    types : unsigned integer (m) or None
        Type codes; None: untyped.
    """

    offsets: Int64Array
    neighbors: Int32Array
    weights: Float64Array | None
    types: UnsignedArray | Int32Array | None

    @property
    def nodes(self) -> int:
        """Number of rows."""
        return len(self.offsets) - 1

    @property
    def entries(self) -> int:
        """Number of stored (source, target, type) entries."""
        return len(self.neighbors)


@dataclass(frozen=True)
class AdjacencyPair:
    """The same edges by source and by destination, with the relabelling and what the build counted.

    Attributes
    ----------
    by_source, by_destination : Adjacency
        Rows are sources (neighbours: their targets), and rows are destinations (neighbours: their sources).
    order : int32 (n)
        ``order[internal node]`` = tie rank.
    inverse_order : int32 (n)
        ``inverse_order[tie rank]`` = internal node.
    merged_duplicates : int
        Rows that disappeared into another row of the same (source, target, type).
    self_loops : int
        Nodes with at least one edge to themselves.
    dangling : int
        Nodes without an outgoing edge, isolated ones included.
    isolated : int
        Nodes without any edge.
    """

    by_source: Adjacency
    by_destination: Adjacency
    order: Int32Array
    inverse_order: Int32Array
    merged_duplicates: int
    self_loops: int
    dangling: int
    isolated: int


def build_adjacency(
    source: Int32Array,
    target: Int32Array,
    weight: Float64Array | None,
    edge_type: Int32Array | None,
    *,
    nodes: int,
    duplicate_edges: DuplicateRule,
) -> AdjacencyPair:
    """Reduce duplicate edges, relabel the nodes and compress the edges in both directions.

    Internal nodes are numbered by falling number of entries (in + out), ties by tie rank: rows that are read
    often lie together. The numbering and all arrays depend on the set of edges alone, never on the order of
    the rows.

    Parameters
    ----------
    source, target : int32 (rows)
        Tie ranks (positions among the sorted ids), 0 … nodes - 1.
    weight : float64 (rows) or None
        Finite and not negative. None: every row counts 1. Rows of weight 0 are no edges.
    edge_type : int32 (rows) or None
        Type codes from 0.
    nodes : int
        Number of nodes, < 2**31; nodes without an edge are allowed.
    duplicate_edges : "sum", "max", "min" or "mean"
        How weights of equal (source, target, type) rows are reduced, in float64, sorted ascending first.

    Returns
    -------
    AdjacencyPair
    """
    if weight is not None and not bool(weight.all()):
        present = weight != 0
        source, target, weight = source[present], target[present], weight[present]
        edge_type = None if edge_type is None else edge_type[present]
    edges = reduce_duplicates(source, target, weight, edge_type, nodes=nodes, duplicate_edges=duplicate_edges)
    out_degree = np.bincount(edges.source, minlength=nodes)
    degree = out_degree + np.bincount(edges.target, minlength=nodes)
    order = np.argsort(-degree, kind="stable").astype(np.int32)
    inverse_order = np.empty(nodes, dtype=np.int32)
    inverse_order[order] = np.arange(nodes, dtype=np.int32)
    loops = edges.source[edges.source == edges.target]
    return AdjacencyPair(
        by_source=_by_source(edges, out_degree, order, inverse_order),
        by_destination=_by_destination(edges, out_degree, inverse_order),
        order=order,
        inverse_order=inverse_order,
        merged_duplicates=len(source) - len(edges.source),
        self_loops=len(np.unique(loops)),
        dangling=int(np.count_nonzero(out_degree == 0)),
        isolated=int(np.count_nonzero(degree == 0)),
    )


def _offsets(lengths: Int64Array) -> Int64Array:
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _by_source(edges: ReducedEdges, out_degree: Int64Array, order: Int32Array, inverse_order: Int32Array) -> Adjacency:
    """Move whole rows (already sorted by target, then type) to their internal place."""
    offsets = _offsets(out_degree[order])
    moved_by = _offsets(out_degree)[:-1][order] - offsets[:-1]
    position = np.repeat(moved_by, out_degree[order])
    position += np.arange(len(position))
    return Adjacency(
        offsets=offsets,
        neighbors=inverse_order[edges.target[position]],
        weights=None if edges.weight is None else edges.weight[position],
        types=None if edges.edge_type is None else edges.edge_type[position],
    )


def _by_destination(edges: ReducedEdges, out_degree: Int64Array, inverse_order: Int32Array) -> Adjacency:
    """Distribute the entries over their destinations; the counting sort is stable: sources stay in order."""
    nodes, entries = len(out_degree), len(edges.target)
    position_type = np.int32 if entries < 2**31 else np.int64
    by_source_rank = sparse.csr_array(
        (np.arange(entries, dtype=position_type), inverse_order[edges.target], _offsets(out_degree)),
        shape=(nodes, nodes),
    )
    by_target = by_source_rank.tocsc()
    position = by_target.data
    return Adjacency(
        offsets=by_target.indptr.astype(np.int64),
        neighbors=inverse_order[by_target.indices],
        weights=None if edges.weight is None else edges.weight[position],
        types=None if edges.edge_type is None else edges.edge_type[position],
    )
