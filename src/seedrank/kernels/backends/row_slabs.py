"""Sparse matrix times block, in row tiles that fit 32-bit offsets and bounded memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from seedrank.kernels.arrays import Float64Array, Int32Array, Int64Array
from seedrank.kernels.runs import offsets_of
from seedrank.kernels.transition import SparseRows

INDEX_LIMIT = 2**31 - 1
"""Most entries that int32 offsets can address."""

MAX_SLAB_ENTRIES = 2**22
"""Most entries in one sparse product unless told otherwise: bounds the partial sums that are held."""

ROW_CHUNK = 32
"""Most numbers that are added one after the other within a row; the sums of such stretches are added likewise."""


@dataclass(frozen=True)
class RowPiece:
    """Consecutive groups of entries of a tile of rows, at most a slab's worth.

    A row is cut into segments of `row_chunk` entries, and every `row_chunk` segments of a row form a group.

    Attributes
    ----------
    first_entry, last_entry : int
        Range of entries, relative to the whole matrix.
    segment_offsets : int32
        Bounds of the segments among the entries, relative to `first_entry`.
    group_offsets : int32 or None
        Bounds of the groups among the segments; None: every group is one segment.
    """

    first_entry: int
    last_entry: int
    segment_offsets: Int32Array
    group_offsets: Int32Array | None


@dataclass(frozen=True)
class RowPlan:
    """How a tile of rows is multiplied.

    Attributes
    ----------
    pieces : list of RowPiece
        Their groups, one after the other, are the groups of the tile.
    combine : list of int32 arrays
        Level by level the bounds of what is added, until one sum a row is left; empty: every row is one group.
    """

    pieces: list[RowPiece]
    combine: list[Int32Array]


def plan_rows(offsets: Int64Array, *, row_chunk: int, max_entries: int) -> RowPlan:
    """Cut a tile of rows into pieces of at most `max_entries` entries.

    Pieces end between groups. Which numbers are added in which order depends on `row_chunk` alone, so
    `max_entries` never changes a bit of the product.

    Parameters
    ----------
    offsets : int64 (rows + 1)
        Bounds of the rows among the entries of the matrix; may exceed 2**31.
    row_chunk : int
        >= 2
    max_entries : int
        >= `row_chunk` squared, < 2**31.

    Returns
    -------
    RowPlan
    """
    group_entries = row_chunk * row_chunk
    if row_chunk < 2 or not group_entries <= max_entries <= INDEX_LIMIT:
        raise ValueError(
            f"row_chunk {row_chunk} is below 2, or max_entries {max_entries} is outside {group_entries} … 2**31 - 1"
        )
    groups_per_row, group_bounds = _cut(offsets, group_entries)
    pieces = []
    begin = 0
    while begin < len(group_bounds) - 1:
        end = int(np.searchsorted(group_bounds, group_bounds[begin] + max_entries, side="right")) - 1
        first, last = int(group_bounds[begin]), int(group_bounds[end])
        segments_per_group, segment_bounds = _cut(group_bounds[begin : end + 1], row_chunk)
        single = bool((segments_per_group == 1).all())
        pieces.append(
            RowPiece(
                first_entry=first,
                last_entry=last,
                segment_offsets=(segment_bounds - first).astype(np.int32),
                group_offsets=None if single else offsets_of(segments_per_group).astype(np.int32),
            )
        )
        begin = end
    combine = []
    counts = groups_per_row
    while bool((counts > 1).any()):
        counts, bounds = _cut(offsets_of(counts), row_chunk)
        combine.append(bounds.astype(np.int32))
    return RowPlan(pieces, combine)


def _cut(bounds: Int64Array, longest: int) -> tuple[Int64Array, Int64Array]:
    """Cut ranges into stretches of at most `longest`; an empty range is one empty stretch.

    Returns the number of stretches by range, and the bounds of all stretches.
    """
    counts = np.maximum(-(-np.diff(bounds) // longest), 1)
    starts = np.repeat(bounds[:-1], counts)
    place = np.arange(len(starts)) - np.repeat(offsets_of(counts)[:-1], counts)
    return counts, np.append(starts + place * longest, bounds[-1])


def _adder(bounds: Int32Array) -> sparse.csr_array:
    """Matrix of ones whose row i adds the range i: a sparse product adds strictly in order for any width."""
    terms = int(bounds[-1])
    return sparse.csr_array((np.ones(terms), np.arange(terms, dtype=np.int32), bounds), shape=(len(bounds) - 1, terms))


@dataclass(frozen=True)
class _Tile:
    """Matrices of a tile: (entries → segments, segments → groups or None) by piece, then the levels above."""

    pieces: list[tuple[sparse.csr_array, sparse.csr_array | None]]
    combine: list[sparse.csr_array]


class RowSlabs:
    """One product of a transition, ready to be multiplied tile by tile.

    Parameters
    ----------
    rows : SparseRows
        Structure-only rows count every entry as 1.
    tile_rows : int
        Rows a tile.
    row_chunk, max_entries : int
        See `plan_rows`.
    """

    def __init__(self, rows: SparseRows, *, tile_rows: int, row_chunk: int, max_entries: int) -> None:
        nodes = len(rows.offsets) - 1
        plans = [
            plan_rows(
                np.asarray(rows.offsets[start : start + tile_rows + 1]), row_chunk=row_chunk, max_entries=max_entries
            )
            for start in range(0, nodes, tile_rows)
        ]
        longest = max((piece.last_entry - piece.first_entry for plan in plans for piece in plan.pieces), default=0)
        # Structure-only products share one run of ones instead of holding a value for every edge.
        ones = np.ones(longest if rows.probabilities is None else 0)
        self._tiles = [
            _Tile(
                pieces=[
                    (
                        _segment_matrix(rows, piece, ones),
                        None if piece.group_offsets is None else _adder(piece.group_offsets),
                    )
                    for piece in plan.pieces
                ],
                combine=[_adder(bounds) for bounds in plan.combine],
            )
            for plan in plans
        ]

    def multiply(self, tile: int, block: Float64Array) -> Float64Array:
        """Rows of the product of one tile.

        Parameters
        ----------
        tile : int
        block : float64 (n, b)
            C order.

        Returns
        -------
        float64 (rows of the tile, b)
        """
        parts = []
        for entries, groups in self._tiles[tile].pieces:
            sums: Float64Array = entries @ block
            parts.append(sums if groups is None else groups @ sums)
        result: Float64Array = parts[0] if len(parts) == 1 else np.concatenate(parts)
        for level in self._tiles[tile].combine:
            result = level @ result
        return result


def _segment_matrix(rows: SparseRows, piece: RowPiece, ones: Float64Array) -> sparse.csr_array:
    """Matrix of a piece whose rows are segments; entries are views of the graph's own arrays."""
    entries = slice(piece.first_entry, piece.last_entry)
    values = rows.probabilities[entries] if rows.probabilities is not None else ones[: entries.stop - entries.start]
    shape = (len(piece.segment_offsets) - 1, len(rows.offsets) - 1)
    return sparse.csr_array((values, rows.columns[entries], piece.segment_offsets), shape=shape)
