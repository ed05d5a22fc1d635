"""Reachability of whole blocks: every bit against the reference, pushed and pulled."""

from __future__ import annotations

from typing import Literal

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seedrank.kernels.recall import within_hops as module
from seedrank.kernels.recall.within_hops import within_hops
from seedrank.testing.harness import kernel_graph
from seedrank.testing.recall_harness import recall_graph, recall_queries
from seedrank.testing.reference_paths import reference_neighbors, reference_shortest_sequences
from seedrank.testing.strategies import RandomGraph, graphs

PULLED = pytest.mark.parametrize("pull_from", [0.0, 0.1, 2.0], ids=["always pulled", "either", "never pulled"])


@PULLED
@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    data=st.data(),
    graph=graphs(),
    direction=st.sampled_from(["out", "in", "both"]),
    type_weights=st.sampled_from([None, {"cites": 0.0}]),
    max_hops=st.integers(0, 5),
)
def test_every_bit_is_the_reference(
    pull_from: float,
    data: st.DataObject,
    graph: RandomGraph,
    direction: Literal["out", "in", "both"],
    type_weights: dict[str, float] | None,
    max_hops: int,
) -> None:
    anchors = data.draw(st.lists(st.sets(st.sampled_from(graph.nodes), max_size=3), max_size=4))
    built = kernel_graph(graph.edges, nodes=graph.nodes)
    queries = recall_queries(built, anchors)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PULL_FROM", pull_from)
        marked = within_hops(
            recall_graph(built, direction=direction, type_weights=type_weights),
            queries.anchor_offsets, queries.anchors, max_hops=max_hops, threads=2,
        )  # fmt: skip
    assert marked.dtype == np.uint64
    neighbors = reference_neighbors(graph.edges, direction=direction, type_weights=type_weights)
    for node in graph.nodes:
        (place,) = built.internal([node])
        for column, chosen in enumerate(anchors):
            sequences = reference_shortest_sequences(neighbors, chosen, node)
            near = bool(sequences) and len(sequences[0]) - 1 <= max_hops
            assert bool(int(marked[place]) >> column & 1) is near
        assert int(marked[place]) >> len(anchors) == 0


@PULLED
@pytest.mark.parametrize("direction", ["out", "both"])
def test_sixty_four_queries_on_a_random_graph(
    monkeypatch: pytest.MonkeyPatch, pull_from: float, direction: Literal["out", "both"]
) -> None:
    monkeypatch.setattr(module, "PULL_FROM", pull_from)
    random = np.random.default_rng(4)
    edges = [(int(a), int(b)) for a, b in random.integers(0, 500, (900, 2))]
    graph = kernel_graph(edges, nodes=range(500))
    anchors = [[int(node) for node in random.integers(0, 500, 2)] for _ in range(64)]
    queries = recall_queries(graph, anchors)
    judge = nx.DiGraph(edges)
    judge = judge.to_undirected() if direction == "both" else judge
    judge.add_nodes_from(range(500))
    for max_hops in (1, 3):
        marked = within_hops(
            recall_graph(graph, direction=direction), queries.anchor_offsets, queries.anchors,
            max_hops=max_hops, threads=3,
        )  # fmt: skip
        for column, chosen in enumerate(anchors):
            near = nx.multi_source_dijkstra_path_length(judge, set(chosen), cutoff=max_hops, weight=None)
            found = np.flatnonzero(marked >> np.uint64(column) & np.uint64(1))
            assert sorted(graph.ids[rank] for rank in graph.adjacency.order[found]) == sorted(near)


def test_no_queries_mark_nothing() -> None:
    graph = recall_graph(kernel_graph([(1, 2)]))
    nothing = np.zeros(0, dtype=np.int32)
    assert not within_hops(graph, np.zeros(1, dtype=np.int64), nothing, max_hops=3, threads=1).any()
