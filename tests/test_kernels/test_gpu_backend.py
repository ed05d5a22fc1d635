"""The GPU backend's own promises: every width, exact selection, memory that runs out, a driver that fails."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seedrank.errors import KernelError, ResourceError
from seedrank.kernels.arrays import Precision
from seedrank.kernels.backend import Backend, SummingBackend
from seedrank.kernels.backends.resolver import create_backend
from seedrank.kernels.ppr import personalized_pagerank
from seedrank.kernels.topk import top_k
from seedrank.testing.harness import KernelGraph, kernel_graph, query_block

pytestmark = pytest.mark.usefixtures("gpu_device")


def module(name: str) -> Any:
    """Import a module that needs CuPy, once there is one."""
    return importlib.import_module(f"seedrank.kernels.{name}")


@pytest.fixture(name="stand_in")
def _stand_in(gpu_device: None) -> Any:
    """Return the stand-in for CuPy; its memory and its faults can be chosen."""
    cupy = importlib.import_module("cupy")
    if not cupy.__version__.endswith("fake"):
        pytest.skip("there is a real GPU here, whose faults nobody chooses")
    return cupy


def some_graph(nodes: int = 400, *, weighted: bool = False) -> KernelGraph:
    random = np.random.default_rng(3)
    pairs = random.integers(0, [[nodes * 9 // 10], [nodes]], (2, 4 * nodes)).T.tolist()
    weights = random.random(len(pairs)).tolist()
    edges = [(*pair, weight) for pair, weight in zip(pairs, weights, strict=True)] if weighted else pairs
    return kernel_graph(list(map(tuple, edges)), nodes=range(nodes))


def loaded(graph: KernelGraph, precision: Precision = "float32", **options: Any) -> Backend:
    backend = create_backend("gpu")
    backend.load(graph.transition(**options), precision=precision, order=graph.adjacency.order)
    return backend


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_every_width_gives_the_same_bits(precision: Precision, weighted: bool) -> None:
    """Narrow blocks have fewer lanes, wide ones two columns a lane, and the last lanes of a tile nothing to do."""
    graph = some_graph(weighted=weighted)
    backend = loaded(graph, precision, direction="both")
    assert isinstance(backend, SummingBackend)
    seeds = graph.seeds([{node: 1.0, 399 - node: 2.0} for node in range(64)])
    found: dict[int, list[tuple[bytes, ...]]] = {}
    for width in (64, 1, 2, 3, 15, 16, 17, 31, 32, 33, 63):
        backend.start(query_block(seeds, 0, width), restart=0.2)
        for _ in range(3):
            report = backend.step()
            backend.accumulate(np.full((1, width), 0.5), np.full((1, width), 0.75))
        columns = np.arange(width)
        best = backend.select(columns, k=400, eligible=None, min_score=0.0)
        sums = backend.select_sum(0, columns, k=400, eligible=None, min_score=0.0)
        parts = (report.mass, report.dangling_mass, report.difference, best.nodes, best.scores, sums.nodes, sums.scores)
        found[width] = [tuple(part[column].tobytes() for part in parts) for column in columns]
    assert all(found[width] == found[64][:width] for width in found)


@pytest.mark.parametrize(("precision", "apart"), [("float32", 1e-6), ("float64", 1e-13)])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_a_step_is_that_of_the_sparse_library(precision: Precision, apart: float, weighted: bool) -> None:
    """The product by cuSPARSE on a GPU, by SciPy on the stand-in; restart and dangling mass by their definition."""
    graph = some_graph(weighted=weighted)
    cupy, transition, backend = importlib.import_module("cupy"), graph.transition(), loaded(graph, precision)
    real = not cupy.__version__.endswith("fake")
    library = importlib.import_module("cupyx.scipy.sparse" if real else "scipy.sparse")
    there = cupy.asarray if real else np.asarray
    (rows,), nodes = transition.products, transition.nodes
    entries = transition.inverse_out_weight[rows.columns] if rows.probabilities is None else rows.probabilities
    parts = (entries.astype(precision), np.asarray(rows.columns), rows.offsets.astype(np.int32))
    matrix = library.csr_matrix(tuple(map(there, parts)), shape=(nodes, nodes))

    def held() -> Any:
        return backend._block.current[: nodes * 40].get().reshape(nodes, 40)  # type: ignore[attr-defined]

    seeds = graph.seeds([{node: 1.0, 399 - node: 2.0} for node in range(40)])
    backend.start(query_block(seeds, 0, 40), restart=0.2)
    given = held()
    dangling = given[transition.dangling_nodes].sum(axis=0)
    assert dangling.any()
    backend.step()
    product = matrix @ there(given)
    product = product.get() if real else product
    np.testing.assert_allclose(held(), 0.8 * (product + dangling * given) + 0.2 * given, rtol=0, atol=apart)


def test_long_rows_are_cut_into_pieces() -> None:
    """Also where entries are beyond 2**31, which no test has the memory for."""
    graphs = module("_gpu.device_graph")
    lengths = np.array([3, 2048, 2049, 0, 3 * 2048, 3 * 2048 + 1, 2**33])
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    rows, starts, first, last = graphs.cut_long_rows(offsets)
    assert rows.tolist() == [2, 4, 5, 6]
    assert starts.tolist() == [0, 2, 5, 9, 9 + 2**22]
    for row, start, stop in zip(rows, starts, starts[1:], strict=False):
        assert first[start] == offsets[row]
        assert last[stop - 1] == offsets[row + 1]
        assert (last[start : stop - 1] == first[start + 1 : stop]).all()
    assert (last - first).max() == 2048
    assert (last - first).min() >= 1


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_selection_is_that_of_the_reference(data: st.DataObject) -> None:
    """Any scores >= 0, many of them equal; every filter; more wanted than there are."""
    precision: Precision = data.draw(st.sampled_from(["float32", "float64"]))
    width, nodes = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 60))
    dtype = np.dtype(precision)
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    pool = np.array([0, 5e-324, 1e-45, 1e-38, 1e-30, 0.1, np.nextafter(dtype.type(0.1), dtype.type(1)), 0.5, 1]).astype(
        dtype
    )
    scores = random.choice(pool[: data.draw(st.integers(1, len(pool)))], (nodes, width))
    graph = kernel_graph([], nodes=range(nodes))
    order = random.permutation(nodes).astype(np.int32)
    eligible = random.random(nodes) < 0.7 if data.draw(st.booleans()) else None
    reachable = random.integers(0, 2**64, nodes, dtype=np.uint64) if data.draw(st.booleans()) else None
    excluded = [random.integers(0, nodes, random.integers(0, 4)).astype(np.int32) for _ in range(width)]
    block = query_block(graph.seeds([{0: 1.0}] * width), 0, width, excluded=excluded)
    object.__setattr__(block, "reachable", reachable)
    backend = module("backends.gpu").GpuBackend()
    backend.load(graph.transition(), precision=precision, order=order)
    backend.start(block, restart=0.5)
    backend._block.current = module("backends.gpu").cupy.asarray(scores.ravel())
    columns = np.flatnonzero(random.random(width) < 0.8) if width > 1 else np.zeros(1, dtype=np.int64)
    k, least = data.draw(st.integers(1, nodes + 3)), data.draw(st.sampled_from([0.0, 1e-30, 0.1, 0.3]))
    if not len(columns):
        return
    found = backend.select(columns, k=k, eligible=eligible, min_score=least)
    for row, column in enumerate(columns):
        allowed = eligible
        if reachable is not None:
            near = (reachable >> np.uint64(column)) & np.uint64(1) == 1
            allowed = near if eligible is None else near & eligible
        expected_nodes, expected_scores = top_k(
            np.ascontiguousarray(scores[:, column]), k=k, order=order, eligible=allowed, excluded=excluded[column],
            min_score=least,
        )  # fmt: skip
        count = len(expected_nodes)
        assert found.counts[row] == count
        assert found.nodes[row].tolist() == [*expected_nodes.tolist(), *[-1] * (k - count)]
        assert found.scores[row].tolist() == [*expected_scores.tolist(), *[0.0] * (k - count)]


def test_a_block_that_does_not_fit_leaves_room_for_a_narrower_one(
    stand_in: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = some_graph(5000)
    seeds = graph.seeds([{node: 1.0} for node in range(64)])
    options: dict[str, Any] = {"restart": 0.5, "max_iterations": 5, "tolerance": 0, "k": 10, "precision": "float32"}
    expected = personalized_pagerank(loaded(graph), query_block(seeds, 0, 8), **options)
    free, _ = stand_in.cuda.Device().mem_info
    backend = create_backend("gpu")
    a_query = backend.bytes_per_query(5000, "float32")
    monkeypatch.setenv("FAKE_CUPY_MEMORY", str((256 << 20) - free + 400_000 + 10 * a_query))
    backend.load(graph.transition(), precision="float32", order=graph.adjacency.order)
    assert 8 <= backend.widest_block(5000, "float32") <= 12
    for _ in range(2):
        with pytest.raises(MemoryError, match="Out of memory"):
            personalized_pagerank(backend, query_block(seeds, 0, 64), **options)
        result = personalized_pagerank(backend, query_block(seeds, 0, 8), **options)
        assert result.nodes.tobytes() == expected.nodes.tobytes()
        assert result.scores.tobytes() == expected.scores.tobytes()
    monkeypatch.setenv("FAKE_CUPY_MEMORY", "1000")
    assert backend.widest_block(5000, "float32") == 1
    with pytest.raises(ResourceError, match=r"graph of 5,000 nodes .* does not fit into the 0 MB"):
        create_backend("gpu").load(graph.transition(), precision="float32", order=graph.adjacency.order)


def test_memory_of_a_block_is_what_was_planned(stand_in: Any) -> None:
    """`bytes_per_query` and the graph account for all that a running block holds."""
    graph = some_graph(20_000)
    edges = sum(len(product.columns) for product in graph.transition().products)
    for width, sums in ((64, 0), (40, 2)):
        before = stand_in.cuda.Device().mem_info[0]
        backend = loaded(graph)
        assert isinstance(backend, SummingBackend)
        held = before - stand_in.cuda.Device().mem_info[0]
        assert held <= 4 * edges + 25 * 20_000 + 1000
        backend.start(query_block(graph.seeds([{node: 1.0} for node in range(width)]), 0, width), restart=0.5)
        backend.step()
        if sums:
            backend.accumulate(np.ones((sums, width)), np.ones((sums, width)))
        used = before - held - stand_in.cuda.Device().mem_info[0]
        planned = width * backend.bytes_per_query(20_000, "float32", sums=sums)
        assert 0.9 * planned <= used <= planned + 10_000
        del backend
        assert stand_in.cuda.Device().mem_info[0] == before


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("sums", [0, 5])
def test_a_block_is_as_wide_as_the_formula_of_the_docs_says(
    stand_in: Any, monkeypatch: pytest.MonkeyPatch, precision: Precision, sums: int
) -> None:
    """A node and query: 8 bytes, 4 for each of several sums, both doubled in float64, and 0.2; a node: 12."""
    nodes, itemsize = 20_000, np.dtype(precision).itemsize
    backend, graph = create_backend("gpu"), some_graph(nodes)
    free, total = stand_in.cuda.Device().mem_info
    for room in (2_500_000, 6_000_000, 100_000_000):
        monkeypatch.setenv("FAKE_CUPY_MEMORY", str(total - free + room))
        left = 0.85 * room - 12 * nodes
        fits = [min(64, left / (nodes * (itemsize * (2 + sums) + beside))) for beside in (0.25, 0.2)]
        assert fits[0] - 1 <= backend.widest_block(nodes, precision, sums=sums) <= fits[1]
    backend.load(graph.transition(), precision=precision, order=graph.adjacency.order)
    free, total = stand_in.cuda.Device().mem_info
    monkeypatch.setenv("FAKE_CUPY_MEMORY", str(total - free + 6_000_000))
    width = backend.widest_block(nodes, precision, sums=sums)
    backend.start(query_block(graph.seeds([{node: 1.0} for node in range(width)]), 0, width), restart=0.0)
    backend.step()
    assert isinstance(backend, SummingBackend)
    backend.accumulate(np.ones((sums, width)), np.ones((sums, width)))
    backend.select(np.arange(width), k=10, eligible=None, min_score=0.0)
    assert stand_in.cuda.Device().mem_info[0] < 0.35 * 6_000_000


def test_many_long_rows_make_blocks_narrower(stand_in: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their pieces have sums of their own, which only a loaded graph knows of."""
    graph = kernel_graph([(source, target) for source in range(2100) for target in range(200)])
    backend = create_backend("gpu")
    backend.load(graph.transition(), precision="float32", order=graph.adjacency.order)
    free, total = stand_in.cuda.Device().mem_info
    monkeypatch.setenv("FAKE_CUPY_MEMORY", str(total - free + 500_000))
    a_query = backend.bytes_per_query(2100, "float32")
    assert backend.widest_block(2100, "float32") == (int(0.85 * 500_000) - 12 * 2100) // (a_query + 8 * 400)


@pytest.mark.parametrize(
    ("work", "fault", "error", "message"),
    [
        ("start", "memory:2", MemoryError, "CUDA_ERROR 2"),
        ("start", "memory:700", ResourceError, "cannot use it any more: CUDA_ERROR 700"),
        ("start", "launch:9", KernelError, "refused a call: CUDA_ERROR 9"),
        ("start", "launch:2", MemoryError, "CUDA_ERROR 2"),
        ("step", "memory:700", ResourceError, "cannot use it any more: CUDA_ERROR 700"),
        ("load", "memory:2", ResourceError, "does not fit"),
        ("load", "memory:700", ResourceError, "cannot use it any more: cudaError 700"),
    ],
)
def test_errors_of_the_driver_are_told_apart(
    stand_in: Any, monkeypatch: pytest.MonkeyPatch, work: str, fault: str, error: type[Exception], message: str
) -> None:
    graph = some_graph()
    backend = loaded(graph)

    def start() -> None:
        backend.start(query_block(graph.seeds([{0: 1.0}]), 0, 1), restart=0.5)

    start()
    works: dict[str, Callable[[], Any]] = {"load": lambda: loaded(graph), "start": start, "step": backend.step}
    monkeypatch.setenv("FAKE_CUPY_FAULT", fault)
    with pytest.raises(error, match=message):
        works[work]()
    monkeypatch.delenv("FAKE_CUPY_FAULT")
    works[work]()


def test_a_report_holds_the_sums_of_its_step_whenever_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = some_graph()
    seeds = graph.seeds([{node: 1.0} for node in range(5)])
    found: dict[bool, list[list[float]]] = {}
    for at_once in (True, False):
        backend, reports = loaded(graph), []
        backend.start(query_block(seeds, 0, 5), restart=0.3)
        for _ in range(3):
            reports.append(backend.step())
            assert not at_once or reports[-1].mass.size == 5
        backend.keep(np.array([1, 3]))
        found[at_once] = [[*each.mass, *each.dangling_mass, *each.difference] for each in reports]
    assert found[True] == found[False]
    assert len({tuple(sums) for sums in found[True]}) == 3


def test_a_report_that_nobody_reads_keeps_its_buffer_until_it_is_filled(stand_in: Any) -> None:
    """CuPy hands the memory of dropped buffers out again; the copy would write into the next one, such as seeds."""
    report = module("_gpu.report").DeviceReport(stand_in.zeros(6, float))
    copied = report._copied
    assert not copied.done
    del report
    assert copied.done


def test_a_report_that_does_not_wait_is_noticed(stand_in: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = some_graph()
    backend = loaded(graph)
    backend.start(query_block(graph.seeds([{0: 1.0}]), 0, 1), restart=0.3)
    stand_in.cuda.get_current_stream().synchronize()
    report = backend.step()
    assert len(stand_in.cuda.get_current_stream()._waiting) == 1, "a step that waited"
    monkeypatch.setattr(stand_in.cuda.Event, "synchronize", lambda self: None)
    assert abs(float(report.mass[0]) - 1) > 1e-3


def test_works_in_turn_only() -> None:
    backend = create_backend("gpu")
    graph = some_graph()
    with pytest.raises(RuntimeError, match="load comes first"):
        backend.start(query_block(graph.seeds([{0: 1.0}]), 0, 1), restart=0.5)
    backend.load(graph.transition(), precision="float32", order=graph.adjacency.order)
    with pytest.raises(RuntimeError, match="start comes first"):
        backend.step()
