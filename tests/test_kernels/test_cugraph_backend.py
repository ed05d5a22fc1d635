"""The cuGraph backend's own promises: what cuGraph is handed, what is believed of it, and its errors."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from seedrank.errors import KernelError, ResourceError
from seedrank.kernels.backend import Backend, ForeignBackend
from seedrank.kernels.backends.resolver import create_backend
from seedrank.kernels.ppr import personalized_pagerank
from seedrank.kernels.transition import SparseRows, Transition
from seedrank.testing.harness import KernelGraph, kernel_graph, kernel_personalized_pagerank, query_block
from seedrank.testing.parity import assert_scores_close
from seedrank.testing.reference import reference_personalized_pagerank

pytestmark = pytest.mark.usefixtures("cugraph_device")

EDGES = [(source, (source * step + 1) % 50) for source in range(40) for step in (1, 2, 3)]


@pytest.fixture(name="stand_in")
def _stand_in(cugraph_device: None) -> Any:
    """Return the stand-in for pylibcugraph, whose faults can be chosen."""
    library = importlib.import_module("pylibcugraph")
    if not library.__version__.endswith("fake"):
        pytest.skip("there is a real cuGraph here, whose faults nobody chooses")
    return library


@pytest.fixture(name="calls")
def _calls(stand_in: Any, monkeypatch: pytest.MonkeyPatch) -> list[SimpleNamespace]:
    """Every call for a PageRank: what it was given, on the host, and the flag that it returned."""
    made: list[SimpleNamespace] = []
    real = stand_in.personalized_pagerank

    def watched(*arguments: Any, **options: Any) -> Any:
        result = real(*arguments, **options)
        start, vertices, values = (arguments[place].get() for place in (5, 6, 7))
        alpha, epsilon, steps = arguments[8:11]
        made.append(
            SimpleNamespace(
                start=start, vertices=vertices, values=values, alpha=alpha, epsilon=epsilon, steps=steps, flag=result[2]
            )
        )
        return result

    monkeypatch.setattr(stand_in, "personalized_pagerank", watched)
    return made


def loaded(graph: KernelGraph, **options: Any) -> Backend:
    backend = create_backend("cugraph")
    backend.load(graph.transition(**options), precision="float64", order=graph.adjacency.order)
    return backend


def test_a_fixed_number_of_steps_takes_two_calls_a_query(calls: list[SimpleNamespace]) -> None:
    """All but the last in one, the last measured; both from the vector that is there, never from 1/n."""
    queries = [{3: 2.0, 17: 1.0}, {45: 1.0}]
    results = kernel_personalized_pagerank(
        create_backend("cugraph"), EDGES, queries, damping=0.8, tolerance=0, max_iterations=10, nodes=range(50)
    )
    assert [call.steps for call in calls] == [9, 9, 1, 1]
    assert [call.start.tolist().count(0.0) for call in calls[:2]] == [48, 49]
    assert [call.start.sum() for call in calls[:2]] == [1.0, 1.0]
    for result, seeds in zip(results, queries, strict=True):
        expected = reference_personalized_pagerank(EDGES, seeds, damping=0.8, iterations=10, nodes=range(50))
        assert_scores_close(result.scores, expected, 1e-15)
        assert (result.iterations, result.converged) == (10, True)


def test_converging_in_the_last_allowed_step_counts_as_converged(calls: list[SimpleNamespace]) -> None:
    """Whatever cuGraph says of it: its flag is false whenever the last step is made."""
    options: dict[str, Any] = {"damping": 0.8, "tolerance": 1e-6, "nodes": range(50)}
    (free,) = kernel_personalized_pagerank(create_backend("cugraph"), EDGES, [{3: 1.0}], **options)
    assert free.converged
    assert free.iterations % 5 == 0
    del calls[:]
    (just,) = kernel_personalized_pagerank(
        create_backend("cugraph"), EDGES, [{3: 1.0}], max_iterations=free.iterations, **options
    )
    assert (just.converged, just.iterations) == (True, free.iterations)
    assert not any(call.flag for call in calls)
    (short,) = kernel_personalized_pagerank(
        create_backend("cugraph"), EDGES, [{3: 1.0}], max_iterations=free.iterations - 5, **options
    )
    assert not short.converged
    assert short.error_bound > 1e-6


def test_every_few_steps_one_is_measured_and_who_is_finished_leaves(calls: list[SimpleNamespace]) -> None:
    """Node 49 ends in itself, so its query converges at once; the calls that follow are for the other alone."""
    edges = [edge for edge in EDGES if edge[0] != 49]
    options: dict[str, Any] = {"damping": 0.8, "nodes": range(50)}
    queries = [{49: 1.0}, {3: 3.0, 17: 1.0}]
    results = kernel_personalized_pagerank(create_backend("cugraph"), edges, queries, tolerance=1e-6, **options)
    assert [call.steps for call in calls[:4]] == [4, 4, 1, 1]
    assert len(calls) > 4
    assert {tuple(call.vertices.tolist()) for call in calls[4:]} == {tuple(calls[1].vertices.tolist())}
    assert {tuple(sorted(call.values.tolist())) for call in calls[4:]} == {(0.25, 0.75)}
    assert results[0].iterations == 5 < results[1].iterations
    assert results[0].ranking == [(49, 1.0)]
    assert_scores_close(results[1].scores, reference_personalized_pagerank(edges, queries[1], **options), 1e-6)


def test_seeds_are_handed_over_once_each(calls: list[SimpleNamespace]) -> None:
    """Repeated hits are one seed: cuGraph lets repeated vertices overwrite each other."""
    graph = kernel_graph(EDGES, nodes=range(50))
    backend = loaded(graph)
    seeds = graph.seeds([{7: 3.0, 30: 1.0}])
    backend.start(query_block(seeds, 0, 1), restart=0.5)
    backend.step()
    (call,) = calls
    assert sorted(call.vertices.tolist()) == sorted(graph.internal([7, 30]).tolist())
    assert sorted(call.values.tolist()) == [0.25, 0.75]
    assert call.alpha == 0.5
    assert 0 < call.epsilon < 1e-300


@pytest.mark.parametrize("dangling", ["seeds", "self"])
@pytest.mark.parametrize("edges", [[], [(0, 1)], [(1, 0)], [(2, 2)]], ids=str)
def test_nodes_without_edges_exist_wherever_they_are(edges: Any, dangling: Any) -> None:
    """Also beyond the last edge, and where there is no edge at all."""
    queries = [{node: 1.0} for node in range(4)]
    options: dict[str, Any] = {"damping": 0.7, "dangling": dangling, "nodes": range(4)}
    for result, seeds in zip(
        kernel_personalized_pagerank(create_backend("cugraph"), edges, queries, **options), queries, strict=True
    ):
        expected = reference_personalized_pagerank(edges, seeds, **options)
        assert_scores_close(result.scores, {node: score for node, score in expected.items() if score}, 1e-13)


def test_a_graph_without_nodes_loads() -> None:
    backend = loaded(kernel_graph([]))
    assert backend.widest_block(0, "float32") == 8


def test_summands_become_one_graph(stand_in: Any) -> None:
    """Entries without a value stand beside others with their probability."""
    inverse = np.array([0.5, 0.25, 1.0])
    plain = SparseRows(np.array([0, 1, 3, 3]), np.array([1, 0, 2], np.int32), None)
    valued = SparseRows(np.array([0, 1, 1, 2]), np.array([1, 1], np.int32), np.array([0.125, 0.625]))
    none = np.zeros(0, np.int32)
    transition = Transition(3, (plain, valued), (), 1 / inverse, inverse, none, "seeds")
    backend: Any = create_backend("cugraph")
    backend.load(transition, precision="float32", order=np.arange(3, dtype=np.int32))
    expected = [[0, 0.25 + 0.125, 0], [0.5, 0, 1], [0, 0.625, 0]]
    assert backend._graph.graph.incoming.toarray().tolist() == expected
    assert backend._graph.out_weight.get().tolist() == [1, 1, 1]
    assert backend._graph.longest_row == 3


def test_many_edges_need_wide_node_numbers() -> None:
    graphs: Any = importlib.import_module("seedrank.kernels._gpu.cugraph_graph")
    assert graphs.vertex_dtype(2**31 - 1) == np.int32
    assert graphs.vertex_dtype(2**31) == np.int64


def test_wide_node_numbers_are_used_throughout(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in refuses arrays of another type than the graph's."""
    graphs: Any = importlib.import_module("seedrank.kernels._gpu.cugraph_graph")
    monkeypatch.setattr(graphs, "MOST_SHORT_ENTRIES", 10)
    backend: Any = create_backend("cugraph")
    (result,) = kernel_personalized_pagerank(backend, EDGES, [{3: 1.0}], damping=0.8, dangling="self")
    assert backend._graph.vertices.dtype == np.int64
    assert_scores_close(
        result.scores, reference_personalized_pagerank(EDGES, {3: 1.0}, damping=0.8, dangling="self"), 1e-12
    )


def test_the_bound_knows_how_long_rows_are() -> None:
    """Of m numbers a sum is off by m / 2**53 at most; rows, dangling nodes and seeds are such sums."""
    star = kernel_graph([(leaf, 1000) for leaf in range(1000)])
    backend = loaded(star)
    assert isinstance(backend, ForeignBackend)
    block = query_block(star.seeds([{0: 1.0}, dict.fromkeys(range(500), 1.0)]), 0, 2)
    assert (backend.step_rounding(block) * 2**53).tolist() == [1 + 1001 + 1 + 16, 500 + 1001 + 1 + 16]
    result = personalized_pagerank(
        backend, block, restart=0.5, max_iterations=200, tolerance=1e-15, k=5, precision="float64"
    )
    assert (result.error_bound > 2 * 1000 * 2.0**-53).all()


def test_the_best_are_certified_as_on_other_backends() -> None:
    """At a measured step, with the bound that includes cuGraph's sums."""
    graph = kernel_graph(EDGES, nodes=range(50))
    block = query_block(graph.seeds([{3: 1.0, 20: 0.5}]), 0, 1)
    found = {}
    for name in ("cugraph", "scipy"):
        backend = create_backend(name)
        backend.load(graph.transition(), precision="float64", order=graph.adjacency.order)
        found[name] = personalized_pagerank(
            backend, block, restart=0.2, max_iterations=500, tolerance=1e-9, k=5, precision="float64", stop="top-k"
        )
    assert {name: result.certificate.tolist() for name, result in found.items()} == {"cugraph": [1], "scipy": [1]}
    assert set(found["cugraph"].nodes[0].tolist()) == set(found["scipy"].nodes[0].tolist())
    assert found["cugraph"].iterations[0] % 5 == 0


def test_stops_when_it_is_told_to(calls: list[SimpleNamespace]) -> None:
    graph = kernel_graph(EDGES, nodes=range(50))
    backend, answers = loaded(graph), iter([False, False, True])
    result = personalized_pagerank(
        backend,
        query_block(graph.seeds([{3: 1.0}]), 0, 1),
        restart=0.1,
        max_iterations=100,
        tolerance=1e-12,
        k=5,
        precision="float64",
        should_stop=lambda: next(answers),
    )
    assert (result.iterations.tolist(), result.stopped.tolist()) == ([10], [True])
    assert sum(call.steps for call in calls) == 10


@pytest.mark.parametrize(
    ("work", "faults", "error", "message"),
    [
        ("step", {"FAKE_CUGRAPH_FAULT": "std::bad_alloc: out_of_memory: CUDA error"}, MemoryError, "bad_alloc"),
        ("load", {"FAKE_CUGRAPH_FAULT": "std::bad_alloc: out_of_memory: CUDA error"}, ResourceError, "does not fit"),
        ("step", {"FAKE_CUGRAPH_FAULT": "Invalid input argument"}, KernelError, "cuGraph refused a call"),
        ("step", {"FAKE_CUPY_FAULT": "memory:719"}, ResourceError, "cannot use it any more"),
        ("step", {"FAKE_CUPY_FAULT": "memory:2"}, MemoryError, "cudaError 2"),
    ],
)
def test_errors_are_told_apart(
    stand_in: Any,
    monkeypatch: pytest.MonkeyPatch,
    work: str,
    faults: dict[str, str],
    error: type[Exception],
    message: str,
) -> None:
    graph = kernel_graph(EDGES)
    backend = loaded(graph)
    backend.start(query_block(graph.seeds([{3: 1.0}]), 0, 1), restart=0.5)
    works: dict[str, Callable[[], Any]] = {"load": lambda: loaded(graph), "step": backend.step}
    with monkeypatch.context() as faulty:
        # The probe ran before, and would meet the fault now.
        faulty.setattr(
            "seedrank.kernels.backends.resolver.probe_cugraph",
            lambda: SimpleNamespace(usable=True, device="", cugraph=""),
        )
        for name, value in faults.items():
            faulty.setenv(name, value)
        with pytest.raises(error, match=message):
            works[work]()
    works[work]()


def test_an_error_of_a_device_that_is_lost_is_that_of_the_device(
    stand_in: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CuGraph reports it as a text; the device, asked, says what it is."""
    graph = kernel_graph(EDGES)
    backend = loaded(graph)
    backend.start(query_block(graph.seeds([{3: 1.0}]), 0, 1), restart=0.5)

    def fails(*arguments: Any, **options: Any) -> None:
        monkeypatch.setenv("FAKE_CUPY_FAULT", "memory:700")
        raise RuntimeError("non-success value returned: CUDA error encountered")

    monkeypatch.setattr(stand_in, "personalized_pagerank", fails)
    with pytest.raises(ResourceError, match="CUDA error encountered"):
        backend.step()


def test_rules_that_cugraph_does_not_have_are_refused() -> None:
    with pytest.raises(RuntimeError, match="no dangling rule 'uniform'"):
        loaded(kernel_graph(EDGES), dangling="uniform")


def test_works_in_turn_only() -> None:
    backend = create_backend("cugraph")
    graph = kernel_graph(EDGES)
    with pytest.raises(RuntimeError, match="load comes first"):
        backend.start(query_block(graph.seeds([{3: 1.0}]), 0, 1), restart=0.5)
    backend.load(graph.transition(), precision="float32", order=graph.adjacency.order)
    with pytest.raises(RuntimeError, match="start comes first"):
        backend.step()
