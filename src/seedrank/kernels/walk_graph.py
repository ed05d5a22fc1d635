"""The graph as random walks follow it: edge weights as whole numbers that a random number is compared with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seedrank.kernels.arrays import Float64Array, Int32Array, Int64Array
from seedrank.kernels.recall_graph import FollowedRows, RecallGraph

TOTAL_BITS = 62
"""The whole-numbered weights of a node sum to less than 2**62."""

_NO_EXPONENT = np.iinfo(np.int16).min
"""Lower than the exponent of any float64."""


@dataclass(frozen=True)
class WalkGraph:
    """A recall graph with what a weighted choice of the next node needs.

    Attributes
    ----------
    graph : RecallGraph
    cumulative : tuple of int64 (m), or empty
        For every element of ``graph.rows``, by entry: sum of the whole-numbered weights of its node up to and with
        this entry, where the entries of a node in the second element go on after those in the first. Empty: all
        entries weigh the same.
    """

    graph: RecallGraph
    cumulative: tuple[Int64Array, ...]


def build_walk_graph(graph: RecallGraph) -> WalkGraph:
    """Turn weight × type weight into whole numbers, once a run and in one pass.

    The weights of a node with d entries are multiplied by the power of two that brings the largest to between
    2**(b-1) and 2**b, where b = 62 - (bits of d), and rounded down. Both are exact operations,
    so every machine gets the same numbers. A weight is off by less than 2**(1-b) of the largest of its node, which is
    3e-17 at degree 16 and 5e-13 at degree a million; one that is lighter than that is never chosen.

    Parameters
    ----------
    graph : RecallGraph

    Returns
    -------
    WalkGraph
    """
    weights = [_weights(rows, graph.type_weights) for rows in graph.rows]
    if all(values is None for values in weights):
        return WalkGraph(graph, ())
    exponent = np.full(graph.nodes, _NO_EXPONENT, dtype=np.int32)
    degree = np.zeros(graph.nodes, dtype=np.int64)
    for rows, values in zip(graph.rows, weights, strict=True):
        degree += np.diff(rows.offsets)
        exponent = np.maximum(exponent, _largest_exponent(rows.offsets, values))
    # The exponent of a count, by frexp, is its bit length.
    shift = TOTAL_BITS - np.frexp(degree)[1] - exponent
    before = np.zeros(graph.nodes, dtype=np.int64)
    cumulative = []
    for rows, values in zip(graph.rows, weights, strict=True):
        sums = _running_sums(rows.offsets, values, shift, before)
        cumulative.append(sums)
        filled = np.flatnonzero(np.diff(rows.offsets))
        before[filled] = sums[rows.offsets[filled + 1] - 1]
    return WalkGraph(graph, tuple(cumulative))


def _weights(rows: FollowedRows, type_weights: Float64Array | None) -> Float64Array | None:
    """Weight × type weight by entry; None: all 1."""
    if type_weights is None or rows.types is None:
        return rows.weights
    values = type_weights[rows.types]
    return values if rows.weights is None else values * rows.weights


def _largest_exponent(offsets: Int64Array, values: Float64Array | None) -> Int32Array:
    """For each row the e of its largest weight f · 2**e, 1/2 <= f < 1; rows without a positive weight have none."""
    largest = np.zeros(len(offsets) - 1)
    filled = np.flatnonzero(np.diff(offsets))
    if len(filled):
        largest[filled] = 1.0 if values is None else np.maximum.reduceat(values, offsets[filled])
    # A weight can vanish when it is multiplied by a type weight.
    return np.where(largest > 0, np.frexp(largest)[1], _NO_EXPONENT)


def _running_sums(
    offsets: Int64Array, values: Float64Array | None, shift: Int32Array, before: Int64Array
) -> Int64Array:
    """Running sums of ``floor(value · 2**shift)`` within every row, starting from `before`."""
    lengths = np.diff(offsets)
    by_entry = np.repeat(shift, lengths)
    whole = np.ldexp(1.0 if values is None else values, by_entry).astype(np.int64)
    # The sum over all rows runs over, more than once on large graphs; differences within a row stay exact.
    sums = np.cumsum(whole.view(np.uint64))
    start = np.concatenate((np.zeros(1, dtype=np.uint64), sums))[offsets[:-1]] - before.astype(np.uint64)
    sums -= np.repeat(start, lengths)
    return sums.view(np.int64)
