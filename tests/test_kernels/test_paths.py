"""Shortest paths: the smallest of them, whichever end the search comes from, with edges that exist."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Any, Literal

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seedrank.kernels.paths import PathTable, shortest_paths
from seedrank.kernels.recall.forms import StopFlags
from seedrank.testing.harness import KernelGraph, kernel_graph
from seedrank.testing.recall_harness import recall_graph, recall_queries, table_paths
from seedrank.testing.reference_paths import ReferenceStep, reference_path
from seedrank.testing.strategies import RandomGraph, graphs
from seedrank.testing.toys import Edge

Ways = Literal["out", "in", "both"]


def find(
    graph: KernelGraph,
    anchors: Sequence[Collection[Any]],
    targets: Sequence[Sequence[Any]],
    *,
    direction: Ways = "out",
    type_weights: dict[str, float] | None = None,
    from_anchors: Sequence[Any] | None = None,
    threads: int = 1,
    flags: StopFlags | None = None,
) -> PathTable:
    queries = recall_queries(graph, anchors)
    offsets = np.cumsum([0, *(len(nodes) for nodes in targets)])
    return shortest_paths(
        recall_graph(graph, direction=direction, type_weights=type_weights),
        queries.anchor_offsets,
        queries.anchors,
        offsets,
        graph.internal([node for nodes in targets for node in nodes]),
        from_anchors=None if from_anchors is None else graph.internal(from_anchors),
        threads=threads,
        flags=flags,
    )


def sequence(path: list[ReferenceStep] | None) -> list[Any]:
    """Nodes along a path of at least one step."""
    assert path
    ends = [(step.target, step.source) if step.reversed else (step.source, step.target) for step in path]
    assert all(before[1] == after[0] for before, after in pairwise(ends))
    return [ends[0][0], *(entering for _, entering in ends)]


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    data=st.data(),
    graph=graphs(),
    direction=st.sampled_from(["out", "in", "both"]),
    type_weights=st.sampled_from([None, {"cites": 0.0}, {"likes": 0.3}]),
)
def test_are_the_reference_paths(
    data: st.DataObject, graph: RandomGraph, direction: Ways, type_weights: dict[str, float] | None
) -> None:
    anchors = data.draw(st.lists(st.sets(st.sampled_from(graph.nodes), min_size=1, max_size=3), min_size=1, max_size=3))
    targets = [data.draw(st.permutations(graph.nodes)) for _ in anchors]
    built = kernel_graph(graph.edges, nodes=graph.nodes)
    table = find(built, anchors, targets, direction=direction, type_weights=type_weights)
    of_target = [chosen for chosen, nodes in zip(anchors, targets, strict=True) for _ in nodes]
    expected = [
        reference_path(graph.edges, chosen, target, direction=direction, type_weights=type_weights)
        for chosen, target in zip(of_target, (node for nodes in targets for node in nodes), strict=True)
    ]
    found = table_paths(built, table)
    assert found == expected
    assert table.hops.tolist() == [-1 if path is None else len(path) for path in expected]
    flat = [node for nodes in targets for node in nodes]
    for place, path in enumerate(expected):
        anchor = table.anchors[place]
        if path is None:
            assert anchor == -1
        else:
            start = sequence(path)[0] if path else flat[place]
            assert built.ids[built.adjacency.order[anchor]] == start
    from_anchors = [data.draw(st.sampled_from(sorted(chosen))) for chosen in of_target]
    table = find(
        built, anchors, targets, direction=direction, type_weights=type_weights, from_anchors=from_anchors, threads=2
    )
    assert table_paths(built, table) == [
        reference_path(graph.edges, [anchor], target, direction=direction, type_weights=type_weights)
        for anchor, target in zip(from_anchors, flat, strict=True)
    ]


def test_case_32_the_lowest_ids_win() -> None:
    graph = kernel_graph([("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])
    table = find(graph, [["a"]], [["d", "c", "a"]])
    d, c, a = table_paths(graph, table)
    assert sequence(d) == ["a", "b", "d"]
    assert sequence(c) == ["a", "c"]
    assert a == []
    assert table.hops.tolist() == [2, 1, 0]
    # Of two anchors the nearest, ties to the smaller id.
    table = find(kernel_graph([(1, 2), (3, 2), (2, 4), (3, 4)]), [[1, 3]], [[2, 4]])
    assert table.anchors.tolist() == kernel_graph([(1, 2), (3, 2), (2, 4), (3, 4)]).internal([1, 3]).tolist()


def test_the_first_difference_from_the_anchor_decides() -> None:
    """1-2-9-7 is smaller than 1-3-4-7, though 4 < 9 at the later place; both ends of the search must see that."""
    for hubs in ((), (1,), (7,)):
        edges = [(1, 2), (2, 9), (9, 7), (1, 3), (3, 4), (4, 7)]
        edges += [(hub, 100 + leaf) if hub == 1 else (100 + leaf, hub) for hub in hubs for leaf in range(50)]
        graph = kernel_graph(edges)
        (path,) = table_paths(graph, find(graph, [[1]], [[7]]))
        assert sequence(path) == [1, 2, 9, 7]


def test_parallel_edges_the_largest_weight_then_the_type_then_along() -> None:
    edges: list[Edge] = [("a", "b", 1.0, "x"), ("a", "b", 3.0, "z"), ("a", "b", 3.0, "y"), ("b", "a", 3.0, "y")]
    graph = kernel_graph(edges)
    (path,) = table_paths(graph, find(graph, [["a"]], [["b"]], direction="both"))
    assert path == [ReferenceStep("a", "b", "y", 3.0, reversed=False)]
    (path,) = table_paths(graph, find(graph, [["a"]], [["b"]], direction="in"))
    assert path == [ReferenceStep("b", "a", "y", 3.0, reversed=True)]
    (path,) = table_paths(graph, find(graph, [["a"]], [["b"]], type_weights={"y": 0.0, "x": 1e9}))
    assert path == [ReferenceStep("a", "b", "z", 3.0, reversed=False)]
    # The reverse edge has the smaller type name.
    graph = kernel_graph([("a", "b", 1.0, "z"), ("b", "a", 1.0, "c")])
    (path,) = table_paths(graph, find(graph, [["a"]], [["b"]], direction="both"))
    assert path == [ReferenceStep("b", "a", "c", 1.0, reversed=True)]


def test_unreachable_targets_and_no_targets() -> None:
    graph = kernel_graph([(1, 2), (3, 4)])
    table = find(graph, [[1], [], [3]], [[4, 2], [1], []])
    assert table_paths(graph, table) == [None, [ReferenceStep(1, 2, None, 1.0, reversed=False)], None]
    assert table.offsets.tolist() == [0, 0, 1, 1]
    assert find(graph, [], []).offsets.tolist() == [0]
    assert find(graph, [[1]], [[]], from_anchors=[]).offsets.tolist() == [0]


def test_a_long_chain_is_walked_from_both_ends() -> None:
    graph = kernel_graph([(node, node + 1) for node in range(3000)])
    table = find(graph, [[0]], [[2999, 10, 1500, 3000]])
    assert table.hops.tolist() == [2999, 10, 1500, 3000]
    assert sequence(table_paths(graph, table)[0]) == list(range(3000))


@pytest.mark.parametrize("direction", ["out", "in", "both"])
def test_lengths_and_edges_on_a_random_graph_are_those_of_networkx(direction: Ways) -> None:
    random = np.random.default_rng(5)
    edges = [(int(a), int(b)) for a, b in random.integers(0, 400, (1200, 2))]
    # Hubs at either end make the search change sides.
    edges += [(0, int(node)) for node in random.integers(0, 400, 150)]
    edges += [(int(node), 1) for node in random.integers(0, 400, 150)]
    graph = kernel_graph(edges, nodes=range(400))
    judge = nx.DiGraph(edges)
    judge = {"out": judge, "in": judge.reverse(), "both": judge.to_undirected()}[direction]
    judge.add_nodes_from(range(400))
    anchors = [[0, 5], [1], [7, 8, 9], [300]]
    targets = [list(range(400))] * 4
    expected = []
    for chosen in anchors:
        lengths = nx.multi_source_dijkstra_path_length(judge, set(chosen), weight=None)
        expected += [lengths.get(node, -1) for node in range(400)]
    tables = [find(graph, anchors, targets, direction=direction, threads=threads) for threads in (1, 2)]
    assert tables[0].hops.tolist() == expected
    assert [array.tobytes() for array in vars(tables[0]).values() if array is not None] == [
        array.tobytes() for array in vars(tables[1]).values() if array is not None
    ]
    # One target alone is searched for in another way than among others; the path is the same.
    shared = table_paths(graph, tables[0])
    for place in range(0, 1600, 37):
        alone = table_paths(graph, find(graph, [anchors[place // 400]], [[place % 400]], direction=direction))
        assert alone == [shared[place]]
        if shared[place]:
            nodes = sequence(shared[place])
            assert all(judge.has_edge(a, b) for a, b in pairwise(nodes))


@pytest.mark.parametrize("fixed", [False, True])
def test_a_flag_ends_the_search_of_its_query_alone(fixed: bool) -> None:
    """The other query has all its paths, and one that has nothing to look for is not cut."""
    graph = kernel_graph([(1, 2), (2, 3), (3, 4), (4, 1)])
    anchors, targets = [[1], [1], [1]], [[3, 4], [3, 4], []]
    given = [1, 1, 1, 1] if fixed else None
    flags = StopFlags.none(3)
    flags.stop[:] = [0, 1, 1]
    whole = find(graph, anchors, targets, from_anchors=given)
    table = find(graph, anchors, targets, from_anchors=given, flags=flags)
    assert whole.ended.tolist() == [False, False, False]
    assert table.ended.tolist() == [False, True, False]
    assert table.hops.tolist() == [2, 3, -1, -1]
    assert table.anchors[2:].tolist() == [-1, -1]
    assert table_paths(graph, table) == [*table_paths(graph, whole)[:2], None, None]
