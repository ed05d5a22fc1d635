"""`build_seeds`: normalisation by source, repeated and missing nodes, extreme weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seedrank.kernels.seeds import SeedSets, build_seeds

IDENTITY = np.arange(10, dtype=np.int32)
# Source 0: node 0 weight 2, node 1 weight 6. Source 1: node 1 weight 1, node 2 weight 1, node 3 weight 2.
HITS = [(0, 0, 0, 2.0), (0, 0, 1, 6.0), (0, 1, 1, 1.0), (0, 1, 2, 1.0), (0, 1, 3, 2.0)]


def build(hits: list[tuple[int, int, int, float]], queries: int = 1, **options: Any) -> SeedSets:
    """Hits are (query, source, rank, weight)."""
    rows = sorted(hits)
    arguments: dict[str, Any] = {"normalization": "sum", "source_weights": None, "inverse_order": IDENTITY}
    return build_seeds(
        np.array([row[0] for row in rows], np.int32),
        np.array([row[2] for row in rows], np.int32),
        np.array([row[3] for row in rows], np.float64),
        np.array([row[1] for row in rows], np.int32),
        queries=queries,
        **(arguments | options),
    )


def as_dict(seeds: SeedSets, query: int = 0) -> dict[int, float]:
    part = slice(seeds.offsets[query], seeds.offsets[query + 1])
    return dict(zip(seeds.nodes[part].tolist(), seeds.weights[part].tolist(), strict=True))


@pytest.mark.parametrize(
    ("normalization", "expected"),
    [
        ("sum", {0: 0.125, 1: 0.5, 2: 0.125, 3: 0.25}),
        ("max", {0: 0.1, 1: 0.45, 2: 0.15, 3: 0.3}),
        ("minmax", {1: 0.5, 3: 0.5}),
        ("none", {0: 2 / 12, 1: 7 / 12, 2: 1 / 12, 3: 2 / 12}),
    ],
)
def test_normalization_by_source(normalization: str, expected: dict[int, float]) -> None:
    assert as_dict(build(HITS, normalization=normalization)) == pytest.approx(expected, abs=1e-15)


def test_source_weights() -> None:
    weighted = as_dict(build(HITS, source_weights=np.array([3.0, 1.0])))
    assert weighted == pytest.approx({0: 0.1875, 1: 0.625, 2: 0.0625, 3: 0.125}, abs=1e-15)
    silenced = as_dict(build(HITS, source_weights=np.array([0.0, 1.0])))
    assert silenced == pytest.approx({1: 0.25, 2: 0.25, 3: 0.5}, abs=1e-15)
    assert as_dict(build(HITS, source_weights=np.array([0.0, 0.0]))) == {}


def test_distances_are_turned_round_by_minmax_alone() -> None:
    nearest_first = np.array([True, False])
    found = as_dict(build(HITS, normalization="minmax", lower_is_better=nearest_first))
    assert found == pytest.approx({0: 0.5, 3: 0.5}, abs=1e-15)
    unchanged = build(HITS, normalization="max", lower_is_better=nearest_first)
    assert as_dict(unchanged) == as_dict(build(HITS, normalization="max"))
    equal = build([(0, 0, 4, 0.0), (0, 0, 5, 0.0)], normalization="minmax", lower_is_better=np.array([True]))
    assert as_dict(equal) == {4: 0.5, 5: 0.5}


def test_equal_scores_are_one_under_minmax_and_zero_sources_nothing() -> None:
    equal = build([(0, 0, 4, 7.0), (0, 0, 5, 7.0), (0, 1, 6, 0.0), (0, 1, 7, 0.0)], normalization="minmax")
    assert as_dict(equal) == {4: 0.5, 5: 0.5}


@pytest.mark.parametrize("normalization", ["sum", "max", "minmax", "none"])
def test_case_4_and_6_missing_and_zero_seeds(normalization: str) -> None:
    seeds = build(
        [(0, 0, -1, 5.0), (0, 0, 3, 1.0), (1, 0, -1, 1.0), (2, 0, 1, 0.0), (2, 0, 2, 0.0), (4, 0, 2, 1.0)],
        queries=6,
        normalization=normalization,
    )
    assert np.diff(seeds.offsets).tolist() == [1, 0, 0, 0, 1, 0]
    assert seeds.nodes.tolist() == [3, 2]
    assert seeds.weights.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("normalization", ["sum", "max", "minmax", "none"])
@pytest.mark.parametrize("scale", [1.7e308, 1e-310, 5e-324])
def test_extreme_weights_neither_overflow_nor_vanish(scale: float, normalization: str) -> None:
    seeds = build([(0, source, 2 + source, scale) for source in range(4)], normalization=normalization)
    assert as_dict(seeds) == dict.fromkeys(range(2, 6), 0.25)
    same_source = build([(0, 0, node, scale) for node in range(4)], normalization=normalization)
    assert as_dict(same_source) == dict.fromkeys(range(4), 0.25)


def test_huge_source_weights() -> None:
    seeds = build(HITS, normalization="none", source_weights=np.array([1.7e308, 1.7e308]))
    assert as_dict(seeds) == pytest.approx({0: 2 / 12, 1: 7 / 12, 2: 1 / 12, 3: 2 / 12}, abs=1e-15)


def test_nodes_are_internal_and_sorted_by_tie_rank() -> None:
    seeds = build(HITS, inverse_order=IDENTITY[::-1].copy())
    assert seeds.nodes.tolist() == [9, 8, 7, 6]


def test_without_sources_and_without_hits() -> None:
    none = np.zeros(0, np.int32)
    seeds = build_seeds(
        none, none, np.zeros(0), None, queries=3, normalization="minmax", source_weights=None, inverse_order=none
    )
    assert seeds.offsets.tolist() == [0, 0, 0, 0]


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    hits=st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(-1, 9), st.floats(0, 1e308, allow_subnormal=True)),
        max_size=30,
    ),
    normalization=st.sampled_from(["sum", "max", "minmax", "none"]),
)
def test_every_query_sums_to_one_or_is_empty(hits: list[tuple[int, int, int, float]], normalization: str) -> None:
    seeds = build(hits, queries=4, normalization=normalization)
    for query in range(4):
        weights = as_dict(seeds, query)
        positive = {rank for own, _, rank, weight in hits if own == query and rank >= 0 and weight > 0}
        assert bool(weights) == bool(positive)
        assert set(weights) <= positive
        assert all(weight > 0 for weight in weights.values())
        if weights:
            assert sum(weights.values()) == pytest.approx(1, abs=1e-14)
