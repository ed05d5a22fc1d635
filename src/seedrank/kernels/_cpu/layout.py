"""The graph as the CPU kernels want it: rows that pass mass on first, one product, work cut into equal chunks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numba import get_num_threads

from seedrank.kernels._cpu.compiled import mapped
from seedrank.kernels._cpu.gather import AHEAD
from seedrank.kernels._cpu.row_order import add_loops, copy_rows, row_chunks, row_order, row_scales
from seedrank.kernels.arrays import Int32Array, Int64Array, Precision, ScoreArray
from seedrank.kernels.runs import offsets_of
from seedrank.kernels.transition import SparseRows, Transition


class Slab(NamedTuple):
    """Chunks of rows that are computed together, with their entries.

    Attributes
    ----------
    first_chunk, last_chunk : int
        Range of chunks of the layout.
    first_entry : int
        Entry of the whole matrix at which the arrays begin.
    columns : int32
        At least `AHEAD` longer than the entries: that is prefetched, never added.
    values : float32 or float64, or None
    """

    first_chunk: int
    last_chunk: int
    first_entry: int
    columns: Int32Array
    values: ScoreArray | None


class Rows(Protocol):
    """The transposed transition matrix in the order of the layout; its summands are joined, row by row.

    Attributes
    ----------
    offsets : int64 (n + 1)
    weighted : bool
        Whether entries carry transition probabilities; else the block is pre-divided by the out-weights.
    resident : bool
        Whether all is one slab in memory.
    """

    @property
    def offsets(self) -> Int64Array: ...
    @property
    def weighted(self) -> bool: ...
    @property
    def resident(self) -> bool: ...
    def slabs(self, last_chunk: int, *, ascending: bool) -> Iterator[Slab]:
        """Go through the first `last_chunk` chunks once; in any order of the slabs unless `ascending`."""
        ...


@dataclass(frozen=True)
class ResidentRows:
    """`Rows` that are in memory: one slab.

    Attributes
    ----------
    offsets : int64 (n + 1)
    columns : int32 (m + AHEAD)
    values : float32 or float64 (m), or None
    """

    offsets: Int64Array
    columns: Int32Array
    values: ScoreArray | None
    resident: bool = True

    @property
    def weighted(self) -> bool:
        """Whether there are values."""
        return self.values is not None

    def slabs(self, last_chunk: int, *, ascending: bool) -> Iterator[Slab]:
        """Yield everything."""
        yield Slab(0, last_chunk, 0, self.columns, self.values)


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
    order = row_order(transition.nodes, transition.dangling_nodes, transition.dangling)
    summands = list(transition.products)
    weighted = summands[0].probabilities is not None
    if transition.dangling == "self" and len(transition.dangling_nodes):
        summands.append(_loops(transition, weighted=weighted))
    rows = _join(summands, order.node_at, order.place, precision)
    scale, unscale = row_scales(transition.inverse_out_weight, order.node_at, precision, weighted=weighted)
    chunks, active_chunks = row_chunks(rows.offsets, order.active)
    loops = np.zeros_like(scale)
    add_loops(rows.offsets, rows.columns, rows.values, scale, 0, loops)
    return Layout(
        nodes=transition.nodes,
        active=order.active,
        node_at=order.node_at,
        place=order.place,
        rows=rows,
        scale=scale,
        unscale=unscale,
        loops=loops,
        chunks=chunks,
        active_chunks=active_chunks,
    )


def _loops(transition: Transition, *, weighted: bool) -> SparseRows:
    """An entry from each dangling node to itself."""
    dangling = transition.dangling_nodes
    offsets = np.zeros(transition.nodes + 1, dtype=np.int64)
    offsets[dangling + 1] = 1
    return SparseRows(np.cumsum(offsets), dangling, np.ones(len(dangling)) if weighted else None)


def _join(summands: list[SparseRows], node_at: Int32Array, place: Int32Array, precision: Precision) -> ResidentRows:
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
        copy_rows(source, indices, probabilities, node_at, place, starts, columns, values, bounds)
        starts += length
    return ResidentRows(offsets=offsets, columns=columns, values=values)
