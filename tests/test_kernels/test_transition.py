"""`build_transition`: what is shared, what is removed, what is divided."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seedrank.kernels.transition import Transition
from seedrank.testing.harness import kernel_graph
from seedrank.testing.strategies import RandomGraph, graphs
from seedrank.testing.toys import K9, K12, Edge


def dense_columns(transition: Transition) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Transposed matrix P as a dense array."""
    matrix = np.zeros((transition.nodes, transition.nodes))
    for product in transition.products:
        values = product.probabilities
        if values is None:
            values = transition.inverse_out_weight[product.columns]
        rows = np.repeat(np.arange(transition.nodes), np.diff(product.offsets))
        np.add.at(matrix, (rows, product.columns), values)
    return matrix


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    graph=graphs(),
    direction=st.sampled_from(["out", "in", "both"]),
    type_weights=st.sampled_from([None, {"cites": 0.0}, {"likes": 0.3}, {"cites": 0.0, "likes": 0.0, "follows": 0.0}]),
)
def test_columns_sum_to_one_or_are_dangling(
    graph: RandomGraph, direction: str, type_weights: dict[str, float] | None
) -> None:
    transition = kernel_graph(graph.edges, nodes=graph.nodes).transition(
        direction=direction,  # type: ignore[arg-type]
        type_weights=type_weights,
    )
    sums = dense_columns(transition).sum(axis=0)
    expected = np.ones(transition.nodes)
    expected[transition.dangling_nodes] = 0
    np.testing.assert_allclose(sums, expected, rtol=0, atol=1e-14)
    assert (transition.inverse_out_weight[transition.dangling_nodes] == 0).all()
    assert transition.dangling_nodes.dtype == np.int32


def test_untouched_arrays_are_not_copied() -> None:
    pair = kernel_graph([("a", "b"), ("b", "c"), ("c", "a")]).adjacency
    graph = kernel_graph([("a", "b"), ("b", "c"), ("c", "a")])
    pair = graph.adjacency
    (out,) = graph.transition(direction="out").products
    assert out.columns is pair.by_destination.neighbors
    assert out.offsets is pair.by_destination.offsets
    first, second = graph.transition(direction="both").products
    assert first.columns is pair.by_destination.neighbors
    assert second.columns is pair.by_source.neighbors


def test_equal_type_weights_keep_the_structure_only_product() -> None:
    graph = kernel_graph([("a", "b", 1.0, "x"), ("a", "c", 1.0, "y"), ("a", "d", 1.0, "z")])
    same = graph.transition(type_weights={"x": 0.3, "y": 0.3, "z": 0.0})
    assert same.products[0].probabilities is None
    assert len(same.products[0].columns) == 2
    assert same.inverse_out_weight.max() == 0.5
    different = graph.transition(type_weights={"x": 0.3, "y": 0.1})
    assert different.products[0].probabilities is not None
    assert sorted(different.products[0].probabilities.tolist()) == pytest.approx([0.1 / 1.4, 0.3 / 1.4, 1 / 1.4])


def test_type_weight_zero_leaves_a_node_dangling() -> None:
    graph = kernel_graph(K12.edges)
    transition = graph.transition(type_weights={"follows": 0.0})
    assert graph.adjacency.order[transition.dangling_nodes].tolist() == [graph.rank["b"]]


def test_loop_is_dropped_from_the_second_product_only() -> None:
    transition = kernel_graph(K9.edges).transition(direction="both")
    assert [len(product.columns) for product in transition.products] == [3, 2]
    assert transition.entries == 5


def test_one_division_for_subnormal_weights() -> None:
    """1e-310 has no finite reciprocal; the probabilities are exact all the same."""
    transition = kernel_graph([("a", "b", 1e-310), ("a", "c", 1e-310)]).transition()
    probabilities = transition.products[0].probabilities
    assert probabilities is not None
    assert probabilities.tolist() == [0.5, 0.5]


def test_out_weight_of_a_hub_is_exact_to_the_last_digits() -> None:
    """100,000 weights of .1: adding one after the other would be off by 1e-12 of the sum."""
    transition = kernel_graph([(0, node, 0.1) for node in range(1, 100_001)]).transition()
    probabilities = transition.products[0].probabilities
    assert probabilities is not None
    assert abs(float(probabilities[0]) * 100_000 - 1) < 1e-14


def test_merged_duplicates_are_repeated_entries_without_values() -> None:
    edges: list[Edge] = [("a", "b"), ("a", "b"), *[("a", name) for name in "cdefghij"], ("b", "a"), ("c", "c")]
    graph = kernel_graph(edges)
    transition = graph.transition()
    (product,) = transition.products
    assert product.probabilities is None
    assert transition.entries == len(edges)
    a, b = graph.internal("ab")
    row = product.columns[product.offsets[b] : product.offsets[b + 1]]
    assert row.tolist() == [a, a]
    assert transition.inverse_out_weight[a] == 1 / 10
    both = graph.transition(direction="both")
    assert [part.probabilities for part in both.products] == [None, None]
    assert both.entries == 2 * len(edges) - 1
    assert both.inverse_out_weight[a] == 1 / 11


@pytest.mark.parametrize("weight", [1.5, 40.0])
def test_other_weights_stay_values(weight: float) -> None:
    edges: list[Edge] = [("a", "b", weight), *[("a", name, 1.0) for name in "cdefghij"]]
    (product,) = kernel_graph(edges).transition().products
    assert product.probabilities is not None
    assert len(product.columns) == len(edges)
