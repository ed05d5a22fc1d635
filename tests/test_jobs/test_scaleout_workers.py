"""Workers that are started for a run, or refused; and what a worker does, seen from inside."""

# ruff: noqa: F811  # fixtures are imported, and asked for by their names

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import seedrank
from seedrank.config import ScoreOptions, make_options
from seedrank.errors import ConfigError, ResourceError
from seedrank.io.run.part_writers import FolderParts
from seedrank.jobs import plan as plan_module
from seedrank.jobs.inputs import JobInputs
from seedrank.jobs.progress import Silent
from seedrank.jobs.queries import segment_size
from seedrank.jobs.run.part_scorer import PartRange
from seedrank.jobs.scaleout import cluster as scaleout_cluster
from seedrank.jobs.scaleout import devices as scaleout_devices
from seedrank.jobs.scaleout import inputs as scaleout_inputs
from seedrank.jobs.scaleout import logs as scaleout_logs
from seedrank.jobs.scaleout.worker import JobOnWorkers, JobState, Task
from seedrank.kernels._gpu.probe import DeviceReport
from small_job import EDGES, HITS, NODES, OPTIONS, PARTS, content, hits, local, same, store  # noqa: F401  # fixtures


def test_a_daemonic_process_is_refused_at_once(
    store: seedrank.GraphStore, hits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As tasks of Airflow and Celery are; Dask itself hangs there."""
    monkeypatch.setitem(multiprocessing.current_process()._config, "daemon", True)  # type: ignore[attr-defined]
    with pytest.raises(ResourceError, match="--workers is given in a daemonic process"):
        seedrank.score(store, queries=hits, out=tmp_path / "run", workers=2, **OPTIONS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 2, "scheduler": "tcp://a:1"}, "--workers starts processes here"),
        ({"workers": 0}, "workers"),
        ({"workers": "all"}, "workers"),
        ({"workers": True}, "workers"),
        ({"scheduler": "a:8786"}, "scheduler"),
        ({"workers": "gpu", "backend": "cpu"}, "--workers gpu is given with --backend cpu"),
    ],
    ids=str,
)
def test_options_that_mean_nothing(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_options(ScoreOptions, options)


@pytest.mark.parametrize(("value", "code"), [("2", 0), ('"2"', 0), ('"gpu"', 4)])
def test_a_configuration_file_names_workers_as_a_number_or_a_word(
    seedrank_command: Any,
    store: seedrank.GraphStore,
    hits: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    value: str,
    code: int,
) -> None:
    monkeypatch.setattr(scaleout_devices, "probe_device", lambda: DeviceReport("no-driver"))
    (tmp_path / "run.toml").write_text(f"[plan]\nworkers = {value}\n", encoding="utf-8")
    assert seedrank_command("plan", store.path, "--queries", hits, "--config", tmp_path / "run.toml").code == code


def test_plan_says_what_each_worker_has(
    store: seedrank.GraphStore, hits: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = seedrank.plan(store, queries=hits, memory_limit="100kB", threads=1, **OPTIONS)
    shared = seedrank.plan(store, queries=hits, memory_limit="200kB", workers=2, **OPTIONS)
    own = ("memory_budget_bytes", "block_size", "block_bytes", "graph_memory", "parts", "edge_columns")
    assert [getattr(shared, name) for name in own] == [getattr(alone, name) for name in own]
    assert (alone.workers, shared.workers) == (None, 2)
    assert shared.peak_memory_bytes == 2 * alone.peak_memory_bytes + plan_module.BASE_BYTES
    free = [seedrank.plan(store, queries=hits, workers=count, **OPTIONS).memory_budget_bytes for count in (None, 4)]
    assert free[1] < free[0] / 3
    # Time is divided among as many as have a part and a processor.
    monkeypatch.setattr(plan_module, "probe_product", lambda options, **_: float(options.threads or 99))
    monkeypatch.setattr(plan_module, "processors", lambda: 4)
    monkeypatch.setattr("seedrank.jobs.scaleout.share.processors", lambda: 4)
    assert alone.edge_columns is not None
    for workers, rate in ((None, 99), (2, 2 * 2), (4, 4), (16, 4), (1, 4)):
        plan = seedrank.plan(store, queries=hits, probe=True, workers=workers, **OPTIONS)
        assert plan.seconds == pytest.approx(alone.edge_columns / rate)
    two_parts = seedrank.plan(store, queries=hits, probe=True, workers=4, **OPTIONS | {"part_size": 20})
    assert two_parts.seconds == pytest.approx(alone.edge_columns / 2)


def test_workers_of_gpus_without_a_gpu(
    store: seedrank.GraphStore, hits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scaleout_devices, "probe_device", lambda: DeviceReport("no-driver"))
    with pytest.raises(ResourceError, match="there is no NVIDIA driver"):
        seedrank.score(store, queries=hits, out=tmp_path / "run", workers="gpu", **OPTIONS)


# --- workers that are started


def test_every_device_has_a_worker_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With names of devices that are not there; no GPU is touched."""
    monkeypatch.setattr(scaleout_devices, "probe_device", lambda: DeviceReport("ok"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3, MIG-5f2c")
    devices = scaleout_devices.visible_devices()
    with scaleout_cluster.local_cluster(2, devices, tmp_path) as client:
        assert sorted(client.run(lambda: os.environ["CUDA_VISIBLE_DEVICES"]).values()) == ["3", "MIG-5f2c"]
        workers = client.scheduler_info()["workers"].values()
        assert [(info["resources"], info["nthreads"]) for info in workers] == [({"GPU": 1}, 1)] * 2


def test_the_command_starts_workers_without_home(
    store: seedrank.GraphStore, hits: Path, local: seedrank.Run, tmp_path: Path
) -> None:
    """As cron starts it: hardly an environment, in a folder that is not the user's."""
    command = [sys.executable, "-m", "seedrank", "score", str(store.path), "--queries", str(hits), "--out", "run"]
    options = ["--part-size", "7", "--top-k", "10", "--workers", "2", "--log-format", "json"]
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "NUMBA_CACHE_DIR") if name in os.environ}
    done = subprocess.run([*command, *options], cwd=tmp_path, env=kept, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert same(seedrank.open_run(tmp_path / "run"), local)
    events = [json.loads(line)["event"] for line in done.stderr.splitlines()]
    assert events.count("part_done") == PARTS


def test_a_worker_holds_one_segment_of_many_queries(
    store: seedrank.GraphStore,
    hits: Path,
    local: seedrank.Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Parts in no order, of a job that is cut into three segments."""
    monkeypatch.setattr(segment_size, "SEGMENT_QUERIES", 14)
    for folder in ("candidates", "queries", "staging"):
        (tmp_path / "run" / folder).mkdir(parents=True)
    writer = FolderParts(tmp_path / "run", tmp_path / "run" / "staging", alone=False)
    job = JobOnWorkers(
        name="job",
        graph=str(store.path),
        graph_fingerprint=store.facts.fingerprint,
        inputs=scaleout_inputs.ship_inputs(JobInputs(queries=hits), tmp_path),
        options=make_options(ScoreOptions, OPTIONS),
        writer=writer,
        processes=1,
        own=False,
        log_level=logging.INFO,
    )
    worker = SimpleNamespace(local_directory=str(tmp_path), state=SimpleNamespace(nthreads=1))
    state, task = JobState(job, "worker", worker), Task("job", "cpu", None)
    for part in (5, 0, 3, 1, 2, 4):
        wanted = PartRange(part, 7 * part, min(7 * part + 7, 40))
        scorer = state.scorer(task, wanted)
        assert len(scorer.query_set) <= 14
        scorer.write(scorer.score(wanted, Silent()), writer)
    state.end()
    assert content(replace(local, path=tmp_path / "run")) == content(local)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["run"]


def test_records_keep_what_they_say_on_their_way_home(caplog: pytest.LogCaptureFixture) -> None:
    log = logging.getLogger("seedrank.jobs.operators.blocks")
    with scaleout_logs.collected_logs("tcp://a:1", logging.INFO) as records:
        log.debug("unseen")
        try:
            int("self-check")
        except ValueError:
            log.exception("block_failed", extra={"queries": 3})
    assert not caplog.records
    scaleout_logs.replay(pickle.loads(pickle.dumps(records)))  # noqa: S301  # our own
    (record,) = caplog.records
    found = vars(record)
    assert (record.message, found["queries"], found["worker"]) == ("block_failed", 3, "tcp://a:1")
    assert found["exception"].endswith("'self-check'")
