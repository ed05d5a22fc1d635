"""The rows that sparse columns push along: all of them in memory, or those of a step read for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from seedrank.kernels._cpu.compiled import mapped
from seedrank.kernels.arrays import Float64Array, Int32Array, Int64Array
from seedrank.kernels.runs import gather
from seedrank.kernels.streamed_transition import RANGE_ENTRIES, EntrySource, StreamedTransition
from seedrank.kernels.transition import Transition

GAP = 1 << 14
"""Entries between two rows that are read with them: as fast as two readings of a disk (128 kB at 8 bytes)."""


class PushedGraph(NamedTuple):
    """The arguments of `push_columns` that say what the graph is, in order."""

    out_weight: Any
    keeps: bool
    offsets: Any
    neighbors: Any
    weights: Any
    types: Any
    factors: Any
    more_offsets: Any
    more_neighbors: Any
    more_weights: Any
    more_types: Any


class PushedRows(Protocol):
    """The outgoing rows of a transition.

    Attributes
    ----------
    out_weight : float64 (n)
    starts : list of int64 (n + 1)
        Offsets of the rows, a direction each.
    most_entries : int
        Entries that `of` should be asked for at a time.
    """

    @property
    def out_weight(self) -> Float64Array: ...
    @property
    def starts(self) -> list[Int64Array]: ...
    @property
    def most_entries(self) -> int: ...
    def of(self, nodes: Int32Array) -> PushedGraph:
        """Return a graph that has the rows of these nodes at least; good until the next call."""
        ...


def pushed_rows(transition: Transition | StreamedTransition) -> PushedRows:
    """Take the outgoing rows of a transition, or the places where they are read."""
    return _StreamedRows(transition) if isinstance(transition, StreamedTransition) else _resident(transition)


@dataclass(frozen=True)
class _ResidentRows:
    """All rows."""

    graph: PushedGraph
    starts: list[Int64Array]
    most_entries: int = 1 << 62

    @property
    def out_weight(self) -> Float64Array:
        weights: Float64Array = self.graph.out_weight
        return weights

    def of(self, nodes: Int32Array) -> PushedGraph:
        return self.graph


def _resident(transition: Transition) -> _ResidentRows:
    first, more = transition.outgoing[0], transition.outgoing[-1].adjacency
    alone = len(transition.outgoing) == 1
    graph = PushedGraph(
        out_weight=mapped(transition.out_weight),
        keeps=transition.dangling == "self",
        offsets=mapped(first.adjacency.offsets),
        neighbors=mapped(first.adjacency.neighbors),
        weights=_optional(first.adjacency.weights, np.float64),
        types=_optional(first.adjacency.types, np.uint8),
        factors=_optional(first.factors, np.float64),
        # Zeros that are never written take no memory.
        more_offsets=mapped(np.zeros(len(more.offsets), dtype=np.int64) if alone else more.offsets),
        more_neighbors=mapped(more.neighbors),
        more_weights=_optional(more.weights, np.float64),
        more_types=_optional(more.types, np.uint8),
    )
    return _ResidentRows(graph, [rows.adjacency.offsets for rows in transition.outgoing])


class _StreamedRows:
    """The rows of a step, side by side, at offsets of the length of the graph: kernels see no difference."""

    def __init__(self, transition: StreamedTransition) -> None:
        self.out_weight: Float64Array = transition.out_weight
        self.starts = [rows.source.offsets for rows in transition.outgoing]
        self.most_entries = transition.range_entries
        self._keeps = transition.dangling == "self"
        self._outgoing = transition.outgoing
        # Only the places of rows that were read are ever looked at, so the others may hold anything.
        self._offsets = [np.zeros(transition.nodes + 1, dtype=np.int64) for _ in transition.outgoing]
        self._no_rows = np.zeros(transition.nodes + 1, dtype=np.int64)

    def of(self, nodes: Int32Array) -> PushedGraph:
        wanted: Int64Array = np.unique(nodes).astype(np.int64)
        read = [
            _read_rows(rows.source, wanted, offsets)
            for rows, offsets in zip(self._outgoing, self._offsets, strict=True)
        ]
        (neighbors, weights, types), more = read[0], read[-1]
        alone = len(read) == 1
        return PushedGraph(
            out_weight=mapped(self.out_weight),
            keeps=self._keeps,
            offsets=mapped(self._offsets[0]),
            neighbors=mapped(neighbors),
            weights=_optional(weights, np.float64),
            types=_optional(types, np.uint8),
            factors=_optional(self._outgoing[0].factors, np.float64),
            more_offsets=mapped(self._no_rows if alone else self._offsets[-1]),
            more_neighbors=mapped(more[0]),
            more_weights=_optional(more[1], np.float64),
            more_types=_optional(more[2], np.uint8),
        )


_Entries = tuple[Int32Array, Float64Array | None, np.ndarray[Any, Any] | None]


def _read_rows(source: EntrySource, nodes: Int64Array, offsets: Int64Array) -> _Entries:
    """Read the rows of some nodes (ascending); ``offsets[node]`` and ``offsets[node + 1]`` become their bounds."""
    starts = source.offsets
    begins, ends = starts[nodes], starts[nodes + 1]
    # Rows lie side by side in the order of the nodes, so the end of one may be the begin of the next.
    bounds = np.concatenate(([0], np.cumsum(ends - begins)))
    offsets[nodes], offsets[nodes + 1] = bounds[:-1], bounds[1:]
    pieces: list[_Entries] = []
    gaps = np.append(np.flatnonzero(begins[1:] - ends[:-1] > GAP) + 1, len(nodes))
    at = 0
    while at < len(nodes):
        # As far as the next gap, and as one reading may bring in.
        fits = int(np.searchsorted(ends, begins[at] + RANGE_ENTRIES, side="right"))
        end = min(max(fits, at + 1), int(gaps[np.searchsorted(gaps, at, side="right")]))
        first, last = int(begins[at]), int(ends[end - 1])
        arrays = source.read(first, last)
        if last - first > bounds[end] - bounds[at]:
            _, entries = gather(starts, nodes[at:end])
            arrays = _take(arrays, entries - first)
        pieces.append(arrays)
        at = end
    return _joined(pieces) if pieces else source.read(0, 0)


def _take(arrays: _Entries, entries: Int64Array) -> _Entries:
    neighbors, weights, types = arrays
    return neighbors[entries], None if weights is None else weights[entries], None if types is None else types[entries]


def _joined(pieces: list[_Entries]) -> _Entries:
    if len(pieces) == 1:
        return pieces[0]
    neighbors, weights, types = zip(*pieces, strict=True)
    return (
        np.concatenate(neighbors),
        None if weights[0] is None else np.concatenate(weights),
        None if types[0] is None else np.concatenate(types),
    )


def _optional(array: np.ndarray[Any, Any] | None, dtype: type[np.generic]) -> Any:
    """An array that may be missing: then one of length 0."""
    return mapped(np.zeros(0, dtype=dtype) if array is None else array)
