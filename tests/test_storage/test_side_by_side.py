"""Many runs at once on one graph store and one bucket, and two on one prefix: nothing is lost, nothing is mixed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import seedrank
from seedrank.errors import ConfigError
from seedrank.io.run.run_objects import RunObjects

RUNS = 24


def hits(number: int) -> pa.Table:
    generator = np.random.default_rng(number)
    return pa.table({"query_id": np.arange(6) + 100 * number, "node_id": generator.integers(0, 40, 6)})


def test_24_runs_side_by_side_on_one_store_and_one_bucket(s3: Any, inputs: Path, tmp_path: Path) -> None:
    store, work = s3.url("graph"), str(tmp_path / "work")
    seedrank.build(inputs / "edges.parquet", out=store, work_dir=str(tmp_path / "elsewhere"))
    local = seedrank.build(inputs / "edges.parquet", out=tmp_path / "graph")
    together = threading.Barrier(RUNS)

    def one(number: int) -> seedrank.Run:
        together.wait()
        out = s3.url(f"runs/{number}")
        return seedrank.score(
            store, queries=hits(number), out=out, part_size=3, top_k=4, backend="scipy", work_dir=work
        )

    with ThreadPoolExecutor(RUNS) as pool:
        runs = list(pool.map(one, range(RUNS)))
    fetched = [
        request for request in s3.faults.requests if request.method == "GET" and request.path.endswith("order.npy")
    ]
    assert len(fetched) == 2  # order.npy and inverse_order.npy, once for all
    for number, run in enumerate(runs):
        expected = seedrank.score(
            local, queries=hits(number), out=tmp_path / "runs" / str(number), part_size=3, top_k=4, backend="scipy"
        )
        assert run.manifest.state == "finished"
        assert run.candidates.to_arrow().equals(expected.candidates.to_arrow(), check_metadata=True)
        assert run.queries.to_arrow().equals(expected.queries.to_arrow(), check_metadata=True)
        assert s3.content(f"runs/{number}").keys() == {
            "_SUCCESS", "run.json", "candidates/part-00000.parquet", "candidates/part-00001.parquet",
            "queries/part-00000.parquet", "queries/part-00001.parquet",
        }  # fmt: skip


def other_run_meanwhile(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Let something happen before the second part is written."""
    write = RunObjects.write_part

    def write_part(self: RunObjects, part: int, **tables: pa.Table) -> Any:
        if part == 1:
            monkeypatch.setattr(RunObjects, "write_part", write)
            act()
        return write(self, part, **tables)

    monkeypatch.setattr(RunObjects, "write_part", write_part)


def test_a_second_run_on_the_prefix_is_refused(
    s3: Any, inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keywords: dict[str, Any] = {"part_size": 3, "backend": "scipy", "work_dir": str(tmp_path / "work")}
    keywords["out"] = s3.url("run")
    refused: list[str] = []

    def second() -> None:
        with pytest.raises(ConfigError) as error:
            seedrank.score(inputs / "edges.parquet", queries=hits(2), overwrite=True, **keywords)
        refused.append(error.value.found)

    other_run_meanwhile(monkeypatch, second)
    run = seedrank.score(inputs / "edges.parquet", queries=hits(1), **keywords)
    assert len(refused) == 1
    assert "is being written by another process" in refused[0]
    assert set(run.queries.to_arrow()["query_id"].to_pylist()) == set(range(100, 106))


def test_a_run_whose_lock_was_taken_over_stops_before_its_next_put(
    s3: Any, inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a pause longer than the lease: the other run is whole, this one has put nothing among its parts."""
    keywords: dict[str, Any] = {"part_size": 3, "backend": "scipy", "work_dir": str(tmp_path / "work")}
    keywords["out"] = s3.url("run")

    def other() -> None:
        s3.filesystem.rm_file(f"{s3.bucket}/run/_lock")
        seedrank.score(inputs / "edges.parquet", queries=hits(2), overwrite=True, **keywords)

    other_run_meanwhile(monkeypatch, other)
    with pytest.raises(ConfigError, match="somebody has removed the lock"):
        seedrank.score(inputs / "edges.parquet", queries=hits(1), **keywords)
    run = seedrank.open_run(s3.url("run"))
    assert run.manifest.state == "finished"
    assert set(run.queries.to_arrow()["query_id"].to_pylist()) == set(range(200, 206))
    assert set(run.candidates.to_arrow()["query_id"].to_pylist()) <= set(range(200, 206))
