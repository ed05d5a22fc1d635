"""The transposed transition matrix of a graph that memory does not hold: surveyed range by range, never kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from seedrank.kernels.arrays import DanglingRule, Direction, Float64Array, Int32Array, Int64Array
from seedrank.kernels.building.adjacency import Adjacency
from seedrank.kernels.runs import slices_within
from seedrank.kernels.selected_entries import (
    MOST_REPETITION,
    SelectedEntries,
    inverse_of,
    probabilities,
    repeat,
    row_sums,
    select_entries,
    simplified,
)

RANGE_ENTRIES = 1 << 18
"""Entries that are read, selected and copied together; some forty bytes each. A longer row is one range."""


class EntrySource(Protocol):
    """An adjacency (see `Adjacency`) whose entries are read range by range."""

    @property
    def offsets(self) -> Int64Array:
        """Bounds of the rows, int64 (n + 1), in memory."""
        ...

    @property
    def weighted(self) -> bool:
        """Whether entries have weights; else all are exactly 1."""
        ...

    @property
    def typed(self) -> bool:
        """Whether entries have types."""
        ...

    def read(self, first: int, last: int) -> tuple[Int32Array, Float64Array | None, npt.NDArray[Any] | None]:
        """Neighbors, weights and types of the entries ``first`` to ``last - 1``."""
        ...


@dataclass(frozen=True)
class StreamedRows:
    """One summand of a matrix: an adjacency, and what of it takes part.

    Attributes
    ----------
    source : EntrySource
    factors : float64 (types) or None
        Multiply the weight by the entry's type; 0: no such entry. None: weights alone count.
    drop_loops : bool
        Entries from a node to itself do not count.
    """

    source: EntrySource
    factors: Float64Array | None
    drop_loops: bool

    @property
    def whole(self) -> bool:
        """Whether every entry takes part and weighs 1, so that the offsets say all about the rows."""
        return not self.drop_loops and self.factors is None and not self.source.weighted

    @property
    def carries_values(self) -> bool:
        """Whether entries differ in weight × type weight, as far as can be known without reading them."""
        factors = self.factors
        return self.source.weighted or (factors is not None and bool((factors[factors > 0] != 1).any()))

    def select(self, first: int, last: int) -> SelectedEntries:
        """Read the rows ``first`` to ``last - 1``."""
        offsets = self.source.offsets[first : last + 1]
        neighbors, weights, types = self.source.read(int(offsets[0]), int(offsets[-1]))
        rows = Adjacency(offsets - offsets[0], neighbors, weights, types)
        return select_entries(rows, self.factors, drop_loops=self.drop_loops, first_node=first)


@dataclass(frozen=True)
class StreamedTransition:
    """A row-stochastic matrix P as `Transition` holds it, but for its entries, which are read again for each use.

    Attributes
    ----------
    nodes : int
    incoming : tuple of StreamedRows
        The summands of the transposed matrix: one, or two for both directions.
    outgoing : tuple of StreamedRows
        The rows of P.
    lengths : int64 (n)
        Entries of each row of the transposed matrix.
    weighted : bool
        Whether entries carry probabilities; else the block is divided by the out-weights.
    repeated : bool
        Whether an entry of weight w is written as w entries (see `build_transition`).
    out_weight, inverse_out_weight, dangling_nodes, dangling
        As in `Transition`.
    range_entries : int
        Entries that are read together.
    """

    nodes: int
    incoming: tuple[StreamedRows, ...]
    outgoing: tuple[StreamedRows, ...]
    lengths: Int64Array
    weighted: bool
    repeated: bool
    out_weight: Float64Array
    inverse_out_weight: Float64Array
    dangling_nodes: Int32Array
    dangling: DanglingRule
    range_entries: int

    @property
    def entries(self) -> int:
        """Number of multiplications of one product with one vector."""
        return int(self.lengths.sum())

    def ranges(self) -> Iterator[tuple[int, int]]:
        """Ranges of nodes whose rows of `incoming` are read together, in order."""
        lengths: Int64Array = np.zeros(self.nodes, dtype=np.int64)
        for rows in self.incoming:
            lengths += np.diff(rows.source.offsets)
        return slices_within(lengths, self.range_entries)

    def read(self, first: int, last: int) -> list[tuple[SelectedEntries, Float64Array | None]]:
        """Rows ``first`` to ``last - 1`` of each summand, with the probabilities where entries carry them."""
        parts = [rows.select(first, last) for rows in self.incoming]
        if self.repeated:
            parts = [repeat(part) for part in parts]
        return [(part, probabilities(part, self.out_weight)) for part in parts]


@dataclass
class _Survey:
    """What one pass over a summand finds.

    `kept` and `repeated` are the entries of each row as they are, and as repetitions; `counts` says whether the
    latter are few, for whole-numbered weights.
    """

    kept: Int64Array
    repeated: Int64Array | None
    counts: bool


def survey_transition(
    by_source: EntrySource,
    by_destination: EntrySource,
    *,
    direction: Direction,
    type_weights: Float64Array | None,
    dangling: DanglingRule,
    range_entries: int = RANGE_ENTRIES,
) -> StreamedTransition:
    """Find out-weights, dangling nodes and row lengths of a graph in passes over its entries.

    All numbers are those of `seedrank.kernels.transition.build_transition` to the last bit, whatever the ranges are:
    rows are summed whole, and what is decided for the whole graph is counted in whole numbers. Rows of which the
    offsets say everything (no weights, no type weights) are not read.

    Parameters
    ----------
    by_source, by_destination : EntrySource
        The same edges, rows = sources and rows = destinations.
    direction, type_weights, dangling
        As for `build_transition`.
    range_entries : int
        Most entries that are in memory at a time, unless one row has more. No effect on results.

    Returns
    -------
    StreamedTransition
    """
    factors = None if type_weights is None or not by_source.typed else simplified(type_weights)
    into, out_of = (by_source, by_destination) if direction == "in" else (by_destination, by_source)
    incoming, outgoing = [StreamedRows(into, factors, False)], [StreamedRows(out_of, factors, False)]
    if direction == "both":
        incoming.append(StreamedRows(out_of, factors, True))
        outgoing.append(StreamedRows(into, factors, True))
    out_weight = _row_sums(outgoing[0], range_entries)
    for rows in outgoing[1:]:
        out_weight += _row_sums(rows, range_entries)
    surveys = [_survey(rows, range_entries) for rows in incoming]
    repeated = all(survey.counts for survey in surveys)
    lengths: Int64Array = np.zeros(len(out_weight), dtype=np.int64)
    for survey in surveys:
        lengths += survey.repeated if repeated and survey.repeated is not None else survey.kept
    return StreamedTransition(
        nodes=len(out_weight),
        incoming=tuple(incoming),
        outgoing=tuple(outgoing),
        lengths=lengths,
        weighted=incoming[0].carries_values and not repeated,
        repeated=repeated,
        out_weight=out_weight,
        inverse_out_weight=inverse_of(out_weight),
        dangling_nodes=np.flatnonzero(out_weight == 0).astype(np.int32),
        dangling=dangling,
        range_entries=range_entries,
    )


def _row_sums(rows: StreamedRows, range_entries: int) -> Float64Array:
    """Out-weights, as far as these rows make them."""
    lengths = np.diff(rows.source.offsets)
    sums: Float64Array = lengths.astype(np.float64)
    if not rows.whole:
        for first, last in slices_within(lengths, range_entries):
            sums[first:last] = row_sums(rows.select(first, last))
    return sums


def _survey(rows: StreamedRows, range_entries: int) -> _Survey:
    """Count the entries of each row, and whether they may be repeated: `counts_rows` of all of them."""
    kept: Int64Array = np.diff(rows.source.offsets)
    if rows.whole:
        return _Survey(kept, None, counts=False)
    repeated, entries, total, whole = np.zeros_like(kept), 0, 0.0, True
    for first, last in slices_within(kept, range_entries):
        part = rows.select(first, last)
        kept[first:last] = np.diff(part.offsets)
        entries += len(part.columns)
        if part.values is None:
            continue
        # Sums of whole numbers are exact; of others they are of no interest.
        total += float(part.values.sum())
        whole = whole and total <= MOST_REPETITION * rows.source.offsets[-1]
        whole = whole and bool((part.values == np.rint(part.values)).all())
        if whole:
            repeated[first:last] = row_sums(part)
    counts = rows.carries_values and whole and total <= MOST_REPETITION * entries
    return _Survey(kept, repeated if counts else None, counts)
