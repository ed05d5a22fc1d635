"""The graph as the CPU kernels want it: rows that pass mass on first, indices padded, work cut into equal chunks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seedrank.kernels._cpu.gather import AHEAD
from seedrank.kernels.arrays import Float64Array, Int32Array, Int64Array, Precision, ScoreArray
from seedrank.kernels.transition import SparseRows, Transition

CHUNK_COST = 65_536
"""Entries (a row counts 8 more) that are summed before a thread takes its next chunk. Fixed: sums follow it."""

ROW_COST = 8


@dataclass(frozen=True)
class Rows:
    """One summand of the transposed transition matrix in the order of the layout.

    Attributes
    ----------
    offsets : int64 (n + 1)
    columns : int32 (m + AHEAD)
        Rows of the block that are added; the padding is prefetched, never added.
    values : float32 or float64 (m), or None
        Transition probabilities; None: the block is pre-divided by the out-weights.
    """

    offsets: Int64Array
    columns: Int32Array
    values: ScoreArray | None


@dataclass(frozen=True)
class Layout:
    """A transition in the order in which the CPU computes it.

    Attributes
    ----------
    nodes, active : int
        All rows; the first `active` pass mass on, the rest are dangling and nobody reads them during a product.
    node_at : int32 (n)
        Internal node of each row; `place` (n) is the inverse.
    products : tuple of Rows
        One or two; both have all n rows.
    scale, unscale : float32 or float64 (n)
        What a row is multiplied with when it is stored, and its inverse: 1 / out-weight and out-weight where the
        block is pre-divided, else 1.
    loops : float32 or float64 (n)
        Probability of staying, by row: the diagonal of the transition matrix.
    chunks : int64 (c + 1)
        Row bounds of equal work; the first `active_chunks` chunks are the active rows.
    active_chunks : int
    """

    nodes: int
    active: int
    node_at: Int32Array
    place: Int32Array
    products: tuple[Rows, ...]
    scale: ScoreArray
    unscale: ScoreArray
    loops: ScoreArray
    chunks: Int64Array
    active_chunks: int


def lay_out(transition: Transition, precision: Precision) -> Layout:
    """Reorder a transition for the CPU kernels; one pass over the entries.

    Under the ``self`` rule a dangling node keeps its mass: it gets an entry to itself and is an active row like any
    other. Integer weights that are small (merged duplicates) could be stored as repeated entries; the transition
    decides that, not the layout.

    Parameters
    ----------
    transition : Transition
    precision : "float32" or "float64"

    Returns
    -------
    Layout
    """
    nodes = transition.nodes
    dangling = np.zeros(nodes, dtype=np.bool_)
    if transition.dangling != "self":
        dangling[transition.dangling_nodes] = True
    node_at = np.concatenate((np.flatnonzero(~dangling), np.flatnonzero(dangling))).astype(np.int32)
    place = np.empty(nodes, dtype=np.int32)
    place[node_at] = np.arange(nodes, dtype=np.int32)
    active = nodes - int(np.count_nonzero(dangling))
    products = [_reorder(rows, node_at, place, precision) for rows in transition.products]
    if transition.dangling == "self" and len(transition.dangling_nodes):
        products[0] = _with_loops(products[0], place[transition.dangling_nodes])
    scale = np.ones(nodes, dtype=precision)
    unscale = np.ones(nodes, dtype=precision)
    if transition.products[0].probabilities is None:
        inverse: Float64Array = transition.inverse_out_weight[node_at]
        passes_on = inverse > 0
        scale[passes_on] = inverse[passes_on]
        unscale[passes_on] = np.rint(1.0 / inverse[passes_on])
    cost = sum(rows.offsets for rows in products) + ROW_COST * np.arange(nodes + 1)
    first, rest = _cut(cost, 0, active), _cut(cost, active, nodes)
    return Layout(
        nodes=nodes,
        active=active,
        node_at=node_at,
        place=place,
        products=tuple(products),
        scale=scale,
        unscale=unscale,
        loops=_diagonal(products, scale),
        chunks=np.concatenate((first, rest[1:])),
        active_chunks=len(first) - 1,
    )


def _reorder(rows: SparseRows, node_at: Int32Array, place: Int32Array, precision: Precision) -> Rows:
    """Move whole rows; within a row entries stay in their order."""
    lengths = np.diff(rows.offsets)[node_at]
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    entry = np.repeat(rows.offsets[:-1][node_at] - offsets[:-1], lengths)
    entry += np.arange(len(entry))
    columns = np.zeros(len(entry) + AHEAD, dtype=np.int32)
    columns[: len(entry)] = place[rows.columns[entry]]
    values = None if rows.probabilities is None else rows.probabilities[entry].astype(precision)
    return Rows(offsets=offsets, columns=columns, values=values)


def _with_loops(rows: Rows, loops: Int32Array) -> Rows:
    """Give some rows one more entry, to themselves, with value 1."""
    entries = int(rows.offsets[-1])
    at = rows.offsets[loops + 1]
    more = np.zeros(len(rows.offsets), dtype=np.int64)
    more[loops + 1] = 1
    columns = np.insert(rows.columns[:entries], at, loops)
    return Rows(
        offsets=rows.offsets + np.cumsum(more),
        columns=np.concatenate((columns, np.zeros(AHEAD, dtype=np.int32))),
        values=None if rows.values is None else np.insert(rows.values, at, 1),
    )


def _diagonal(products: list[Rows], scale: ScoreArray) -> ScoreArray:
    """Sum of the entries that lead from a row to itself."""
    diagonal = np.zeros_like(scale)
    for rows in products:
        row = np.repeat(np.arange(len(scale), dtype=np.int32), np.diff(rows.offsets))
        entries = np.flatnonzero(row == rows.columns[: len(row)])
        np.add.at(diagonal, row[entries], scale[row[entries]] if rows.values is None else rows.values[entries])
    return diagonal


def _cut(cost: Int64Array, first: int, last: int) -> Int64Array:
    """Bounds of chunks of about equal cost between two rows; no chunks where there are no rows."""
    if first == last:
        return np.array([first], dtype=np.int64)
    pieces = max(1, int((cost[last] - cost[first]) // CHUNK_COST))
    targets = cost[first] + (cost[last] - cost[first]) * np.arange(1, pieces) // pieces
    inner = first + np.searchsorted(cost[first : last + 1], targets)
    return np.unique(np.concatenate(([first], inner, [last]))).astype(np.int64)
