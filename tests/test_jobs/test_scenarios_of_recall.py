"""Walks and traversals through the whole job: ten scenarios on graphs small enough to be walked by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import seedrank

Recall = Callable[..., Any]

LINEAR = (("a", "b"), ("b", "c"), ("c", "d"))
BRANCHING = (("s", "a"), ("s", "b"), ("s", "c"), ("a", "a1"), ("b", "b1"), ("c", "c1"), ("a1", "end"))
CYCLIC = ((1, 2), (2, 3), (3, 1))
DEEP = tuple((i, i + 1) for i in range(400))
TRAVERSALS = ("bfs", "dfs")
METHODS = ("walk", *TRAVERSALS, "neighbors")
#: So seldom that no walk of the tests restarts but at a dead end or past the hop limit.
NEVER = 1e-9


@pytest.mark.parametrize("method", METHODS)
def test_single_hop(recall: Recall, method: Any) -> None:
    found = recall(LINEAR[:1], ["a"], method=method)
    assert found.nodes == ["b"]
    assert found.column("hops") == {"b": 1}
    assert found.column("anchor_id") == {"b": "a"}
    row = found.row
    assert (row["status"], row["truncated"], row["visited_nodes"]) == ("ok", False, 1)
    assert row["method"] == method
    assert row["iterations"] is None
    assert row["error_bound"] is None


@pytest.mark.parametrize("method", TRAVERSALS)
@pytest.mark.parametrize(("hops", "reached"), [(1, "b"), (2, "bc"), (3, "bcd"), (None, "bcd")])
def test_two_hops_and_a_chain_of_three_edges(recall: Recall, method: Any, hops: int | None, reached: str) -> None:
    found = recall(LINEAR, ["a"], method=method, max_hops=hops)
    assert found.nodes == list(reached)
    assert found.column("hops") == {node: i for i, node in enumerate(reached, start=1)}
    assert found.column("score") == {node: 0.5**i for i, node in enumerate(reached, start=1)}
    assert found.row["budget_hit"] == ("max_hops" if len(reached) < 3 else None)
    assert (found.row["status"], found.row["truncated"]) == ("ok", False)


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_a_walk_turns_back_past_the_hop_limit(recall: Recall, hops: int) -> None:
    found = recall(LINEAR, ["a"], method="walk", max_hops=hops, restart=NEVER, walk_steps=1200)
    visits = 1200 // (hops + 1)
    assert found.column("visit_count") == dict.fromkeys("bcd"[:hops], visits)
    assert found.column("score") == pytest.approx(dict.fromkeys("bcd"[:hops], visits / 1200))
    assert found.column("hops") == {node: i for i, node in enumerate("bcd"[:hops], start=1)}


@pytest.mark.parametrize("method", ["bfs", "neighbors"])
def test_budget_is_exhausted_at_hop_1_of_3(recall: Recall, method: Any) -> None:
    found = recall(BRANCHING, ["s"], method=method, max_visited_nodes=2)
    assert found.nodes == ["a", "b"]
    row = found.row
    assert (row["status"], row["budget_hit"], row["truncated"]) == ("budget_exhausted", "max_visited_nodes", True)
    assert row["visited_nodes"] == 2


def test_depth_first_spends_its_budget_on_depth(recall: Recall) -> None:
    assert recall(BRANCHING, ["s"], method="dfs", max_visited_nodes=3).nodes == ["a", "a1", "end"]
    assert recall(BRANCHING, ["s"], method="bfs", max_visited_nodes=3).nodes == ["a", "b", "c"]


@pytest.mark.parametrize("method", METHODS)
def test_exactly_enough_budget_is_not_exhausted(recall: Recall, method: Any) -> None:
    star = [("A", leaf) for leaf in "bcdef"]
    enough = recall(star, ["A"], method=method, max_visited_nodes=5)
    assert sorted(enough.nodes) == list("bcdef")
    assert (enough.row["status"], enough.row["truncated"], enough.row["budget_hit"]) == ("ok", False, None)
    if method == "walk":
        return
    edges = recall(star, ["A"], method=method, max_visited_edges=5)
    assert (edges.row["status"], edges.row["visited_edges"], edges.row["truncated"]) == ("ok", 5, False)
    short = recall(star, ["A"], method=method, max_visited_edges=4)
    assert (short.row["status"], short.row["visited_edges"]) == ("budget_exhausted", 4)
    assert (short.row["budget_hit"], short.row["truncated"]) == ("max_visited_edges", True)


def test_a_walk_ends_with_its_budget(recall: Recall) -> None:
    short = recall(LINEAR, ["a"], method="walk", restart=NEVER, walk_steps=1000, max_visited_edges=3)
    assert short.column("visit_count") == {"b": 1, "c": 1, "d": 1}
    row = short.row
    assert (row["status"], row["budget_hit"], row["visited_edges"]) == ("budget_exhausted", "max_visited_edges", 3)


@pytest.mark.parametrize("method", METHODS)
def test_self_loop_at_the_anchor(recall: Recall, method: Any) -> None:
    found = recall([("a", "a"), ("a", "b")], ["a"], method=method)
    assert found.nodes == ["b"]
    assert found.column("hops") == {"b": 1}
    # The anchor is no candidate; with it, a traversal has it at distance 0.
    both = recall([("a", "a"), ("a", "b")], ["a"], method=method, include_seeds=True)
    assert set(both.nodes) == {"a", "b"}
    assert both.column("hops")["a"] == 0


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_twice_is_one_anchor(recall: Recall, method: Any) -> None:
    once, twice = (recall(BRANCHING, seeds, method=method) for seeds in (["s"], ["s", "s"]))
    assert once.candidates == twice.candidates
    assert once.row["visited_edges"] == twice.row["visited_edges"]
    assert twice.row["seeds_given"] == 2


@pytest.mark.parametrize("method", METHODS)
def test_no_edges(recall: Recall, tmp_path: Any, method: Any) -> None:
    nodes = pa.table({"id": ["a", "b"]})
    graph = seedrank.build(
        pa.table({"src": pa.array([], pa.string()), "dst": pa.array([], pa.string())}), nodes=nodes, out=tmp_path / "g"
    )
    found = recall(graph, ["a"], method=method, paths=True)
    assert found.nodes == []
    assert (found.row["status"], found.row["visited_nodes"], found.row["visited_edges"]) == ("ok", 0, 0)
    (anchor,) = recall(graph, ["a"], method=method, paths=True, include_seeds=True).candidates["q"]
    assert (anchor["node_id"], anchor["hops"], anchor["score"], anchor["path"]) == ("a", 0, 1.0, [])


@pytest.mark.parametrize("method", TRAVERSALS)
def test_two_anchors_share_the_graph_by_distance(recall: Recall, method: Any) -> None:
    edges = [(1, 4), (4, 5), (5, 6), (3, 6), (1, 2), (3, 2)]
    found = recall(edges, [3, 1], method=method)
    assert found.column("hops") == {2: 1, 4: 1, 6: 1, 5: 2}
    assert found.column("anchor_id") == {2: 1, 4: 1, 6: 3, 5: 1}  # 2 is next to both: the lower id


def test_two_anchors_of_a_walk_give_one_row_with_the_higher_score(recall: Recall) -> None:
    edges = [("a", "x"), ("b", "x"), ("b", "y")]
    found = recall(edges, ["a", "b"], method="walk", restart=NEVER, walk_steps=1000)
    assert found.nodes == ["x", "y"]
    assert found.column("anchor_id") == {"x": "a", "y": "b"}
    assert found.column("visit_count")["x"] == 500  # from b it would be half of that
    assert found.column("score")["x"] == 0.5


def test_visit_counts_on_a_linear_graph(recall: Recall) -> None:
    """Without restarts the walk is a, b, c, d, a, …: every node gets a quarter of the steps exactly."""
    found = recall(LINEAR, ["a"], method="walk", restart=NEVER, walk_steps=1000, include_seeds=True)
    assert found.column("visit_count") == dict.fromkeys("abcd", 250)
    assert found.nodes == list("abcd")
    assert found.row["visited_edges"] == 750


@pytest.mark.parametrize("method", TRAVERSALS)
def test_visit_counts_of_traversals_are_numbers_of_shortest_paths(recall: Recall, method: Any) -> None:
    # Two diamonds in a row, the second with three ways; parallel edges are one way.
    edges = [("a", x) for x in "bbc"] + [(x, "d") for x in "bc"] + [("d", x) for x in "efg"] + [(x, "z") for x in "efg"]
    found = recall(edges, ["a"], method=method)
    assert found.column("visit_count") == {"b": 1, "c": 1, "d": 2, "e": 2, "f": 2, "g": 2, "z": 6}


@pytest.mark.parametrize("method", [*METHODS, "ppr"])
def test_path_reconstruction(recall: Recall, method: Any) -> None:
    edges = [
        ("a", "c", 1.0, "x"),
        ("a", "b", 2.0, "x"),
        ("a", "b", 3.0, "y"),
        ("b", "d", 1.0, "x"),
        ("c", "d", 5.0, "x"),
    ]
    found = recall(edges, ["a"], method=method, paths=True).column("path")
    first = {"src": "a", "dst": "b", "type": "y", "weight": 3.0, "reversed": False}
    assert found["b"] == [first]
    if method != "neighbors":
        assert found["d"] == [first, {"src": "b", "dst": "d", "type": "x", "weight": 1.0, "reversed": False}]


@pytest.mark.parametrize("method", [*TRAVERSALS, "ppr"])
def test_path_against_the_edges(recall: Recall, method: Any) -> None:
    found = recall(LINEAR[:2], ["c"], method=method, direction="in", paths=True)
    back = {"src": "b", "dst": "c", "type": None, "weight": 1.0, "reversed": True}
    assert found.column("path") == {"b": [back], "a": [back, {**back, "src": "a", "dst": "b"}]}
    assert found.column("hops") == {"b": 1, "a": 2}


@pytest.mark.parametrize("method", TRAVERSALS)
def test_cycles_end(recall: Recall, method: Any) -> None:
    found = recall(CYCLIC, [1], method=method)
    assert found.nodes == [2, 3]
    assert found.row["visited_nodes"] == 2


@pytest.mark.parametrize("method", TRAVERSALS)
def test_deep_graphs_neither_overflow_nor_underflow(recall: Recall, method: Any) -> None:
    found = recall(DEEP, [0], method=method, top_k=1000, paths=True)
    assert found.nodes[:100] == list(range(1, 101))
    assert sorted(found.nodes) == list(range(1, 401))  # .5 to the power of 400 is no float32, and yet no score is 0
    assert found.column("hops") == {i: i for i in range(1, 401)}
    assert len(found.column("path")[400]) == 400


def test_a_hub_does_not_starve_its_neighbours(recall: Recall) -> None:
    leaves = [("hub", f"leaf{i:06}") for i in range(100_000)]
    found = recall([*leaves, ("small", "only")], ["hub", "small"], method="bfs", max_visited_nodes=4)
    assert found.nodes == ["leaf000000", "leaf000001", "leaf000002", "only"]
    assert found.row["visited_edges"] == 4


def test_neighbors_of_both_directions_take_turns(recall: Recall) -> None:
    edges = [("s", f"out{i}") for i in range(5)] + [(f"in{i}", "s") for i in range(5)] + [("s", "out0")]
    found = recall(edges, ["s"], method="neighbors", direction="both", neighbors_per_seed=4)
    assert sorted(found.nodes) == ["in0", "in1", "out0", "out1"]
    assert found.column("hops") == dict.fromkeys(found.nodes, 1)
    assert recall(edges, ["s"], method="neighbors", neighbors_per_seed=2).nodes == ["out0", "out1"]
    assert recall(edges, ["s"], method="neighbors", direction="in", neighbors_per_seed=2).nodes == ["in0", "in1"]
    assert len(recall(edges, ["s"], method="neighbors", direction="both").nodes) == 10
