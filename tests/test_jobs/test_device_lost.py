"""A GPU that fails for good ends the job, resumable; one that refuses a call costs the block that made it."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seedrank.jobs.operators.ppr import PprRunner

pytestmark = pytest.mark.usefixtures("gpu_device")

Command = Callable[..., Any]

QUERIES = 24
A_PART = 8


@pytest.fixture
def fault_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, str], list[int]]:
    """Let the device fail from a block on; returns the sizes of the blocks that were tried, as they come."""
    if not importlib.import_module("cupy").__version__.endswith("fake"):
        pytest.skip("there is a real GPU here, whose faults nobody chooses")
    compute = PprRunner.compute

    def arrange(block: int, fault: str) -> list[int]:
        tried: list[int] = []

        def failing(self: PprRunner, queries: Any, meanwhile: Any) -> Any:
            tried.append(len(queries))
            if len(tried) == block:
                monkeypatch.setenv("FAKE_CUPY_FAULT", fault)
            return compute(self, queries, meanwhile)

        monkeypatch.setattr(PprRunner, "compute", failing)
        return tried

    return arrange


@pytest.fixture(name="job")
def _job(write: Callable[..., Path]) -> list[Any]:
    random = np.random.default_rng(5)
    edges = write("edges.parquet", {"src": random.integers(0, 40, 150), "dst": random.integers(0, 50, 150)})
    hits = write("hits.parquet", {"query_id": list(range(QUERIES)), "node_id": list(range(QUERIES))})
    return ["score", edges, "--queries", hits, "--backend", "gpu", "--part-size", A_PART, "--block-size", 4]


def files(run: Path) -> dict[str, bytes]:
    return {str(file.relative_to(run)): file.read_bytes() for file in sorted(run.glob("*/part-*.parquet"))}


def test_a_device_that_is_lost_ends_the_job_which_goes_on_later(
    fault_at: Callable[[int, str], list[int]],
    job: list[Any],
    seedrank_command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Block 4 of 6 is the last of the second part: the first part stays, and no query is marked as failed."""
    assert seedrank_command(*job, "--out", tmp_path / "whole").code == 0
    tried = fault_at(4, "memory:700")
    lost = seedrank_command(*job, "--out", tmp_path / "run")
    assert lost.code == 4
    assert "this process cannot use it any more" in lost.err
    assert "finished parts are kept" in lost.err
    assert "Traceback" not in lost.err
    assert tried == [4] * 4
    manifest = json.loads((tmp_path / "run" / "run.json").read_text())
    assert manifest["state"] == "failed"
    assert [part["failed_queries"] for part in manifest["parts"]] == [0]
    assert not (tmp_path / "run" / "_SUCCESS").exists()
    monkeypatch.delenv("FAKE_CUPY_FAULT")
    assert seedrank_command(*job, "--out", tmp_path / "run").code == 0
    assert tried == [4] * 8
    assert files(tmp_path / "run") == files(tmp_path / "whole")


def test_a_call_that_is_refused_costs_its_block(
    fault_at: Callable[[int, str], list[int]], job: list[Any], seedrank_command: Command, tmp_path: Path
) -> None:
    """The device is alive, so the job comes to its end, and says what failed."""
    tried = fault_at(5, "launch:9")
    result = seedrank_command(*job, "--out", tmp_path / "run")
    assert result.code == 6
    assert "refused a call" in result.err
    assert tried == [4] * 6
    manifest = json.loads((tmp_path / "run" / "run.json").read_text())
    assert [part["failed_queries"] for part in manifest["parts"]] == [0, 0, 8]
