"""Sort an edge list, reduce the rows that name the same edge, and compress it: the definition, in NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seedrank.kernels.arrays import DuplicateRule, Float64Array, Int32Array, Int64Array, UnsignedArray

CompressedRows = tuple[Int64Array, Int32Array, Float64Array | None, UnsignedArray | None]
"""Offsets, neighbors, weights and types of an `seedrank.kernels.building.adjacency.Adjacency`."""


@dataclass(frozen=True)
class ReducedEdges:
    """Distinct (source, target, type) rows, sorted by source, then target, then type.

    Attributes
    ----------
    nodes : int
        Number of nodes.
    source, target : int32 (m)
        Tie ranks.
    weight : float64 (m) or None
        Reduced weights; None when every one of them is exactly 1.
    edge_type : smallest unsigned integer (m) or None
        Type codes; None for untyped edges.
    """

    nodes: int
    source: Int32Array
    target: Int32Array
    weight: Float64Array | None
    edge_type: UnsignedArray | None

    @property
    def entries(self) -> int:
        """Number of distinct (source, target, type)."""
        return len(self.source)

    @property
    def self_loops(self) -> int:
        """Number of nodes with at least one edge to themselves."""
        return len(np.unique(self.source[self.source == self.target]))

    @property
    def out_degree(self) -> Int64Array:
        """Entries by source, by tie rank: int64 (nodes)."""
        return np.bincount(self.source, minlength=self.nodes)

    @property
    def in_degree(self) -> Int64Array:
        """Entries by target, by tie rank: int64 (nodes)."""
        return np.bincount(self.target, minlength=self.nodes)

    def compress(self, inverse_order: Int32Array) -> tuple[CompressedRows, CompressedRows]:
        """Compress by source and by destination; rows and neighbors are internal nodes.

        Parameters
        ----------
        inverse_order : int32 (nodes)
            Internal node of each tie rank.
        """
        source, target = inverse_order[self.source], inverse_order[self.target]
        return self._compress(source, target), self._compress(target, source)

    def _compress(self, row: Int32Array, neighbor: Int32Array) -> CompressedRows:
        # Stable: within a row the other end stays in tie rank order, then the types.
        entry = np.argsort(row, kind="stable")
        return (
            np.searchsorted(row[entry], np.arange(self.nodes + 1)),
            neighbor[entry],
            None if self.weight is None else self.weight[entry],
            None if self.edge_type is None else self.edge_type[entry],
        )


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
    columns: list[npt.NDArray[Any]] = [column for column in (edge_type, target, source) if column is not None]
    keys: list[npt.NDArray[Any]] = columns if weight is None else [weight, *columns]
    order = np.lexsort(keys)
    changed = np.zeros(max(len(order) - 1, 0), dtype=np.bool_)
    for column in columns:
        changed |= np.diff(column[order]) != 0
    starts = np.flatnonzero(np.concatenate((np.ones(min(len(order), 1), dtype=np.bool_), changed)))
    first = order[starts]
    sorted_weight = np.ones(len(order)) if weight is None else weight[order]
    reduced = reduce_weights(sorted_weight, starts, duplicate_edges)
    return ReducedEdges(
        nodes=nodes,
        source=source[first],
        target=target[first],
        weight=None if bool((reduced == 1.0).all()) else reduced,
        edge_type=None if edge_type is None else _narrow(edge_type[first]),
    )


def reduce_weights(weight: Float64Array, starts: Int64Array, rule: DuplicateRule) -> Float64Array:
    """Reduce the weights of each run.

    Parameters
    ----------
    weight : float64 (rows)
        Ascending within a run.
    starts : int64 (runs)
        First row of each run.
    rule : "sum", "max", "min" or "mean"

    Returns
    -------
    float64 (runs)
    """
    lengths = np.diff(starts, append=len(weight))
    if rule == "min":
        return weight[starts]
    if rule == "max":
        return weight[starts + lengths - 1]
    # bincount adds one after the other, in the order of the rows; reduceat would add in pairs.
    total = np.bincount(np.repeat(np.arange(len(starts)), lengths), weights=weight, minlength=len(starts))
    reduced = total / lengths if rule == "mean" else total
    return reduced.astype(np.float64, copy=False)  # of zero rows, bincount makes integers


def _narrow(codes: Int32Array) -> UnsignedArray:
    """Type codes in the smallest unsigned integers that hold them."""
    return codes.astype(np.min_scalar_type(int(codes.max(initial=0))))
