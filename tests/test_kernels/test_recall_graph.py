"""`build_recall_graph`: what is followed, what is removed, what is shared."""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seedrank.kernels.recall.recall_graph import FollowedRows
from seedrank.testing.harness import KernelGraph, kernel_graph
from seedrank.testing.recall_harness import recall_graph
from seedrank.testing.reference import reference_edges
from seedrank.testing.strategies import RandomGraph, graphs
from seedrank.testing.toys import K9, Edge

Step = tuple[Any, Any, Any, float, bool]
"""Node left, node come to, type, weight, reversed."""


def steps(graph: KernelGraph, rows: tuple[FollowedRows, ...], *, incoming: bool = False) -> list[Step]:
    """All steps of some rows, in their order, with ids."""
    ids = [graph.ids[rank] for rank in graph.adjacency.order]
    found = []
    for side in rows:
        for node in range(len(ids)):
            for entry in range(side.offsets[node], side.offsets[node + 1]):
                ends = (ids[node], ids[side.neighbors[entry]])
                kind = None if side.types is None else graph.type_names[side.types[entry]]
                weight = 1.0 if side.weights is None else float(side.weights[entry])
                found.append((*(ends[::-1] if incoming else ends), kind, weight, side.reversed))
    return found


@settings(max_examples=120, deadline=None, derandomize=True)
@given(
    graph=graphs(),
    direction=st.sampled_from(["out", "in", "both"]),
    type_weights=st.sampled_from([None, {"cites": 0.0}, {"likes": 0.3}, {"cites": 0.0, "likes": 0.0, "follows": 0.0}]),
)
def test_steps_are_those_of_the_edges(
    graph: RandomGraph, direction: Literal["out", "in", "both"], type_weights: dict[str, float] | None
) -> None:
    built = kernel_graph(graph.edges, nodes=graph.nodes)
    followed = recall_graph(built, direction=direction, type_weights=type_weights)
    expected: list[Step] = []
    for (source, target, kind), weight in reference_edges(graph.edges).items():
        if (type_weights or {}).get(kind, 1.0):
            if direction in ("out", "both"):
                expected.append((source, target, kind, weight, False))
            if direction == "in" or (direction == "both" and source != target):
                expected.append((target, source, kind, weight, True))
    assert Counter(steps(built, followed.rows)) == Counter(expected)
    # From the other end the same steps; of a loop in both directions it is not said along which way.
    arriving = Counter(steps(built, followed.incoming, incoming=True))
    loops = Counter(step[:4] for step in expected if step[0] == step[1])
    assert Counter(step[:4] for step in arriving.elements() if step[0] == step[1]) == loops
    assert Counter(step for step in arriving.elements() if step[0] != step[1]) == Counter(
        step for step in expected if step[0] != step[1]
    )
    for side in (*followed.rows, *followed.incoming):
        for node in range(len(graph.nodes)):
            ranks = built.adjacency.order[side.neighbors[side.offsets[node] : side.offsets[node + 1]]]
            assert (np.diff(ranks) >= 0).all()


def test_untouched_arrays_are_not_copied() -> None:
    graph = kernel_graph([("a", "b", 2.0, "x"), ("b", "c", 1.0, "y"), ("c", "a", 1.0, "y")])
    pair = graph.adjacency
    for direction in ("out", "in", "both"):
        followed = recall_graph(graph, direction=direction, type_weights={"x": 0.5})
        sides = {True: pair.by_destination, False: pair.by_source}
        for rows, flip in ((followed.rows, False), (followed.incoming, True)):
            for side in rows:
                stored = sides[side.reversed ^ flip]
                assert side.neighbors is stored.neighbors
                assert side.offsets is stored.offsets
                assert side.weights is stored.weights
                assert side.types is stored.types


def test_a_loop_counts_once_in_both_directions() -> None:
    both = recall_graph(kernel_graph(K9.edges), direction="both")
    assert [len(side.neighbors) for side in both.rows] == [3, 2]
    assert [side.reversed for side in both.rows] == [False, True]


@pytest.mark.parametrize(
    ("type_weights", "expected"),
    [
        (None, None),
        ({"x": 2.0, "y": 2.0, "z": 2.0}, None),
        ({"x": 0.3, "y": 0.0, "z": 0.3}, None),
        ({"x": 3.0, "y": 1.0, "z": 0.0}, [0.75, 0.25, 0.0]),
        ({"x": 1e308, "y": 1e308, "z": 1.0}, [1e308 * 2.0**-1024, 1e308 * 2.0**-1024, 2.0**-1024]),
    ],
)
def test_type_weights_are_kept_where_they_differ_and_scaled_to_at_most_one(
    type_weights: dict[str, float] | None, expected: list[float] | None
) -> None:
    edges: list[Edge] = [("a", "b", 1.0, "x"), ("a", "c", 1.0, "y"), ("a", "d", 1.0, "z")]
    kept = recall_graph(kernel_graph(edges), type_weights=type_weights).type_weights
    assert (None if kept is None else kept.tolist()) == expected


def test_type_weights_are_without_effect_on_an_untyped_graph() -> None:
    graph = recall_graph(kernel_graph([("a", "b"), ("b", "a")]), type_weights={})
    assert graph.type_weights is None
    assert len(graph.rows[0].neighbors) == 2
