"""``--backend gpu`` for the search among vectors: the bytes of the CPU, and products that are not believed."""

from __future__ import annotations

import importlib
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seedrank
from seedrank.errors import ConfigError, KernelError, ResourceError
from seedrank.kernels._gpu.probe import probe_device
from seedrank.kernels.semantic import nearest_vectors
from seedrank.kernels.vectors import Vectors, norms_of


def vectors(rows: Any) -> Vectors:
    rows = np.asarray(rows, dtype=np.float32)
    return Vectors(rows, np.arange(len(rows)), norms_of(rows))


def on_device() -> Any:
    return importlib.import_module("seedrank.kernels.gpu_products").DeviceProducts()


@pytest.mark.parametrize("length", [1.0, 1e20, 1e-20], ids=["usual", "long", "short"])
def test_found_are_those_of_the_cpu(gpu_device: None, length: float) -> None:
    """Many nearly equal cosines, blocks of queries of any size, filters."""
    random = np.random.default_rng(6)
    rows = random.normal(size=(3000, 24)).round(1) * length
    rows[1000:1100] = rows[:100]
    nodes, queries = vectors(rows), vectors(np.concatenate((rows[:90], random.normal(size=(20, 24)))))
    options: dict[str, Any] = {
        "k": 15, "eligible": random.random(3000) < 0.9, "exclude_offsets": np.arange(111), "min_score": 0.1,
        "exclude_nodes": np.arange(110),
    }  # fmt: skip
    expected = nearest_vectors(queries, nodes, np.arange(110), **options)
    assert len(expected.nodes) > 1000
    for at_once in (1024, 7):
        found = nearest_vectors(
            queries, nodes, np.arange(110), multiply=on_device(), queries_at_once=at_once, **options
        )
        for name, value in vars(expected).items():
            assert getattr(found, name).tobytes() == value.tobytes()


def test_case_55_products_that_are_zero_are_noticed(gpu_device: None, monkeypatch: pytest.MonkeyPatch) -> None:
    if not importlib.import_module("cupy").__version__.endswith("fake"):
        pytest.skip("there is a real GPU here, which multiplies")
    rows = np.eye(5, dtype=np.float32)
    on_device()(rows, rows)
    monkeypatch.setenv("FAKE_CUPY_FAULT", "kernel:wrong")
    with pytest.raises(KernelError, match="a product of two vectors on the GPU is off by 1"):
        on_device()(rows, rows)


@pytest.mark.parametrize(
    ("fault", "error", "words"),
    [
        ("cublas:3", ResourceError, "no room for the products of 5 and 5 vectors"),
        ("cublas:1", ResourceError, "no room for the products"),
        ("cublas:13", KernelError, "cuBLAS refused a call: CUBLAS_STATUS 13"),
    ],
)
def test_errors_of_cublas_are_told_apart(
    gpu_device: None, monkeypatch: pytest.MonkeyPatch, fault: str, error: type[Exception], words: str
) -> None:
    if not importlib.import_module("cupy").__version__.endswith("fake"):
        pytest.skip("there is a real GPU here, which multiplies")
    rows, device = np.eye(5, dtype=np.float32), on_device()
    monkeypatch.setenv("FAKE_CUPY_FAULT", fault)
    with pytest.raises(error, match=words):
        device(rows, rows)


def test_products_of_fewer_digits_are_noticed(gpu_device: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """As under CUPY_TF32, which rounds what is multiplied to 11 bits."""
    cupy = importlib.import_module("cupy")
    if not cupy.__version__.endswith("fake"):
        pytest.skip("there is a real GPU here, whose arithmetic nobody chooses")
    rows = np.random.default_rng(1).normal(size=(40, 64)).astype(np.float32)
    exact = cupy.ndarray.__matmul__

    def rounded(one: Any, other: Any) -> Any:
        return exact(*(cupy.asarray((part.get().view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32))
                       for part in (one, other)))  # fmt: skip

    monkeypatch.setattr(cupy.ndarray, "__matmul__", rounded)
    with pytest.raises(KernelError, match=r"off by .*"):
        on_device()(rows, rows)


@pytest.mark.parametrize(
    "options",
    [{"method": "semantic"}, {"method": "fuse"}, {"method": "ppr", "vector_depth": 3}],
    ids=["semantic", "fuse", "ppr"],
)
def test_a_job_gives_what_it_gives_without_a_gpu(gpu_device: None, tmp_path: Path, options: dict[str, Any]) -> None:
    random = np.random.default_rng(3)
    nodes = random.normal(size=(50, 8)).astype(np.float32)
    rows = random.normal(size=(6, 8)).astype(np.float32)
    sides: dict[str, Any] = {
        "node_vectors": pa.table({"id": range(50), "vector": pa.array(nodes.tolist())}),
        "query_vectors": pa.table({"query_id": range(6), "vector": pa.array(rows.tolist())}),
    }
    graph = None
    if options["method"] == "ppr":
        graph = pa.table({"src": range(50), "dst": [(7 * node + 1) % 50 for node in range(50)]})
        options |= {"precision": "float64", "tolerance": 0.0, "max_iterations": 3}
    found = {}
    for backend in ("auto", "gpu"):
        run = seedrank.score(graph, out=tmp_path / backend, backend=backend, **sides, **options)
        found[backend] = pq.read_table(run.path / "candidates")
        record = run.manifest.backend
        assert record is not None
        assert (record.name == "gpu") == (backend == "gpu")
    assert found["gpu"].num_rows > 40
    if graph is None:
        assert found["gpu"].equals(found["auto"])
    else:  # scores of the graph differ by rounding, and where they are equal, nodes may stand in either order
        ours, theirs = (
            found[backend]
            .select(["query_id", "node_id"])
            .sort_by([("query_id", "ascending"), ("node_id", "ascending")])
            for backend in ("gpu", "auto")
        )
        assert ours.equals(theirs)


def test_a_gpu_without_vectors_has_nothing_to_do(tmp_path: Path) -> None:
    hits = pa.table({"query_id": [1], "node_id": [2], "weight": [1.0]})
    for method, flag in itertools.product(("semantic", "fuse"), ("backend", "workers")):
        options: dict[str, Any] = {"queries": hits, "method": method, flag: "gpu", "out": tmp_path / "run"}
        with pytest.raises(
            ConfigError, match=f"--{flag} gpu is given with --method {method}, but there are no vectors"
        ):
            seedrank.score(**options)


def test_a_gpu_that_is_not_there_is_refused_before_vectors_are_searched(tmp_path: Path) -> None:
    if probe_device().usable:
        pytest.skip("there is one")
    vector = pa.array([[1.0, 0.0]])
    options: dict[str, Any] = {"method": "semantic", "backend": "gpu", "out": tmp_path / "run"}
    with pytest.raises(ResourceError, match=r"GPU|CuPy|driver"):
        seedrank.score(
            node_vectors=pa.table({"id": [1], "vector": vector}),
            query_vectors=pa.table({"query_id": [1], "vector": vector}),
            **options,
        )
