"""Parts scored by the workers of a scheduler: the same bytes as by this process, and what is refused before any work.

All runs share two workers, as the nightly jobs of a team would.
"""

# ruff: noqa: F811  # fixtures are imported, and asked for by their names

from __future__ import annotations

import importlib.metadata
import logging
import os
import pickle
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import distributed
import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed.comm import CommClosedError

import seedrank
from seedrank.errors import ConfigError, InputDataError, InterruptedRunError, ResourceError, StorageError
from seedrank.io.run.part_writers import FolderParts
from seedrank.io.run.runfolder import RunFolder
from seedrank.jobs.scaleout import cluster as scaleout_cluster
from seedrank.jobs.scaleout import dask_engine as scaleout
from seedrank.jobs.scaleout import inputs as scaleout_inputs
from seedrank.jobs.scaleout import versions as scaleout_versions
from small_job import EDGES, HITS, NODES, OPTIONS, PARTS, content, hits, local, same, store  # noqa: F401  # fixtures


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a scheduler with two workers, for which Dask sets variables of this process only meanwhile."""
    names = ("OMP_NUM_THREADS", "PYTHONHASHSEED", "DASK_LOGGING__DISTRIBUTED", "MALLOC_TRIM_THRESHOLD_")
    before = [os.environ.get(name) for name in names]
    with scaleout_cluster.local_cluster(2, None, tmp_path_factory.mktemp("dask")) as client:
        yield client.scheduler.address
    assert [os.environ.get(name) for name in names] == before


def test_the_workers_of_a_scheduler_write_the_bytes_of_a_local_run(
    scheduler: str, store: seedrank.GraphStore, hits: Path, local: seedrank.Run, tmp_path: Path
) -> None:
    run = seedrank.score(store, queries=hits, out=tmp_path / "run", scheduler=scheduler, **OPTIONS)
    assert same(run, local)
    assert run.manifest.run_key == local.manifest.run_key
    assert [part.part for part in run.manifest.parts] == list(range(PARTS))
    assert run.manifest.backend is not None
    assert local.manifest.backend is not None
    assert run.manifest.backend.name == local.manifest.backend.name
    assert sorted(file.name for file in run.path.iterdir()) == ["_SUCCESS", "candidates", "queries", "run.json"]
    # Nothing is left to do, and no scheduler is needed for that.
    again = seedrank.score(store, queries=hits, out=run.path, scheduler="tcp://127.0.0.1:9", **OPTIONS)
    assert again.already_done


def test_inputs_in_memory_reach_the_workers(scheduler: str, store: seedrank.GraphStore, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    inputs: dict[str, Any] = {
        "exclude": pa.table({"node_id": [3, 5]}).to_pandas(),
        "node_vectors": (pa.array(np.arange(NODES)), rng.standard_normal((NODES, 8)).astype(np.float32)),
        "query_vectors": (np.arange(40), rng.standard_normal((40, 8)).astype(np.float32)),
        "query_info": pa.table({"query_id": np.arange(40), "text": [f"who calls node {i}" for i in range(40)]}),
    }
    options: dict[str, Any] = {**OPTIONS, "method": "auto", "paths": True}

    def stream() -> Any:
        return pa.RecordBatchReader.from_batches(HITS.schema, HITS.to_batches(max_chunksize=11))

    here = seedrank.score(store, queries=stream(), out=tmp_path / "here", **inputs, **options)
    there = seedrank.score(store, queries=stream(), out=tmp_path / "there", **inputs, **options, scheduler=scheduler)
    assert same(there, here)
    assert there.manifest.run_key == here.manifest.run_key


def test_an_edge_list_and_no_graph_at_all(scheduler: str, hits: Path, tmp_path: Path) -> None:
    for name, given in {"edges": {"graph": EDGES}, "none": {"method": "fuse"}}.items():
        graph = given.pop("graph", None)
        here = seedrank.score(graph, queries=hits, out=tmp_path / name / "here", **given, **OPTIONS)
        there = seedrank.score(
            graph, queries=hits, out=tmp_path / name / "there", **given, **OPTIONS, scheduler=scheduler
        )
        assert same(there, here)


def test_a_run_goes_on_with_or_without_workers(
    scheduler: str, store: seedrank.GraphStore, hits: Path, local: seedrank.Run, tmp_path: Path
) -> None:
    run = seedrank.score(store, queries=hits, out=tmp_path / "run", **OPTIONS)
    for part, where in ((2, scheduler), (4, None)):
        (run.path / "candidates" / f"part-{part:05d}.parquet").unlink()
        (run.path / "_SUCCESS").unlink()
        run = seedrank.score(store, queries=hits, out=run.path, scheduler=where, **OPTIONS)
        assert same(run, local)
    assert len(run.manifest.resumed_at) == 2


def test_workers_take_over_what_did_not_change(
    scheduler: str, store: seedrank.GraphStore, tmp_path: Path, local: seedrank.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The earlier run is named by a path that means something here only."""
    changed = HITS.set_column(2, "weight", pa.array(np.where(np.arange(80) < 78, 1.0 + np.arange(80) % 5, 9.0)))
    monkeypatch.chdir(local.path.parent)
    run = seedrank.score(store, queries=changed, out=tmp_path / "run", scheduler=scheduler, since="run", **OPTIONS)
    assert sum(part.taken_over for part in run.manifest.parts) == 39
    assert same(run, seedrank.score(store, queries=changed, out=tmp_path / "plain", **OPTIONS))


def test_a_worker_that_dies_while_it_is_told_of_the_run(
    scheduler: str, store: seedrank.GraphStore, hits: Path, local: seedrank.Run, tmp_path: Path, monkeypatch: Any
) -> None:
    """The scheduler hangs up then, though it lives: once is no lost scheduler, always is one."""
    register, left = distributed.Client.register_plugin, [1]

    def hung_up(client: Any, plugin: Any) -> Any:
        register(client, plugin)
        if left[0]:
            left[0] -= 1
            raise CommClosedError("Stream is closed")

    monkeypatch.setattr(distributed.Client, "register_plugin", hung_up)
    assert same(seedrank.score(store, queries=hits, out=tmp_path / "run", scheduler=scheduler, **OPTIONS), local)
    left[0] = 3
    with pytest.raises(StorageError, match="Stream is closed"):
        seedrank.score(store, queries=hits, out=tmp_path / "other", scheduler=scheduler, **OPTIONS)


def test_case_59_neither_graph_nor_hits_travel(
    scheduler: str, store: seedrank.GraphStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dask #11562: graphs of gigabytes went through the scheduler with every task."""
    sizes: list[int] = []
    submit, register = distributed.Client.submit, distributed.Client.register_plugin

    def measured(self: Any, function: Any, *arguments: Any, **settings: Any) -> Any:
        sizes.append(len(pickle.dumps((function, arguments))))
        return submit(self, function, *arguments, **settings)

    def measured_plugin(self: Any, plugin: Any, *arguments: Any) -> Any:
        sizes.append(len(pickle.dumps(plugin)))
        return register(self, plugin, *arguments)

    monkeypatch.setattr(distributed.Client, "submit", measured)
    monkeypatch.setattr(distributed.Client, "register_plugin", measured_plugin)
    many = 200_000
    hits = pa.table({"query_id": np.arange(many) // 5000, "node_id": np.arange(many) % NODES})
    seedrank.score(store, queries=hits, out=tmp_path / "run", scheduler=scheduler, **OPTIONS)
    assert len(sizes) == 1 + 2 + PARTS
    assert sum(sizes) < 20_000


def test_what_workers_log_is_logged_here(
    scheduler: str,
    store: seedrank.GraphStore,
    hits: Path,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "seedrank")
    seen: list[int] = []

    class Bar:
        def start(self, queries: int) -> None:
            seen.append(-queries)

        def advance(self, queries: int, error_bound: float | None = None) -> None:
            seen.append(queries)

        def finish(self) -> None:
            seen.append(0)

    seedrank.score(store, queries=hits, out=tmp_path / "run", scheduler=scheduler, reporter=Bar(), **OPTIONS)
    events = [record.message for record in caplog.records if record.name.startswith("seedrank")]
    assert events.count("part_done") == PARTS
    assert events.count("workers_ready") == 1
    assert seen[0] == -40
    assert sorted(seen[1:]) == [0, 5, 7, 7, 7, 7, 7]


def test_errors_of_workers_are_those_of_a_local_run(
    scheduler: str, store: seedrank.GraphStore, hits: Path, tmp_path: Path
) -> None:
    messages = []
    for where in (None, scheduler):
        with pytest.raises(InputDataError) as raised:
            seedrank.score(store, queries=hits, out=tmp_path / "run", edge_type=("hates",), scheduler=where, **OPTIONS)
        messages.append(str(raised.value))
        assert not (tmp_path / "run" / "candidates").exists() or not list((tmp_path / "run" / "candidates").iterdir())
    assert messages[0] == messages[1]


def test_a_cancelled_run_leaves_the_workers_to_others(
    scheduler: str, store: seedrank.GraphStore, hits: Path, local: seedrank.Run, tmp_path: Path
) -> None:
    cancel = threading.Event()

    class First:
        def start(self, queries: int) -> None: ...
        def advance(self, queries: int, error_bound: float | None = None) -> None:
            cancel.set()

        def finish(self) -> None: ...

    with pytest.raises(InterruptedRunError):
        seedrank.score(
            store, queries=hits, out=tmp_path / "run", scheduler=scheduler, cancel=cancel, reporter=First(), **OPTIONS
        )
    manifest = seedrank.open_run(tmp_path / "run").manifest
    assert manifest.state == "interrupted"
    assert 1 <= len(manifest.parts) < PARTS
    assert same(seedrank.score(store, queries=hits, out=tmp_path / "run", scheduler=scheduler, **OPTIONS), local)


def test_the_deadline_of_a_run_reaches_its_workers(
    scheduler: str, store: seedrank.GraphStore, hits: Path, tmp_path: Path
) -> None:
    run = seedrank.score(store, queries=hits, out=tmp_path / "run", scheduler=scheduler, deadline_s=1e-3, **OPTIONS)
    assert run.manifest.queries is not None
    assert run.manifest.queries.by_status == {"timed_out": 40}


# --- refused before any work


def test_versions_are_compared(
    scheduler: str, store: seedrank.GraphStore, hits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.metadata.version
    here = scaleout_versions.version_reader()()
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "0.0.1" if name == "seedrank" else real(name))
    with pytest.raises(ResourceError, match=rf"worker tcp:.*: seedrank {here['seedrank']}, here 0\.0\.1"):
        seedrank.score(store, queries=hits, out=tmp_path / "run", scheduler=scheduler, **OPTIONS)
    other = {**here, "seedrank": "0.0.1", "python": "3.99"}
    table = scaleout_versions.differences(here, here, {"b": other, "c": here, "d": OSError("gone")})
    assert table.splitlines() == [
        f"worker b: python 3.99, here {here['python']}",
        f"worker b: seedrank 0.0.1, here {here['seedrank']}",
        "worker d: OSError: gone",
    ]


def test_a_worker_that_does_not_see_the_output_is_named(
    scheduler: str, store: seedrank.GraphStore, hits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = tmp_path / "not-mounted"
    monkeypatch.setattr(RunFolder, "writer_elsewhere", lambda self: FolderParts(self.path, nowhere, alone=False))
    with pytest.raises(ResourceError, match=r"worker tcp://127\.0\.0\.1:.* does not see .*not-mounted"):
        seedrank.score(store, queries=hits, out=tmp_path / "run", scheduler=scheduler, **OPTIONS)


def test_a_worker_that_sees_other_hits_is_named(
    scheduler: str, store: seedrank.GraphStore, hits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(HITS.slice(2), tmp_path / "other.parquet")
    ship = scaleout_inputs.ship_inputs
    monkeypatch.setattr(
        scaleout,
        "ship_inputs",
        lambda inputs, folder: ship(replace(inputs, queries=tmp_path / "other.parquet"), folder),
    )
    with pytest.raises(ResourceError, match="the hits are others there"):
        seedrank.score(store, queries=hits, out=tmp_path / "run", scheduler=scheduler, **OPTIONS)


def test_a_scheduler_that_is_not_there(
    store: seedrank.GraphStore, hits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scaleout_cluster, "CONNECT_S", 0.3)
    with pytest.raises(StorageError, match=r"the scheduler tcp://127\.0\.0\.1:9 cannot be reached"):
        seedrank.score(store, queries=hits, out=tmp_path / "run", scheduler="tcp://127.0.0.1:9", **OPTIONS)


def test_a_scheduler_without_workers(
    store: seedrank.GraphStore, hits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scaleout_cluster, "WORKERS_S", 0.2)
    with (
        scaleout_cluster.local_cluster(0, None, tmp_path) as client,
        pytest.raises(ResourceError, match="has had no worker"),
    ):
        seedrank.score(store, queries=hits, out=tmp_path / "run", scheduler=client.scheduler.address, **OPTIONS)


def test_what_lives_in_this_process_is_refused(
    scheduler: str, store: seedrank.GraphStore, hits: Path, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="in the memory of this process, where workers cannot write"):
        seedrank.score(store, queries=hits, out="memory://runs/a", scheduler=scheduler, **OPTIONS)
    with fsspec.open("memory://hits.parquet", "wb") as file:
        file.write(hits.read_bytes())
    with pytest.raises(ConfigError, match="in the memory of this process, where workers cannot read"):
        seedrank.score(store, queries="memory://hits.parquet", out=tmp_path / "run", scheduler=scheduler, **OPTIONS)
