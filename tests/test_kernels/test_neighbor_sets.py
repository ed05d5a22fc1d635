"""Neighbours of sets of nodes, against sets of Python."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedrank.kernels.recall import neighbor_sets
from seedrank.kernels.recall.neighbor_sets import count_distinct_neighbors, edge_ranges, neighbors_of_sets
from seedrank.kernels.recall.recall_graph import RecallGraph, build_recall_graph
from seedrank.testing.harness import KernelGraph, kernel_graph

Direction = Literal["out", "in", "both"]

EDGES = [("a", "b", 1.0, "x"), ("a", "b", 1.0, "y"), ("b", "a", 1.0, "x"), ("a", "a", 1.0, "x"), ("c", "a", 1.0, "y")]


def followed(graph: KernelGraph, direction: Direction) -> RecallGraph:
    """A graph as it is followed."""
    pair = graph.adjacency
    return build_recall_graph(pair.by_source, pair.by_destination, pair.order, direction=direction, type_weights=None)


@pytest.mark.parametrize(("direction", "expected"), [("out", [1, 1, 1]), ("in", [2, 1, 0]), ("both", [2, 1, 1])])
def test_parallel_edges_and_both_ways_count_once_and_loops_never(direction: Direction, expected: list[int]) -> None:
    graph = kernel_graph(EDGES)
    nodes = graph.internal("abc")
    assert count_distinct_neighbors(followed(graph, direction), nodes, None).tolist() == expected


def test_only_some_neighbors_count() -> None:
    graph = kernel_graph(EDGES)
    counted = np.zeros(3, dtype=np.bool_)
    counted[graph.internal("c")] = True
    assert count_distinct_neighbors(followed(graph, "both"), graph.internal("ab"), counted).tolist() == [1, 0]


@given(
    edges=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=20),
    sets=st.lists(st.lists(st.integers(0, 6), max_size=4), max_size=4),
    direction=st.sampled_from(["out", "in", "both"]),
    at_once=st.sampled_from([1, 3, 1 << 22]),
)
def test_neighbors_are_what_the_edges_say(
    edges: list[tuple[int, int]], sets: list[list[int]], direction: Direction, at_once: int
) -> None:
    graph = kernel_graph(edges, nodes=range(7))
    ways = {"out": edges, "in": [edge[::-1] for edge in edges], "both": [*edges, *(edge[::-1] for edge in edges)]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neighbor_sets, "EDGES_AT_ONCE", at_once)
        counts = count_distinct_neighbors(followed(graph, direction), graph.internal(range(7)), None)
    assert counts.tolist() == [len({v for u, v in ways[direction] if u == node != v}) for node in range(7)]

    if direction == "both":
        return
    flat = graph.internal([node for nodes in sets for node in nodes])
    bounds = np.cumsum([0, *map(len, sets)])
    offsets, found = neighbors_of_sets(followed(graph, direction).rows[0], bounds, flat)
    ids = graph.adjacency.order[found]
    for row, nodes in enumerate(sets):
        expected = {v for u, v in ways[direction] if u in nodes}
        assert set(ids[offsets[row] : offsets[row + 1]].tolist()) == expected


@pytest.mark.parametrize(
    ("degrees", "ranges"),
    [([], []), ([9], [(0, 1)]), ([2, 2, 2], [(0, 2), (2, 3)]), ([9, 0, 1, 3], [(0, 1), (1, 4)]), ([0, 0], [(0, 2)])],
)
def test_ranges_hold_so_many_edges(
    monkeypatch: pytest.MonkeyPatch, degrees: list[int], ranges: list[tuple[int, int]]
) -> None:
    monkeypatch.setattr(neighbor_sets, "EDGES_AT_ONCE", 4)
    assert list(edge_ranges(np.array(degrees, dtype=np.int64))) == ranges
