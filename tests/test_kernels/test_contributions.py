"""What seeds contribute to a score: against single-seed solutions, on every toy graph and on random ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seedrank.kernels.contributions import Contributions, seed_contributions
from seedrank.testing.harness import kernel_graph
from seedrank.testing.reference import reference_edges, reference_personalized_pagerank
from seedrank.testing.strategies import RandomGraph, graphs, seed_sets
from seedrank.testing.toys import TOYS, ToyGraph

DANGLING: tuple[Literal["seeds", "self", "uniform"], ...] = ("seeds", "self", "uniform")


def contribute(
    edges: Any, seeds: Mapping[Any, float], node: Any, *, nodes: Any = (), damping: float, **options: Any
) -> tuple[dict[Any, float], Contributions]:
    """Seed → contribution, and what the kernel returned."""
    limits = {name: options.pop(name) for name in ("tolerance", "max_products") if name in options}
    graph = kernel_graph(edges, nodes=nodes)
    sets = graph.seeds([seeds])
    found = seed_contributions(
        graph.transition(**options),
        sets.nodes,
        sets.weights,
        node=int(graph.internal([node])[0]),
        restart=1.0 - damping,
        **limits,
    )
    ids = [graph.ids[rank] for rank in graph.adjacency.order[sets.nodes]]
    return dict(zip(ids, found.values.tolist(), strict=True)), found


@pytest.mark.parametrize("dangling", DANGLING)
@pytest.mark.parametrize("toy", TOYS, ids=lambda toy: toy.name)
def test_contributions_sum_to_the_score_within_the_bound(
    toy: ToyGraph, dangling: Literal["seeds", "self", "uniform"]
) -> None:
    ids = sorted({node for edge in toy.edges for node in edge[:2]})
    seeds = {node: weight for weight, node in enumerate(ids, start=1)}
    options: dict[str, Any] = {"direction": toy.direction, "dangling": dangling, "type_weights": toy.type_weights}
    exact = reference_personalized_pagerank(toy.edges, seeds, damping=toy.damping, **options)
    for node in ids:
        parts, found = contribute(toy.edges, seeds, node, damping=toy.damping, **options)
        assert abs(sum(parts.values()) - exact[node]) <= found.bound <= 1e-10


def test_contributions_are_those_of_the_unnormalised_series() -> None:
    """A → B with a dangling B: p(A) = (λ, λα), p(B) = (0, λ), Z = s_A (λ + λα) + s_B λ."""
    edges, seeds = [("A", "B")], {"A": 3.0, "B": 1.0}
    restart, damping = 0.4, 0.6
    mass = 0.75 * (restart + restart * damping) + 0.25 * restart
    parts, _ = contribute(edges, seeds, "B", damping=damping)
    assert parts == pytest.approx({"A": 0.75 * restart * damping / mass, "B": 0.25 * restart / mass}, abs=1e-12)
    parts, _ = contribute(edges, seeds, "A", damping=damping)
    assert parts == pytest.approx({"A": 0.75 * restart / mass, "B": 0.0}, abs=1e-12)


def test_without_dangling_nodes_each_part_is_the_score_of_its_seed_alone() -> None:
    edges = [(1, 2), (2, 3), (3, 1), (1, 3), (2, 2)]
    seeds = {1: 1.0, 2: 2.0, 3: 5.0}
    for node in seeds:
        parts, found = contribute(edges, seeds, node, damping=0.85)
        for seed, weight in seeds.items():
            alone = reference_personalized_pagerank(edges, {seed: 1.0}, damping=0.85)[node]
            assert parts[seed] == pytest.approx(weight / 8 * alone, abs=found.bound)


def test_the_bound_says_what_too_few_products_are_worth() -> None:
    edges = [(1, 2), (2, 1), (2, 3), (3, 1)]
    exact = reference_personalized_pagerank(edges, {1: 1.0}, damping=0.85)[3]
    bounds = []
    for products in (2, 5, 10, 40):
        parts, found = contribute(edges, {1: 1.0}, 3, damping=0.85, max_products=products)
        assert abs(sum(parts.values()) - exact) <= found.bound
        bounds.append(found.bound)
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] < 0.01


@st.composite
def problems(draw: st.DrawFn) -> tuple[RandomGraph, dict[Any, float], Any]:
    graph = draw(graphs())
    return graph, draw(seed_sets(graph)), draw(st.sampled_from(graph.nodes))


@settings(max_examples=150, deadline=None)
@given(
    problem=problems(),
    damping=st.sampled_from((0.0, 0.5, 0.85)),
    direction=st.sampled_from(("out", "in", "both")),
    dangling=st.sampled_from(DANGLING),
)
def test_random_graphs(
    problem: tuple[RandomGraph, dict[Any, float], Any], damping: float, direction: Any, dangling: Any
) -> None:
    graph, seeds, node = problem
    options: dict[str, Any] = {"nodes": graph.nodes, "direction": direction, "dangling": dangling, "damping": damping}
    exact = reference_personalized_pagerank(graph.edges, seeds, **options)
    parts, found = contribute(graph.edges, seeds, node, **options)
    assert all(np.isfinite(value) and value >= 0 for value in parts.values())
    assert abs(sum(parts.values()) - exact.get(node, 0.0)) <= found.bound
    # A seed contributes exactly where it reaches the node, or where dangling mass is spread.
    if dangling != "uniform" and damping > 0:
        alone = {seed: reference_personalized_pagerank(graph.edges, {seed: 1.0}, **options) for seed in parts}
        tiny = any(weight < 1e-12 for weight in reference_edges(graph.edges).values())
        assert tiny or {seed for seed, value in parts.items() if value > 1e-9} <= {
            seed for seed, scores in alone.items() if scores[node] > 0
        }
