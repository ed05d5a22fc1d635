"""Which entries of an adjacency take part in a transition, and what they weigh."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seedrank.kernels.arrays import BoolArray, Float64Array, Int32Array, Int64Array
from seedrank.kernels.building.adjacency import Adjacency
from seedrank.kernels.runs import offsets_of

MOST_REPETITION = 1.25
"""Up to this many entries for one, whole-numbered weights are written as repetitions."""


@dataclass(frozen=True)
class SelectedEntries:
    """Entries of some rows of an adjacency that take part.

    Attributes
    ----------
    offsets : int64 (rows + 1)
    columns : int32
    values : float64 or None
        Weight × type weight; None: all are equal.
    """

    offsets: Int64Array
    columns: Int32Array
    values: Float64Array | None


def simplified(type_weights: Float64Array) -> Float64Array:
    """Scale by a power of two to at most 1: exact, and weight × type weight cannot overflow.

    A factor that all types share that have one becomes 1: it cancels in weight / out-weight.
    """
    if len(np.unique(type_weights[type_weights > 0])) <= 1:
        return (type_weights > 0).astype(np.float64)
    exponent = int(np.frexp(type_weights.max(initial=0.0))[1])
    return np.ldexp(type_weights, -max(exponent, 0))


def select_entries(
    adjacency: Adjacency, factors: Float64Array | None, *, drop_loops: bool, first_node: int = 0
) -> SelectedEntries:
    """Entries that remain after types of weight 0 and, if asked, self loops are removed.

    The rows of `adjacency` are all nodes, or those from `first_node` on.
    """
    keep: BoolArray | None = None
    types = adjacency.types
    if factors is not None and types is not None and not bool(factors.all()):
        keep = (factors > 0)[types]
    if drop_loops:
        nodes = np.arange(first_node, first_node + adjacency.nodes, dtype=np.int32)
        rows = np.repeat(nodes, np.diff(adjacency.offsets))
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
        return SelectedEntries(offsets, columns, weights)
    values = factors[types]
    if weights is not None:
        values *= weights
    return SelectedEntries(offsets, columns, values)


def counts_rows(part: SelectedEntries) -> bool:
    """Whether weights are small whole numbers, as merged rows of an unweighted edge list are."""
    if part.values is None or not len(part.values):
        return part.values is not None
    return float(part.values.sum()) <= MOST_REPETITION * len(part.values) and bool(
        (part.values == np.rint(part.values)).all()
    )


def repeat(part: SelectedEntries) -> SelectedEntries:
    """Write an entry of weight w as w entries: 4 bytes more instead of a value for every entry, and no product."""
    assert part.values is not None
    times = part.values.astype(np.int64)
    before = offsets_of(times)
    return SelectedEntries(before[part.offsets], np.repeat(part.columns, times), None)


def probabilities(part: SelectedEntries, out_weight: Float64Array) -> Float64Array | None:
    """Weight / out-weight by entry; 0 where type weights made all weights of a node vanish in float64."""
    if part.values is None:
        return None
    divisor = out_weight[part.columns]
    return np.divide(part.values, divisor, out=np.zeros_like(divisor), where=divisor > 0)


def row_sums(part: SelectedEntries) -> Float64Array:
    """Sum each row in the fixed order of its entries, pairwise, so that hubs keep their digits."""
    lengths = np.diff(part.offsets)
    if part.values is None:
        return lengths.astype(np.float64)
    sums = np.zeros(len(lengths), dtype=np.float64)
    filled = np.flatnonzero(lengths)
    if len(filled):
        sums[filled] = np.add.reduceat(part.values, part.offsets[filled])
    return sums


def inverse_of(out_weight: Float64Array) -> Float64Array:
    """1 / out-weight; 0 at dangling nodes, infinite where it is too small to have an inverse."""
    inverse = np.zeros_like(out_weight)
    with np.errstate(over="ignore"):  # 1 / 1e-310: not used, see Transition.inverse_out_weight
        np.divide(1.0, out_weight, out=inverse, where=out_weight > 0)
    return inverse
