"""``--backend gpu`` for walks and traversals: the bytes of the CPU through whole jobs, and what is refused."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seedrank
from seedrank.errors import ConfigError, IncompleteRunError, ResourceError


@pytest.fixture(name="job")
def _job(write: Callable[..., Path]) -> dict[str, Any]:
    """Return a weighted, typed graph of 200 nodes and 30 queries of one to three seeds."""
    random = np.random.default_rng(2)
    pairs = np.unique(random.integers(0, 200, (900, 2)), axis=0)
    edges = write(
        "edges.parquet",
        {
            "src": pairs[:, 0],
            "dst": pairs[:, 1],
            "weight": random.random(len(pairs)),
            "type": pa.array(["cites", "likes"]).take(pa.array(random.integers(0, 2, len(pairs)))),
        },
    )
    query = np.repeat(np.arange(30), 1 + np.arange(30) % 3)
    node = random.integers(0, 200, len(query))
    queries = write("queries.parquet", {"query_id": query, "node_id": node, "weight": np.ones(len(query))})
    columns: dict[str, Any] = {"weight_column": "weight", "type_column": "type"}
    return {"graph": str(edges), "queries": str(queries), **columns}


def rows(run: Path) -> dict[str, pa.Table]:
    return {name: pq.read_table(run / name) for name in ("candidates", "queries")}


METHODS: list[dict[str, Any]] = [
    {"method": "walk", "walk_steps": 300, "random_seed": 5},
    {"method": "walk", "walk_steps": 200, "max_hops": 3, "max_visited_edges": 150, "max_visited_nodes": 60},
    {"method": "walk", "walk_steps": 50, "direction": "both", "type_weight": {"cites": 0.25}, "paths": True},
    {"method": "bfs", "max_hops": 2, "direction": "both"},
    {"method": "bfs", "precision": "float64", "edge_type": ("likes",), "include_seeds": False},
]


@pytest.mark.parametrize("options", METHODS, ids=["walk", "cut walk", "typed walk", "near", "far"])
def test_the_gpu_writes_what_the_cpu_writes(
    gpu_device: None, job: dict[str, Any], tmp_path: Path, options: dict[str, Any]
) -> None:
    for backend in ("cpu", "gpu"):
        done = seedrank.score(**job, out=tmp_path / backend, backend=backend, block_size=7, **options)
        record = done.manifest.backend
        assert record is not None
        assert record.name == backend
    ours, theirs = rows(tmp_path / "gpu"), rows(tmp_path / "cpu")
    assert ours["candidates"].num_rows > 100
    for name, table in ours.items():
        assert table.equals(theirs[name])


@pytest.mark.parametrize("budget", ["max_visited_nodes", "max_visited_edges"])
def test_a_traversal_under_a_budget_stays_on_the_cpu(job: dict[str, Any], tmp_path: Path, budget: str) -> None:
    options: dict[str, Any] = {"backend": "gpu", "out": tmp_path / "run"}
    with pytest.raises(ConfigError, match=f"--{budget.replace('_', '-')} is given with --method bfs on a GPU"):
        seedrank.score(**job, method="bfs", **options | {budget: 10})
    with pytest.raises(ConfigError, match="--backend gpu does not have --method dfs"):
        seedrank.score(**job, method="dfs", **options)
    options = {"workers": "gpu", "out": tmp_path / "run"}
    with pytest.raises(ConfigError, match=f"--{budget.replace('_', '-')} is given with --method bfs on a GPU"):
        seedrank.score(**job, method="bfs", **options | {budget: 10})
    with pytest.raises(ConfigError, match="--workers gpu does not have --method neighbors"):
        seedrank.score(**job, method="neighbors", **options)
    assert not (tmp_path / "run").exists()


def test_queries_that_the_memory_of_the_gpu_does_not_hold_together_come_one_after_the_other(
    gpu_device: None, job: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cupy = importlib.import_module("cupy")
    if not cupy.__version__.endswith("fake"):
        pytest.skip("there is a real GPU here, whose memory nobody chooses")
    options: dict[str, Any] = {"method": "walk", "walk_steps": 3000, "out": tmp_path / "cpu"}
    seedrank.score(**job, **options)
    free, total = cupy.cuda.Device().mem_info
    options |= {"backend": "gpu", "overwrite": True, "out": tmp_path / "gpu"}
    for room in (1_000_000, 300_000):
        monkeypatch.setenv("FAKE_CUPY_MEMORY", str(total - free + room))
        seedrank.score(**job, **options)
        assert rows(tmp_path / "gpu")["candidates"].equals(rows(tmp_path / "cpu")["candidates"])
    monkeypatch.setenv("FAKE_CUPY_MEMORY", str(total - free + 40_000))
    with pytest.raises(ResourceError, match="memory ran out while a single query was scored"):
        seedrank.score(**job, **options)
    monkeypatch.setenv("FAKE_CUPY_MEMORY", str(total - free + 3_000))
    with pytest.raises(ResourceError, match=r"graph of \d+ nodes and \d+ entries does not fit into the free memory"):
        seedrank.score(**job, **options)


@pytest.mark.parametrize("method", ["walk", "bfs", "ppr"])
def test_case_55_kernels_that_do_nothing_fail_the_queries(
    gpu_device: None, job: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: Any
) -> None:
    cupy = importlib.import_module("cupy")
    if not cupy.__version__.endswith("fake"):
        pytest.skip("there is a real GPU here, which does something")
    probe = importlib.import_module("seedrank.kernels._gpu.probe")
    works = probe.probe_device()
    monkeypatch.setattr("seedrank.kernels.backends.resolver.probe_device", lambda **_: works)
    monkeypatch.setenv("FAKE_CUPY_FAULT", "kernel:wrong")
    options: dict[str, Any] = {"method": method, "backend": "gpu", "out": tmp_path / "run"}
    with pytest.raises(IncompleteRunError, match=r"30 of 30 queries ended with a status other than ok: {'failed': 30}"):
        seedrank.score(**job, **options)
    assert rows(tmp_path / "run")["candidates"].num_rows == 0
