"""Traversals in breadth and depth: bit for bit the references, budgets exact, hops and counts right."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seedrank.kernels.arrays import Precision
from seedrank.kernels.recall.depth_first import depth_first
from seedrank.kernels.recall.forms import RecallLimits, RecallResult, StopFlags
from seedrank.kernels.recall.traverse import breadth_first
from seedrank.testing.harness import kernel_graph
from seedrank.testing.recall_harness import RecalledQuery, recall_graph, recall_queries, recalled
from seedrank.testing.reference import reference_top_k
from seedrank.testing.reference_recall import ReferenceLimits, ReferenceRecall
from seedrank.testing.reference_traversal import reference_breadth_first, reference_depth_first
from seedrank.testing.strategies import RandomGraph, graphs
from seedrank.testing.toys import Edge

NO_LIMITS = RecallLimits()
LIMIT = st.one_of(st.none(), st.integers(0, 7))
METHODS: dict[str, tuple[Callable[..., RecallResult], Callable[..., ReferenceRecall]]] = {
    "bfs": (breadth_first, reference_breadth_first),
    "dfs": (depth_first, reference_depth_first),
}
BOTH = pytest.mark.parametrize("method", sorted(METHODS))


def traverse(
    method: str,
    edges: Sequence[Edge],
    anchors: Sequence[Collection[Any]],
    *,
    nodes: Collection[Any] = (),
    direction: Literal["out", "in", "both"] = "out",
    type_weights: Mapping[Any, float] | None = None,
    hop_decay: float = 0.5,
    limits: RecallLimits = NO_LIMITS,
    k: int | None = None,
    eligible: Collection[Any] | None = None,
    excluded: Sequence[Collection[Any]] | None = None,
    min_score: float = 0.0,
    precision: Precision = "float64",
    threads: int = 1,
    flags: StopFlags | None = None,
) -> list[RecalledQuery]:
    """Traverse through the kernel, from ids to ids."""
    graph = kernel_graph(edges, nodes=nodes)
    mask = None
    if eligible is not None:
        mask = np.zeros(len(graph.ids), np.bool_)
        mask[graph.internal(eligible)] = True
    result = METHODS[method][0](
        recall_graph(graph, direction=direction, type_weights=type_weights),
        recall_queries(graph, anchors, excluded=excluded),
        hop_decay=hop_decay,
        limits=limits,
        k=max(1, len(graph.ids)) if k is None else k,
        eligible=mask,
        min_score=min_score,
        precision=precision,
        threads=threads,
        flags=flags,
    )
    return recalled(graph, result)


@BOTH
@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    data=st.data(),
    graph=graphs(),
    direction=st.sampled_from(["out", "in", "both"]),
    type_weights=st.sampled_from([None, {"cites": 0.0}, {"likes": 0.3}]),
    hop_decay=st.sampled_from([0.5, 1.0, 0.01]),
    limits=st.tuples(LIMIT, LIMIT, LIMIT),
)
def test_is_the_reference_traversal(
    method: str,
    data: st.DataObject,
    graph: RandomGraph,
    direction: Literal["out", "in", "both"],
    type_weights: dict[str, float] | None,
    hop_decay: float,
    limits: tuple[int | None, int | None, int | None],
) -> None:
    anchors = data.draw(st.sets(st.sampled_from(graph.nodes), max_size=4))
    excluded = data.draw(st.lists(st.sampled_from(graph.nodes), max_size=2))
    k = data.draw(st.integers(1, 9))
    (found,) = traverse(
        method, graph.edges, [anchors], nodes=graph.nodes, direction=direction, type_weights=type_weights,
        hop_decay=hop_decay, limits=RecallLimits(*limits), k=k, excluded=[excluded],
    )  # fmt: skip
    expected = METHODS[method][1](
        graph.edges, anchors, hop_decay=hop_decay, direction=direction, type_weights=type_weights,
        limits=ReferenceLimits(*limits),
    )  # fmt: skip
    assert (found.visited_nodes, found.visited_edges) == (expected.visited_nodes, expected.visited_edges)
    assert found.limit == expected.limit
    ranking = reference_top_k(expected.scores, k, excluded=excluded)
    assert found.nodes == [node for node, _ in ranking]
    for candidate in found.candidates:
        assert candidate.score == pytest.approx(expected.scores[candidate.node], rel=1e-14)
        assert candidate.hops == expected.hops[candidate.node]
        assert candidate.anchor == expected.anchors[candidate.node]
        assert candidate.visits == expected.visits[candidate.node]


STAR: list[Edge] = [("A", leaf) for leaf in "bcdef"]
CHAIN: list[Edge] = [(0, 1), (1, 2), (2, 3)]
#: Two ways of two steps, then two more of two: four shortest sequences to the end.
DIAMONDS: list[Edge] = [(1, 2), (1, 3), (2, 4), (3, 4), (4, 5), (4, 6), (5, 7), (6, 7)]


@BOTH
def test_case_29_a_budget_is_exact_and_exactly_enough_is_enough(method: str) -> None:
    (found,) = traverse(method, STAR, [["A"]], limits=RecallLimits(max_visited_nodes=3), excluded=["A"])
    assert (found.nodes, found.limit, found.visited_nodes) == (["b", "c", "d"], "max_visited_nodes", 3)
    (found,) = traverse(method, STAR, [["A"]], limits=RecallLimits(max_visited_nodes=5), excluded=["A"])
    assert (found.nodes, found.limit, found.visited_nodes) == (["b", "c", "d", "e", "f"], "", 5)
    for name, most in (("max_visited_edges", 4), ("", 5)):
        (found,) = traverse(method, STAR, [["A"]], limits=RecallLimits(max_visited_edges=most))
        assert (found.limit, found.visited_edges) == (name, most)
    for depth, nodes, name in ((0, [0], "max_hops"), (2, [0, 1, 2], "max_hops"), (3, [0, 1, 2, 3], "")):
        (found,) = traverse(method, CHAIN, [[0]], limits=RecallLimits(max_hops=depth))
        assert (found.nodes, found.limit) == (nodes, name)


@BOTH
def test_case_29_a_budget_of_one_step_of_three(method: str) -> None:
    (found,) = traverse(method, CHAIN, [[0]], limits=RecallLimits(max_visited_edges=1))
    assert (found.nodes, found.limit) == ([0, 1], "max_visited_edges")
    (found,) = traverse(method, CHAIN, [[0]], limits=RecallLimits(max_visited_nodes=0))
    assert (found.nodes, found.limit, found.visited_edges) == ([0], "max_visited_nodes", 0)
    # An edge back to a node that is there already needs no room.
    (found,) = traverse(method, [(0, 1), (1, 0)], [[0]], limits=RecallLimits(max_visited_nodes=1))
    assert (found.limit, found.visited_edges) == ("", 2)
    # When two limits stand in the way the edge comes first; a hop limit that was met too is not what cut it.
    both = RecallLimits(max_hops=1, max_visited_nodes=1, max_visited_edges=1)
    assert traverse(method, STAR, [["A"]], limits=both)[0].limit == "max_visited_edges"
    (found,) = traverse(method, [("A", "b"), ("b", "c"), ("A", "d")], [["A"]], limits=RecallLimits(1, 1))
    assert found.limit == "max_visited_nodes"


@BOTH
def test_case_30_the_cut_does_not_depend_on_the_order_of_rows(method: str) -> None:
    random = np.random.default_rng(3)
    edges: list[Edge] = [(int(a), int(b), 1.0, "xy"[a % 2]) for a, b in random.integers(0, 60, (400, 2))]
    limits = RecallLimits(max_visited_nodes=17)
    expected = traverse(method, edges, [[5, 41], [7]], direction="both", limits=limits)
    assert [query.limit for query in expected] == ["max_visited_nodes"] * 2
    for _ in range(5):
        random.shuffle(edges)
        assert traverse(method, edges, [[41, 5], [7]], direction="both", limits=limits) == expected


@BOTH
def test_case_32_each_node_once_with_the_nearest_anchor(method: str) -> None:
    (found,) = traverse(method, [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")], [["a"]])
    assert [(candidate.node, candidate.hops, candidate.visits) for candidate in found.candidates] == [
        ("a", 0, 1), ("b", 1, 1), ("c", 1, 1), ("d", 2, 2)
    ]  # fmt: skip
    (found,) = traverse(method, [(1, 2), (2, 3), (3, 1)], [[1]])
    assert [(candidate.node, candidate.hops) for candidate in found.candidates] == [(1, 0), (2, 1), (3, 2)]
    # 2 and 4 are one step from 3, 2 also from 1: the smaller id.
    (found,) = traverse(method, [(1, 2), (3, 2), (3, 4), (4, 5), (2, 5)], [[3, 1, 3]])
    assert {candidate.node: candidate.anchor for candidate in found.candidates} == {1: 1, 2: 1, 3: 3, 4: 3, 5: 1}
    assert found[5].visits == 1


def test_a_hub_leaves_its_neighbours_their_turns() -> None:
    """Of ten steps five go to the hub of 100,000 leaves and five to the small node beside it."""
    edges = [(0, leaf) for leaf in range(10, 100_010)] + [(1, 200_000 + leaf) for leaf in range(20)]
    (found,) = traverse("bfs", edges, [[0, 1]], limits=RecallLimits(max_visited_nodes=10), k=20)
    assert sorted(found.nodes) == [0, 1, *range(10, 15), *range(200_000, 200_005)]
    # The same one level further on, where turns go by id too.
    edges += [(7, 0), (7, 1)]
    (found,) = traverse("bfs", edges, [[7]], limits=RecallLimits(max_visited_edges=2 + 11), k=20)
    assert sorted(found.nodes) == [0, 1, 7, *range(10, 16), *range(200_000, 200_005)]


def test_depth_goes_before_breadth_and_comes_back_for_shorter_ways() -> None:
    edges = [(1, 2), (2, 3), (3, 4), (1, 4), (4, 5)]
    (found,) = traverse("dfs", edges, [[1]], limits=RecallLimits(max_visited_nodes=3))
    assert {candidate.node: candidate.hops for candidate in found.candidates} == {1: 0, 2: 1, 3: 2, 4: 3}
    (found,) = traverse("dfs", edges, [[1]])
    assert {candidate.node: candidate.hops for candidate in found.candidates} == {1: 0, 2: 1, 3: 2, 4: 1, 5: 2}
    assert found.visited_edges == 6  # 4→5 twice
    # With a hop limit, 4 is first met where it may not be gone on from.
    (found,) = traverse("dfs", edges, [[1]], limits=RecallLimits(max_hops=3))
    assert (sorted(found.nodes), found[5].hops, found.limit) == ([1, 2, 3, 4, 5], 2, "")


@BOTH
def test_counts_of_shortest_sequences(method: str) -> None:
    (found,) = traverse(method, DIAMONDS, [[1]])
    assert {candidate.node: candidate.visits for candidate in found.candidates} == {
        1: 1, 2: 1, 3: 1, 4: 2, 5: 2, 6: 2, 7: 4
    }  # fmt: skip
    # Parallel edges, also those of both directions, are one step.
    typed: list[Edge] = [("a", "b", 1.0, "x"), ("a", "b", 1.0, "y"), ("b", "a", 1.0, "x"), ("b", "c", 1.0, "x")]
    (found,) = traverse(method, typed, [["a"]], direction="both")
    assert (found["b"].visits, found["c"].visits, found.visited_edges) == (1, 1, 4)


@BOTH
def test_a_count_beyond_int64_stays_at_its_largest(method: str) -> None:
    edges = [(3 * i + a, 3 * i + b) for i in range(70) for a, b in ((0, 1), (0, 2), (1, 3), (2, 3))]
    (found,) = traverse(method, edges, [[0]], limits=RecallLimits() if method == "bfs" else RecallLimits(max_hops=140))
    assert found[3 * 62].visits == 2**62
    assert found[3 * 64].visits == found[3 * 70].visits == 2**63 - 1


@BOTH
def test_a_self_loop_at_the_anchor_is_followed_once(method: str) -> None:
    for direction in ("out", "both"):
        (found,) = traverse(method, [(1, 1), (1, 2)], [[1]], direction=direction)
        assert [(candidate.node, candidate.hops, candidate.visits) for candidate in found.candidates] == [
            (1, 0, 1), (2, 1, 1)
        ]  # fmt: skip
        assert found.visited_nodes == 1
        assert found.visited_edges == {"out": 2, "both": 3}[direction]


@BOTH
def test_no_edges_no_anchors_no_queries(method: str) -> None:
    nothing, alone = traverse(method, [], [[], ["a"]], nodes=["a"])
    assert (nothing.candidates, nothing.limit) == ([], "")
    assert (alone.nodes, alone.visited_nodes, alone.visited_edges) == (["a"], 0, 0)
    assert traverse(method, [], [], nodes=[]) == []


@BOTH
def test_scores_decay_and_never_vanish(method: str) -> None:
    edges = [(node, node + 1) for node in range(400)]
    for precision, smallest in (("float32", 2.0**-149), ("float64", 0.5**400)):
        (found,) = traverse(method, edges, [[0]], precision=precision)  # type: ignore[arg-type]
        assert found.nodes == list(range(401))
        assert [found[node].score for node in (0, 1, 7)] == [1.0, 0.5, 0.5**7]
        assert found[400].score == smallest
    (found,) = traverse(method, edges, [[0]], hop_decay=1e-5)
    assert found[400].score == 5e-324
    (found,) = traverse(method, edges, [[0]], hop_decay=1.0, k=3, excluded=[[0, 1, 5]])
    assert [(candidate.node, candidate.score) for candidate in found.candidates] == [(2, 1.0), (3, 1.0), (4, 1.0)]
    (found,) = traverse(method, edges, [[0]], min_score=0.25, precision="float32")
    assert found.nodes == [0, 1, 2]


@BOTH
def test_filters_apply_before_the_cut_and_stop_nothing(method: str) -> None:
    """Cases 46 and 47: k candidates as long as there are any, through nodes that may not be returned."""
    (found,) = traverse(method, STAR, [["A"]], k=3, excluded=["Abc"])
    assert found.nodes == ["d", "e", "f"]
    (found,) = traverse(method, STAR, [["A"]], k=3, excluded=["Abcdef"])
    assert (found.nodes, found.visited_nodes) == ([], 5)
    (found,) = traverse(method, CHAIN, [[0]], eligible=[3], excluded=[[1, 1]])
    assert [(candidate.node, candidate.hops) for candidate in found.candidates] == [(3, 3)]


@BOTH
def test_threads_and_batches_change_nothing(method: str) -> None:
    random = np.random.default_rng(8)
    edges = [(int(a), int(b)) for a, b in random.integers(0, 300, (900, 2))]
    anchors = [[int(node) for node in random.integers(0, 300, 3)] for _ in range(70)]
    limits = RecallLimits(max_hops=4, max_visited_edges=60)
    expected = traverse(method, edges, anchors, limits=limits, nodes=range(300))
    assert {query.limit for query in expected} >= {"max_visited_edges", "max_hops"}
    for threads in (2, 7):
        assert traverse(method, edges, anchors, limits=limits, nodes=range(300), threads=threads) == expected
    for i in (0, 33, 69):
        assert traverse(method, edges, [anchors[i]], limits=limits, nodes=range(300)) == [expected[i]]


@BOTH
def test_a_stop_flag_set_before_the_start_leaves_the_anchors(method: str) -> None:
    flags = StopFlags.none(2)
    flags.stop[0] = 1
    stopped, other = traverse(method, CHAIN, [[0], [0]], flags=flags)
    assert (stopped.nodes, stopped.visited_edges, stopped.limit) == ([0], 0, "timeout_s")
    assert (len(other.nodes), other.limit) == (4, "")
    assert flags.started.tolist() == [2, 2]


@pytest.mark.parametrize("direction", ["out", "in", "both"])
def test_hops_and_counts_on_a_random_graph_are_those_of_networkx(direction: Literal["out", "in", "both"]) -> None:
    random = np.random.default_rng(2)
    edges = [(int(a), int(b)) for a, b in random.integers(0, 200, (600, 2))]
    judge = nx.DiGraph(edges)
    judge = {"out": judge, "in": judge.reverse(), "both": judge.to_undirected()}[direction]
    judge.add_nodes_from(range(200))
    (bfs,) = traverse("bfs", edges, [[3]], direction=direction, nodes=range(200))
    (dfs,) = traverse("dfs", edges, [[3]], direction=direction, nodes=range(200))
    assert bfs.candidates == dfs.candidates
    assert bfs.visited_edges == sum(len(judge[node]) for node in bfs.nodes)
    assert dfs.visited_edges >= bfs.visited_edges
    lengths = nx.single_source_shortest_path_length(judge, 3)
    assert {candidate.node: candidate.hops for candidate in bfs.candidates} == lengths
    for candidate in bfs.candidates[::7]:
        assert candidate.visits == len(list(nx.all_shortest_paths(judge, 3, candidate.node)))
