"""Whether there is a GPU: every way in which there is none has its own name, message and fix."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from fake_device import FAKE

from seedrank.errors import ResourceError
from seedrank.kernels._gpu import probe
from seedrank.kernels._gpu.probe import DeviceReport, Work, probe_device
from seedrank.kernels.backends import resolver as backends
from seedrank.kernels.backends.resolver import resolve_backend

SOURCE = Path(__file__).parents[1] / "cuda_shim" / "fake_libcuda.c"

#: What the environment makes of the driver → the code of the report.
DRIVERS: dict[str, dict[str, str]] = {
    "driver-too-old": {"FAKE_DRIVER": "12040"},
    "no-device": {"FAKE_CUINIT": "100"},
    "device-busy": {"FAKE_CUINIT": "46"},
    "driver-mismatch": {"FAKE_CUINIT": "803"},
    "compat-unsupported": {"FAKE_CUINIT": "804"},
    "system-not-ready": {"FAKE_CUINIT": "802"},
    "driver-stub": {"FAKE_CUINIT": "34"},
    "driver-broken": {"FAKE_CUINIT": "999"},
    "out-of-memory": {"FAKE_CUINIT": "2"},
    "crashed": {"FAKE_CUINIT": "-11"},
    "driver-hang": {"FAKE_CUINIT": "-1"},
}


@pytest.fixture(autouse=True)
def _nothing_kept() -> None:
    probe._ask_child.cache_clear()


@pytest.fixture(scope="module", name="driver")
def _driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with a libcuda.so.1 that answers as the environment says."""
    if shutil.which("gcc") is None:
        pytest.skip("no gcc: the driver that answers as it is told is compiled where there is one")
    folder = tmp_path_factory.mktemp("driver")
    command = ["gcc", "-shared", "-fPIC", "-o", str(folder / "libcuda.so.1"), str(SOURCE)]
    subprocess.run(command, check=True)
    return folder


@pytest.fixture(name="cupy_there")
def _cupy_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """CuPy is installed: the real one, or the stand-in that asks the driver as the real one does."""
    if importlib.util.find_spec("cupy") is None:
        monkeypatch.syspath_prepend(FAKE)
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(FAKE), os.environ.get("PYTHONPATH", "")]))
        monkeypatch.setenv("FAKE_CUPY_LIBCUDA", "1")


@pytest.mark.parametrize("code", DRIVERS)
def test_drivers(code: str, driver: Path, cupy_there: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(driver))
    for name, value in DRIVERS[code].items():
        monkeypatch.setenv(name, value)
    report = probe_device(timeout_s=1.5 if code == "driver-hang" else None)
    assert report.code == code
    assert not report.usable
    monkeypatch.setattr(backends, "probe_device", lambda **_: report)
    with pytest.raises(ResourceError) as caught:
        resolve_backend("gpu")
    assert caught.value.exit_code == 4
    assert caught.value.found == report.problem
    assert caught.value.expected
    assert "--backend cpu" in caught.value.fix or "pip install" in caught.value.fix


def test_no_driver(cupy_there: None) -> None:
    if any(Path(folder, "libcuda.so.1").exists() for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib64")):
        pytest.skip("there is a driver here")
    assert probe_device().code == "no-driver"


def test_every_failure_has_a_message_of_its_own() -> None:
    codes = {*DRIVERS, "not-installed", "import-failed", "no-driver", "toolkit-missing", "kernels-failed"}
    codes |= {"kernels-wrong", "cugraph-not-installed", "cugraph-import-failed", "cugraph-failed", "cugraph-wrong"}
    problems = {DeviceReport(code, built_for=13020, driver=12040).problem for code in codes}
    assert len(problems) == len(codes)
    assert codes - {"driver-too-old"} == set(probe._MESSAGES)


@pytest.mark.parametrize(
    ("built_for", "driver", "fix"),
    [
        (13_020, 12_040, "seedrank[gpu-cu12]"),
        (13_020, 11_040, "update the driver"),
        (12_090, 11_080, "update the driver"),
    ],
)
def test_a_driver_that_is_too_old_may_do_for_the_other_extra(built_for: int, driver: int, fix: str) -> None:
    error = DeviceReport("driver-too-old", built_for=built_for, driver=driver).error()
    assert fix in error.fix
    assert f"CUDA {driver // 1000}." in error.found


def test_without_cupy_no_process_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("cupy") is not None:
        pytest.skip("CuPy is installed")
    monkeypatch.setattr(probe, "_ask_child", lambda *_: pytest.fail("asked"))
    assert probe_device() == DeviceReport("not-installed")
    with pytest.raises(ResourceError, match="CuPy is not installed") as caught:
        resolve_backend("gpu")
    assert "seedrank[gpu-cu13]" in caught.value.fix


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("cupy.py", "raise ImportError('libcublas.so.13: cannot open shared object file')", "import-failed"),
        ("cupy.py", "import numpy_that_is_gone", "import-failed"),
        ("cupy.py", "import os; os._exit(3)", "crashed"),
    ],
)
def test_installations_that_are_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, code: str
) -> None:
    (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    report = probe_device()
    assert report.code == code
    assert report.detail


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("kernel:wrong", "kernels-wrong"), ("kernel:missing", "toolkit-missing"), ("kernel:broken", "kernels-failed"),
        ("memory:2", "out-of-memory"), ("memory:46", "device-busy"), ("memory:700", "kernels-failed"),
    ],
)  # fmt: skip
def test_a_gpu_that_does_not_compute(gpu_device: None, monkeypatch: pytest.MonkeyPatch, fault: str, code: str) -> None:
    monkeypatch.setenv("FAKE_CUPY_FAULT", fault)
    probe._ask_child.cache_clear()
    if "fake" not in (report := probe_device()).cupy:
        pytest.skip("there is a real GPU here, whose faults nobody chooses")
    assert report.code == code
    assert report.device


WORKS: dict[Work, str] = {"steps": "step_float32_1", "recall": "walk_steps", "products": "matmul"}


@pytest.mark.parametrize(
    ("work", "fault"),
    [
        ("recall", "kernel:wrong"), ("recall", "kernel:broken"), ("recall", "launch:9"), ("products", "kernel:wrong"),
    ],
)  # fmt: skip
def test_kernels_of_every_method_are_tried_before_it_begins(
    gpu_device: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, job: list[str],
    seedrank_command: Callable[..., Any], work: Work, fault: str,
) -> None:  # fmt: skip
    """A GPU whose other kernels work is refused with exit code 4 by the methods that need these, and by no other."""
    monkeypatch.setenv("FAKE_CUPY_FAULT", fault)
    monkeypatch.setenv("FAKE_CUPY_FAULTY", WORKS[work])
    probe._ask_child.cache_clear()
    if "fake" not in probe_device().cupy:
        pytest.skip("there is a real GPU here, whose faults nobody chooses")
    code = "kernels-wrong" if fault == "kernel:wrong" else "kernels-failed"
    assert {other: probe_device(work=other).code for other in WORKS} == dict.fromkeys(WORKS, "ok") | {work: code}
    shown = json.loads(seedrank_command("info", "--json").out)["gpu"]
    assert shown["usable"]
    problem = probe._MESSAGES[code][0]
    assert [shown[name].startswith(problem) for name in ("walk_and_bfs", "node_vectors")] == [
        work == "recall", work == "products",
    ]  # fmt: skip
    for method in ("walk", "bfs") if work == "recall" else ():
        refused = seedrank_command("score", *job, "--method", method, "--backend", "gpu", "--out", tmp_path / method)
        assert refused.code == 4
        assert problem in refused.err


def test_a_gpu_that_works(gpu_device: None) -> None:
    assert {work: probe_device(work=work).code for work in WORKS} == dict.fromkeys(WORKS, "ok")
    report = probe_device()
    assert report.usable
    assert report.problem == ""
    assert 0 < report.free_bytes <= report.total_bytes
    decision = resolve_backend("gpu")
    assert decision.name == decision.requested == "gpu"
    assert report.device in decision.reason
    # Not chosen before it has been measured.
    assert resolve_backend("auto").name == "cpu"


def test_asking_loads_no_cupy(gpu_device: None) -> None:
    code = (
        "import sys\nfrom seedrank.kernels.backends.resolver import resolve_backend\n"
        "from seedrank.jobs.info import info\n"
        "resolve_backend('auto'); made = resolve_backend('gpu'); info(); print(made.name, 'cupy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["gpu", "False"]


def test_info_says_what_is_with_the_gpu(
    gpu_device: None, seedrank_command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = seedrank_command("info")
    assert shown.code == 0
    assert probe_device().device in shown.out
    monkeypatch.setenv("FAKE_CUPY_FAULT", "memory:46")
    probe._ask_child.cache_clear()
    if "fake" in probe_device().cupy:
        assert "busy" in seedrank_command("info").out


@pytest.fixture(name="job")
def _job(write: Callable[..., Path]) -> list[str]:
    pairs = [(node, (node * step + 1) % 300) for node in range(280) for step in (1, 2, 3, 7)]
    source, target = (list(side) for side in zip(*pairs, strict=True))
    edges = write("edges.parquet", {"src": source, "dst": target})
    queries = [query for query in range(20) for _ in range(3)]
    nodes = [(7 * place) % 310 for place in range(60)]
    hits = write("hits.parquet", {"query_id": queries, "node_id": nodes, "weight": [1.0 + n % 4 for n in nodes]})
    return [str(edges), "--queries", str(hits), "--top-k", "20"]


@pytest.mark.parametrize(
    "options",
    [(), ("--restart", "0.2", "--restart", "0.6", "--max-hops", "2", "--exclude-seeds", "--stop", "tolerance")],
)
def test_the_real_command_gives_what_cpu_gives(
    gpu_device: None, job: list[str], tmp_path: Path, seedrank_command: Callable[..., Any], options: tuple[str, ...]
) -> None:
    common = ["score", *job, *options, "--precision", "float64", "--tolerance", "1e-14", "--max-iterations", "1000"]
    command = [sys.executable, "-m", "seedrank", *common, "--backend", "gpu", "--out", str(tmp_path / "gpu")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert seedrank_command(*common, "--backend", "cpu", "--out", tmp_path / "cpu").code == 0
    rows: dict[str, list[dict[str, Any]]] = {}
    for name in ("gpu", "cpu"):
        assert f'"name": "{name}"' in (tmp_path / name / "run.json").read_text()
        rows[name] = pq.read_table(tmp_path / name / "candidates").to_pylist()
    assert len(rows["gpu"]) == len(rows["cpu"]) > 300
    differing = 0
    for ours, theirs in zip(rows["gpu"], rows["cpu"], strict=True):
        assert abs(ours.pop("score") - theirs.pop("score")) < 1e-12
        differing += ours != theirs
    # Nodes whose exact scores are equal may stand in either order.
    assert differing <= len(rows["cpu"]) // 10


def test_the_command_refuses_a_gpu_that_is_not_there(
    seedrank_command: Callable[..., Any], job: list[str], tmp_path: Path
) -> None:
    if probe_device().usable:
        pytest.skip("there is one")
    refused = seedrank_command("score", *job, "--backend", "gpu", "--out", tmp_path / "run")
    assert refused.code == 4
    assert probe_device().problem in refused.err
