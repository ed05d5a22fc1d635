"""Several restart probabilities in one pass: each equals its own run and the reference, within its bound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from seedrank.errors import KernelError
from seedrank.kernels.arrays import DanglingRule, Direction, Precision
from seedrank.kernels.backend import StepReport, StepSums, SummingBackend
from seedrank.kernels.backends.block_result import BlockResult
from seedrank.kernels.backends.cpu import CpuBackend
from seedrank.kernels.backends.resolver import create_backend
from seedrank.kernels.ppr import personalized_pagerank
from seedrank.kernels.ppr_shared import personalized_pageranks
from seedrank.testing.harness import KernelGraph, kernel_graph, query_block
from seedrank.testing.parity import assert_scores_close
from seedrank.testing.reference import reference_personalized_pagerank
from seedrank.testing.toys import K2, Edge

RESTARTS = (0.15, 0.5, 0.9, 1.0)
NODES = tuple(range(120))
QUERIES: list[dict[Any, float]] = [
    {0: 1.0},
    {},
    {3: 2.0, 17: 1.0, 110: 5.0},
    {119: 1.0},
    {105: 1.0},
    {node: 1.0 + node for node in range(30)},
]


def edges_of(*, dangling: bool) -> list[Edge]:
    """500 weighted edges; with dangling nodes 100 to 119 pass nothing on, else everybody does."""
    random = np.random.default_rng(23)
    last = 100 if dangling else 120
    pairs = random.integers(0, [[last], [119]], (2, 500)).T.tolist()
    pairs += [] if dangling else [[node, (node * 7) % 119] for node in NODES]
    return [(*pair, weight) for pair, weight in zip(pairs, random.uniform(0.1, 3, len(pairs)).tolist(), strict=True)]


def run(
    graph: KernelGraph,
    queries: list[dict[Any, float]],
    *,
    name: str = "cpu",
    rule: DanglingRule = "drop",
    direction: Direction = "out",
    threads: int | None = None,
    **options: Any,
) -> list[BlockResult]:
    backend = create_backend(name, threads=threads)
    assert isinstance(backend, SummingBackend)
    transition = graph.transition(dangling=rule, direction=direction)
    precision = options.setdefault("precision", "float64")
    backend.load(transition, precision=precision, order=graph.adjacency.order)
    arguments: dict[str, Any] = {"restarts": RESTARTS, "max_iterations": 400, "tolerance": 1e-9, "k": len(NODES)}
    return personalized_pageranks(
        backend,
        query_block(graph.seeds(queries), 0, len(queries)),
        loses_mass=rule == "drop" and len(transition.dangling_nodes) > 0,
        **{**arguments, **options},
    )


def scores_of(graph: KernelGraph, result: BlockResult, row: int) -> dict[Any, float]:
    count = int(result.counts[row])
    ids = [graph.ids[graph.adjacency.order[node]] for node in result.nodes[row, :count]]
    return dict(zip(ids, result.scores[row, :count].tolist(), strict=True))


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("direction", ["out", "both"])
@pytest.mark.parametrize("rule", ["seeds", "self", "uniform"])
@pytest.mark.parametrize("dangling", [True, False], ids=["dangling", "regular"])
@pytest.mark.parametrize("name", ["cpu", "gpu", "scipy"])
def test_each_matches_the_reference_within_its_bound(
    name: str, dangling: bool, rule: Any, direction: Direction, precision: Precision
) -> None:
    edges = edges_of(dangling=dangling)
    graph = kernel_graph(edges, nodes=NODES)
    results = run(
        graph, QUERIES, name=name, rule="drop" if rule == "seeds" else rule, direction=direction, precision=precision
    )
    for restart, result in zip(RESTARTS, results, strict=True):
        assert result.converged.all()
        for row, seeds in enumerate(QUERIES):
            if not seeds:
                assert (result.counts[row], result.iterations[row], result.error_bound[row]) == (0, 0, 0.0)
                continue
            expected = reference_personalized_pagerank(
                edges, seeds, nodes=NODES, damping=1 - restart, direction=direction, dangling=rule
            )
            found = scores_of(graph, result, row)
            bound = float(result.error_bound[row])
            assert bound <= (1e-4 if precision == "float32" else 1.1e-9)
            assert_scores_close(found, expected, bound)
            assert sum(abs(found.get(node, 0.0) - score) for node, score in expected.items()) <= bound


def test_a_loose_tolerance_is_held_by_every_bound() -> None:
    """Stopped early, the distance to the exact solution is near the bound and never above it."""
    edges = edges_of(dangling=True)
    graph = kernel_graph(edges, nodes=NODES)
    tightness: list[float] = []
    for tolerance in (0.5, 0.1, 1e-2, 1e-3, 1e-4):
        for restart, result in zip(RESTARTS, run(graph, QUERIES, tolerance=tolerance), strict=True):
            for row, seeds in enumerate(QUERIES):
                if not seeds:
                    continue
                exact = reference_personalized_pagerank(edges, seeds, nodes=NODES, damping=1 - restart)
                found = scores_of(graph, result, row)
                off = sum(abs(found.get(node, 0.0) - score) for node, score in exact.items())
                assert off <= result.error_bound[row] <= tolerance + 1e-12
                tightness.append(off / result.error_bound[row])
    assert max(tightness) > 0.05


@pytest.mark.parametrize("name", ["cpu", "gpu", "scipy"])
def test_without_dangling_nodes_steps_and_bounds_are_those_of_a_run_alone(name: str) -> None:
    graph = kernel_graph(edges_of(dangling=False), nodes=NODES)
    backend = create_backend(name)
    backend.load(graph.transition(), precision="float64", order=graph.adjacency.order)
    for restart, result in zip(RESTARTS, run(graph, QUERIES, name=name, tolerance=1e-6), strict=True):
        alone = personalized_pagerank(
            backend,
            query_block(graph.seeds(QUERIES), 0, len(QUERIES)),
            restart=restart,
            max_iterations=400,
            tolerance=1e-6,
            k=len(NODES),
            precision="float64",
        )
        assert result.iterations.tolist() == alone.iterations.tolist()
        np.testing.assert_allclose(result.error_bound, alone.error_bound, rtol=1e-6, atol=1e-13)
        np.testing.assert_allclose(result.scores, alone.scores, atol=1e-14)


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_company_order_and_threads_do_not_change_a_bit(precision: Precision) -> None:
    graph = kernel_graph(edges_of(dangling=True), nodes=NODES)
    together = run(graph, QUERIES, precision=precision, tolerance=1e-5, threads=2)
    for row, query in enumerate(QUERIES):
        alone = run(graph, [query], precision=precision, tolerance=1e-5, threads=1)
        other = run(graph, [query], precision=precision, tolerance=1e-5, restarts=RESTARTS[::-1])[::-1]
        for results in (alone, other):
            for one, many in zip(results, together, strict=True):
                for name in ("nodes", "scores", "counts", "iterations", "error_bound", "converged"):
                    assert getattr(one, name)[0].tobytes() == getattr(many, name)[row].tobytes(), name


def test_a_query_can_run_out_of_iterations_for_one_and_not_for_another() -> None:
    graph = kernel_graph(edges_of(dangling=True), nodes=NODES)
    slow, _, fast, seeds = run(graph, [{0: 1.0}], max_iterations=12, tolerance=1e-6)
    assert (slow.converged.tolist(), slow.iterations.tolist()) == ([False], [12])
    assert (fast.converged.tolist(), seeds.converged.tolist()) == ([True], [True])
    assert seeds.iterations.tolist() == [1]
    exact = reference_personalized_pagerank(edges_of(dangling=True), {0: 1.0}, nodes=NODES, damping=0.85)
    found = scores_of(graph, slow, 0)
    off = sum(abs(found.get(node, 0.0) - score) for node, score in exact.items())
    assert 1e-6 < off <= slow.error_bound[0]


def test_stopped_early_it_delivers_what_there_is() -> None:
    graph = kernel_graph(edges_of(dangling=True), nodes=NODES)
    calls = iter([False, False, False, True])
    results = run(graph, [{0: 1.0}], should_stop=lambda: next(calls))
    whole = run(graph, [{0: 1.0}], max_iterations=3)
    for stopped, result in zip(results[:3], whole[:3], strict=True):
        assert (stopped.stopped.tolist(), stopped.iterations.tolist()) == ([True], [3])
        np.testing.assert_allclose(stopped.scores, result.scores, atol=1e-15)
        assert stopped.error_bound.tolist() == pytest.approx(result.error_bound.tolist())
    at_once = run(graph, [{0: 1.0}], should_stop=lambda: True)[0]
    assert scores_of(graph, at_once, 0) == {0: 1.0}
    assert at_once.error_bound[0] == pytest.approx(2.0)


def test_case_2_mass_that_vanishes_without_a_reason_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    step = CpuBackend.step

    def lossy(self: CpuBackend, *, measure: bool = True) -> StepReport:
        report = step(self, measure=measure)
        return StepSums(report.mass * 0.99, report.dangling_mass, report.difference)

    monkeypatch.setattr(CpuBackend, "step", lossy)
    with pytest.raises(KernelError, match="lost or gained mass that dangling nodes do not explain"):
        run(kernel_graph(K2.edges), [{"A": 1.0}], restarts=(0.15,), k=4)
