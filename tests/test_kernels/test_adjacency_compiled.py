"""The compiled way to build an adjacency against the NumPy way: every bit, whatever the number of threads."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest

from seedrank.kernels._cpu import packed_edges, radix_sort
from seedrank.kernels.building import adjacency
from seedrank.kernels.building.adjacency import AdjacencyPair, build_adjacency

NODES = 700
ROWS = 20_000


def build(columns: dict[str, Any], *, compiled: bool, threads: int = 2, rule: Any = "sum") -> AdjacencyPair:
    with (
        mock.patch.object(adjacency, "COMPILED_ROWS", 0 if compiled else 1 << 60),
        mock.patch.object(packed_edges, "get_num_threads", return_value=threads),
    ):
        return build_adjacency(**columns, nodes=NODES, duplicate_edges=rule)


def columns(*, weighted: bool, typed: bool, edges: int = 5_000, random_seed: int = 1) -> dict[str, Any]:
    """Rows drawn from a list of distinct edges, hubs included; the last nodes stay without any."""
    generator = np.random.default_rng(random_seed)
    ends = (generator.random((2, edges)) ** 3 * (NODES - 10)).astype(np.int32)
    kinds = generator.integers(0, 3, edges).astype(np.int32)
    drawn = generator.integers(0, edges, ROWS)
    return {
        "source": ends[0, drawn],
        "target": ends[1, drawn],
        "weight": generator.exponential(size=ROWS) if weighted else None,
        "edge_type": kinds[drawn] if typed else None,
    }


def assert_equal_bits(found: AdjacencyPair, expected: AdjacencyPair) -> None:
    for name in ("merged_duplicates", "self_loops", "dangling", "isolated"):
        assert getattr(found, name) == getattr(expected, name), name
    for name in ("order", "inverse_order"):
        assert_same_array(getattr(found, name), getattr(expected, name), name)
    for side in ("by_source", "by_destination"):
        for name in ("offsets", "neighbors", "weights", "types"):
            array, expected_array = (getattr(getattr(pair, side), name) for pair in (found, expected))
            assert_same_array(array, expected_array, f"{side}.{name}")


def assert_same_array(found: Any, expected: Any, name: str) -> None:
    assert (found is None) == (expected is None), name
    if expected is not None:
        assert found.dtype == expected.dtype, name
        assert found.shape == expected.shape, name
        assert found.tobytes() == expected.tobytes(), name


@pytest.mark.parametrize("rule", ["sum", "max", "min", "mean"])
@pytest.mark.parametrize("typed", [False, True], ids=["untyped", "typed"])
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
def test_both_ways_give_the_same_bits(weighted: bool, typed: bool, rule: str) -> None:
    rows = columns(weighted=weighted, typed=typed)
    given = {name: None if column is None else column.copy() for name, column in rows.items()}
    expected = build(rows, compiled=False, rule=rule)
    assert expected.merged_duplicates > ROWS // 2
    assert expected.self_loops > 0
    assert expected.isolated > 0
    for threads in (1, 2, 7):
        assert_equal_bits(build(rows, compiled=True, threads=threads, rule=rule), expected)
    for name, column in given.items():
        assert_same_array(rows[name], column, name)


@pytest.mark.parametrize("edges", [1, 3])
def test_runs_longer_than_a_share(edges: int) -> None:
    """Few edges, each there thousands of times: most shares of seven threads begin inside a run, some are empty."""
    rows = columns(weighted=True, typed=False, edges=edges)
    assert_equal_bits(build(rows, compiled=True, threads=7), build(rows, compiled=False))


def test_fewer_rows_than_threads() -> None:
    for count in range(4):
        rows = {
            name: None if column is None else column[:count]
            for name, column in columns(weighted=False, typed=True).items()
        }
        assert_equal_bits(build(rows, compiled=True, threads=7), build(rows, compiled=False))


def test_distinct_edges_stay_without_weights() -> None:
    ends = np.arange(NODES, dtype=np.int32)
    rows = {"source": ends, "target": ends[::-1].copy(), "weight": None, "edge_type": None}
    found = build(rows, compiled=True)
    assert found.by_source.weights is found.by_destination.weights is None
    assert_equal_bits(found, build(rows, compiled=False))


def test_edges_that_do_not_fit_one_integer_take_the_numpy_way() -> None:
    """2**31 - 1 nodes and two types need 63 bits; a third type needs one more."""
    nodes = 2**31 - 1
    assert packed_edges.PackedEdges.fits(nodes, np.array([0, 1], np.int32))
    assert not packed_edges.PackedEdges.fits(nodes, np.array([0, 2], np.int32))
    rows = columns(weighted=True, typed=True)
    expected = build(rows, compiled=True)
    with mock.patch.object(packed_edges, "KEY_BITS", 0), mock.patch.object(packed_edges, "_pack") as pack:
        assert_equal_bits(build(rows, compiled=True), expected)
    pack.assert_not_called()


@pytest.mark.parametrize(("low", "high"), [(0, 63), (0, 1), (5, 12), (7, 40)])
@pytest.mark.parametrize("threads", [1, 3])
def test_radix_sort_is_stable(low: int, high: int, threads: int) -> None:
    key = np.random.default_rng(2).integers(0, 2**63 - 1, 5_000)
    key[::3] = key[0]
    place = np.arange(len(key), dtype=np.float64)
    order = np.argsort(key >> low & ((1 << (high - low)) - 1), kind="stable")
    rows, spare = (key.copy(), place.copy()), (np.empty_like(key), np.empty_like(place))
    (sorted_key, sorted_place), _ = radix_sort.sort_by_bits(rows, spare, low=low, high=high, threads=threads)
    assert sorted_place is not None
    np.testing.assert_array_equal(sorted_key, key[order])
    np.testing.assert_array_equal(sorted_place, place[order])
