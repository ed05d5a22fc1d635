"""The graph as random walks follow it: edge weights as whole numbers that a random number is compared with."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from seedrank.kernels.arrays import Float64Array, Int64Array
from seedrank.kernels.recall.recall_graph import FollowedRows, RecallGraph

TOTAL_BITS = 62
"""The whole-numbered weights of a node sum to less than 2**62."""

STRETCH = 1 << 20
"""Entries that are turned into whole numbers together."""

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
    """Turn weight × type weight into whole numbers, once a run.

    The weights of a node with d entries are multiplied by the power of two that brings the largest to between
    2**(b-1) and 2**b, where b = 62 - (bits of d), and rounded down. Both are exact operations, so every machine gets
    the same numbers. A weight is off by less than 2**(1-b) of the largest of its node, which is 1e-17 at degree 16 and
    5e-13 at degree a million; one that is lighter than that may never be chosen.

    Parameters
    ----------
    graph : RecallGraph

    Returns
    -------
    WalkGraph
    """
    sides = graph.rows
    if graph.type_weights is None and all(side.weights is None for side in sides):
        return WalkGraph(graph, ())
    exponent = np.full(graph.nodes, _NO_EXPONENT, dtype=np.int32)
    for side in sides:
        for rows in _stretches(side.offsets):
            largest = _largest(side.offsets, rows, _weights(side, rows, graph.type_weights))
            # A weight can vanish when it is multiplied by a type weight.
            found = np.where(largest > 0, np.frexp(largest)[1], _NO_EXPONENT)
            exponent[rows] = np.maximum(exponent[rows], found)
    degree = sum(np.diff(side.offsets) for side in sides)
    # The exponent of a count, by frexp, is its number of bits.
    shift = TOTAL_BITS - np.frexp(degree)[1] - exponent
    totals = np.zeros(graph.nodes, dtype=np.int64)
    cumulative = []
    for side in sides:
        sums = np.empty(len(side.neighbors), dtype=np.int64)
        for rows in _stretches(side.offsets):
            lengths = np.diff(side.offsets[rows.start : rows.stop + 1])
            whole = np.ldexp(_weights(side, rows, graph.type_weights), np.repeat(shift[rows], lengths))
            part = sums[side.offsets[rows.start] : side.offsets[rows.stop]]
            part[:] = _running_sums(whole.astype(np.int64), lengths, totals[rows])
            filled = np.flatnonzero(lengths)
            totals[rows][filled] = part[np.cumsum(lengths)[filled] - 1]
        cumulative.append(sums)
    return WalkGraph(graph, tuple(cumulative))


def _stretches(offsets: Int64Array) -> list[slice]:
    """Cut rows into stretches of about `STRETCH` entries, so that the arrays in between stay small."""
    inner = np.searchsorted(offsets, np.arange(STRETCH, offsets[-1], STRETCH))
    bounds = np.unique(np.concatenate(([0], inner, [len(offsets) - 1]))).tolist()
    return [slice(first, last) for first, last in pairwise(bounds)]


def _weights(side: FollowedRows, rows: slice, type_weights: Float64Array | None) -> Float64Array:
    """Weight × type weight of the entries of some rows."""
    part = slice(side.offsets[rows.start], side.offsets[rows.stop])
    values = np.ones(part.stop - part.start) if side.weights is None else side.weights[part]
    return values if type_weights is None or side.types is None else values * type_weights[side.types[part]]


def _largest(offsets: Int64Array, rows: slice, values: Float64Array) -> Float64Array:
    """The largest value of each of some rows; 0 where a row is empty."""
    starts = offsets[rows] - offsets[rows.start]
    filled = np.flatnonzero(np.diff(offsets[rows.start : rows.stop + 1]))
    largest = np.zeros(len(starts))
    if len(filled):
        largest[filled] = np.maximum.reduceat(values, starts[filled])
    return largest


def _running_sums(whole: Int64Array, lengths: Int64Array, before: Int64Array) -> Int64Array:
    """Running sums within rows of these lengths, starting from `before`."""
    # The sum over all rows runs over, more than once in long stretches; differences within a row stay exact.
    sums = np.cumsum(whole.view(np.uint64))
    start = np.concatenate((np.zeros(1, dtype=np.uint64), sums))[np.cumsum(lengths) - lengths]
    sums -= np.repeat(start - before.view(np.uint64), lengths)
    return sums.view(np.int64)
