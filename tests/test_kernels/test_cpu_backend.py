"""The compiled backend: no bit depends on threads, width, measuring or streaming; parity with the reference."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pytest
from numba import config, get_num_threads, set_num_threads

from seedrank.kernels._cpu.row_order import CHUNK_COST
from seedrank.kernels.arrays import Precision
from seedrank.kernels.backend import Backend, QueryBlock, StepReport
from seedrank.kernels.backends import cpu as cpu_backend
from seedrank.kernels.backends.cpu import CpuBackend
from seedrank.kernels.backends.resolver import create_backend
from seedrank.kernels.building.adjacency import build_adjacency
from seedrank.kernels.ppr import BlockResult, personalized_pagerank
from seedrank.kernels.relaxation import Relaxation
from seedrank.kernels.seeds import SeedSets
from seedrank.testing.harness import KernelGraph, kernel_graph, kernel_personalized_pagerank, query_block
from seedrank.testing.toys import Edge

Rule = Literal["seeds", "self", "uniform"]

NODES, ENTRIES, HUB, QUERIES = 20_000, 240_000, 10_000, 64
RULES: tuple[Rule, ...] = ("seeds", "self", "uniform")
PRECISIONS: tuple[Precision, ...] = ("float32", "float64")


@lru_cache
def big_graph(*, weighted: bool) -> KernelGraph:
    """20,000 nodes, 260,000 rows: a hub with 10,000 rows in, one with 10,000 out; one node in five is dangling."""
    random = np.random.default_rng([7, weighted])
    source = random.integers(0, NODES * 4 // 5, ENTRIES)
    target = (NODES * random.random(ENTRIES) ** 2).astype(np.int64)
    leaves = np.arange(1, HUB + 1)
    source = np.concatenate((source, leaves, np.zeros(HUB, np.int64)))
    target = np.concatenate((target, np.full(HUB, 17), leaves + 5_000))
    weight = random.uniform(0.1, 9.0, len(source)) if weighted else None
    if not weighted:
        # Rows must not repeat: merged ones would count twice, and the graph would have weights.
        source, target = np.unique(np.stack((source, target)), axis=1)
    pair = build_adjacency(
        source.astype(np.int32), target.astype(np.int32), weight, None, nodes=NODES, duplicate_edges="sum"
    )
    return KernelGraph(list(range(NODES)), {node: node for node in range(NODES)}, [], pair)


def seeds_of(graph: KernelGraph) -> SeedSets:
    """One to four seeds a query; some seeds are dangling, query 5 has none, query 6 knows the hub only."""
    sets: list[dict[Any, float]] = [
        {(311 * query + 5_077 * i) % NODES: 1.0 + i * query for i in range(1 + query % 4)} for query in range(QUERIES)
    ]
    sets[5], sets[6] = {}, {17: 1.0}
    return graph.seeds(sets)


def run_blocks(
    backend: Backend, graph: KernelGraph, *, width: int = QUERIES, queries: int = QUERIES, **options: Any
) -> list[BlockResult]:
    """Score the queries of `seeds_of` block by block, on a loaded backend."""
    seeds = seeds_of(graph)
    arguments: dict[str, Any] = {"restart": 0.3, "max_iterations": 14, "tolerance": 1e-3, "k": 40} | options
    return [
        personalized_pagerank(backend, query_block(seeds, first, min(first + width, queries)), **arguments)
        for first in range(0, queries, width)
    ]


def bits(results: list[BlockResult]) -> list[bytes]:
    """All numbers of every query of some blocks."""
    fields = ("nodes", "scores", "counts", "iterations", "error_bound", "converged")
    return [
        b"".join(getattr(result, field)[query].tobytes() for field in fields)
        for result in results
        for query in range(len(result.counts))
    ]


def loaded(
    graph: KernelGraph,
    precision: Precision,
    *,
    dangling: Rule = "seeds",
    direction: Any = "out",
    backend: Backend | None = None,
) -> Backend:
    """Return a backend, by default a fresh `CpuBackend`, with a graph."""
    backend = backend or CpuBackend()
    transition = graph.transition(direction=direction, dangling=dangling)
    backend.load(transition, precision=precision, order=graph.adjacency.order)
    return backend


@pytest.fixture(autouse=True)
def threads_as_before() -> Iterator[None]:
    """Numba keeps the number of threads per process: give it back."""
    before = get_num_threads()
    yield
    set_num_threads(before)


def test_the_graph_is_worth_comparing() -> None:
    """Several chunks of work, rows longer than any stretch, dangling nodes, queries that end at different steps."""
    for weighted in (False, True):
        graph = big_graph(weighted=weighted)
        rows = graph.adjacency.by_destination
        assert rows.entries > 200_000
        assert rows.entries > 3 * CHUNK_COST
        assert (rows.weights is None) == (not weighted)
        assert np.diff(rows.offsets).max() >= HUB
        assert graph.adjacency.dangling > NODES // 10
        (result,) = run_blocks(loaded(graph, "float64"), graph, precision="float64")
        assert len(set(result.iterations.tolist())) > 3


#: Sweeps as `choose_relaxation` may order them.
SWEEPS = Relaxation(factor=1.2, first_sweeps=5)

#: Kinds of graph and run whose results are compared over threads: weighted, precision, dangling rule, width, sweeps.
THREAD_SETTINGS: tuple[tuple[bool, Precision, Rule, int, Relaxation | None], ...] = (
    (False, "float32", "seeds", 18, None),
    (False, "float64", "self", 18, None),
    (True, "float32", "uniform", 18, None),
    (True, "float64", "seeds", 9, None),
    (False, "float32", "seeds", 64, SWEEPS),
    (True, "float64", "self", 18, SWEEPS),
)


def digests_by_threads(*threads: int) -> dict[str, list[str]]:
    """Setting → hash of the results for each number of threads; a test runs this in a process that has five."""
    most = int(config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]
    found: dict[str, list[str]] = {}
    for weighted, precision, rule, width, relaxation in THREAD_SETTINGS:
        graph = big_graph(weighted=weighted)
        digests = []
        for count in threads:
            backend = CpuBackend(threads=count)
            loaded(graph, precision, dangling=rule, backend=backend)
            options: dict[str, Any] = {"precision": precision, "relaxation": relaxation, "tolerance": 1e-4}
            results = bits(run_blocks(backend, graph, width=width, queries=max(width, 18), **options))
            assert get_num_threads() == min(count, most)
            digests.append(hashlib.sha256(b"".join(results)).hexdigest())
        found[f"{weighted} {precision} {rule} {width} {relaxation}"] = digests
    return found


def test_threads_change_no_bit() -> None:
    """1, 2, 3, 5 and more than there are, in a process that has five; and 1 in this one."""
    call = f"runpy.run_path({__file__!r})['digests_by_threads'](1, 2, 3, 5, 1000)"
    done = subprocess.run(
        [sys.executable, "-c", f"import json, runpy; print(json.dumps({call}))"],
        env=os.environ | {"NUMBA_NUM_THREADS": "5"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    elsewhere: dict[str, list[str]] = json.loads(done.stdout)
    here = digests_by_threads(1)
    assert elsewhere == {setting: digests * 5 for setting, digests in here.items()}
    assert len({digest for digests in here.values() for digest in digests}) == len(THREAD_SETTINGS)


def test_threads_of_one_backend_are_not_those_of_the_next() -> None:
    graph = big_graph(weighted=False)
    for backend in (CpuBackend(threads=1), CpuBackend()):
        loaded(graph, "float32", backend=backend)
        run_blocks(backend, graph, width=1, queries=1, precision="float32", tolerance=1e-2)
    assert get_num_threads() == int(config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(
    ("weighted", "direction", "relaxation"),
    [(False, "out", None), (True, "both", None), (False, "both", SWEEPS), (True, "out", SWEEPS)],
)
def test_block_width_changes_no_bit(
    weighted: bool, direction: str, relaxation: Relaxation | None, precision: Precision
) -> None:
    """Widths beside those for which there are kernels (16, 32, 64), narrowed on the way as queries finish."""
    graph = big_graph(weighted=weighted)
    backend = loaded(graph, precision, direction=direction)
    options: dict[str, Any] = {"precision": precision, "relaxation": relaxation}
    expected = bits(run_blocks(backend, graph, width=64, **options))
    for width in (1, 7, 16, 17, 32, 33):
        queries = min(3 * width, QUERIES)
        found = bits(run_blocks(backend, graph, width=width, queries=queries, **options))
        assert found == expected[:queries], width


class MeasuredBackend(CpuBackend):
    """Measures every step, whatever the driver asks for."""

    def step(self, *, measure: bool = True) -> StepReport:
        return super().step(measure=True)


@pytest.mark.parametrize("iterations", [1, 2, 3, 9])
@pytest.mark.parametrize("dangling", RULES)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_steps_that_are_not_measured_give_the_same_vectors(
    precision: Precision, dangling: Rule, iterations: int
) -> None:
    """With tolerance 0 only the last two steps are measured; before, dangling rows are left out, the rest is scaled."""
    graph = big_graph(weighted=False)
    options: dict[str, Any] = {"tolerance": 0, "max_iterations": iterations, "precision": precision, "k": 200}
    found, expected = (
        run_blocks(loaded(graph, precision, dangling=dangling, backend=backend), graph, width=33, **options)
        for backend in (CpuBackend(), MeasuredBackend())
    )
    close = 1e-15 if precision == "float64" else 2e-7
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours.scores, theirs.scores, rtol=0, atol=close)
        np.testing.assert_array_equal(ours.iterations, theirs.iterations)
        np.testing.assert_allclose(ours.error_bound, theirs.error_bound, rtol=1e-3)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_writing_past_the_cache_changes_no_bit(precision: Precision, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = big_graph(weighted=False)
    found = []
    for limit in (0, 1 << 40):
        monkeypatch.setattr(cpu_backend, "STREAM_BYTES", limit)
        backend = loaded(graph, precision, direction="both")
        found += [bits(run_blocks(backend, graph, width=width, precision=precision)) for width in (64, 20)]
    assert found[0] == found[1] == found[2] == found[3]


def scores_by_node(result: BlockResult) -> npt.NDArray[np.float64]:
    """(queries, nodes) scores by internal node."""
    scores = np.zeros((len(result.counts), NODES))
    for query, count in enumerate(result.counts):
        scores[query, result.nodes[query, :count]] = result.scores[query, :count]
    return scores


@pytest.mark.parametrize("dangling", RULES)
@pytest.mark.parametrize(
    ("direction", "tolerance", "iterations"),
    [("out", 0.0, 15), ("in", 0.0, 15), ("both", 0.0, 15), ("both", 1e-13, 1000)],
    ids=["out", "in", "both", "converged"],
)
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_agrees_with_the_reference_backend(
    weighted: bool, direction: str, dangling: Rule, tolerance: float, iterations: int
) -> None:
    """All nodes of graphs with rows of 10,000 entries: within 1e-6 in float32, 1e-12 in float64."""
    graph = big_graph(weighted=weighted)
    options: dict[str, Any] = {"tolerance": tolerance, "max_iterations": iterations, "k": NODES, "queries": 8}
    for precision, close in (("float32", 1e-6), ("float64", 1e-12)):
        if precision == "float32" and tolerance > 0:
            options["tolerance"] = 1e-8
        scores = []
        for name in ("scipy", "cpu"):
            backend = loaded(graph, precision, direction=direction, dangling=dangling, backend=create_backend(name))  # type: ignore[arg-type]
            (result,) = run_blocks(backend, graph, precision=precision, **options)
            assert result.converged.all()
            scores.append(scores_by_node(result))
        np.testing.assert_allclose(scores[1], scores[0], rtol=0, atol=close)
        # Nodes that are not reached have score 0 and are not found, on either.
        tiny = np.maximum(*scores) < 1e-30
        assert ((scores[0] > 0) == (scores[1] > 0))[~tiny].all()


@pytest.mark.parametrize(
    ("restart", "width", "layers"),
    # Found by search: the last digits of λ decide how the sums round.
    [(0.47570084017276804, 56, 3), (0.49662060253252893, 60, 3), (0.541945585151997, 64, 2)],
)
def test_error_of_rows_of_equal_entries_stays_within_the_bound(restart: float, width: int, layers: int) -> None:
    """A seed feeds a ring of layers, each fully joined to the next: all sums add equal numbers and round one way."""
    edges: list[Edge] = [(0, 1000 + j) for j in range(width)]
    for layer in range(1, layers + 1):
        following = layer % layers + 1
        edges += [(1000 * layer + i, 1000 * following + j) for i in range(width) for j in range(width)]
    damping = 1.0 - restart
    (query,) = kernel_personalized_pagerank(
        CpuBackend(), edges, [{0: 1.0}], damping=damping, precision="float32", tolerance=1e-9
    )
    # The first layer gets α λ from the seed and αᴸ of its own mass back; each further one has α of the one before.
    first = damping * restart / (1.0 - damping**layers)
    exact: dict[Any, float] = {0: restart}
    for layer in range(layers):
        exact |= {1000 * (layer + 1) + j: first * damping**layer / width for j in range(width)}
    assert sum(exact.values()) == pytest.approx(1.0, abs=1e-12)
    assert sum(abs(score - query.scores.get(node, 0.0)) for node, score in exact.items()) <= query.error_bound


@pytest.mark.parametrize("precision", PRECISIONS)
def test_widest_block_is_narrower_where_only_the_narrow_one_stays_in_the_cache(precision: Precision) -> None:
    backend = CpuBackend()
    bytes_per_node = 2 * np.dtype(precision).itemsize
    both_stay = cpu_backend.CACHE_BYTES // (64 * bytes_per_node)
    one_stays = cpu_backend.CACHE_BYTES // (32 * bytes_per_node)
    nodes = (1, both_stay, both_stay + 1, one_stays, one_stays + 1, 10**9)
    assert [backend.widest_block(count, precision) for count in nodes] == [64, 64, 32, 32, 64, 64]


def test_graph_without_a_seed_or_an_edge() -> None:
    graph = kernel_graph([], nodes=range(3))
    backend = loaded(graph, "float32")
    block = query_block(graph.seeds([{}, {1: 1.0}]), 0, 2)
    result = personalized_pagerank(
        backend, block, restart=0.5, max_iterations=9, tolerance=1e-6, k=5, precision="float32"
    )
    assert result.counts.tolist() == [0, 1]
    assert result.scores[1].tolist() == [1, 0, 0, 0, 0]


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("relaxation", [None, SWEEPS])
@pytest.mark.parametrize("children", [41, 47, 49, 55])
def test_case_20_ties_do_not_depend_on_out_degrees(
    precision: Precision, relaxation: Relaxation | None, children: int
) -> None:
    """A star whose leaves b and c have children: all five leaves have one score, so the lowest ids win."""
    edges: list[Edge] = [("A", leaf) for leaf in "bcdef"]
    edges += [(leaf, f"{leaf}{i:02d}") for leaf in "bc" for i in range(children)]
    graph = kernel_graph(edges)
    backend = loaded(graph, precision)
    sets = graph.seeds([{"A": 1.0}])
    block = QueryBlock(sets.offsets, sets.nodes, sets.weights, np.array([0, 1]), graph.internal("A"))
    result = personalized_pagerank(
        backend, block, restart=0.5, max_iterations=100, tolerance=1e-6, k=3, precision=precision, relaxation=relaxation
    )
    assert [graph.ids[rank] for rank in graph.adjacency.order[result.nodes[0]]] == ["b", "c", "d"]
