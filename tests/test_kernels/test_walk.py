"""Random walk with restart: bit for bit the reference, and where the shares go."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seedrank.kernels.arrays import Precision
from seedrank.kernels.recall.forms import RecallLimits, StopFlags
from seedrank.kernels.recall.walk import random_walk
from seedrank.kernels.recall.walk_graph import build_walk_graph
from seedrank.testing.harness import kernel_graph
from seedrank.testing.parity import assert_scores_close
from seedrank.testing.recall_harness import RecalledQuery, recall_graph, recall_queries, recalled, stream_key
from seedrank.testing.reference import reference_top_k
from seedrank.testing.reference_recall import ReferenceLimits, reference_random_walk
from seedrank.testing.strategies import RandomGraph, graphs
from seedrank.testing.toys import K1, K5, K12, K12_LIKES, Edge

NO_LIMITS = RecallLimits()
LIMIT = st.one_of(st.none(), st.integers(0, 6))


def walk(
    edges: Sequence[Edge],
    anchors: Sequence[Collection[Any]],
    *,
    nodes: Collection[Any] = (),
    direction: Literal["out", "in", "both"] = "out",
    type_weights: Mapping[Any, float] | None = None,
    restart: float = 0.2,
    steps: int = 1000,
    random_seed: int = 0,
    limits: RecallLimits = NO_LIMITS,
    k: int | None = None,
    eligible: Collection[Any] | None = None,
    excluded: Sequence[Collection[Any]] | None = None,
    min_score: float = 0.0,
    precision: Precision = "float64",
    threads: int = 1,
    flags: StopFlags | None = None,
    names: Sequence[Any] | None = None,
) -> list[RecalledQuery]:
    """Walk through the kernel, from ids to ids."""
    graph = kernel_graph(edges, nodes=nodes)
    mask = None
    if eligible is not None:
        mask = np.zeros(len(graph.ids), np.bool_)
        mask[graph.internal(eligible)] = True
    result = random_walk(
        build_walk_graph(recall_graph(graph, direction=direction, type_weights=type_weights)),
        recall_queries(graph, anchors, excluded=excluded, names=names),
        restart=restart,
        steps=steps,
        random_seed=random_seed,
        limits=limits,
        k=len(graph.ids) if k is None else k,
        eligible=mask,
        min_score=min_score,
        precision=precision,
        threads=threads,
        flags=flags,
    )
    return recalled(graph, result)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    data=st.data(),
    graph=graphs(),
    direction=st.sampled_from(["out", "in", "both"]),
    type_weights=st.sampled_from([None, {"cites": 0.0}, {"likes": 0.3, "cites": 1.0}]),
    restart=st.sampled_from([0.01, 0.2, 0.5, 1.0]),
    steps=st.integers(1, 40),
    random_seed=st.integers(0, 2**64 - 1),
    limits=st.tuples(LIMIT, LIMIT, LIMIT),
)
def test_is_the_reference_walk(
    data: st.DataObject,
    graph: RandomGraph,
    direction: Literal["out", "in", "both"],
    type_weights: dict[str, float] | None,
    restart: float,
    steps: int,
    random_seed: int,
    limits: tuple[int | None, int | None, int | None],
) -> None:
    anchors = data.draw(st.sets(st.sampled_from(graph.nodes), max_size=4))
    excluded = data.draw(st.lists(st.sampled_from(graph.nodes), max_size=2))
    k = data.draw(st.integers(1, 9))
    (found,) = walk(
        graph.edges, [anchors], nodes=graph.nodes, direction=direction, type_weights=type_weights, restart=restart,
        steps=steps, random_seed=random_seed, limits=RecallLimits(*limits), k=k, excluded=[excluded], names=["q"],
    )  # fmt: skip
    expected = reference_random_walk(
        graph.edges, anchors, restart=restart, steps=steps, random_seed=random_seed, query_key=stream_key("q"),
        anchor_keys={node: stream_key(node) for node in graph.nodes}, direction=direction, type_weights=type_weights,
        limits=ReferenceLimits(*limits),
    )  # fmt: skip
    assert (found.visited_nodes, found.visited_edges) == (expected.visited_nodes, expected.visited_edges)
    assert found.limit == expected.limit
    ranking = [(candidate.node, candidate.score) for candidate in found.candidates]
    assert ranking == reference_top_k(expected.scores, k, excluded=excluded)
    for candidate in found.candidates:
        assert candidate.hops == expected.hops[candidate.node]
        assert candidate.anchor == expected.anchors[candidate.node]
        assert candidate.visits == expected.visits[candidate.node]


def everything(queries: Sequence[RecalledQuery]) -> list[tuple[Any, ...]]:
    return [(query.candidates, query.visited_nodes, query.visited_edges, query.limit) for query in queries]


def grid(side: int) -> list[Edge]:
    """A weighted grid of side · side nodes with edges to the right and down, and some back."""
    right = [(row * side + column, row * side + column + 1) for row in range(side) for column in range(side - 1)]
    down = [(row * side + column, row * side + column + side) for row in range(side - 1) for column in range(side)]
    back = [(target, source) for source, target in right if source % 3 == 0]
    return [(source, target, 1.0 + (source * 7 + target) % 5) for source, target in right + down + back]


def test_threads_batches_and_order_of_queries_change_nothing() -> None:
    edges = grid(12)
    names = list(range(70))
    anchors = [{(name * 11) % 144, (name * 5 + 1) % 144} for name in names]
    limits = RecallLimits(max_visited_edges=700)
    expected = everything(walk(edges, anchors, names=names, steps=500, limits=limits))
    for threads in (2, 3, 8):
        assert everything(walk(edges, anchors, names=names, steps=500, limits=limits, threads=threads)) == expected
    shuffled = np.random.default_rng(1).permutation(70).tolist()
    found = walk(edges[::-1], [anchors[i] for i in shuffled], names=[names[i] for i in shuffled], steps=500,
                 limits=limits, threads=2)  # fmt: skip
    assert everything(found) == [expected[i] for i in shuffled]
    for i in (0, 7, 69):
        assert everything(walk(edges, [anchors[i]], names=[names[i]], steps=500, limits=limits)) == [expected[i]]


def test_random_seed_query_and_anchor_key_each_change_the_walk() -> None:
    edges = grid(6)
    visits = {
        tuple((candidate.node, candidate.visits) for candidate in query.candidates)
        for seed in (0, 1)
        for query in walk(edges, [[0], [0]], names=["a", "b"], random_seed=seed)
    }
    assert len(visits) == 4
    # Two nodes with the same surroundings walk differently, because their ids differ.
    first, second = walk([(0, 1), (0, 2), (10, 1), (10, 2)], [[0], [10]], names=["a", "a"], steps=100)
    assert [first[1].visits, first[2].visits] != [second[1].visits, second[2].visits]


def test_a_thousand_anchors_make_the_table_grow() -> None:
    """A thousand walkers of a query on a long cycle: about ten thousand entries."""
    edges = [(node, (node + 1) % 5000) for node in range(5000)]
    anchors = range(0, 5000, 5)
    (found,) = walk(edges, [anchors], steps=20, k=5000)
    expected = reference_random_walk(
        edges, anchors, restart=0.2, steps=20, random_seed=0, query_key=stream_key(0),
        anchor_keys={node: stream_key(node) for node in anchors},
    )  # fmt: skip
    assert {candidate.node: candidate.visits for candidate in found.candidates} == expected.visits
    assert {candidate.node: candidate.anchor for candidate in found.candidates} == expected.anchors
    assert found.visited_nodes == expected.visited_nodes
    assert found.visited_nodes == len(expected.visits) - len(anchors)


def test_case_34_a_dead_end_returns_to_the_anchor() -> None:
    (found,) = walk(K1.edges, [[1]], restart=0.15, steps=200_000)
    assert found.nodes == [1, 2]
    assert_scores_close({candidate.node: candidate.score for candidate in found.candidates}, K1.expected, 0.003)
    # Every second step at most ends on the dead end.
    assert found[2].visits <= found[1].visits + 1
    assert found.visited_edges == found[2].visits


def test_case_35_weights_share_the_visits() -> None:
    edges = [("A", "B", 9.0), ("A", "C", 1.0), ("B", "A", 1.0), ("C", "A", 1.0)]
    (found,) = walk(edges, [["A"]], restart=0.15, steps=400_000)
    expected = {"A": 20 / 37, "B": 153 / 370, "C": 17 / 370}
    assert_scores_close({candidate.node: candidate.score for candidate in found.candidates}, expected, 0.003)
    assert found["B"].visits / found["C"].visits == pytest.approx(9, rel=0.05)


def test_case_36_types_weights_and_direction() -> None:
    for toy in (K12, K12_LIKES):
        (found,) = walk(toy.edges, [toy.seeds], restart=toy.restart, steps=200_000, type_weights=toy.type_weights)
        assert_scores_close({candidate.node: candidate.score for candidate in found.candidates}, toy.expected, 0.005)
    expected: dict[str, dict[str, float]] = {
        "out": {"C": 1.0}, "in": {"C": 4 / 7, "B": 2 / 7, "A": 1 / 7}, "both": {"C": 7 / 12, "B": 1 / 3, "A": 1 / 12}
    }  # fmt: skip
    for direction, scores in expected.items():
        (found,) = walk([("A", "B"), ("B", "C")], [["C"]], restart=0.5, steps=200_000, direction=direction)  # type: ignore[arg-type]
        assert_scores_close({candidate.node: candidate.score for candidate in found.candidates}, scores, 0.005)


def test_case_52_a_self_loop_is_a_step_and_counts_once_in_both_directions() -> None:
    (found,) = walk(K5.edges, [K5.seeds], restart=0.15, steps=400_000)
    assert_scores_close({candidate.node: candidate.score for candidate in found.candidates}, K5.expected, 0.004)
    (found,) = walk([(1, 1), (1, 2)], [[1]], restart=0.5, steps=200_000)
    assert_scores_close({candidate.node: candidate.score for candidate in found.candidates}, {1: 0.8, 2: 0.2}, 0.005)
    # Undirected a-b, b-c, loop b-b: the loop counted twice would give .55, .40, .05.
    (found,) = walk([("a", "b"), ("b", "c"), ("b", "b")], [["a"]], restart=0.5, steps=400_000, direction="both")
    shares = {"a": 9 / 16, "b": 3 / 8, "c": 1 / 16}
    assert_scores_close({candidate.node: candidate.score for candidate in found.candidates}, shares, 0.003)


def test_a_hop_limit_returns_and_is_named() -> None:
    chain = [(1, 2), (2, 3), (3, 4)]
    (found,) = walk(chain, [[1]], limits=RecallLimits(max_hops=2))
    assert {candidate.node: candidate.hops for candidate in found.candidates} == {1: 0, 2: 1, 3: 2}
    assert found.limit == "max_hops"
    (found,) = walk(chain, [[1]], limits=RecallLimits(max_hops=3))
    assert (len(found.nodes), found.limit) == (4, "")
    (found,) = walk(chain, [[1]], limits=RecallLimits(max_hops=0))
    assert (found.nodes, found[1].visits, found.visited_edges, found.limit) == ([1], 1000, 0, "max_hops")


def test_exactly_enough_is_not_exhausted() -> None:
    chain = [(1, 2), (2, 3), (3, 4)]
    (full,) = walk(chain, [[1]])
    enough = RecallLimits(max_hops=3, max_visited_nodes=full.visited_nodes, max_visited_edges=full.visited_edges)
    assert everything(walk(chain, [[1]], limits=enough)) == everything([full])
    (found,) = walk(chain, [[1]], limits=RecallLimits(max_visited_nodes=full.visited_nodes - 1))
    assert (found.limit, found.visited_nodes) == ("max_visited_nodes", 2)
    (found,) = walk(chain, [[1]], limits=RecallLimits(max_visited_edges=full.visited_edges - 1))
    assert (found.limit, found.visited_edges) == ("max_visited_edges", full.visited_edges - 1)


def test_a_cut_is_fair_to_the_anchors_and_lowers_scores_only() -> None:
    edges = grid(10)
    (full,) = walk(edges, [[0, 50]])
    (cut,) = walk(edges, [[0, 50]], limits=RecallLimits(max_visited_edges=200))
    assert cut.limit == "max_visited_edges"
    for candidate in cut.candidates:
        assert candidate.score <= full[candidate.node].score
    assert cut[0].visits == pytest.approx(cut[50].visits, rel=0.5)


def test_no_edges_no_anchors_and_unknown_surroundings() -> None:
    nothing, alone = walk([], [[], ["a"]], nodes=["a"])
    assert everything([nothing]) == [([], 0, 0, "")]
    assert (alone.nodes, alone["a"].visits, alone["a"].score, alone.visited_edges) == (["a"], 1000, 1.0, 0)
    assert walk([(1, 2)], []) == []


def test_filters_apply_before_the_cut() -> None:
    star = [("A", leaf) for leaf in "bcdef"]
    (found,) = walk(star, [["A"]], k=3, excluded=[["A", "b", "c", "b"]])
    assert sorted(found.nodes) == ["d", "e", "f"]
    assert found.visited_nodes == 5
    (found,) = walk(star, [["A"]], k=3, eligible="fb", min_score=1e-9)
    assert sorted(found.nodes) == ["b", "f"]
    scores = sorted(candidate.score for candidate in walk(star, [["A"]])[0].candidates)
    (found,) = walk(star, [["A"]], min_score=scores[3])
    assert [candidate.score for candidate in found.candidates] == scores[:2:-1]
    (found,) = walk(star, [["A"]], precision="float32", min_score=scores[3])
    assert len(found.nodes) == 3


def test_a_stop_flag_set_before_the_start_leaves_nothing() -> None:
    flags = StopFlags.none(3)
    flags.stop[1] = 1
    found = walk([(1, 2), (2, 1)], [[1], [1], [1]], flags=flags)
    assert [query.limit for query in found] == ["", "timeout_s", ""]
    assert [len(query.nodes) for query in found] == [2, 0, 2]
    assert flags.started.tolist() == [2, 2, 2]
