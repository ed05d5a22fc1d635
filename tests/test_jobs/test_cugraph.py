"""``--backend cugraph`` as users meet it: the command, what it refuses, and what the probe says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from seedrank.errors import ResourceError
from seedrank.kernels._gpu import probe
from seedrank.kernels._gpu.probe import probe_cugraph, probe_device
from seedrank.kernels.backends.resolver import resolve_backend

Command = Callable[..., Any]


@pytest.fixture(autouse=True)
def _nothing_kept() -> None:
    probe._ask_child.cache_clear()


@pytest.fixture(name="job")
def _job(write: Callable[..., Path]) -> list[Any]:
    pairs = [(node, (node * step + 1) % 300) for node in range(280) for step in (1, 2, 3, 7)]
    source, target = (list(side) for side in zip(*pairs, strict=True))
    edges = write("edges.parquet", {"src": source, "dst": target, "weight": [1.0 + s % 3 for s in source]})
    queries = [query for query in range(20) for _ in range(3)]
    # Repeated hits, hits outside the graph, and hits on dangling nodes.
    nodes = [(7 * (place // 2)) % 310 for place in range(60)]
    hits = write("hits.parquet", {"query_id": queries, "node_id": nodes, "weight": [1.0 + n % 4 for n in nodes]})
    return ["score", edges, "--queries", hits, "--top-k", "20"]


@pytest.mark.parametrize(
    "options", [(), ("--dangling", "self", "--direction", "both", "--max-hops", "2", "--exclude-seeds")]
)
def test_the_real_command_gives_what_scipy_gives(
    cugraph_device: None, job: list[Any], tmp_path: Path, seedrank_command: Command, options: tuple[str, ...]
) -> None:
    common = [*job, *options, "--precision", "float64", "--tolerance", "1e-11", "--max-iterations", "1000"]
    command = [*map(str, common), "--backend", "cugraph", "--out", str(tmp_path / "cugraph")]
    if options:
        assert seedrank_command(*command).code == 0
    else:  # as users start it, once
        whole = [sys.executable, "-m", "seedrank", *command]
        done = subprocess.run(whole, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert seedrank_command(*common, "--backend", "scipy", "--out", tmp_path / "scipy").code == 0
    rows: dict[str, list[dict[str, Any]]] = {}
    for name in ("cugraph", "scipy"):
        backend = json.loads((tmp_path / name / "run.json").read_text())["backend"]
        assert (backend["name"], backend["solver"]) == (name, "steps")
        rows[name] = pq.read_table(tmp_path / name / "candidates").to_pylist()
    assert len(rows["cugraph"]) == len(rows["scipy"]) > 300
    differing = 0
    for ours, theirs in zip(rows["cugraph"], rows["scipy"], strict=True):
        assert abs(ours.pop("score") - theirs.pop("score")) < 1e-10
        differing += ours != theirs
    # Nodes whose exact scores are equal may stand in either order.
    assert differing <= len(rows["scipy"]) // 10
    queries = pq.read_table(tmp_path / "cugraph" / "queries").to_pylist()
    assert all(row["error_bound"] < 2e-11 for row in queries if row["status"] == "ok")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--dangling", "uniform"), "--dangling uniform is given with --backend cugraph"),
        (("--restart", "0.2", "--restart", "0.6"), "2 restart probabilities are given with --backend cugraph"),
        (("--method", "walk"), "--backend cugraph does not have --method walk"),
        (("--method", "auto", "--dangling", "uniform"), "--dangling uniform is given with --backend cugraph"),
    ],
)
def test_what_cugraph_does_not_have_is_refused_at_the_door(
    job: list[Any], tmp_path: Path, seedrank_command: Command, options: tuple[str, ...], message: str
) -> None:
    """Before anything is read, whether there is a GPU or not."""
    for command in ("score", "plan", "check"):
        out = ("--out", tmp_path / "run") if command == "score" else ()
        refused = seedrank_command(command, *job[1:], *options, "--backend", "cugraph", *out)
        assert refused.code == 2
        assert message in refused.err
        assert not (tmp_path / "run").exists()


def test_a_plan_says_who_would_compute(cugraph_device: None, job: list[Any], seedrank_command: Command) -> None:
    planned = seedrank_command("plan", *job[1:], "--backend", "cugraph", "--json")
    assert planned.code == 0, planned.err
    plan = json.loads(planned.out)
    assert plan["backend"] == "cugraph"
    assert "cuGraph 26" in plan["backend_reason"]
    assert 1 <= plan["block_size"] <= 8


def test_without_cugraph_the_message_names_the_extra(
    gpu_device: None, job: list[Any], tmp_path: Path, seedrank_command: Command
) -> None:
    if probe_cugraph().code != "cugraph-not-installed":
        pytest.skip("cuGraph is installed here")
    refused = seedrank_command(*job, "--backend", "cugraph", "--out", tmp_path / "run")
    assert refused.code == 4
    assert "pylibcugraph is not installed" in refused.err
    assert "seedrank[cugraph-cu13]" in refused.err


def test_without_a_gpu_it_is_the_gpu_that_is_missing() -> None:
    if probe_device().usable:
        pytest.skip("there is one")
    assert probe_cugraph() == probe_device()
    with pytest.raises(ResourceError) as caught:
        resolve_backend("cugraph")
    assert caught.value.found == probe_device().problem


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("FAKE_CUGRAPH_FAULT=wrong", "cugraph-wrong"),
        ("FAKE_CUGRAPH_FAULT=cudaErrorInvalidDeviceFunction", "cugraph-failed"),
        ("FAKE_CUGRAPH_FAULT=std::bad_alloc", "out-of-memory"),
    ],
)
def test_a_cugraph_that_does_not_compute(
    cugraph_device: None, monkeypatch: pytest.MonkeyPatch, fault: str, code: str
) -> None:
    monkeypatch.setenv(*fault.split("=", 1))
    report = probe_cugraph()
    if not report.cugraph.endswith("fake"):
        pytest.skip("there is a real cuGraph here, whose faults nobody chooses")
    assert report.code == code
    assert report.detail
    with pytest.raises(ResourceError, match=report.problem[:30]):
        resolve_backend("cugraph")


def test_an_installation_that_is_broken(gpu_device: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pylibcugraph.py").write_text("raise ImportError('libcugraph.so: cannot open shared object file')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    report = probe_cugraph()
    assert report.code == "cugraph-import-failed"
    assert "libcugraph.so" in report.problem


def test_info_says_what_is_with_cugraph(cugraph_device: None, seedrank_command: Command) -> None:
    shown = json.loads(seedrank_command("info", "--json").out)["cugraph"]
    assert shown == {"usable": True, "code": "ok", "problem": "", "cugraph": probe_cugraph().cugraph}
