"""The transposed transition matrix of a graph for one direction, set of type weights and dangling rule."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seedrank.kernels.adjacency import Adjacency
from seedrank.kernels.arrays import BoolArray, DanglingRule, Direction, Float64Array, Int32Array, Int64Array
from seedrank.kernels.runs import offsets_of

MOST_REPETITION = 1.25
"""Up to this many entries for one, whole-numbered weights are written as repetitions."""


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


@dataclass(frozen=True)
class _Selected:
    """Entries of an adjacency that take part: `values` are weight × type weight, None where all are equal."""

    offsets: Int64Array
    columns: Int32Array
    values: Float64Array | None


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
    factors = None if type_weights is None or by_source.types is None else _simplified(type_weights)
    # Rows of `incoming` lead into their node, rows of `outgoing` out of it; both directions use each as both.
    incoming, outgoing = (by_source, by_destination) if direction == "in" else (by_destination, by_source)
    parts = [_select(incoming, factors, drop_loops=False)]
    leaving = [OutgoingRows(outgoing, factors, drop_loops=False)]
    out_weight = _row_sums(_select(outgoing, factors, drop_loops=False))
    if direction == "both":
        parts.append(_select(outgoing, factors, drop_loops=True))
        leaving.append(OutgoingRows(incoming, factors, drop_loops=True))
        out_weight += _row_sums(_select(incoming, factors, drop_loops=True))
    if all(_counts_rows(part) for part in parts):
        parts = [_repeat(part) for part in parts]
    inverse_out_weight = np.zeros_like(out_weight)
    with np.errstate(over="ignore"):  # 1 / 1e-310: not used, see Transition.inverse_out_weight
        np.divide(1.0, out_weight, out=inverse_out_weight, where=out_weight > 0)
    return Transition(
        nodes=by_source.nodes,
        products=tuple(
            SparseRows(
                offsets=part.offsets,
                columns=part.columns,
                probabilities=_probabilities(part, out_weight),
            )
            for part in parts
        ),
        outgoing=tuple(leaving),
        out_weight=out_weight,
        inverse_out_weight=inverse_out_weight,
        dangling_nodes=np.flatnonzero(out_weight == 0).astype(np.int32),
        dangling=dangling,
    )


def _simplified(type_weights: Float64Array) -> Float64Array:
    """Scale by a power of two to at most 1: exact, and weight × type weight cannot overflow.

    A factor that all types share that have one becomes 1: it cancels in weight / out-weight.
    """
    if len(np.unique(type_weights[type_weights > 0])) <= 1:
        return (type_weights > 0).astype(np.float64)
    exponent = int(np.frexp(type_weights.max(initial=0.0))[1])
    return np.ldexp(type_weights, -max(exponent, 0))


def _select(adjacency: Adjacency, factors: Float64Array | None, *, drop_loops: bool) -> _Selected:
    """Entries that remain after types of weight 0 and, if asked, self loops are removed."""
    keep: BoolArray | None = None
    types = adjacency.types
    if factors is not None and types is not None and not bool(factors.all()):
        keep = (factors > 0)[types]
    if drop_loops:
        rows = np.repeat(np.arange(adjacency.nodes, dtype=np.int32), np.diff(adjacency.offsets))
        no_loop = rows != adjacency.neighbors
        if not bool(no_loop.all()):
            keep = no_loop if keep is None else keep & no_loop
    offsets, columns, weights = adjacency.offsets, adjacency.neighbors, adjacency.weights
    if keep is not None:
        kept_before = offsets_of(keep)
        offsets = kept_before[offsets]
        columns = columns[keep]
        weights = None if weights is None else weights[keep]
        types = None if types is None else types[keep]
    if factors is None or types is None or not bool((factors[factors > 0] != 1).any()):
        return _Selected(offsets, columns, weights)
    values = factors[types]
    if weights is not None:
        values *= weights
    return _Selected(offsets, columns, values)


def _counts_rows(part: _Selected) -> bool:
    """Whether weights are small whole numbers, as merged rows of an unweighted edge list are."""
    if part.values is None or not len(part.values):
        return part.values is not None
    return float(part.values.sum()) <= MOST_REPETITION * len(part.values) and bool(
        (part.values == np.rint(part.values)).all()
    )


def _repeat(part: _Selected) -> _Selected:
    """Write an entry of weight w as w entries: 4 bytes more instead of a value for every entry, and no product."""
    assert part.values is not None
    times = part.values.astype(np.int64)
    before = offsets_of(times)
    return _Selected(before[part.offsets], np.repeat(part.columns, times), None)


def _probabilities(part: _Selected, out_weight: Float64Array) -> Float64Array | None:
    """Weight / out-weight by entry; 0 where type weights made all weights of a node vanish in float64."""
    if part.values is None:
        return None
    divisor = out_weight[part.columns]
    return np.divide(part.values, divisor, out=np.zeros_like(divisor), where=divisor > 0)


def _row_sums(part: _Selected) -> Float64Array:
    """Sum each row in the fixed order of its entries, pairwise, so that hubs keep their digits."""
    lengths = np.diff(part.offsets)
    if part.values is None:
        return lengths.astype(np.float64)
    sums = np.zeros(len(lengths), dtype=np.float64)
    filled = np.flatnonzero(lengths)
    if len(filled):
        sums[filled] = np.add.reduceat(part.values, part.offsets[filled])
    return sums
