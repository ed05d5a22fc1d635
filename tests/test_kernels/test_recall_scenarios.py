"""Ten scenarios that every recall has to get right, on a linear, a branching, a cyclic and a deep graph."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import pytest

from seedrank.kernels.paths import shortest_paths
from seedrank.kernels.recall.depth_first import depth_first
from seedrank.kernels.recall.forms import RecallLimits, RecallResult, StopFlags
from seedrank.kernels.recall.one_hop import one_hop
from seedrank.kernels.recall.traverse import breadth_first
from seedrank.kernels.recall.walk import random_walk
from seedrank.kernels.recall.walk_graph import build_walk_graph
from seedrank.testing.harness import kernel_graph
from seedrank.testing.recall_harness import RecalledQuery, recall_graph, recall_queries, recalled, table_paths
from seedrank.testing.toys import Edge

LINEAR: list[Edge] = [("a", "b"), ("b", "c"), ("c", "d")]
BRANCHING: list[Edge] = [("a", "b"), ("a", "c"), ("b", "d"), ("b", "e"), ("c", "f")]
CYCLIC: list[Edge] = [("a", "b"), ("b", "c"), ("c", "a")]
DEEP: list[Edge] = [(f"n{place:03}", f"n{place + 1:03}") for place in range(200)]

METHODS: dict[str, Callable[..., RecallResult]] = {
    "bfs": lambda graph, queries, **options: breadth_first(graph, queries, hop_decay=0.5, **options),
    "dfs": lambda graph, queries, **options: depth_first(graph, queries, hop_decay=0.5, **options),
    "neighbors": lambda graph, queries, **options: one_hop(graph, queries, hop_decay=0.5, per_seed=None, **options),
    "walk": lambda graph, queries, **options: random_walk(
        build_walk_graph(graph), queries, restart=0.2, steps=2000, random_seed=0, **options
    ),
}
ALL = pytest.mark.parametrize("method", METHODS)
FAR = pytest.mark.parametrize("method", [name for name in METHODS if name != "neighbors"])


def recall(
    method: str, edges: Sequence[Edge], *anchors: Collection[Any], limits: RecallLimits | None = None, **options: Any
) -> list[RecalledQuery]:
    """Recall without the anchors themselves."""
    graph = kernel_graph(edges, nodes=[node for chosen in anchors for node in chosen])
    common = {"k": 1000, "eligible": None, "min_score": 0.0, "precision": "float64", "threads": 1}
    queries = recall_queries(graph, anchors, excluded=anchors)
    result = METHODS[method](recall_graph(graph), queries, limits=limits or RecallLimits(), **common | options)
    return recalled(graph, result)


def hops(query: RecalledQuery) -> dict[Any, int]:
    return {candidate.node: candidate.hops for candidate in query.candidates}


@ALL
def test_1_a_single_hop(method: str) -> None:
    (query,) = recall(method, [("a", "b")], ["a"])
    assert hops(query) == {"b": 1}
    assert (query["b"].anchor, query.visited_nodes, query.limit) == ("a", 1, "")


@FAR
def test_2_two_hops_and_a_chain_of_three_edges(method: str) -> None:
    (query,) = recall(method, LINEAR, ["a"], limits=RecallLimits(max_hops=2))
    assert (hops(query), query.limit, query.visited_nodes) == ({"b": 1, "c": 2}, "max_hops", 2)
    (query,) = recall(method, LINEAR, ["a"], limits=RecallLimits(max_hops=3))
    assert (hops(query), query.limit) == ({"b": 1, "c": 2, "d": 3}, "")
    assert query.nodes == ["b", "c", "d"]
    (query,) = recall(method, BRANCHING, ["a"])
    assert hops(query) == {"b": 1, "c": 1, "d": 2, "e": 2, "f": 2}


@FAR
def test_3_a_budget_that_ends_at_hop_one_of_three(method: str) -> None:
    for limits in (RecallLimits(max_visited_nodes=1), RecallLimits(max_visited_edges=1)):
        (query,) = recall(method, LINEAR, ["a"], limits=limits)
        assert (hops(query), query.visited_nodes) == ({"b": 1}, 1)
        assert query.limit == ("max_visited_edges" if limits.max_visited_edges else "max_visited_nodes")


@ALL
def test_4_a_self_loop_at_the_anchor(method: str) -> None:
    (query,) = recall(method, [("a", "a"), ("a", "b")], ["a"])
    assert (hops(query), query.visited_nodes, query.limit) == ({"b": 1}, 1, "")


@ALL
def test_5_the_same_seed_twice(method: str) -> None:
    assert recall(method, BRANCHING, ["a", "a"]) == recall(method, BRANCHING, ["a"])


@ALL
def test_6_no_edges(method: str) -> None:
    (query,) = recall(method, [], ["a"])
    assert (query.candidates, query.visited_nodes, query.visited_edges, query.limit) == ([], 0, 0, "")


@FAR
def test_7_two_anchors(method: str) -> None:
    (query,) = recall(method, [*LINEAR, ("x", "y"), ("y", "d")], ["x", "a"])
    assert {node: (query[node].hops, query[node].anchor) for node in "bcdy"} == {
        "b": (1, "a"), "c": (2, "a"), "d": (2, "x"), "y": (1, "x")
    }  # fmt: skip


def test_8_visit_counts_on_a_linear_graph() -> None:
    """Of n steps (1 - λ) π_a end on b, and so on; the rest restarts. Five deviations of independent draws, doubled."""
    steps = 2000
    (query,) = recall("walk", LINEAR, ["a"])
    parts = np.array([0.8**place for place in range(4)])
    expected = steps * parts / parts.sum()
    for node, mean in zip("bcd", expected[1:], strict=True):
        assert abs(query[node].visits - mean) < 10 * np.sqrt(mean)
    # A step to c comes from b, so no node has more visits than the one before it, but for the last walk.
    assert query["b"].visits >= query["c"].visits >= query["d"].visits
    for method in ("bfs", "dfs"):
        (query,) = recall(method, LINEAR, ["a"])
        assert [candidate.visits for candidate in query.candidates] == [1, 1, 1]


@ALL
def test_9_a_time_limit_only_shortens(method: str) -> None:
    """A query whose time is up before it starts; test_recall_stopping.py has those that are stopped under way."""
    flags = StopFlags.none(2)
    flags.stop[1] = 1
    full, stopped = recall(method, DEEP, ["n000"], ["n000"], flags=flags)
    assert (full.limit, stopped.limit) == ("", "timeout_s")
    assert set(hops(stopped).items()) <= set(hops(full).items())
    assert stopped.visited_nodes == 0


@FAR
def test_10_paths_are_reconstructed(method: str) -> None:
    for edges in (LINEAR, BRANCHING, CYCLIC, DEEP):
        graph = kernel_graph(edges)
        followed = recall_graph(graph)
        start = edges[0][0]
        queries = recall_queries(graph, [[start]], excluded=[[start]])
        common: dict[str, Any] = {"eligible": None, "min_score": 0.0, "precision": "float32", "threads": 1}
        result = METHODS[method](followed, queries, limits=RecallLimits(), k=300, **common)
        (query,) = recalled(graph, result)
        count = result.counts[0]
        assert method == "walk" or count == len(graph.ids) - 1
        table = shortest_paths(
            followed, queries.anchor_offsets, queries.anchors, np.array([0, count]), result.nodes[0, :count],
            from_anchors=result.anchors[0, :count], threads=1,
        )  # fmt: skip
        for candidate, path in zip(query.candidates, table_paths(graph, table), strict=True):
            assert path is not None
            assert len(path) == candidate.hops
            assert [step.source for step in path] == [start, *(step.target for step in path[:-1])]
            assert path[-1].target == candidate.node
            assert all((step.source, step.target) in edges for step in path)
