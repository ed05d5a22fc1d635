"""In which order the CPU kernels compute the rows of a transition, what they scale them with, where they cut them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import prange

from seedrank.kernels._cpu.compiled import compiled
from seedrank.kernels.arrays import DanglingRule, Float64Array, Int32Array, Int64Array, Precision, ScoreArray

CHUNK_COST = 65_536
"""Entries (a row counts 8 more) that are summed before a thread takes its next chunk. Fixed: sums follow it."""

ROW_COST = 8


@dataclass(frozen=True)
class RowOrder:
    """Rows that pass mass on first.

    Attributes
    ----------
    active : int
        How many they are; the rest are dangling.
    node_at : int32 (n)
        Internal node of each row; `place` (n) is the inverse.
    """

    active: int
    node_at: Int32Array
    place: Int32Array


def row_order(nodes: int, dangling_nodes: Int32Array, rule: DanglingRule) -> RowOrder:
    """Order the rows; under the ``self`` rule a dangling node keeps its mass and is an active row like any other."""
    dangling = np.zeros(nodes, dtype=np.bool_)
    if rule != "self":
        dangling[dangling_nodes] = True
    node_at = np.concatenate((np.flatnonzero(~dangling), np.flatnonzero(dangling))).astype(np.int32)
    place = np.empty(nodes, dtype=np.int32)
    place[node_at] = np.arange(nodes, dtype=np.int32)
    return RowOrder(nodes - int(np.count_nonzero(dangling)), node_at, place)


def row_scales(
    inverse_out_weight: Float64Array, node_at: Int32Array, precision: Precision, *, weighted: bool
) -> tuple[ScoreArray, ScoreArray]:
    """What each row is multiplied with when it is stored, and the inverse; 1 where entries carry probabilities."""
    scale: ScoreArray = np.ones(len(node_at), dtype=precision)
    if weighted:
        return scale, scale
    unscale: ScoreArray = np.ones(len(node_at), dtype=precision)
    inverse: Float64Array = inverse_out_weight[node_at]
    passes_on = inverse > 0
    scale[passes_on] = inverse[passes_on]
    unscale[passes_on] = np.rint(1.0 / inverse[passes_on])
    return scale, unscale


def row_chunks(offsets: Int64Array, active: int) -> tuple[Int64Array, int]:
    """Bounds of chunks of about equal cost, int64 (c + 1), and how many of them are the active rows."""
    cost = offsets + ROW_COST * np.arange(len(offsets))
    first, rest = _cut(cost, 0, active), _cut(cost, active, len(offsets) - 1)
    return np.concatenate((first, rest[1:])), len(first) - 1


def _cut(cost: Int64Array, first: int, last: int) -> Int64Array:
    """Bounds of chunks of about equal cost between two rows; no chunks where there are no rows."""
    if first == last:
        return np.array([first], dtype=np.int64)
    pieces = max(1, int((cost[last] - cost[first]) // CHUNK_COST))
    targets = cost[first] + (cost[last] - cost[first]) * np.arange(1, pieces) // pieces
    inner = first + np.searchsorted(cost[first : last + 1], targets)
    return np.unique(np.concatenate(([first], inner, [last]))).astype(np.int64)


@compiled(parallel=True)
def copy_rows(
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
def add_loops(offsets: Any, columns: Any, values: Any, scale: Any, first_row: int, diagonal: Any) -> None:
    """Sum the entries that lead from a row to itself; `offsets`, `scale` and `diagonal` begin at `first_row`."""
    for row in prange(diagonal.shape[0]):
        for entry in range(offsets[row], offsets[row + 1]):
            if columns[entry] == first_row + row:
                diagonal[row] += scale[row] if values is None else values[entry]
