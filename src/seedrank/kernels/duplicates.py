"""Sort an edge list and reduce the rows that name the same edge."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seedrank.kernels.arrays import DuplicateRule, Float64Array, Int32Array, Int64Array, UnsignedArray

KEY_BITS = 63
"""Bits that a packed (source, target, type) key may use: the non-negative part of int64."""


@dataclass(frozen=True)
class ReducedEdges:
    """Distinct (source, target, type) rows, sorted by source, then target, then type.

    Attributes
    ----------
    source, target : int32 (m)
        Tie ranks.
    weight : float64 (m) or None
        Reduced weights; None when every one of them is exactly 1.
    edge_type : smallest unsigned integer (m) or None
        Type codes; None for untyped edges.
    """

    source: Int32Array
    target: Int32Array
    weight: Float64Array | None
    edge_type: UnsignedArray | None


def reduce_duplicates(
    source: Int32Array,
    target: Int32Array,
    weight: Float64Array | None,
    edge_type: Int32Array | None,
    *,
    nodes: int,
    duplicate_edges: DuplicateRule,
) -> ReducedEdges:
    """Sort the rows by (source, target, type) and reduce the weights of equal rows.

    Parameters
    ----------
    source, target : int32 (rows)
        Tie ranks, 0 … nodes - 1.
    weight : float64 (rows) or None
        Finite, > 0. None: every row counts 1.
    edge_type : int32 (rows) or None
        Type codes from 0.
    nodes : int
        Number of nodes.
    duplicate_edges : "sum", "max", "min" or "mean"
        Within one key the weights are sorted ascending and reduced in that order in float64, so the order of
        the rows cannot matter, bit for bit.

    Returns
    -------
    ReducedEdges
    """
    types = 1 if edge_type is None or not len(edge_type) else int(edge_type.max()) + 1
    node_bits = max(nodes - 1, 1).bit_length()
    type_bits = (types - 1).bit_length()
    order: Int64Array | None = None
    if 2 * node_bits + type_bits <= KEY_BITS:
        key = source.astype(np.int64)
        key <<= node_bits
        key |= target
        if type_bits and edge_type is not None:
            key <<= type_bits
            key |= edge_type
        if weight is None:
            key.sort()
        else:
            # An unstable sort will do: weights are sorted inside equal keys below.
            order = np.argsort(key)
            key = key[order]
        starts = _run_starts(len(key), key[1:] != key[:-1])
        key = key[starts]
        reduced_type = key & ((1 << type_bits) - 1)
        key >>= type_bits
        reduced_target = (key & ((1 << node_bits) - 1)).astype(np.int32)
        key >>= node_bits
        reduced_source = key.astype(np.int32)
    else:
        keys = (target, source) if edge_type is None else (edge_type, target, source)
        order = np.lexsort(keys)
        changed = np.zeros(max(len(order) - 1, 0), dtype=np.bool_)
        for column in keys:
            values = column[order]
            changed |= values[1:] != values[:-1]
        starts = _run_starts(len(order), changed)
        first = order[starts]
        reduced_source, reduced_target = source[first], target[first]
        reduced_type = np.zeros(len(first), np.int64) if edge_type is None else edge_type[first].astype(np.int64)
    return ReducedEdges(
        source=reduced_source,
        target=reduced_target,
        weight=_reduce_weights(weight, order, starts, len(source), duplicate_edges),
        edge_type=None if edge_type is None else reduced_type.astype(np.min_scalar_type(types - 1)),
    )


def _run_starts(rows: int, changed: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Int64Array:
    """Positions where a run of equal keys begins (none for zero rows)."""
    if rows == 0:
        return np.zeros(0, dtype=np.int64)
    return np.concatenate((np.zeros(1, dtype=np.int64), np.flatnonzero(changed) + 1))


def _reduce_weights(
    weight: Float64Array | None, order: Int64Array | None, starts: Int64Array, rows: int, rule: DuplicateRule
) -> Float64Array | None:
    """Reduce the weights of each run of equal keys; None when all results are exactly 1."""
    lengths = np.diff(starts, append=rows)
    if weight is None:
        if rule != "sum" or len(starts) == rows:
            return None
        return lengths.astype(np.float64)
    values = weight if order is None else weight[order]
    if len(starts) < rows:
        repeated = np.repeat(lengths > 1, lengths)
        run = np.repeat(np.arange(len(starts)), lengths)[repeated]
        duplicates = values[repeated]
        values[repeated] = duplicates[np.lexsort((duplicates, run))]
        if rule == "min":
            values = values[starts]
        elif rule == "max":
            values = values[starts + lengths - 1]
        else:
            # bincount adds one after the other, in the order of the rows. Runs of one row keep their bits.
            sums = values[starts]
            several = np.flatnonzero(lengths > 1)
            sums[several] = np.bincount(run, weights=values[repeated], minlength=len(starts))[several]
            values = sums / lengths if rule == "mean" else sums
    return None if bool((values == 1.0).all()) else values
