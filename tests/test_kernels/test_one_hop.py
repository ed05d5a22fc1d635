"""One-hop expansion: turns of anchors and directions, collapsed edges, the cap, the budget."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from hypothesis import given, settings
from hypothesis import strategies as st

from seedrank.kernels.recall.forms import RecallLimits, StopFlags
from seedrank.kernels.recall.one_hop import one_hop
from seedrank.testing.harness import kernel_graph
from seedrank.testing.recall_harness import RecalledQuery, recall_graph, recall_queries, recalled
from seedrank.testing.reference import reference_top_k
from seedrank.testing.reference_recall import ReferenceLimits
from seedrank.testing.reference_traversal import reference_one_hop
from seedrank.testing.strategies import RandomGraph, graphs
from seedrank.testing.toys import Edge

NO_LIMITS = RecallLimits()
LIMIT = st.one_of(st.none(), st.integers(0, 7))


def expand(
    edges: Sequence[Edge],
    anchors: Sequence[Collection[Any]],
    *,
    nodes: Collection[Any] = (),
    direction: Literal["out", "in", "both"] = "out",
    type_weights: Mapping[Any, float] | None = None,
    hop_decay: float = 0.5,
    per_seed: int | None = None,
    limits: RecallLimits = NO_LIMITS,
    k: int = 100,
    excluded: Sequence[Collection[Any]] | None = None,
    threads: int = 1,
    flags: StopFlags | None = None,
) -> list[RecalledQuery]:
    """Expand through the kernel, from ids to ids."""
    graph = kernel_graph(edges, nodes=nodes)
    result = one_hop(
        recall_graph(graph, direction=direction, type_weights=type_weights),
        recall_queries(graph, anchors, excluded=excluded),
        hop_decay=hop_decay,
        per_seed=per_seed,
        limits=limits,
        k=k,
        eligible=None,
        min_score=0.0,
        precision="float64",
        threads=threads,
        flags=flags,
    )
    return recalled(graph, result)


@settings(max_examples=250, deadline=None, derandomize=True)
@given(
    data=st.data(),
    graph=graphs(),
    direction=st.sampled_from(["out", "in", "both"]),
    type_weights=st.sampled_from([None, {"cites": 0.0}]),
    hop_decay=st.sampled_from([0.5, 1.0]),
    per_seed=st.one_of(st.none(), st.integers(1, 4)),
    limits=st.tuples(LIMIT, LIMIT, LIMIT),
)
def test_is_the_reference_expansion(
    data: st.DataObject,
    graph: RandomGraph,
    direction: Literal["out", "in", "both"],
    type_weights: dict[str, float] | None,
    hop_decay: float,
    per_seed: int | None,
    limits: tuple[int | None, int | None, int | None],
) -> None:
    anchors = data.draw(st.sets(st.sampled_from(graph.nodes), max_size=4))
    excluded = data.draw(st.lists(st.sampled_from(graph.nodes), max_size=2))
    k = data.draw(st.integers(1, 9))
    (found,) = expand(
        graph.edges, [anchors], nodes=graph.nodes, direction=direction, type_weights=type_weights,
        hop_decay=hop_decay, per_seed=per_seed, limits=RecallLimits(*limits), k=k, excluded=[excluded],
    )  # fmt: skip
    expected = reference_one_hop(
        graph.edges, anchors, hop_decay=hop_decay, per_seed=per_seed, direction=direction, type_weights=type_weights,
        limits=ReferenceLimits(*limits),
    )  # fmt: skip
    assert (found.visited_nodes, found.visited_edges) == (expected.visited_nodes, expected.visited_edges)
    assert found.limit == expected.limit
    ranking = [(candidate.node, candidate.score) for candidate in found.candidates]
    assert ranking == reference_top_k(expected.scores, k, excluded=excluded)
    for candidate in found.candidates:
        assert candidate.hops == expected.hops[candidate.node]
        assert candidate.anchor == expected.anchors[candidate.node]
        assert candidate.visits == expected.visits[candidate.node] == 1


def test_successors_and_predecessors_take_turns() -> None:
    edges: list[Edge] = [(0, 1), (0, 2), (0, 3), (0, 4), (7, 0), (8, 0), (1, 0)]
    for per_seed, nodes in ((1, [1]), (2, [1, 2]), (3, [1, 2, 7]), (4, [1, 2, 3, 7]), (5, [1, 2, 3, 7, 8])):
        (found,) = expand(edges, [[0]], direction="both", per_seed=per_seed, excluded=[[0]])
        assert (found.nodes, found.limit) == (nodes, "")
    assert expand(edges, [[0]], direction="in", per_seed=2, excluded=[[0]])[0].nodes == [1, 7]
    assert expand(edges, [[0]], per_seed=2, excluded=[[0]])[0].nodes == [1, 2]


def test_parallel_edges_are_one_neighbour_and_types_choose() -> None:
    edges: list[Edge] = [("a", "b", 1.0, "x"), ("a", "b", 1.0, "y"), ("a", "c", 1.0, "y"), ("a", "a", 1.0, "x")]
    (found,) = expand(edges, [["a"]], per_seed=2, excluded=["a"])
    assert (found.nodes, found.visited_edges) == (["b", "c"], 2)
    (found,) = expand(edges, [["a"]], per_seed=1, type_weights={"x": 0.0, "y": 1.0}, excluded=["ab"])
    assert found.nodes == []
    (found,) = expand(edges[2:], [["a"]], type_weights={"y": 0.0}, excluded=["a"])
    assert (found.nodes, found.visited_edges) == ([], 0)


def test_a_budget_is_shared_among_the_anchors() -> None:
    edges = [(0, leaf) for leaf in range(10, 5000)] + [(1, 6000), (1, 6001), (1, 10)]
    (found,) = expand(edges, [[0, 1]], limits=RecallLimits(max_visited_nodes=4))
    # The first turns go to 10 and, for the second anchor, to 10 as well, which is not new.
    assert sorted(found.nodes) == [0, 1, 10, 11, 12, 6000]
    assert found.limit == "max_visited_nodes"
    assert found[10].anchor == 0
    (found,) = expand(edges[-3:], [[1]], limits=RecallLimits(max_visited_nodes=3, max_visited_edges=3))
    assert found.limit == ""
    (found,) = expand(edges[-3:], [[1]], per_seed=2, limits=RecallLimits(max_visited_edges=2))
    assert found.limit == ""


def test_degenerate_queries_and_flags() -> None:
    flags = StopFlags.none(3)
    flags.stop[2] = 1
    nothing, alone, stopped = expand([("b", "c")], [[], ["a"], ["b"]], nodes="a", flags=flags, threads=2)
    assert nothing.candidates == []
    assert [(candidate.node, candidate.score, candidate.hops) for candidate in alone.candidates] == [("a", 1.0, 0)]
    assert (stopped.nodes, stopped.limit) == (["b"], "timeout_s")
