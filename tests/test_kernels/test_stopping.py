"""The stop rule ``top-k``: a certificate is true, ties are told, and nothing else changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from seedrank.kernels.backends.block_result import CERTIFICATES, BlockResult
from seedrank.kernels.backends.resolver import create_backend
from seedrank.kernels.ppr import personalized_pagerank
from seedrank.kernels.relaxation import Relaxation
from seedrank.testing.harness import KernelGraph, kernel_graph, query_block
from seedrank.testing.reference import reference_personalized_pagerank
from seedrank.testing.toys import Edge

NODES = tuple(range(400))
SWEEPS = Relaxation(factor=1.2, first_sweeps=4)


def random_edges(seed: int) -> list[Edge]:
    """Weighted, so that scores are all different; one node in eight is dangling."""
    random = np.random.default_rng(seed)
    pairs = random.integers(0, [[350], [400]], (2, 1600)).T.tolist()
    return [(*pair, weight) for pair, weight in zip(pairs, random.uniform(0.1, 3, 1600).tolist(), strict=True)]


def run(graph: KernelGraph, seeds: list[dict[Any, float]], *, backend: str = "cpu", **options: Any) -> BlockResult:
    machine = create_backend(backend)
    precision = options.setdefault("precision", "float64")
    machine.load(graph.transition(), precision=precision, order=graph.adjacency.order)
    arguments: dict[str, Any] = {"restart": 0.2, "max_iterations": 300, "tolerance": 1e-9, "k": 10, "stop": "top-k"}
    return personalized_pagerank(machine, query_block(graph.seeds(seeds), 0, len(seeds)), **{**arguments, **options})


def said(result: BlockResult) -> list[str | None]:
    return [CERTIFICATES[code] for code in result.certificate]


@pytest.mark.parametrize("relaxation", [None, SWEEPS], ids=["steps", "sweeps"])
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("seed", range(4))
def test_a_certified_set_is_the_exact_one_and_costs_less(
    seed: int, precision: str, relaxation: Relaxation | None
) -> None:
    edges = random_edges(seed)
    graph = kernel_graph(edges, nodes=NODES)
    queries: list[dict[Any, float]] = [{node: 1.0, node + 9: 2.0} for node in range(0, 320, 10)]
    result = run(graph, queries, precision=precision, relaxation=relaxation)
    whole = run(graph, queries, precision=precision, relaxation=relaxation, stop="tolerance", tolerance=1e-6)
    certified = [row for row, name in enumerate(said(result)) if name == "certified"]
    assert len(certified) >= 20
    assert result.converged[certified].all()
    assert (result.error_bound[certified] > 1e-9).all()
    assert result.iterations[certified].mean() < whole.iterations[certified].mean()
    for row in certified:
        exact = reference_personalized_pagerank(edges, queries[row], nodes=NODES, damping=0.8)
        best = sorted(exact, key=lambda node: (-exact[node], node))
        found = {graph.ids[graph.adjacency.order[node]] for node in result.nodes[row]}
        assert found == set(best[:10])


@pytest.mark.parametrize("backend", ["cpu", "gpu", "scipy"])
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_case_20_a_tie_at_the_cut_is_tied(backend: str, precision: str) -> None:
    graph = kernel_graph([("A", leaf) for leaf in "bcdef"])
    result = run(graph, [{"A": 1.0}], backend=backend, precision=precision, k=3, restart=0.5, tolerance=1e-6)
    assert said(result) == ["tied"]
    assert result.converged.tolist() == [True]
    # With the seed only, or with all five leaves and nothing behind them, no tie is at the cut.
    assert said(run(graph, [{"A": 1.0}], backend=backend, precision=precision, k=1, restart=0.5)) == ["certified"]
    assert said(run(graph, [{"A": 1.0}], backend=backend, precision=precision, k=6, restart=0.5)) == ["certified"]


def test_fewer_candidates_than_k_prove_nothing() -> None:
    """A node that no step has reached yet might still come in."""
    graph = kernel_graph([("A", leaf) for leaf in "bcdef"])
    result = run(graph, [{"A": 1.0}], k=7)
    assert said(result) == ["tolerance"]
    assert result.counts.tolist() == [6]


def test_the_lowest_score_that_counts_is_a_cut_too() -> None:
    """B has 1/3 exactly, and `min_score` lies a hair below: whether it belongs is not certain before the tolerance."""
    graph = kernel_graph([("A", "B")])
    near = run(graph, [{"A": 1.0}], k=2, restart=0.5, min_score=1 / 3 - 1e-12)
    far = run(graph, [{"A": 1.0}], k=2, restart=0.5, min_score=0.2)
    assert said(near) == ["tied"] or said(near) == ["tolerance"]
    assert said(far) == ["certified"]
    assert far.iterations[0] < near.iterations[0]


def test_without_convergence_there_is_no_certificate() -> None:
    graph = kernel_graph(random_edges(1), nodes=NODES)
    result = run(graph, [{3: 1.0}], max_iterations=2)
    assert said(result) == [None]
    assert result.converged.tolist() == [False]


def test_the_rule_tolerance_gives_no_certificate() -> None:
    graph = kernel_graph(random_edges(1), nodes=NODES)
    result = run(graph, [{3: 1.0}, {}], stop="tolerance")
    assert said(result) == [None, None]


@pytest.mark.parametrize("relaxation", [None, SWEEPS], ids=["steps", "sweeps"])
def test_company_does_not_change_a_bit(relaxation: Relaxation | None) -> None:
    graph = kernel_graph(random_edges(2), nodes=NODES)
    queries: list[dict[Any, float]] = [{node: 1.0} for node in range(0, 360, 30)]
    together = run(graph, queries, precision="float32", relaxation=relaxation)
    for row, query in enumerate(queries):
        alone = run(graph, [query], precision="float32", relaxation=relaxation)
        for name in ("nodes", "scores", "iterations", "error_bound", "certificate"):
            assert getattr(alone, name)[0].tobytes() == getattr(together, name)[row].tobytes(), name


def test_a_relaxed_block_can_be_stopped_and_watched() -> None:
    graph = kernel_graph(random_edges(3), nodes=NODES)
    calls = iter([False, True])
    seen: list[int] = []
    result = run(
        graph,
        [{3: 1.0}],
        relaxation=SWEEPS,
        stop="tolerance",
        tolerance=1e-12,
        restart=0.5,
        should_stop=lambda: next(calls),
        on_step=lambda progress: seen.append(progress.iteration),
    )
    assert result.stopped.tolist() == [True]
    assert result.iterations.tolist() == [5] == seen
    exact = reference_personalized_pagerank(random_edges(3), {3: 1.0}, nodes=NODES, damping=0.5)
    off = sum(
        abs(exact[graph.ids[graph.adjacency.order[node]]] - score)
        for node, score in zip(result.nodes[0], result.scores[0], strict=True)
    )
    assert off <= result.error_bound[0] < 1
    assert run(graph, [{3: 1.0}], relaxation=SWEEPS, should_stop=lambda: True).iterations.tolist() == [0]
