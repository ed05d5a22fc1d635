"""One step of a vector that is zero nearly everywhere: its few nodes push their mass along their edges."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from seedrank.kernels._cpu.compiled import compiled


@compiled(inline=True)
def _place_of(table: Any, nodes: Any, node: Any) -> Any:
    """Slot of a node in an open-addressed table of positions in `nodes`, or the free slot where it belongs."""
    mask = table.shape[0] - 1
    slot = (node * 2_654_435_761 >> 8) & mask
    while table[slot] >= 0 and nodes[table[slot]] != node:
        slot = (slot + 1) & mask
    return slot


@compiled(inline=True)
def _add(table: Any, nodes: Any, sums: Any, count: int, node: int, amount: float) -> int:
    slot = _place_of(table, nodes, node)
    if table[slot] < 0:
        table[slot] = count
        nodes[count] = node
        sums[count] = amount
        return count + 1
    sums[table[slot]] += amount
    return count


@compiled()
def _push_entries(
    offsets: Any,
    neighbors: Any,
    weights: Any,
    types: Any,
    factors: Any,
    drop_loops: bool,
    node: int,
    value: float,
    out_weight: float,
    table: Any,
    nodes: Any,
    sums: Any,
    count: int,
) -> int:
    """Give every neighbor its share of a node's value."""
    for entry in range(offsets[node], offsets[node + 1]):
        neighbor = neighbors[entry]
        if drop_loops and neighbor == node:
            continue
        weight = 1.0 if weights.shape[0] == 0 else weights[entry]
        if factors.shape[0] > 0:
            factor = factors[types[entry]]
            if factor == 0.0:
                continue
            weight *= factor
        # Not value / out-weight first: of a tiny out-weight that overflows.
        count = _add(table, nodes, sums, count, neighbor, value * (weight / out_weight))
    return count


@compiled(parallel=True)
def push_columns(
    bounds: Any,
    nodes: Any,
    values: Any,
    seed_bounds: Any,
    seed_nodes: Any,
    seed_amounts: Any,
    damping: float,
    out_weight: Any,
    keeps: bool,
    offsets: Any,
    neighbors: Any,
    weights: Any,
    types: Any,
    factors: Any,
    more_offsets: Any,
    more_neighbors: Any,
    more_weights: Any,
    more_types: Any,
    following_bounds: Any,
    following_nodes: Any,
    following_values: Any,
    counts: Any,
    mass: Any,
    dangling_mass: Any,
    difference: Any,
) -> None:
    """Replace each column's v by α Pᵀ v + restart, all of them as lists of nodes; sums are added in float64.

    A column is computed by one thread, in the order of its list and of the graph's entries: what comes out depends on
    nothing but the column.

    Parameters
    ----------
    bounds, nodes, values : int64 (b + 1), int32, float32 or float64
        Column c is the nodes ``nodes[bounds[c]:bounds[c + 1]]``, each once.
    seed_bounds, seed_nodes, seed_amounts : int64 (b + 1), int32, float64
        What the seeds of each column get.
    damping : float
        α.
    out_weight : float64 (n)
    keeps : bool
        Whether a node of out-weight 0 keeps its mass (the ``self`` rule).
    offsets, neighbors, weights, types, factors : int64 (n + 1), int32 (m), float64 (m or 0), unsigned (m), float64
        Outgoing entries; no weights: 1 each; `factors` by type code, none: 1 each. ``more_*``: a second direction with
        the same factors, without self loops.
    following_bounds, following_nodes, following_values, counts : int64 (b + 1), int32, float, int64 (b)
        The new lists: room for everything that may arrive, and how much of it is used.
    mass, dangling_mass, difference : float64 (b)
        Sums of the new values, of those that no node passes on or keeps, and of ``|new - old|``.
    """
    for column in prange(counts.shape[0]):
        first, last = following_bounds[column], following_bounds[column + 1]
        reached, stored = following_nodes[first:last], following_values[first:last]
        size = 16
        while size < 2 * (last - first):
            size *= 2
        table = np.full(size, -1, np.int32)
        sums = np.empty(last - first, np.float64)
        count = 0
        for i in range(bounds[column], bounds[column + 1]):
            node, value = nodes[i], np.float64(values[i])
            if out_weight[node] > 0:
                count = _push_entries(
                    offsets, neighbors, weights, types, factors, False, node, value, out_weight[node], table, reached,
                    sums, count,
                )  # fmt: skip
                count = _push_entries(
                    more_offsets, more_neighbors, more_weights, more_types, factors, True, node, value,
                    out_weight[node], table, reached, sums, count,
                )  # fmt: skip
            elif keeps:
                count = _add(table, reached, sums, count, node, value)
        for i in range(count):
            sums[i] *= damping
        for i in range(seed_bounds[column], seed_bounds[column + 1]):
            count = _add(table, reached, sums, count, seed_nodes[i], seed_amounts[i])
        counts[column] = count
        total, stuck, change = 0.0, 0.0, 0.0
        before = np.zeros(count, np.float64)
        for i in range(bounds[column], bounds[column + 1]):
            slot = _place_of(table, reached, nodes[i])
            if table[slot] < 0:
                change += values[i]
            else:
                before[table[slot]] = values[i]
        for i in range(count):
            stored[i] = sums[i]
            total += stored[i]
            change += abs(stored[i] - before[i])
            if not keeps and out_weight[reached[i]] == 0:
                stuck += stored[i]
        mass[column], dangling_mass[column], difference[column] = total, stuck, change
