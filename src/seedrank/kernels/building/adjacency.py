"""From an edge list to two compressed adjacencies, relabelled for locality."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from seedrank.kernels.arrays import DuplicateRule, Float64Array, Int32Array, Int64Array, UnsignedArray
from seedrank.kernels.building.duplicates import CompressedRows, reduce_duplicates
from seedrank.kernels.numba_support import why_not_compiled

COMPILED_ROWS = 1 << 20
"""From this many rows on, compiled code is worth its start: about half a second, some seconds the first time ever."""


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
    edges = _distinct_edges(source, target, weight, edge_type, nodes=nodes, duplicate_edges=duplicate_edges)
    degree = edges.out_degree + edges.in_degree
    order = np.argsort(-degree, kind="stable").astype(np.int32)
    inverse_order = np.empty(nodes, dtype=np.int32)
    inverse_order[order] = np.arange(nodes, dtype=np.int32)
    by_source, by_destination = edges.compress(inverse_order)
    return AdjacencyPair(
        by_source=Adjacency(*by_source),
        by_destination=Adjacency(*by_destination),
        order=order,
        inverse_order=inverse_order,
        merged_duplicates=len(source) - edges.entries,
        self_loops=edges.self_loops,
        dangling=int(np.count_nonzero(edges.out_degree == 0)),
        isolated=int(np.count_nonzero(degree == 0)),
    )


class _DistinctEdges(Protocol):
    """Edges after the reduction; degrees are by tie rank, `compress` may use the edges up."""

    @property
    def entries(self) -> int: ...
    @property
    def self_loops(self) -> int: ...
    @property
    def out_degree(self) -> Int64Array: ...
    @property
    def in_degree(self) -> Int64Array: ...
    def compress(self, inverse_order: Int32Array) -> tuple[CompressedRows, CompressedRows]: ...


def _distinct_edges(
    source: Int32Array,
    target: Int32Array,
    weight: Float64Array | None,
    edge_type: Int32Array | None,
    *,
    nodes: int,
    duplicate_edges: DuplicateRule,
) -> _DistinctEdges:
    """Reduce duplicates, in one of two ways that give the same bits.

    The NumPy way is the definition: it takes every graph and starts at once. The compiled way is several times faster
    and leaner, but takes long to start, and only graphs whose edges fit 63 bits (2**28 nodes with 128 types do).
    """
    if len(source) >= COMPILED_ROWS and why_not_compiled() is None:
        # Small builds should not wait for Numba.
        from seedrank.kernels._cpu.packed_edges import PackedEdges  # noqa: PLC0415

        if PackedEdges.fits(nodes, edge_type):
            return PackedEdges(source, target, weight, edge_type, nodes=nodes, duplicate_edges=duplicate_edges)
    return reduce_duplicates(source, target, weight, edge_type, nodes=nodes, duplicate_edges=duplicate_edges)
