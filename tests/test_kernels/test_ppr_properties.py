"""What must hold on any graph: determinism bit for bit, mass, the error bound, prefixes, reach, linearity."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seedrank.kernels.backends.scipy import ScipyBackend
from seedrank.testing.harness import kernel_graph, kernel_personalized_pagerank
from seedrank.testing.parity import assert_scores_close
from seedrank.testing.reference import reference_personalized_pagerank, reference_reachable
from seedrank.testing.strategies import RandomGraph, graphs, seed_sets

SETTINGS = settings(max_examples=60, deadline=None, derandomize=True)
DIRECTIONS = st.sampled_from(["out", "in", "both"])
DANGLING = st.sampled_from(["seeds", "self", "uniform"])
PRECISIONS = st.sampled_from(["float32", "float64"])
TYPE_WEIGHTS = st.sampled_from([None, {"cites": 0.0}, {"cites": 0.3, "likes": 7.0}])


def draw_queries(data: st.DataObject, graph: RandomGraph, most: int = 5) -> list[dict[Any, float]]:
    return data.draw(st.lists(seed_sets(graph), min_size=1, max_size=most))


@SETTINGS
@given(graph=graphs(), direction=DIRECTIONS, dangling=DANGLING, precision=PRECISIONS, data=st.data())
def test_rows_queries_and_blocks_do_not_change_a_bit(
    graph: RandomGraph, direction: Any, dangling: Any, precision: Any, data: st.DataObject
) -> None:
    queries = draw_queries(data, graph)
    options: dict[str, Any] = {
        "damping": 0.85,
        "direction": direction,
        "dangling": dangling,
        "precision": precision,
        "nodes": graph.nodes,
        "tolerance": 1e-5,
        "k": 5,
        "duplicate_edges": data.draw(st.sampled_from(["sum", "max", "min", "mean"])),
    }
    expected = kernel_personalized_pagerank(ScipyBackend(), graph.edges, queries, **options)
    edges = data.draw(st.permutations(graph.edges))
    order = data.draw(st.permutations(range(len(queries))))
    for block_size in (1, 2, 3):
        shuffled = kernel_personalized_pagerank(
            ScipyBackend(max_slab_entries=1024),
            edges,
            [dict(reversed(queries[query].items())) for query in order],
            block_size=block_size,
            **options,
        )
        assert shuffled == [expected[query] for query in order]


@SETTINGS
@given(
    graph=graphs(),
    damping=st.sampled_from([0.1, 0.5, 0.85, 0.95, 0.99]),
    direction=DIRECTIONS,
    dangling=DANGLING,
    type_weights=TYPE_WEIGHTS,
    precision=PRECISIONS,
    stop=st.sampled_from([(0, 1), (0, 2), (0, 10), (0, 400), (1e-2, 50), (1e-6, 500), (1e-13, 3000)]),
    data=st.data(),
)
def test_true_error_never_exceeds_the_bound(
    graph: RandomGraph,
    damping: float,
    direction: Any,
    dangling: Any,
    type_weights: dict[str, float] | None,
    precision: Any,
    stop: tuple[float, int],
    data: st.DataObject,
) -> None:
    queries = draw_queries(data, graph, most=3)
    options: dict[str, Any] = {
        "damping": damping,
        "direction": direction,
        "dangling": dangling,
        "type_weights": type_weights,
        "nodes": graph.nodes,
    }
    tolerance, iterations = stop
    results = kernel_personalized_pagerank(
        ScipyBackend(row_chunk=4),
        graph.edges,
        queries,
        tolerance=tolerance,
        max_iterations=iterations,
        precision=precision,
        **options,
    )
    rounding = 4 * float(np.finfo(precision).eps) / (1 - damping)
    for seeds, result in zip(queries, results, strict=True):
        exact = reference_personalized_pagerank(graph.edges, seeds, **options)
        scores = result.scores
        error = sum(abs(scores.get(node, 0.0) - score) for node, score in exact.items())
        assert error <= result.error_bound
        assert sum(result.scores.values()) == pytest.approx(1, abs=max(1e-12, rounding))
        assert result.iterations <= iterations
        if tolerance:
            assert result.converged == (result.error_bound <= tolerance + rounding * (1 + 1e-12))
        else:
            assert result.converged
            assert result.iterations == iterations


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("damping", [0.3, 0.6, 0.85])
@pytest.mark.parametrize("shape", ["leaves point back", "leaves dangle", "leaves dangle uniformly"])
def test_bound_holds_where_equal_roundings_add_up(shape: str, damping: float, precision: Any) -> None:
    """Sums of thousands of equal terms: hub 0 points at 3,001 leaves, 4,000 more nodes have no edge; seed 0.

    Mass of the leaves comes back to the hub, over edges or as dangling mass: hub = λ/(1 - α²), leaf = α·hub/3,001.
    Spread uniformly, every node gets q = α(1 - hub)/n: hub = λ + q, leaf = α·hub/3,001 + q.
    """
    leaves, alone = 3_001, 4_000
    nodes = 1 + leaves + alone
    edges = [(0, leaf) for leaf in range(1, leaves + 1)]
    if shape == "leaves point back":
        edges += [(leaf, 0) for leaf in range(1, leaves + 1)]
    uniform = shape == "leaves dangle uniformly"
    restart = 1 - np.longdouble(damping)
    share = np.longdouble(damping) / nodes
    hub = (restart + share) / (1 + share) if uniform else restart / (1 - np.longdouble(damping) ** 2)
    everywhere = share * (1 - hub) if uniform else np.longdouble(0)
    exact = np.full(nodes, everywhere)
    exact[0] = hub
    exact[1 : leaves + 1] += damping * hub / leaves
    (result,) = kernel_personalized_pagerank(
        ScipyBackend(),
        edges,
        [{0: 1}],
        damping=damping,
        dangling="uniform" if uniform else "seeds",
        nodes=range(nodes),
        tolerance=0,
        max_iterations=250,
        precision=precision,
    )
    by_node = result.scores
    scores = np.array([by_node.get(node, 0.0) for node in range(nodes)])
    assert float(np.abs(scores - exact).sum()) <= result.error_bound


@SETTINGS
@given(graph=graphs(), precision=PRECISIONS, k=st.integers(1, 6), data=st.data())
def test_top_k_is_a_prefix_of_top_k_plus_one(graph: RandomGraph, precision: Any, k: int, data: st.DataObject) -> None:
    queries = draw_queries(data, graph)
    shorter, longer = (
        kernel_personalized_pagerank(
            ScipyBackend(),
            graph.edges,
            queries,
            damping=0.5,
            nodes=graph.nodes,
            precision=precision,
            k=length,
            tolerance=1e-6,
        )
        for length in (k, k + 1)
    )
    for few, more in zip(shorter, longer, strict=True):
        assert few.ranking == more.ranking[:k]
        assert few.ranking == sorted(few.ranking, key=lambda item: (-item[1], item[0]))


@SETTINGS
@given(
    graph=graphs(weighted=False),
    direction=DIRECTIONS,
    dangling=st.sampled_from(["seeds", "self"]),
    type_weights=TYPE_WEIGHTS,
    data=st.data(),
)
def test_exactly_the_reachable_nodes_have_a_score(
    graph: RandomGraph, direction: Any, dangling: Any, type_weights: dict[str, float] | None, data: st.DataObject
) -> None:
    queries = draw_queries(data, graph)
    results = kernel_personalized_pagerank(
        ScipyBackend(),
        graph.edges,
        queries,
        damping=0.85,
        direction=direction,
        dangling=dangling,
        type_weights=type_weights,
        nodes=graph.nodes,
    )
    for seeds, result in zip(queries, results, strict=True):
        reachable = reference_reachable(graph.edges, seeds, direction=direction, type_weights=type_weights)
        assert set(result.scores) == reachable


@SETTINGS
@given(graph=graphs(), data=st.data())
def test_unnormalised_scores_are_linear_in_the_seeds(graph: RandomGraph, data: st.DataObject) -> None:
    """π(s) = Σ sᵢ p(eᵢ) / Σ sᵢ Z(eᵢ), where p(eᵢ) = Z(eᵢ) π(eᵢ) and Z = λ / (λ + α·dangling mass of π(eᵢ)).

    Where no dangling node is reached all Z are 1 and π itself is linear.
    """
    damping = 0.6
    seeds = data.draw(seed_sets(graph))
    total = sum(seeds.values())
    queries: list[dict[Any, float]] = [seeds, *({node: 1.0} for node in seeds)]
    mixed, *single = kernel_personalized_pagerank(
        ScipyBackend(), graph.edges, queries, damping=damping, nodes=graph.nodes, tolerance=1e-15
    )
    built = kernel_graph(graph.edges, nodes=graph.nodes)
    dangling_nodes = built.transition().dangling_nodes
    dangling = {built.ids[tie_rank] for tie_rank in built.adjacency.order[dangling_nodes]}
    combined: dict[Any, float] = dict.fromkeys(graph.nodes, 0.0)
    mass = 0.0
    for (node, weight), result in zip(seeds.items(), single, strict=True):
        on_dangling = sum(score for reached, score in result.ranking if reached in dangling)
        norm = (1 - damping) / (1 - damping + damping * on_dangling)
        assert node in result.scores
        mass += weight / total * norm
        for reached, score in result.ranking:
            combined[reached] += weight / total * norm * score
    if not dangling & set(mixed.scores):
        assert mass == pytest.approx(1, abs=1e-12)
    assert_scores_close(mixed.scores, {node: score / mass for node, score in combined.items()}, 1e-12)


@SETTINGS
@given(graph=graphs(), direction=DIRECTIONS, precision=PRECISIONS, data=st.data())
def test_permuted_ids_change_nothing_but_rounding(
    graph: RandomGraph, direction: Any, precision: Any, data: st.DataObject
) -> None:
    queries = draw_queries(data, graph)
    renamed = dict(zip(graph.nodes, data.draw(st.permutations(graph.nodes)), strict=True))
    options: dict[str, Any] = {
        "damping": 0.85,
        "direction": direction,
        "nodes": graph.nodes,
        "precision": precision,
        "tolerance": 0,
        "max_iterations": 30,
    }
    original = kernel_personalized_pagerank(ScipyBackend(), graph.edges, queries, **options)
    permuted = kernel_personalized_pagerank(
        ScipyBackend(),
        [(renamed[source], renamed[target], *rest) for source, target, *rest in graph.edges],
        [{renamed[node]: weight for node, weight in seeds.items()} for seeds in queries],
        **options,
    )
    for before, after in zip(original, permuted, strict=True):
        expected = {renamed[node]: score for node, score in before.ranking}
        assert_scores_close(after.scores, expected, 1e-12 if precision == "float64" else 1e-6)
