"""Workers that die, a scheduler that is lost: what is finished stays, and the result is that of a local run."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed.scheduler import KilledWorker

import seedrank
from seedrank.config import ScoreOptions, make_options
from seedrank.errors import IncompleteRunError, ResourceError
from seedrank.io.graphstore import GraphStore
from seedrank.io.run.runfolder import create_run_folder
from seedrank.jobs.clock import Clock
from seedrank.jobs.inputs import JobInputs
from seedrank.jobs.operators.blocks import BlockWidth
from seedrank.jobs.progress import Silent, Stopwatch
from seedrank.jobs.queries.loading import load_query_set
from seedrank.jobs.queries.query_segments import QuerySegments
from seedrank.jobs.run.engine import JobParts
from seedrank.jobs.run.in_process import InProcess
from seedrank.jobs.run.part_scorer import FinishedPart, PartRange
from seedrank.jobs.scaleout import cluster as scaleout_cluster
from seedrank.jobs.scaleout.split import PartSplitter, last_notes
from seedrank.jobs.scaleout.worker import PartReport, PieceReport

NODES = 400
EDGES = pa.table({"src": np.arange(4 * NODES) // 4, "dst": (np.arange(4 * NODES) * 7919 + 1) % NODES})
HITS = pa.table({"query_id": np.arange(20), "node_id": (np.arange(20) * 31) % NODES})
OPTIONS: dict[str, Any] = {"part_size": 2, "top_k": 10}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> GraphStore:
    return seedrank.build(EDGES, out=tmp_path_factory.mktemp("store") / "graph")


@pytest.fixture(scope="module")
def hits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hits") / "hits.parquet"
    pq.write_table(HITS, path)
    return path


@pytest.fixture(scope="module")
def local(store: GraphStore, hits: Path, tmp_path_factory: pytest.TempPathFactory) -> seedrank.Run:
    return seedrank.score(store, queries=hits, out=tmp_path_factory.mktemp("local") / "run", **OPTIONS)


def content(run: seedrank.Run) -> dict[str, bytes]:
    return {str(file.relative_to(run.path)): file.read_bytes() for file in sorted(run.path.rglob("*.parquet"))}


# --- workers


@pytest.fixture(scope="module")
def doom(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the queries that end their worker; see `doomed`."""
    return tmp_path_factory.mktemp("doom")


@pytest.fixture(scope="module")
def scheduler(doom: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a scheduler whose two workers know doom; who ends a worker is suspect at once, to save time."""
    preload = str(Path(__file__).parents[1] / "doomed.py")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOOM_FOLDER", str(doom))
        patch.setitem(scaleout_cluster.SETTINGS, "distributed.scheduler.allowed-failures", 0)
        patch.setitem(scaleout_cluster.SETTINGS, "distributed.worker.preload", [preload])
        with scaleout_cluster.local_cluster(2, None, tmp_path_factory.mktemp("dask")) as client:
            yield client.scheduler.address


def test_a_query_that_ends_every_worker_fails_alone(
    scheduler: str,
    doom: Path,
    store: GraphStore,
    hits: Path,
    local: seedrank.Run,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """And a worker that dies of something else costs nothing."""
    (doom / "once-1").touch()
    (doom / "always-13").touch()
    caplog.set_level("INFO", "seedrank")
    with pytest.raises(IncompleteRunError, match=r"failed queries by part: part 6: 1") as raised:
        seedrank.score(store, queries=hits, out=tmp_path / "run", scheduler=scheduler, **OPTIONS)
    assert raised.value.exit_code == 6
    assert not (doom / "once-1").exists()
    # What the worker noted before it died says which query it was: the other one is what remains of the part.
    cut = [record for record in caplog.records if record.message == "part_cut"]
    assert [(record.__dict__["first_query"], record.__dict__["queries"]) for record in cut] == [(12, 2), (12, 1)]
    run = seedrank.open_run(tmp_path / "run")
    statuses = run.queries.to_arrow().select(["query_id", "status"]).to_pydict()
    assert [query for query, status in zip(*statuses.values(), strict=True) if status != "ok"] == [13]
    assert "its worker was killed" in run.manifest.parts[6].errors[0]
    others = {name: data for name, data in content(local).items() if "00006" not in name}
    assert {name: data for name, data in content(run).items() if "00006" not in name} == others
    expected = local.candidates.to_arrow()
    assert run.candidates.to_arrow().equals(expected.filter(pa.compute.not_equal(expected["query_id"], 13)))
    # Where the query does no harm the same command repairs the part.
    (doom / "always-13").unlink()
    assert content(seedrank.score(store, queries=hits, out=run.path, **OPTIONS)) == content(local)


Deadly = Callable[[int, int], bool]
Noted = Callable[[list[tuple[int, int]]], list[tuple[int, int]]]
NOTED: dict[str, Noted] = {
    "both attempts": lambda blocks: blocks * 2,
    "another end": lambda blocks: blocks[:1] + blocks,
    "one attempt": lambda blocks: blocks,
    "nothing": lambda _: [],
}


class Stand:
    """Stands in for workers and for what hands them tasks: they die at a block that is deadly, twice.

    ``noted`` makes of the blocks that one attempt began what is known of both, and ``asked`` is what they were asked
    for, by queries and width.
    """

    def __init__(self, scorer: Any, folder: Any, deadly: Deadly, noted: Noted) -> None:
        self.scorer, self.folder, self.deadly, self.noted = scorer, folder, deadly, noted
        self.asked: list[tuple[int, int, int | None]] = []

    def submit(
        self, function: Any, wanted: PartRange, width: int | None = None, *, backend: str | None, noted: bool
    ) -> None:
        assert (backend, noted) == ("cpu", True)
        self.wanted, self.width, self.whole = wanted, width, function.__name__ == "score_part"

    def next(self) -> tuple[PartRange, Any]:
        self.blocks: list[tuple[int, int]] = []
        self.asked.append((self.wanted.first, self.wanted.last, self.width))
        scorer = self.scorer
        if self.width is not None:
            scorer = replace(scorer, width=BlockWidth(min(self.width, scorer.width.queries)))
        try:
            scored = scorer.score(self.wanted, Silent(), begin=self.begin)
        except Death:
            return self.wanted, KilledWorker("key", SimpleNamespace(address="tcp://a:1"), 1)
        if self.whole:
            return self.wanted, PartReport(scorer.write(scored, self.folder), [])
        return self.wanted, PieceReport(scored.blocks, [])

    def begin(self, first: int, last: int) -> None:
        self.blocks.append((first, last))
        if self.deadly(first, last):
            raise Death

    def notes(self) -> list[tuple[int, int]]:
        return self.noted(self.blocks)


class Death(BaseException):
    """Of a worker."""


def split(
    store: GraphStore,
    hits: Path,
    out: Path,
    deadly: Deadly,
    *,
    survived: int = 1,
    noted: str = "both attempts",
    **options: int,
) -> tuple[FinishedPart, list[tuple[int, int, int | None]]]:
    """Let a part of all twenty queries be looked at."""
    chosen = make_options(ScoreOptions, {"part_size": 20, "top_k": 10, **options})
    inputs = JobInputs(graph=store, queries=hits)
    folder = create_run_folder(out, overwrite=False)
    job = JobParts(folder, inputs, chosen, Stopwatch(), Clock())
    queries = QuerySegments.of_one(load_query_set(store, inputs, chosen), chosen)
    engine = InProcess()
    engine.start(job, store, lambda: queries)
    stand = Stand(engine._scorer, folder, deadly, NOTED[noted])
    splitter = PartSplitter(job, stand, queries, "cpu", survived=survived)  # type: ignore[arg-type]
    return splitter.score(PartRange(0, 0, 20)), stand.asked


def among(deadly: set[int]) -> Deadly:
    return lambda first, last: not deadly.isdisjoint(range(first, last))


@pytest.mark.parametrize("noted", ["both attempts", "nothing"])
def test_pieces_of_a_part_make_the_bytes_of_the_whole(
    store: GraphStore, hits: Path, tmp_path: Path, noted: str
) -> None:
    """Workers with memory for seven queries at a time; no query is at fault."""
    finished, asked = split(store, hits, tmp_path / "run", lambda first, last: last - first > 7, noted=noted)
    whole = seedrank.score(store, queries=hits, out=tmp_path / "whole", part_size=20, top_k=10)
    expected = whole.manifest.parts[0]
    assert finished.record.candidates_file == expected.candidates_file
    assert finished.record.queries_file == expected.queries_file
    halves = [(0, 10), (0, 5), (5, 10), (10, 20), (10, 15), (15, 20)]
    assert asked == [(0, 20, None), *([(0, 20, 1)] if noted != "nothing" else [(*half, None) for half in halves])]


def test_a_query_is_found_by_the_block_that_was_noted(store: GraphStore, hits: Path, tmp_path: Path) -> None:
    """Three deaths, each of two attempts: of the part beside others, of the part alone, of the query."""
    finished, asked = split(store, hits, tmp_path / "run", among({13}), block_size=4)
    assert finished.record.by_status == {"failed": 1, "ok": 19}
    assert "each of 2 times that it was scored alone" in finished.record.errors[0]
    assert asked[:2] == [(0, 20, None), (12, 16, 1)]
    assert sorted(asked[2:]) == [(0, 12, None), (12, 13, 1), (14, 16, 1), (16, 20, None)]
    narrow, wide = split(store, hits, tmp_path / "narrow", lambda first, last: last - first > 3, block_size=8)
    assert narrow.record.by_status == {"ok": 20}
    assert wide == [(0, 20, None), (0, 8, 1), (8, 20, 4), (8, 12, 1), (12, 20, 2)]


def test_attempts_that_die_of_different_queries_prove_nothing(store: GraphStore, hits: Path, tmp_path: Path) -> None:
    assert last_notes([(0, 4), (4, 8), (0, 4)]) == [(4, 8), (0, 4)]
    finished, asked = split(store, hits, tmp_path / "run", among({13}), noted="another end", block_size=4)
    assert finished.record.by_status == {"failed": 1, "ok": 19}
    assert (13, 14, 1) in asked


@pytest.mark.parametrize("noted", ["another end", "one attempt", "nothing"])
def test_neighbours_that_are_all_deadly_are_found(store: GraphStore, hits: Path, tmp_path: Path, noted: str) -> None:
    deadly = {4, 5, 6, 7, 19}
    finished, _ = split(store, hits, tmp_path / "run", among(deadly), noted=noted, block_size=8)
    assert finished.record.by_status == {"failed": 5, "ok": 15}
    assert [error.split(":")[0] for error in finished.record.errors] == [
        f"1 query, {query}" for query in sorted(deadly)
    ]


def test_a_part_that_died_of_another_one_is_scored_as_it_is(store: GraphStore, hits: Path, tmp_path: Path) -> None:
    finished, asked = split(store, hits, tmp_path / "run", lambda *_: False)
    assert asked == [(0, 20, None)]
    assert finished.record.by_status == {"ok": 20}


def test_workers_that_end_whatever_they_score_end_the_run(store: GraphStore, hits: Path, tmp_path: Path) -> None:
    with pytest.raises(ResourceError, match="workers end whatever they score"):
        split(store, hits, tmp_path / "run", lambda *_: True, survived=0)


# --- two hosts


class Hosts(NamedTuple):
    """What starts a command on each of two hosts, and their addresses."""

    first: tuple[str, ...]
    second: tuple[str, ...]
    first_address: str
    second_address: str


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    """Two hosts on one cable: network namespaces where root may make them, else this host twice."""
    names = [f"seedrank-{os.getpid()}-{end}" for end in "ab"]
    addresses = ["10.77.31.1", "10.77.31.2"]
    commands = [f"netns add {name}" for name in names]
    commands.append(f"link add seedrank0 netns {names[0]} type veth peer name seedrank0 netns {names[1]}")
    for name, address in zip(names, addresses, strict=True):
        commands += [f"-n {name} addr add {address}/24 dev seedrank0"]
        commands += [f"-n {name} link set {device} up" for device in ("lo", "seedrank0")]
    try:
        try:
            for command in commands:
                subprocess.run(["ip", *command.split()], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            yield Hosts((), (), "127.0.0.1", "127.0.0.1")
        else:
            first, second = (("ip", "netns", "exec", name) for name in names)
            yield Hosts(first, second, *addresses)
    finally:
        for name in names:
            with suppress(OSError):
                subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


@pytest.fixture(scope="module")
def far(hosts: Hosts, doom: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Address of a scheduler on the first host, with a worker on the second; and its process."""
    address = f"{hosts.first_address}:{free_port()}"
    preload = str(Path(__file__).parents[1] / "doomed.py")
    environment = {**os.environ, "DASK_DISTRIBUTED__WORKER__PRELOAD": preload, "DOOM_FOLDER": str(doom)}
    dask_command = [sys.executable, "-m", "dask"]
    alone = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(doom.parent)]
    commands = [
        [*hosts.first, *dask_command, "scheduler", "--host", f"tcp://{address}", "--no-dashboard"],
        [*hosts.second, *dask_command, "worker", f"tcp://{address}", "--host", hosts.second_address, *alone],
    ]
    programs = [
        subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL, start_new_session=True)
        for command in commands
    ]
    try:
        yield f"tcp://{address}", programs[0]
    finally:
        for program in programs:
            with suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
            program.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def begin(hosts: Hosts, scheduler: str, store: GraphStore, hits: Path, out: Path) -> subprocess.Popen[str]:
    """Start the real command on the first host."""
    command = [*hosts.first, sys.executable, "-m", "seedrank", "score", str(store.path), "--queries", str(hits)]
    options = ["--out", str(out), "--part-size", "2", "--top-k", "10", "--scheduler", scheduler]
    return subprocess.Popen([*command, *options], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)


def test_workers_on_another_host(
    hosts: Hosts, far: tuple[str, Any], store: GraphStore, hits: Path, local: seedrank.Run, tmp_path: Path
) -> None:
    if not hosts.first:
        pytest.skip("this user may not make network namespaces: two hosts need root and the program ip")
    running = begin(hosts, far[0], store, hits, tmp_path / "run")
    _, said = running.communicate(timeout=60)
    assert running.returncode == 0, said
    assert content(seedrank.open_run(tmp_path / "run")) == content(local)


def test_a_lost_scheduler_costs_the_parts_in_work(
    hosts: Hosts, far: tuple[str, Any], doom: Path, store: GraphStore, hits: Path, local: seedrank.Run, tmp_path: Path
) -> None:
    (doom / "wait-5").touch()
    running = begin(hosts, far[0], store, hits, tmp_path / "run")
    try:
        manifest_file = tmp_path / "run" / "run.json"
        while not (manifest_file.exists() and len(seedrank.open_run(tmp_path / "run").manifest.parts) == 2):
            assert running.poll() is None, running.communicate()
            time.sleep(0.05)
        os.killpg(far[1].pid, signal.SIGKILL)
        _, said = running.communicate(timeout=60)
    finally:
        (doom / "wait-5").unlink()
        running.kill()
    assert running.returncode == 5, said
    assert "error: the scheduler tcp://" in said
    assert "Traceback" not in said, said
    manifest = seedrank.open_run(tmp_path / "run").manifest
    assert (manifest.state, len(manifest.parts)) == ("failed", 2)
    again = seedrank.score(store, queries=hits, out=tmp_path / "run", **OPTIONS)
    assert content(again) == content(local)
    assert len(again.manifest.resumed_at) == 1
