"""The graph as the CPU kernels want it: rows that pass mass on first, one product, work cut into equal chunks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import get_num_threads, prange

from seedrank.kernels._cpu.compiled import compiled, mapped
from seedrank.kernels._cpu.gather import AHEAD
from seedrank.kernels.arrays import Float64Array, Int32Array, Int64Array, Precision, ScoreArray
from seedrank.kernels.runs import offsets_of
from seedrank.kernels.transition import SparseRows, Transition

CHUNK_COST = 65_536
"""Entries (a row counts 8 more) that are summed before a thread takes its next chunk. Fixed: sums follow it."""

ROW_COST = 8


@dataclass(frozen=True)
class Rows:
    """The transposed transition matrix in the order of the layout; its summands are joined, row by row.

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
    rows : Rows
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
    rows: Rows
    scale: ScoreArray
    unscale: ScoreArray
    loops: ScoreArray
    chunks: Int64Array
    active_chunks: int


def lay_out(transition: Transition, precision: Precision) -> Layout:
    """Reorder a transition for the CPU kernels; one pass over the entries.

    The layout is a copy anyway, so two summands (both directions) become one: rows of an undirected graph are short,
    and each row twice would cost a third more time. Under the ``self`` rule a dangling node keeps its mass: it gets an
    entry to itself and is an active row like any other.

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
    summands = list(transition.products)
    if transition.dangling == "self" and len(transition.dangling_nodes):
        summands.append(_loops(transition, weighted=summands[0].probabilities is not None))
    rows = _join(summands, node_at, place, precision)
    scale = np.ones(nodes, dtype=precision)
    unscale = np.ones(nodes, dtype=precision)
    if transition.products[0].probabilities is None:
        inverse: Float64Array = transition.inverse_out_weight[node_at]
        passes_on = inverse > 0
        scale[passes_on] = inverse[passes_on]
        unscale[passes_on] = np.rint(1.0 / inverse[passes_on])
    cost = rows.offsets + ROW_COST * np.arange(nodes + 1)
    first, rest = _cut(cost, 0, active), _cut(cost, active, nodes)
    return Layout(
        nodes=nodes,
        active=active,
        node_at=node_at,
        place=place,
        rows=rows,
        scale=scale,
        unscale=unscale,
        loops=_diagonal(rows, scale),
        chunks=np.concatenate((first, rest[1:])),
        active_chunks=len(first) - 1,
    )


def _loops(transition: Transition, *, weighted: bool) -> SparseRows:
    """An entry from each dangling node to itself."""
    dangling = transition.dangling_nodes
    offsets = np.zeros(transition.nodes + 1, dtype=np.int64)
    offsets[dangling + 1] = 1
    return SparseRows(np.cumsum(offsets), dangling, np.ones(len(dangling)) if weighted else None)


def _join(summands: list[SparseRows], node_at: Int32Array, place: Int32Array, precision: Precision) -> Rows:
    """Move whole rows, those of the first summand before those of the next; entries stay in their order."""
    lengths = [np.diff(summand.offsets)[node_at] for summand in summands]
    offsets = offsets_of(sum(lengths))
    entries = int(offsets[-1])
    columns = np.empty(entries + AHEAD, dtype=np.int32)
    columns[entries:] = 0
    values = None if summands[0].probabilities is None else np.empty(entries, dtype=precision)
    threads = get_num_threads()
    bounds = np.searchsorted(offsets, entries * np.arange(threads + 1) // threads)
    bounds[-1] = len(node_at)
    starts = offsets[:-1].copy()
    for summand, length in zip(summands, lengths, strict=True):
        probabilities = None if summand.probabilities is None else mapped(summand.probabilities)
        source, indices = mapped(summand.offsets), mapped(summand.columns)
        _copy_rows(source, indices, probabilities, node_at, place, starts, columns, values, bounds)
        starts += length
    return Rows(offsets=offsets, columns=columns, values=values)


def _diagonal(rows: Rows, scale: ScoreArray) -> ScoreArray:
    """Sum of the entries that lead from a row to itself."""
    diagonal = np.zeros_like(scale)
    _add_loops(rows.offsets, rows.columns, rows.values, scale, diagonal)
    return diagonal


@compiled(parallel=True)
def _copy_rows(
    offsets: Any,
    columns: Any,
    values: Any,
    node_at: Any,
    place: Any,
    starts: Any,
    out_columns: Any,
    out_values: Any,
    bounds: Any,
) -> None:
    """Copy the row of node ``node_at[row]`` to ``starts[row]``, for all rows; `bounds` shares them out."""
    for share in prange(bounds.shape[0] - 1):
        for row in range(bounds[share], bounds[share + 1]):
            first, begin = offsets[node_at[row]], starts[row]
            for i in range(offsets[node_at[row] + 1] - first):
                out_columns[begin + i] = place[columns[first + i]]
                if values is not None:
                    out_values[begin + i] = values[first + i]


@compiled(parallel=True)
def _add_loops(offsets: Any, columns: Any, values: Any, scale: Any, diagonal: Any) -> None:
    for row in prange(diagonal.shape[0]):
        for entry in range(offsets[row], offsets[row + 1]):
            if columns[entry] == row:
                diagonal[row] += scale[row] if values is None else values[entry]


def _cut(cost: Int64Array, first: int, last: int) -> Int64Array:
    """Bounds of chunks of about equal cost between two rows; no chunks where there are no rows."""
    if first == last:
        return np.array([first], dtype=np.int64)
    pieces = max(1, int((cost[last] - cost[first]) // CHUNK_COST))
    targets = cost[first] + (cost[last] - cost[first]) * np.arange(1, pieces) // pieces
    inner = first + np.searchsorted(cost[first : last + 1], targets)
    return np.unique(np.concatenate(([first], inner, [last]))).astype(np.int64)
