"""The transposed transition matrix of a graph for one direction, set of type weights and dangling rule."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seedrank.kernels.arrays import DanglingRule, Direction, Float64Array, Int32Array, Int64Array
from seedrank.kernels.building.adjacency import Adjacency
from seedrank.kernels.selected_entries import (
    counts_rows,
    inverse_of,
    probabilities,
    repeat,
    row_sums,
    select_entries,
    simplified,
)


@dataclass(frozen=True)
class SparseRows:
    """One summand of the transposed transition matrix, compressed by row (= destination).

    Attributes
    ----------
    offsets : int64 (n + 1)
    columns : int32 (m)
        Internal nodes from which mass arrives; within a row in the order of the adjacency (tie rank, then
        type).
    probabilities : float64 (m) or None
        weight / out-weight. None: the entry (v, u) is ``inverse_out_weight[u]``.
    """

    offsets: Int64Array
    columns: Int32Array
    probabilities: Float64Array | None


@dataclass(frozen=True)
class OutgoingRows:
    """One direction in which nodes pass mass on, straight from the graph store: nothing is copied for a few rows.

    Attributes
    ----------
    adjacency : Adjacency
        Rows are the nodes that mass leaves.
    factors : float64 (types) or None
        Multiply the weight by the entry's type; 0: no such entry. None: weights alone count.
    drop_loops : bool
        Entries from a node to itself do not count (they do in the other direction).
    """

    adjacency: Adjacency
    factors: Float64Array | None
    drop_loops: bool


@dataclass(frozen=True)
class Transition:
    """A row-stochastic matrix P, held as the summands of its transpose, with its dangling nodes apart.

    Attributes
    ----------
    nodes : int
    products : tuple of SparseRows
        One, or two for both directions (then their sum is the transposed matrix).
    outgoing : tuple of OutgoingRows
        One, or two for both directions: the rows of P, for vectors of few nodes. The probability of an entry is
        weight × factor / out-weight.
    out_weight : float64 (n)
        Sum of weight × factor over a node's outgoing entries; 0 at dangling nodes.
    inverse_out_weight : float64 (n)
        1 / out-weight, 0 at dangling nodes. The factor of structure-only products; products that carry
        probabilities never need it (for tiny weights it is not even finite).
    dangling_nodes : int32
        Internal nodes of out-weight 0 under this direction and these type weights, ascending.
    dangling : "seeds", "self", "uniform" or "drop"
        Where the mass of dangling nodes goes: back to the seeds, nowhere (it stays), evenly to all nodes; or it
        vanishes, for drivers that rescale in the end.
    """

    nodes: int
    products: tuple[SparseRows, ...]
    outgoing: tuple[OutgoingRows, ...]
    out_weight: Float64Array
    inverse_out_weight: Float64Array
    dangling_nodes: Int32Array
    dangling: DanglingRule

    @property
    def entries(self) -> int:
        """Number of multiplications of one product with one vector."""
        return sum(len(product.columns) for product in self.products)


def build_transition(
    by_source: Adjacency,
    by_destination: Adjacency,
    *,
    direction: Direction,
    type_weights: Float64Array | None,
    dangling: DanglingRule,
) -> Transition:
    """Apply direction, type weights and normalisation to the two adjacencies of a graph.

    ``out`` follows source → target, ``in`` the reverse, ``both`` is A + Aᵀ with a self loop counted once (a
    pair that is listed in both directions weighs double). A type weight of 0 removes the entries of the
    type. The probability of an entry is its weight divided by the out-weight of the node it leaves, in
    float64: one division, so weights of 1e39 or 1e-310 are as good as any other. Where all weights are whole
    numbers and few are above 1 (merged duplicates of an unweighted graph), entries are repeated instead and
    need no value. Arrays that need no change are used as they are (mapped from disk).

    Parameters
    ----------
    by_source, by_destination : Adjacency
        The same edges, rows = sources and rows = destinations.
    direction : "out", "in" or "both"
    type_weights : float64 (types) or None
        Finite, >= 0, by type code; None: all 1. Without effect on an untyped graph.
    dangling : "seeds", "self", "uniform" or "drop"

    Returns
    -------
    Transition
    """
    factors = None if type_weights is None or by_source.types is None else simplified(type_weights)
    # Rows of `incoming` lead into their node, rows of `outgoing` out of it; both directions use each as both.
    incoming, outgoing = (by_source, by_destination) if direction == "in" else (by_destination, by_source)
    parts = [select_entries(incoming, factors, drop_loops=False)]
    leaving = [OutgoingRows(outgoing, factors, drop_loops=False)]
    out_weight = row_sums(select_entries(outgoing, factors, drop_loops=False))
    if direction == "both":
        parts.append(select_entries(outgoing, factors, drop_loops=True))
        leaving.append(OutgoingRows(incoming, factors, drop_loops=True))
        out_weight += row_sums(select_entries(incoming, factors, drop_loops=True))
    if all(counts_rows(part) for part in parts):
        parts = [repeat(part) for part in parts]
    return Transition(
        nodes=by_source.nodes,
        products=tuple(
            SparseRows(
                offsets=part.offsets,
                columns=part.columns,
                probabilities=probabilities(part, out_weight),
            )
            for part in parts
        ),
        outgoing=tuple(leaving),
        out_weight=out_weight,
        inverse_out_weight=inverse_of(out_weight),
        dangling_nodes=np.flatnonzero(out_weight == 0).astype(np.int32),
        dangling=dangling,
    )
