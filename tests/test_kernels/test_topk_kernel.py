"""Exact top-k: ties at the cut, filters, bounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seedrank.kernels.topk import top_k
from seedrank.testing.reference import reference_top_k


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    scores=st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.3, 0.5, 1e-30]), min_size=1, max_size=30),
    k=st.integers(1, 35),
    precision=st.sampled_from(["float32", "float64"]),
    min_score=st.sampled_from([0.0, 0.1, 0.3]),
    data=st.data(),
)
def test_against_sorting(scores: list[float], k: int, precision: str, min_score: float, data: st.DataObject) -> None:
    count = len(scores)
    order = np.array(data.draw(st.permutations(range(count))), dtype=np.int32)
    eligible = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)))
    excluded = np.array(data.draw(st.lists(st.integers(0, count - 1), max_size=4)), dtype=np.int32)
    values = np.array(scores, dtype=precision)
    nodes, found = top_k(values, k=k, order=order, eligible=eligible, excluded=excluded, min_score=min_score)
    expected = reference_top_k(
        {int(order[node]): float(values[node]) for node in range(count)},
        k,
        eligible=set(order[eligible].tolist()),
        excluded=set(order[excluded].tolist()),
        min_score=float(values.dtype.type(min_score)),
    )
    assert list(zip(order[nodes].tolist(), found.tolist(), strict=True)) == expected
    assert nodes.dtype == np.int32
    assert found.dtype == values.dtype


@pytest.mark.parametrize("k", [1, 500, 999, 1000, 1001])
def test_all_equal_scores_go_by_tie_rank(k: int) -> None:
    order = np.random.default_rng(3).permutation(1000).astype(np.int32)
    nodes, _ = top_k(np.full(1000, 0.001, np.float32), k=k, order=order)
    assert order[nodes].tolist() == list(range(min(k, 1000)))


def test_min_score_counts_in_the_precision_of_the_scores() -> None:
    """0.7 as float32 lies below 0.7 as float64, but was asked for."""
    nodes, _ = top_k(np.array([0.7], np.float32), k=1, order=np.zeros(1, np.int32), min_score=0.7)
    assert nodes.tolist() == [0]
