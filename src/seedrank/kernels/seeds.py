"""From weighted hits to personalization vectors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seedrank.kernels.arrays import BoolArray, Float64Array, Int32Array, Int64Array, SourceNormalization
from seedrank.kernels.runs import offsets_of, run_lengths, run_starts


@dataclass(frozen=True)
class SeedSets:
    """One personalization vector a query, compressed.

    Attributes
    ----------
    offsets : int64 (queries + 1)
        Query ``q`` has the seeds ``offsets[q]`` to ``offsets[q + 1]``; an empty range: no valid seeds.
    nodes : int32
        Internal nodes, within a query sorted by tie rank, each once.
    weights : float64
        > 0; the sum within a query is 1.
    """

    offsets: Int64Array
    nodes: Int32Array
    weights: Float64Array


def build_seeds(
    query: Int32Array,
    rank: Int32Array,
    weight: Float64Array,
    source: Int32Array | None,
    *,
    queries: int,
    normalization: SourceNormalization,
    source_weights: Float64Array | None,
    lower_is_better: BoolArray | None = None,
    inverse_order: Int32Array,
) -> SeedSets:
    """Normalise hits by source, add up repeated nodes and scale every query to sum 1.

    Missing nodes are dropped first. Then, within a query, the weights of each source are normalised: ``sum``
    divides by their sum, ``max`` by their maximum, ``minmax`` maps them to (w - min) / (max - min), with 1
    for all when they are equal, ``none`` leaves them. A source whose weights are all 0 contributes nothing.
    The result is multiplied by the weight of the source, repeated nodes add up, and the whole is divided by
    its sum. Nodes whose weight ends as 0 are no seeds. Scaling uses powers of two, so weights near the ends
    of float64 neither overflow nor vanish.

    Of a source whose weights are distances, ``minmax`` makes (max - w) / (max - min), with 1 for all when they are
    equal. No other rule turns a distance into a weight.

    Parameters
    ----------
    query : int32 (h)
        0 … queries - 1; rows sorted by (query, source, rank, weight), which makes the result independent of
        the order in which hits were read.
    rank : int32 (h)
        Tie rank of the node, -1 = not in the graph.
    weight : float64 (h)
        Finite, >= 0.
    source : int32 (h) or None
        Source codes; None: one source.
    queries : int
    normalization : "sum", "none", "minmax" or "max"
    source_weights : float64 (sources) or None
        Finite, >= 0; None: all 1.
    lower_is_better : bool (sources), optional
        Sources whose weights are distances; heeded by ``minmax`` only.
    inverse_order : int32 (n)
        Tie rank → internal node.

    Returns
    -------
    SeedSets
    """
    present = rank >= 0
    query, rank, weight = query[present], rank[present], weight[present]
    source = np.zeros_like(query) if source is None else source[present]
    distance = np.zeros(len(query), np.bool_) if lower_is_better is None else lower_is_better[source]
    values = _normalised(query, source, weight, normalization, distance)
    if source_weights is not None:
        # Only ratios matter in the end: scaled to at most 1, the product cannot overflow.
        values = values * _to_unit_scale(source_weights, source_weights.max(initial=0.0))[source]
    by_node = np.lexsort((rank, query))  # stable: sources stay in order within a node
    query, rank, values = query[by_node], rank[by_node], values[by_node]
    starts = run_starts(query, rank)
    if len(starts):
        query, rank, values = query[starts], rank[starts], np.add.reduceat(values, starts)
    positive = values > 0
    query, rank, values = query[positive], rank[positive], values[positive]
    starts = run_starts(query)
    if len(starts):
        values = values / np.repeat(np.add.reduceat(values, starts), run_lengths(starts, len(query)))
    offsets = offsets_of(np.bincount(query, minlength=queries))
    return SeedSets(offsets=offsets, nodes=inverse_order[rank], weights=values)


def _normalised(
    query: Int32Array,
    source: Int32Array,
    weight: Float64Array,
    normalization: SourceNormalization,
    distance: BoolArray,
) -> Float64Array:
    """Normalise each (query, source) group; ``none`` only scales each query by a power of two."""
    if not len(query):
        return weight
    starts = run_starts(query) if normalization == "none" else run_starts(query, source)
    lengths = run_lengths(starts, len(query))
    largest = np.repeat(np.maximum.reduceat(weight, starts), lengths)
    if normalization == "minmax":
        smallest = np.repeat(np.minimum.reduceat(weight, starts), lengths)
        # All equal: 1, unless all are 0, of which distances are the best.
        values = (distance | (largest > 0)).astype(np.float64)
        above_worst = np.where(distance, largest - weight, weight - smallest)
        np.divide(above_worst, largest - smallest, out=values, where=largest > smallest)
        return values
    if normalization == "max":
        values = np.zeros_like(weight)
        np.divide(weight, largest, out=values, where=largest > 0)
        return values
    values = _to_unit_scale(weight, largest)
    if normalization == "sum":
        sums = np.repeat(np.add.reduceat(values, starts), lengths)
        np.divide(values, sums, out=values, where=sums > 0)
    return values


def _to_unit_scale(values: Float64Array, largest: Float64Array | np.float64) -> Float64Array:
    """Divide by the power of two that brings `largest` into [1/2, 1): exact, and sums cannot overflow."""
    scaled: Float64Array = np.ldexp(values, -np.frexp(largest)[1])
    return scaled
