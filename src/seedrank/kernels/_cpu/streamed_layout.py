"""The layout of a graph that memory does not hold: written once to a store of slabs, read again for every product."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numba import get_num_threads

from seedrank.kernels._cpu.compiled import mapped
from seedrank.kernels._cpu.gather import AHEAD
from seedrank.kernels._cpu.layout import Layout, Slab
from seedrank.kernels._cpu.row_order import RowOrder, add_loops, copy_rows, row_chunks, row_order, row_scales
from seedrank.kernels.arrays import Float64Array, Int32Array, Int64Array, Precision, ScoreArray
from seedrank.kernels.backends.slab_store import SlabStore
from seedrank.kernels.runs import offsets_of
from seedrank.kernels.selected_entries import SelectedEntries
from seedrank.kernels.streamed_transition import StreamedTransition

_Summand = tuple[SelectedEntries, Float64Array | None]


@dataclass
class StreamedRows:
    """`Rows` whose entries are in a store, in slabs of whole chunks.

    Attributes
    ----------
    offsets : int64 (n + 1)
    weighted : bool
    store : SlabStore
    bounds : list of (first chunk, last chunk)
        The slabs, in order; one of them ends where the dangling rows begin.
    chunks : int64 (c + 1)
        As in `Layout`.
    """

    offsets: Int64Array
    weighted: bool
    store: SlabStore
    bounds: list[tuple[int, int]]
    chunks: Int64Array
    resident: bool = field(default=False, init=False)
    # Passes that may go either way turn at the end: what was read last is still in the system's cache.
    _backwards: bool = field(default=False, init=False)

    def slabs(self, last_chunk: int, *, ascending: bool) -> Iterator[Slab]:
        """Read slab after slab; each is good until the next is asked for."""
        bounds = [(first, last) for first, last in self.bounds if last <= last_chunk]
        if not ascending and self._backwards:
            bounds.reverse()
        self._backwards = ascending or not self._backwards
        edges = [
            (int(self.offsets[self.chunks[first]]), int(self.offsets[self.chunks[last]])) for first, last in bounds
        ]
        slabs = self.store.slabs(edges, padding=AHEAD)
        for (first, last), (begin, _), (columns, values) in zip(bounds, edges, slabs, strict=True):
            yield Slab(first, last, begin, columns, values)


def stream_layout(
    transition: StreamedTransition, precision: Precision, store: SlabStore, *, slab_entries: int
) -> Layout:
    """Write the layout of a transition into a store, range after range: that of `lay_out`, to the last bit.

    Parameters
    ----------
    transition : StreamedTransition
    precision : "float32" or "float64"
    store : SlabStore
        Empty.
    slab_entries : int
        Most entries of a slab, unless one chunk has more (a chunk holds at least one row). No effect on results.

    Returns
    -------
    Layout
        With arrays of the length of the nodes only.
    """
    order = row_order(transition.nodes, transition.dangling_nodes, transition.dangling)
    lengths = transition.lengths
    keeps = transition.dangling == "self"
    if keeps:
        lengths = lengths.copy()
        lengths[transition.dangling_nodes] += 1
    offsets = offsets_of(lengths[order.node_at])
    scale, unscale = row_scales(transition.inverse_out_weight, order.node_at, precision, weighted=transition.weighted)
    chunks, active_chunks = row_chunks(offsets, order.active)
    loops = np.zeros_like(scale)
    for first, last in transition.ranges():
        summands: list[_Summand] = transition.read(first, last)
        if keeps:
            summands.append(_kept(transition, first, last))
        _write_range(first, last, summands, order, offsets, scale, loops, store)
    return Layout(
        nodes=transition.nodes,
        active=order.active,
        node_at=order.node_at,
        place=order.place,
        rows=StreamedRows(
            offsets=offsets,
            weighted=transition.weighted,
            store=store,
            bounds=_slab_bounds(offsets, chunks, active_chunks, slab_entries),
            chunks=chunks,
        ),
        scale=scale,
        unscale=unscale,
        loops=loops,
        chunks=chunks,
        active_chunks=active_chunks,
    )


def _kept(transition: StreamedTransition, first: int, last: int) -> _Summand:
    """An entry from each dangling node of a range to itself."""
    begin, end = np.searchsorted(transition.dangling_nodes, [first, last])
    nodes = transition.dangling_nodes[begin:end]
    lengths = np.zeros(last - first, dtype=np.int64)
    lengths[nodes - first] = 1
    return SelectedEntries(offsets_of(lengths), nodes, None), np.ones(len(nodes)) if transition.weighted else None


def _write_range(
    first: int,
    last: int,
    summands: list[_Summand],
    order: RowOrder,
    offsets: Int64Array,
    scale: ScoreArray,
    loops: ScoreArray,
    store: SlabStore,
) -> None:
    """Write the rows of the nodes ``first`` to ``last - 1``: active ones lie together, and dangling ones."""
    place = order.place[first:last]
    weighted = summands[0][1] is not None
    threads = get_num_threads()
    for side in (place < order.active, place >= order.active):
        nodes: Int32Array = np.flatnonzero(side).astype(np.int32)
        if not len(nodes):
            continue
        row = int(place[nodes[0]])
        begins = offsets[row : row + len(nodes) + 1] - offsets[row]
        entries = int(begins[-1])
        columns: Int32Array = np.empty(entries, dtype=np.int32)
        values: ScoreArray | None = np.empty(entries, dtype=scale.dtype) if weighted else None
        bounds = np.searchsorted(begins, entries * np.arange(threads + 1) // threads)
        bounds[-1] = len(nodes)
        starts = begins[:-1].copy()
        for part, probabilities in summands:
            copy_rows(
                mapped(part.offsets), mapped(part.columns), None if probabilities is None else mapped(probabilities),
                nodes, order.place, starts, columns, values, bounds,
            )  # fmt: skip
            starts += np.diff(part.offsets)[nodes]
        rows = slice(row, row + len(nodes))
        add_loops(begins, columns, values, scale[rows], row, loops[rows])
        store.write(int(offsets[row]), columns, values)


def _slab_bounds(
    offsets: Int64Array, chunks: Int64Array, active_chunks: int, slab_entries: int
) -> list[tuple[int, int]]:
    """Join neighboring chunks while they fit a slab; active and dangling rows are never in one."""
    ends = offsets[chunks]
    bounds = []
    for begin, end in ((0, active_chunks), (active_chunks, len(chunks) - 1)):
        first = begin
        while first < end:
            last = int(np.searchsorted(ends, ends[first] + slab_entries, side="right")) - 1
            last = min(max(last, first + 1), end)
            bounds.append((first, last))
            first = last
    return bounds
