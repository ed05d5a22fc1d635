"""Packed edges: keys, cuts, buckets, and the reduction of one bucket, against the definitions."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seedrank.kernels.building import sorted_keys
from seedrank.kernels.building.duplicates import reduce_duplicates
from seedrank.kernels.building.edge_keys import EdgeKeys
from seedrank.kernels.building.end_counts import EndCounts
from seedrank.kernels.building.key_buckets import choose_cuts, split_keys


def test_keys_of_the_largest_graphs() -> None:
    keys = EdgeKeys(2**28, 128)
    assert keys.fits
    last = np.array([2**28 - 1], np.int32)
    key = keys.pack(last, last, np.array([127]))
    assert key.tolist() == [2**63 - 1]
    assert (keys.row(key).tolist(), keys.other(key).tolist(), keys.edge_type(key).tolist()) == (
        [2**28 - 1],
        [2**28 - 1],
        [127],
    )
    assert keys.edge_type(key).dtype == np.uint8
    assert not EdgeKeys(2**28, 129).fits
    assert EdgeKeys(2**31 - 1, 2).fits
    assert not EdgeKeys(2**31 - 1, 3).fits
    assert EdgeKeys(0, 1).fits


def test_renamed_keys_keep_the_type() -> None:
    keys = EdgeKeys(3, 4)
    key = keys.pack(np.array([0, 2], np.int32), np.array([1, 2], np.int32), np.array([3, 0]))
    forwards, backwards = keys.renamed(key, np.array([2, 0, 1], np.int32))
    assert keys.row(forwards).tolist() == keys.other(backwards).tolist() == [2, 1]
    assert keys.other(forwards).tolist() == keys.row(backwards).tolist() == [0, 1]
    assert keys.edge_type(forwards).tolist() == keys.edge_type(backwards).tolist() == [3, 0]


@settings(max_examples=200, deadline=None, derandomize=True)
@given(sample=st.lists(st.integers(0, 9), max_size=30), buckets=st.integers(1, 8))
def test_cuts_part_keys_that_differ(sample: list[int], buckets: int) -> None:
    cuts = choose_cuts(np.array(sample, np.int64), buckets)
    assert (np.diff(cuts) > 0).all()
    assert len(cuts) <= 2 * buckets
    order, ends = split_keys(np.array(sample, np.int64), cuts)
    bounds = [-1, *cuts.tolist(), 99]
    begin = 0
    for bucket, end in enumerate(ends.tolist()):
        positions = order[begin:end].tolist()
        assert positions == sorted(positions)
        assert all(bounds[bucket] <= sample[i] < bounds[bucket + 1] for i in positions)
        begin = end
    assert begin == len(sample)
    if buckets >= 3 and len(set(sample)) > 1 and len(sample) >= buckets:
        # Dealing out again always gets somewhere: no bucket holds all that differ, or it is of one key.
        assert max(np.diff([0, *ends.tolist()])) < len(sample)


def test_a_key_that_fills_buckets_has_one_for_itself() -> None:
    assert choose_cuts(np.array([1, 5, 5, 5, 5, 5, 5, 9]), 4).tolist() == [5, 6]


@pytest.mark.parametrize("compiled_rows", [0, 1 << 20], ids=["compiled", "NumPy"])
@pytest.mark.parametrize("rule", ["sum", "max", "min", "mean"])
@pytest.mark.parametrize("weighted", [False, True])
def test_reduced_keys_and_their_counts(compiled_rows: int, rule: Any, weighted: bool) -> None:
    generator = np.random.default_rng(3)
    ends = generator.integers(0, 40, (2, 2_000)).astype(np.int32)
    types = generator.integers(0, 3, 2_000).astype(np.int32)
    weight = generator.choice([1e16, 1.0, 0.1, 0.3], 2_000) if weighted else None
    expected = reduce_duplicates(ends[0], ends[1], weight, types, nodes=40, duplicate_edges=rule)
    keys = EdgeKeys(40, 3)
    bits = 2 * keys.node_bits + keys.type_bits
    with mock.patch.object(sorted_keys, "COMPILED_ROWS", compiled_rows):
        key, reduced = sorted_keys.reduce_keys(
            keys.pack(ends[0], ends[1], types), weight, bits=bits, duplicate_edges=rule
        )
        rows, _ = sorted_keys.sort_rows(key[::-1].copy(), None, low=keys.row_shift, high=bits)
    assert keys.row(key).tolist() == expected.source.tolist()
    assert keys.other(key).tolist() == expected.target.tolist()
    assert keys.edge_type(key).tolist() == np.asarray(expected.edge_type).tolist()
    assert (reduced is None) == (expected.weight is None)
    assert reduced is None or reduced.tobytes() == np.asarray(expected.weight).tobytes()
    assert rows.tolist() == sorted(key.tolist(), key=lambda k: (k >> keys.row_shift, -k))
    counts = EndCounts(keys)
    for piece in np.array_split(key, 700):
        if len(piece):
            counts.add(piece)
    assert counts.out_degree.tolist() == expected.out_degree.tolist()
    assert counts.in_degree.tolist() == expected.in_degree.tolist()
    assert (counts.entries, counts.self_loops) == (expected.entries, expected.self_loops)
