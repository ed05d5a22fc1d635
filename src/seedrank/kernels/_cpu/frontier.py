"""Columns that are still zero nearly everywhere: lists of few nodes, pushed instead of swept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from seedrank.kernels._cpu.push import push_columns
from seedrank.kernels._cpu.pushed_rows import pushed_rows
from seedrank.kernels.arrays import BoolArray, Float64Array, Int32Array, Int64Array, Precision, ScoreArray
from seedrank.kernels.backend import QueryBlock
from seedrank.kernels.runs import offsets_of, slices_within
from seedrank.kernels.streamed_transition import StreamedTransition
from seedrank.kernels.transition import Transition

ENTRIES_SHARE = 1024
"""A column is pushed while that touches at most this fraction of the graph's entries: then it costs less than its part
of a product, which it saves where all columns of the block are pushed."""


class Column(NamedTuple):
    """A column in full: its position in the block, and its nodes with their scores."""

    position: int
    nodes: Int32Array
    values: ScoreArray


@dataclass
class _Lists:
    """Sparse columns, one after the other: column c is entries ``bounds[c]`` to ``bounds[c + 1]``."""

    bounds: Int64Array
    nodes: Int32Array
    values: ScoreArray | Float64Array

    def slice(self, first: int, last: int) -> _Lists:
        """Consecutive columns, without a copy of what they hold."""
        begin, end = self.bounds[first], self.bounds[last]
        return _Lists(self.bounds[first : last + 1] - begin, self.nodes[begin:end], self.values[begin:end])

    def take(self, chosen: BoolArray) -> _Lists:
        """Keep some columns."""
        lengths = np.diff(self.bounds)
        entries = np.repeat(chosen, lengths)
        return _Lists(offsets_of(lengths[chosen]), self.nodes[entries], self.values[entries])


class PushReport(NamedTuple):
    """Sums of the pushed columns: their positions, mass, mass on dangling nodes, and L1 difference to before."""

    positions: Int64Array
    mass: Float64Array
    dangling_mass: Float64Array
    difference: Float64Array


class Frontier:
    """The sparse columns of a block.

    A column stays here until a step of it would touch too much of the graph; when that is depends on the column alone,
    and so does every number of it. It never comes back.

    Parameters
    ----------
    transition : Transition
    precision : "float32" or "float64"
        In which values are stored between steps.
    """

    def __init__(self, transition: Transition | StreamedTransition, precision: Precision) -> None:
        # Not the transition itself: its products would stay in memory beside those of the layout.
        self._dangling = transition.dangling
        self._precision: Precision = precision
        self._most_entries = transition.entries // ENTRIES_SHARE
        self._rows = pushed_rows(transition)
        self.positions: Int64Array = np.zeros(0, dtype=np.int64)

    def start(self, block: QueryBlock) -> None:
        """Take over all columns of a block, v⁰ = s; none under the ``uniform`` rule, which reaches every node."""
        self._seeds = _Lists(block.seed_offsets, block.seed_nodes, block.seed_weights)
        self._lists = _Lists(block.seed_offsets, block.seed_nodes, block.seed_weights.astype(self._precision))
        self.positions = np.arange(block.width)
        self._dangling_mass = np.zeros(block.width)
        stuck = self._rows.out_weight[block.seed_nodes] == 0
        column = np.repeat(self.positions, np.diff(block.seed_offsets))
        np.add.at(self._dangling_mass, column[stuck], block.seed_weights[stuck])

    def grown(self) -> BoolArray:
        """Tell which columns have become too wide to be pushed once more."""
        if self._dangling == "uniform":
            return np.ones(len(self.positions), dtype=np.bool_)
        return self._entries() > self._most_entries

    def release(self, chosen: BoolArray) -> list[Column]:
        """Give up some columns, for good."""
        columns = [
            Column(
                int(self.positions[c]),
                self._lists.nodes[self._lists.bounds[c] : self._lists.bounds[c + 1]],
                self._lists.values[self._lists.bounds[c] : self._lists.bounds[c + 1]],
            )
            for c in np.flatnonzero(chosen)
        ]
        self._take(~chosen)
        return columns

    def keep(self, positions: Int64Array) -> None:
        """Keep the columns at these positions of the block (ascending), which become 0, 1, 2 and so on."""
        self._take(np.isin(self.positions, positions))
        self.positions = np.searchsorted(positions, self.positions)

    def step(self, *, restart: float) -> PushReport:
        """One step of the recurrence for all columns here."""
        share = np.full(len(self.positions), restart)
        if self._dangling == "seeds":
            share += (1.0 - restart) * self._dangling_mass
        sums = np.zeros((3, len(self.positions)))
        entries = self._entries()
        # Together, unless rows are read for it: then so many columns as one reading brings in.
        pushed = [
            self._push(first, last, entries[first:last], share[first:last], sums[:, first:last], restart=restart)
            for first, last in slices_within(entries, self._rows.most_entries)
        ]
        self._lists = (
            pushed[0]
            if len(pushed) == 1
            else _Lists(
                offsets_of(np.concatenate([np.diff(lists.bounds) for lists in pushed])),
                np.concatenate([lists.nodes for lists in pushed]),
                np.concatenate([lists.values for lists in pushed]),
            )
        )
        self._dangling_mass = sums[1]
        return PushReport(self.positions, sums[0], sums[1], sums[2])

    def _push(
        self, first: int, last: int, entries: Int64Array, share: Float64Array, sums: Float64Array, *, restart: float
    ) -> _Lists:
        """Push consecutive columns; `sums` (3, columns) becomes mass, mass on dangling nodes and difference."""
        lists, seeds = self._lists.slice(first, last), self._seeds.slice(first, last)
        # Entries, nodes that keep their mass, and seeds: more cannot be reached.
        room = offsets_of(entries + np.diff(lists.bounds) + np.diff(seeds.bounds))
        following = _Lists(room, np.empty(room[-1], np.int32), np.empty(room[-1], self._precision))
        counts = np.zeros(last - first, dtype=np.int64)
        mass, dangling_mass, difference = np.zeros((3, last - first))
        push_columns(
            lists.bounds, lists.nodes, lists.values, seeds.bounds, seeds.nodes,
            np.repeat(share, np.diff(seeds.bounds)) * seeds.values, 1.0 - restart, *self._rows.of(lists.nodes),
            following.bounds, following.nodes, following.values, counts, mass, dangling_mass, difference,
        )  # fmt: skip
        sums[:] = mass, dangling_mass, difference
        used = np.arange(room[-1]) - np.repeat(room[:-1], np.diff(room)) < np.repeat(counts, np.diff(room))
        return _Lists(offsets_of(counts), following.nodes[used], following.values[used])

    def _entries(self) -> Int64Array:
        """Entries of the graph that a step of each column touches."""
        nodes = self._lists.nodes
        touched = sum(starts[nodes + 1] - starts[nodes] for starts in self._rows.starts)
        return np.diff(np.concatenate(([0], np.cumsum(touched)))[self._lists.bounds])

    def _take(self, chosen: BoolArray) -> None:
        self._lists, self._seeds = self._lists.take(chosen), self._seeds.take(chosen)
        self.positions, self._dangling_mass = self.positions[chosen], self._dangling_mass[chosen]
