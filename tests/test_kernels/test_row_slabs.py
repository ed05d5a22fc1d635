"""Row pieces, column sums, block sizes: the bookkeeping that must not change a bit."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seedrank.errors import ResourceError
from seedrank.kernels.backends.block_size import choose_block_size
from seedrank.kernels.backends.column_sums import column_sums
from seedrank.kernels.backends.resolver import create_backend
from seedrank.kernels.backends.row_slabs import INDEX_LIMIT, RowSlabs, plan_rows
from seedrank.kernels.transition import SparseRows

LENGTHS = st.lists(st.one_of(st.integers(0, 3), st.integers(0, 40)), min_size=1, max_size=12)


def random_rows(lengths: list[int], *, weighted: bool) -> SparseRows:
    random = np.random.default_rng(5)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    columns = random.integers(0, len(lengths), offsets[-1]).astype(np.int32)
    return SparseRows(offsets, columns, random.random(len(columns)) if weighted else None)


@settings(max_examples=120, deadline=None, derandomize=True)
@given(lengths=LENGTHS, row_chunk=st.integers(2, 5), more=st.integers(0, 12), weighted=st.booleans())
def test_slab_limit_does_not_change_a_bit(lengths: list[int], row_chunk: int, more: int, weighted: bool) -> None:
    rows = random_rows(lengths, weighted=weighted)
    block = np.random.default_rng(7).random((len(lengths), 3))
    products = []
    for max_entries in (INDEX_LIMIT, row_chunk**2 + more):
        slabs = RowSlabs(rows, tile_rows=5, row_chunk=row_chunk, max_entries=max_entries)
        tiles = range(-(-len(lengths) // 5))
        products.append(np.concatenate([slabs.multiply(tile, block) for tile in tiles]))
        one_by_one = np.hstack(
            [np.concatenate([slabs.multiply(tile, block[:, [column]]) for tile in tiles]) for column in range(3)]
        )
        assert one_by_one.tobytes() == products[-1].tobytes()
    assert products[0].tobytes() == products[1].tobytes()
    dense = np.zeros((len(lengths), len(lengths)))
    values = np.ones(len(rows.columns)) if rows.probabilities is None else rows.probabilities
    np.add.at(dense, (np.repeat(np.arange(len(lengths)), lengths), rows.columns), values)
    np.testing.assert_allclose(products[0], dense @ block, rtol=1e-13)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(lengths=LENGTHS, row_chunk=st.integers(2, 5), more=st.integers(0, 12))
def test_pieces_cover_all_entries_within_the_limit(lengths: list[int], row_chunk: int, more: int) -> None:
    offsets = np.concatenate(([10], 10 + np.cumsum(lengths))).astype(np.int64)
    plan = plan_rows(offsets, row_chunk=row_chunk, max_entries=row_chunk**2 + more)
    assert plan.pieces[0].first_entry == 10
    assert plan.pieces[-1].last_entry == offsets[-1]
    for piece, following in pairwise(plan.pieces):
        assert piece.last_entry == following.first_entry
    for piece in plan.pieces:
        assert piece.last_entry - piece.first_entry <= row_chunk**2 + more
        assert np.diff(piece.segment_offsets).max(initial=0) <= row_chunk
        if piece.group_offsets is not None:
            assert np.diff(piece.group_offsets).max(initial=0) <= row_chunk
    for level in plan.combine:
        assert np.diff(level).max() <= row_chunk


def test_case_54_two_to_the_31_entries_are_cut_before_they_overflow() -> None:
    """A fake graph: offsets without entries. One row of 2**31 entries, then two short ones."""
    offsets = np.array([0, 2**31, 2**31 + 5, 2**31 + 9], dtype=np.int64)
    plan = plan_rows(offsets, row_chunk=2**15, max_entries=INDEX_LIMIT)
    assert [(piece.first_entry, piece.last_entry) for piece in plan.pieces] == [(0, 2**30), (2**30, 2**31 + 9)]
    for piece in plan.pieces:
        assert piece.segment_offsets.dtype == np.int32
        assert piece.segment_offsets[-1] == piece.last_entry - piece.first_entry
    assert [level.tolist() for level in plan.combine] == [[0, 2, 3, 4]]
    # The same for many ordinary rows that exceed the limit together.
    many = np.arange(0, 2**33, 2**25, dtype=np.int64)
    assert all(
        piece.last_entry - piece.first_entry < 2**31
        for piece in plan_rows(many, row_chunk=2**13, max_entries=INDEX_LIMIT).pieces
    )


@pytest.mark.parametrize(("row_chunk", "max_entries"), [(8, 63), (1, 5), (2, 2**31)])
def test_impossible_limits_are_refused(row_chunk: int, max_entries: int) -> None:
    with pytest.raises(ValueError, match="is below 2, or max_entries"):
        plan_rows(np.zeros(2, np.int64), row_chunk=row_chunk, max_entries=max_entries)


@pytest.mark.parametrize("rows", [0, 1, 127, 128, 129, 40_000])
def test_column_sums_have_the_same_bits_for_any_width(rows: int) -> None:
    values = np.random.default_rng(11).random((rows, 70))
    together = column_sums(values)
    for width in (1, 2, 7, 64):
        parts = [column_sums(np.ascontiguousarray(values[:, start : start + width])) for start in range(0, 70, width)]
        assert np.concatenate(parts).tobytes() == together.tobytes()
    np.testing.assert_allclose(together, values.sum(axis=0), rtol=1e-13)


@pytest.mark.parametrize(
    ("budget", "queries", "maximum", "expected"),
    [(1000, 50, 64, 10), (100, 50, 64, 1), (10**9, 50, 64, 50), (10**9, 5000, 64, 64), (10**9, 0, 64, 1)],
)
def test_block_size(budget: int, queries: int, maximum: int, expected: int) -> None:
    assert choose_block_size(100, budget, queries, maximum) == expected


@pytest.mark.parametrize(("budget", "expected"), [(1600, 16), (3199, 16), (3200, 32), (6400, 50)])
def test_block_size_counts_the_columns_that_padding_adds(budget: int, expected: int) -> None:
    assert choose_block_size(100, budget, 50, stored_columns=create_backend("cpu").stored_columns) == expected
    with pytest.raises(ResourceError, match="one query needs"):
        choose_block_size(100, 1599, 50, stored_columns=create_backend("cpu").stored_columns)


def test_block_size_without_room_is_a_resource_error() -> None:
    with pytest.raises(ResourceError, match="one query needs") as caught:
        choose_block_size(10**9, 10**9 - 1, 5)
    details: Any = caught.value
    assert details.exit_code == 4
