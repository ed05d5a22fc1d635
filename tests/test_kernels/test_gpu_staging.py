"""Arrays on their way to the device: whatever the pieces, what arrives is the same, and nobody waits too little."""

from __future__ import annotations

import importlib
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from seedrank.errors import ResourceError
from seedrank.kernels.backends.resolver import create_backend
from seedrank.kernels.runs import offsets_of
from seedrank.kernels.transition import SparseRows
from seedrank.testing.harness import kernel_graph, query_block
from seedrank.testing.recall_harness import recall_graph

pytestmark = pytest.mark.usefixtures("gpu_device")


def module(name: str) -> Any:
    """Import a module that needs CuPy, once there is one."""
    return importlib.import_module(f"seedrank.kernels._gpu.{name}")


@pytest.fixture(name="stand_in")
def _stand_in(gpu_device: None) -> Any:
    """Return the stand-in for CuPy, whose copies come late and whose faults can be chosen."""
    cupy = importlib.import_module("cupy")
    if not cupy.__version__.endswith("fake"):
        pytest.skip("there is a real GPU here, whose faults nobody chooses")
    return cupy


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(size=st.integers(0, 200), piece_bytes=st.integers(8, 700), change=st.sampled_from([("f8", "f4"), ("i4", "i4")]))
def test_any_pieces_arrive_as_one_array(size: int, piece_bytes: int, change: tuple[str, str]) -> None:
    given_type, wanted = change
    staging, random = module("staging").Staging(piece_bytes), np.random.default_rng(size)
    for _ in range(3):
        host = (1000 * random.random(size)).astype(given_type)
        host.flags.writeable = False
        arrived = staging.upload_array(host, wanted).get()
        assert arrived.dtype == wanted
        assert arrived.tobytes() == host.astype(wanted).tobytes()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), summands=st.integers(1, 3), nodes=st.integers(1, 30), piece=st.integers(1, 40))
def test_summands_become_one_matrix(data: st.DataObject, summands: int, nodes: int, piece: int) -> None:
    """A row has the entries of the first summand, then those of the next, also where a piece ends within it."""
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    inverse, products = random.random(nodes), []
    for _ in range(summands):
        lengths = random.integers(0, data.draw(st.sampled_from([1, 2, 30])), nodes)
        columns = random.integers(0, nodes, lengths.sum()).astype(np.int32)
        values = random.random(len(columns)) if data.draw(st.booleans()) else None
        products.append(SparseRows(offsets_of(lengths), columns, values))
    offsets = np.sum([rows.offsets for rows in products], axis=0)
    merged = module("merged_rows").MergedRows(tuple(products), inverse, offsets)
    columns, values = np.zeros(merged.entries, np.int32), np.zeros(merged.entries)
    for first in range(0, merged.entries, piece):
        last = min(first + piece, merged.entries)
        merged.write_columns(first, last, columns[first:last])
        merged.write_values(first, last, values[first:last])

    def one_by_one() -> Iterator[tuple[int, float]]:
        for row in range(nodes):
            for rows in products:
                for entry in range(rows.offsets[row], rows.offsets[row + 1]):
                    column = rows.columns[entry]
                    yield column, inverse[column] if rows.probabilities is None else rows.probabilities[entry]

    assert list(zip(columns.tolist(), values.tolist(), strict=True)) == list(one_by_one())
    assert merged.valued == any(rows.probabilities is not None for rows in products)


def some_graph(nodes: int = 3000) -> Any:
    pairs = np.random.default_rng(2).integers(0, nodes, (20 * nodes, 2)).tolist()
    return kernel_graph([(source, target, float(source % 7 + 1)) for source, target in pairs], nodes=range(nodes))


def uploaded(graph: Any, piece_bytes: int) -> list[bytes]:
    """All arrays of a graph on the device."""
    transition = graph.transition(direction="both")
    there = module("device_graph").upload_graph(
        transition, precision="float32", order=graph.adjacency.order, piece_bytes=piece_bytes
    )
    return [value.get().tobytes() for value in vars(there).values() if hasattr(value, "get")]


def test_a_graph_in_many_pieces_is_that_in_one() -> None:
    graph = some_graph(500)
    whole = uploaded(graph, 1 << 20)
    assert whole == uploaded(graph, 64)
    rows = graph.transition(direction="both").products
    matrix = sum(
        sparse.csr_array((part.probabilities, part.columns, part.offsets), shape=(500, 500)) for part in rows
    ).toarray()
    offsets, columns, values = (np.frombuffer(raw, kind) for raw, kind in zip(whole, ("i8", "i4", "f4"), strict=False))
    np.testing.assert_allclose(sparse.csr_array((values, columns, offsets), shape=(500, 500)).toarray(), matrix, 1e-6)


@pytest.mark.parametrize("kind", ["Event", "Stream"])
def test_a_wait_that_is_missing_is_noticed(stand_in: Any, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Without the event a buffer is overwritten before it was copied; without the stream nothing has arrived."""
    graph = some_graph(100)
    right = uploaded(graph, 256)
    monkeypatch.setattr(getattr(stand_in.cuda, kind), "synchronize", lambda self: None)
    assert uploaded(graph, 256) != right


def test_a_piece_is_written_while_the_one_before_is_copied(stand_in: Any) -> None:
    """Whatever waits on the stream then has not been waited for: the copy of the piece before, and of no other."""
    staging, waiting = module("staging").Staging(80), []

    def write(first: int, last: int, into: Any) -> None:
        waiting.append(len(staging._stream._waiting))
        into[:] = np.arange(first, last)

    assert staging.upload(55, np.int64, write).get().tolist() == list(range(55))
    # At first there is what the stream itself waits for.
    assert waiting == [1, 2, 1, 1, 1, 1]


def test_ordinary_memory_does_where_there_is_no_other(stand_in: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = some_graph(100)
    right = uploaded(graph, 256)
    monkeypatch.setenv("FAKE_CUPY_FAULT", "pinned:2")

    def there_and_back() -> tuple[list[bytes], list[float]]:
        backend = create_backend("gpu")
        backend.load(graph.transition(), precision="float64", order=graph.adjacency.order)
        backend.start(query_block(graph.seeds([{0: 1.0}, {1: 1.0}]), 0, 2), restart=0.5)
        return uploaded(graph, 256), backend.step().mass.round(12).tolist()

    with pytest.warns(RuntimeWarning, match=r"no pinned memory \(cudaError 2: .*\); what is copied") as said:
        found = there_and_back()
    assert found == (right, [1.0, 1.0])
    assert len({(warning.filename, warning.lineno) for warning in said}) == 1, "a place that warns once"


def test_a_device_that_is_lost_while_a_graph_is_copied_is_told(stand_in: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = some_graph(100)
    monkeypatch.setenv("FAKE_CUPY_FAULT", "memory:700")
    with pytest.raises(ResourceError, match="cannot use it any more: cudaError 700"):
        module("recall_graph").upload_recall_graph(recall_graph(graph))


def test_the_host_holds_two_pieces_whatever_the_size(stand_in: Any) -> None:
    """The memory that an upload takes beside the device's own, which is memory of the host here."""
    transition, piece = some_graph(6000).transition(direction="both"), 1 << 14
    order = np.arange(6000, dtype=np.int32)
    free = stand_in.cuda.Device().mem_info[0]
    tracemalloc.start()
    try:
        there = module("device_graph").upload_graph(transition, precision="float32", order=order, piece_bytes=piece)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    device = free - stand_in.cuda.Device().mem_info[0]
    assert device > 8 * transition.entries > 80 * piece
    # Offsets of rows stay, and cutting long rows takes another array of that size.
    assert peak - device < 20 * piece + 4 * 8 * 6000, there.pieces
