"""The graph as walks and traversals follow it: one direction, removed types left out, weights as stored."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seedrank.kernels.arrays import BoolArray, Direction, Float64Array, Int32Array, Int64Array, UnsignedArray
from seedrank.kernels.building.adjacency import Adjacency
from seedrank.kernels.runs import offsets_of


@dataclass(frozen=True)
class FollowedRows:
    """Edges that can be followed, compressed by node; neighbours sorted by tie rank, then by type code.

    Attributes
    ----------
    offsets : int64 (n + 1)
    neighbors : int32 (m)
        Internal nodes.
    weights : float64 (m) or None
        As stored, without type weights; None: all exactly 1.
    types : unsigned integer (m) or None
        Type codes; None: untyped.
    reversed : bool
        Whether these edges are followed against their direction, from destination to source.
    """

    offsets: Int64Array
    neighbors: Int32Array
    weights: Float64Array | None
    types: UnsignedArray | Int32Array | None
    reversed: bool


@dataclass(frozen=True)
class RecallGraph:
    """What walks, traversals and paths see of a graph: read-only arrays, no ids, no options.

    Attributes
    ----------
    nodes : int
    order : int32 (n)
        ``order[internal node]`` = tie rank.
    rows : tuple of FollowedRows
        Row u lists the nodes that one step from u leads to. One element, or two for both directions: successors,
        then predecessors (without self loops, which the successors have).
    incoming : tuple of FollowedRows
        The same steps from their other end: row v lists the nodes from which one step leads to v, whatever a self
        loop counts.
    type_weights : float64 (types) or None
        By type code, >= 0, at most 1 and scaled by a power of two; None: all remaining types weigh the same.
    """

    nodes: int
    order: Int32Array
    rows: tuple[FollowedRows, ...]
    incoming: tuple[FollowedRows, ...]
    type_weights: Float64Array | None


def build_recall_graph(
    by_source: Adjacency,
    by_destination: Adjacency,
    order: Int32Array,
    *,
    direction: Direction,
    type_weights: Float64Array | None,
) -> RecallGraph:
    """Apply direction and type weights to the two adjacencies of a graph.

    ``out`` follows source → target, ``in`` the reverse, ``both`` either way, a self loop counted once and a pair that
    is listed in both directions twice. A type weight of 0 removes the edges of the type. Arrays from which nothing is
    removed are used as they are (mapped from disk); otherwise they are copied in one pass.

    Parameters
    ----------
    by_source, by_destination : Adjacency
        The same edges, rows = sources and rows = destinations.
    order : int32 (n)
        Internal node → tie rank.
    direction : "out", "in" or "both"
    type_weights : float64 (types) or None
        Finite, >= 0, by type code; None: all 1. Without effect on an untyped graph.

    Returns
    -------
    RecallGraph
    """
    factors = None if type_weights is None or by_source.types is None else _scaled_down(type_weights)
    kept = None if factors is None or bool(factors.all()) else factors > 0
    outgoing = _without(by_source, kept, loops=True)
    arriving = _without(by_destination, kept, loops=direction != "both")
    along = (_rows(outgoing, against=False), _rows(arriving, against=False))
    against = (_rows(arriving, against=True), _rows(outgoing, against=True))
    ways = {"out": (along,), "in": (against,), "both": (along, against)}[direction]
    alike = factors is None or len(np.unique(factors[factors > 0])) <= 1
    return RecallGraph(
        nodes=by_source.nodes,
        order=order,
        rows=tuple(leaving for leaving, _ in ways),
        incoming=tuple(entering for _, entering in ways),
        type_weights=None if alike else factors,
    )


def _scaled_down(type_weights: Float64Array) -> Float64Array:
    """Scale by a power of two to at most 1: exact, and weight × type weight cannot overflow."""
    exponent = int(np.frexp(type_weights.max(initial=0.0))[1])
    return np.ldexp(type_weights, -max(exponent, 0))


def _rows(adjacency: Adjacency, *, against: bool) -> FollowedRows:
    return FollowedRows(adjacency.offsets, adjacency.neighbors, adjacency.weights, adjacency.types, against)


def _without(adjacency: Adjacency, kept_types: BoolArray | None, *, loops: bool) -> Adjacency:
    """Leave out entries of types that are not kept and, unless `loops`, self loops; unchanged if there are none."""
    keep = None if kept_types is None or adjacency.types is None else kept_types[adjacency.types]
    if not loops:
        node = np.repeat(np.arange(adjacency.nodes, dtype=np.int32), np.diff(adjacency.offsets))
        no_loop = node != adjacency.neighbors
        keep = no_loop if keep is None else keep & no_loop
    if keep is None or bool(keep.all()):
        return adjacency
    kept_before = offsets_of(keep)
    return Adjacency(
        offsets=kept_before[adjacency.offsets],
        neighbors=adjacency.neighbors[keep],
        weights=None if adjacency.weights is None else adjacency.weights[keep],
        types=None if adjacency.types is None else adjacency.types[keep],
    )
