"""Columns that are pushed as lists: equal to the matrix, and the switch depends on the column alone."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

from seedrank.kernels._cpu import frontier
from seedrank.kernels.arrays import Float64Array, Precision
from seedrank.kernels.backend import StepReport
from seedrank.kernels.backends.cpu import CpuBackend
from seedrank.kernels.ppr import BlockResult, personalized_pagerank
from seedrank.testing.harness import KernelGraph, kernel_graph, kernel_personalized_pagerank, query_block
from seedrank.testing.parity import assert_scores_close
from seedrank.testing.reference import reference_personalized_pagerank
from seedrank.testing.toys import Edge

NODES = tuple(range(300))
TYPE_WEIGHTS = {"x": 0.5, "y": 0.0, "z": 2.0}
ALWAYS, NEVER = 1, 10**15
KINDS = ("plain", "weighted", "typed", "typed and weighted")


def edges_of(kind: str) -> list[Edge]:
    """900 edges; 250 and above are dangling, 299 is isolated, 0 has a self loop, 298 an out-weight of 1e-310."""
    random = np.random.default_rng(11)
    edges: list[Edge] = []
    for source, target in [(0, 0), *zip(*random.integers(0, [[250], [299]], (2, 900)).tolist(), strict=True)]:
        edge: list[Any] = [source, target]
        if kind != "plain":
            edge.append(float(random.integers(1, 9)) / 3 if "weighted" in kind else 1.0)
        if "typed" in kind:
            edge.append(str(random.choice(list("xyz"))))
        edges.append(tuple(edge))
    if kind == "weighted":
        edges.append((298, 1, 1e-310))
    return edges


QUERIES: list[dict[Any, float]] = [
    {0: 1.0},
    {3: 2.0, 17: 1.0, 260: 5.0},
    {299: 1.0},
    {298: 1.0},
    {node: 1.0 + node for node in range(40)},
]


@pytest.mark.parametrize("share", [ALWAYS, 30, NEVER], ids=["always", "switching", "never"])
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("dangling", ["seeds", "self"])
@pytest.mark.parametrize("direction", ["out", "in", "both"])
@pytest.mark.parametrize("kind", KINDS)
def test_matches_the_reference(
    monkeypatch: pytest.MonkeyPatch, kind: str, direction: Any, dangling: Any, precision: Precision, share: int
) -> None:
    monkeypatch.setattr(frontier, "ENTRIES_SHARE", share)
    edges, type_weights = edges_of(kind), TYPE_WEIGHTS if "typed" in kind else None
    found = kernel_personalized_pagerank(
        CpuBackend(threads=2),
        edges,
        QUERIES,
        nodes=NODES,
        damping=0.7,
        direction=direction,
        dangling=dangling,
        type_weights=type_weights,
        precision=precision,
        tolerance=0,
        max_iterations=60,
        k=len(NODES),
    )
    for query, seeds in zip(found, QUERIES, strict=True):
        expected = reference_personalized_pagerank(
            edges,
            seeds,
            nodes=NODES,
            damping=0.7,
            direction=direction,
            dangling=dangling,
            type_weights=type_weights,
        )
        assert_scores_close(query.scores, expected, query.error_bound)


def started(graph: KernelGraph, share: int, monkeypatch: pytest.MonkeyPatch, dangling: Any = "seeds") -> CpuBackend:
    monkeypatch.setattr(frontier, "ENTRIES_SHARE", share)
    backend = CpuBackend(threads=2)
    backend.load(graph.transition(dangling=dangling), precision="float64", order=graph.adjacency.order)
    backend.start(query_block(graph.seeds(QUERIES), 0, len(QUERIES)), restart=0.4)
    return backend


def close(left: StepReport, right: StepReport) -> None:
    for name in ("mass", "dangling_mass", "difference"):
        np.testing.assert_allclose(getattr(left, name), getattr(right, name), atol=1e-14)


@pytest.mark.parametrize("dangling", ["seeds", "self"])
def test_reports_the_same_sums(monkeypatch: pytest.MonkeyPatch, dangling: Literal["seeds", "self"]) -> None:
    graph = kernel_graph(edges_of("weighted"), nodes=NODES)
    pushed, multiplied = (started(graph, share, monkeypatch, dangling) for share in (ALWAYS, NEVER))
    for _ in range(7):
        close(pushed.step(), multiplied.step())
    for backend in (pushed, multiplied):
        backend.keep(np.array([1, 4]))
    close(pushed.step(), multiplied.step())


def test_selects_and_resets_a_pushed_column(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever leaves the frontier arrives in the matrix, in the form the matrix is in."""
    graph = kernel_graph(edges_of("plain"), nodes=NODES)
    backend = started(graph, ALWAYS, monkeypatch)
    backend.step()
    backend.step()
    first = backend.select(np.array([0]), k=300, eligible=None, min_score=0.0)
    backend.step()
    backend.reset(np.array([1]))
    backend.step()
    later = backend.select(np.array([0, 1, 4]), k=300, eligible=None, min_score=0.0)
    reference = started(graph, NEVER, monkeypatch)
    reference.step()
    expected = reference.step()
    assert expected.mass[0] == pytest.approx(1.0)
    selected = reference.select(np.array([0]), k=300, eligible=None, min_score=0.0)
    np.testing.assert_allclose(first.scores, selected.scores, atol=1e-15)
    reference.step()
    reference.reset(np.array([1]))
    reference.step()
    selected = reference.select(np.array([0, 1, 4]), k=300, eligible=None, min_score=0.0)
    np.testing.assert_allclose(later.scores, selected.scores, atol=1e-15)


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_company_does_not_change_a_bit(monkeypatch: pytest.MonkeyPatch, precision: Precision) -> None:
    """Columns switch at different steps; alone, in pairs and together they give the same bits, on any threads."""
    monkeypatch.setattr(frontier, "ENTRIES_SHARE", 20)
    graph = kernel_graph(edges_of("weighted"), nodes=NODES)
    seeds = graph.seeds(QUERIES)
    results: list[list[bytes]] = []
    for width, threads in ((5, 1), (5, 2), (2, 2), (1, 1)):
        backend = CpuBackend(threads=threads)
        backend.load(graph.transition(), precision=precision, order=graph.adjacency.order)
        found: list[bytes] = []
        for begin in range(0, 5, width):
            block = query_block(seeds, begin, min(begin + width, 5))
            result: BlockResult = personalized_pagerank(
                backend, block, restart=0.4, max_iterations=9, tolerance=0, k=50, precision=precision
            )
            found += [
                result.scores[row].tobytes() + result.nodes[row].tobytes() + result.error_bound[row].tobytes()
                for row in range(block.width)
            ]
        results.append(found)
    assert results[0] == results[1] == results[2] == results[3]


def test_a_small_component_never_enters_the_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two nodes apart from a large graph: their column touches two entries a step, for ever."""
    graph = kernel_graph([*[(node, node + 1) for node in range(5000)], (6001, 6002), (6002, 6001)])
    backend = CpuBackend(threads=1)
    backend.load(graph.transition(), precision="float64", order=graph.adjacency.order)
    multiplied: list[bool] = []
    product = backend._product

    def counted(*, measure: bool) -> tuple[Float64Array, Float64Array]:
        multiplied.append(measure)
        return product(measure=measure)

    monkeypatch.setattr(backend, "_product", counted)
    block = query_block(graph.seeds([{6001: 1.0}]), 0, 1)
    result = personalized_pagerank(
        backend, block, restart=0.5, max_iterations=100, tolerance=1e-12, k=5, precision="float64"
    )
    assert result.converged.all()
    assert not multiplied
    np.testing.assert_allclose(result.scores[0, :2], [2 / 3, 1 / 3], atol=1e-12)
