"""Time limits, cancellation and signals: what was found stays, the row says so, the run folder stays whole."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seedrank
from seedrank.errors import InterruptedRunError
from seedrank.jobs.clock import Clock
from seedrank.kernels.paths import PathTable, shortest_paths
from seedrank.kernels.recall.forms import StopFlags

Command = Callable[..., Any]
ENDLESS = 1_000_000_000


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> seedrank.GraphStore:
    """A random graph of a million edges: a traversal of it takes some time, walks can take any."""
    generator = np.random.default_rng(3)
    edges = pa.table({name: generator.integers(0, 200_000, 1_000_000) for name in ("src", "dst")})
    return seedrank.build(edges, out=tmp_path_factory.mktemp("large") / "graph")


def hits_of(queries: int) -> pa.Table:
    return pa.table({"query_id": np.arange(queries), "node_id": np.arange(queries)})


def rows_of(run: seedrank.Run) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = run.queries.to_arrow().to_pylist()
    return rows


def test_a_walk_that_takes_too_long_is_shortened_and_says_so(large: seedrank.GraphStore, tmp_path: Path) -> None:
    begun = time.monotonic()
    run = seedrank.score(
        large, queries=hits_of(4), out=tmp_path / "run", method="walk", walk_steps=ENDLESS, timeout_s=0.3, threads=2
    )
    assert time.monotonic() - begun < 30
    for row in rows_of(run):
        assert (row["status"], row["budget_hit"], row["truncated"]) == ("timed_out", "timeout_s", True)
        assert row["visited_edges"] > 0
        assert row["candidates"] == 100
    assert run.manifest.state == "finished"
    assert (run.path / "_SUCCESS").exists()


@pytest.mark.parametrize("method", ["bfs", "dfs", "ppr"])
def test_other_methods_stop_too(large: seedrank.GraphStore, tmp_path: Path, method: Any) -> None:
    options: dict[str, Any] = {"tolerance": 0, "max_iterations": 1_000_000} if method == "ppr" else {}
    run = seedrank.score(large, queries=hits_of(2), out=tmp_path / "run", method=method, timeout_s=1e-9, **options)
    for row in rows_of(run):
        assert (row["status"], row["budget_hit"], row["truncated"]) == ("timed_out", "timeout_s", True)


def test_a_shortened_ppr_result_keeps_its_bound(large: seedrank.GraphStore, tmp_path: Path) -> None:
    options: dict[str, Any] = {"precision": "float64", "restart": 0.01, "backend": "scipy", "include_seeds": True}
    exact = seedrank.score(large, queries=hits_of(1), out=tmp_path / "exact", top_k=500, **options)
    short = seedrank.score(large, queries=hits_of(1), out=tmp_path / "short", top_k=500, timeout_s=0.05, **options)
    (row,) = rows_of(short)
    assert row["status"] == "timed_out"
    assert row["iterations"] < rows_of(exact)[0]["iterations"]
    right = {c["node_id"]: c["score"] for c in exact.candidates.to_arrow().to_pylist()}
    distance = sum(
        abs(c["score"] - right[c["node_id"]]) for c in short.candidates.to_arrow().to_pylist() if c["node_id"] in right
    )
    assert distance <= row["error_bound"] + 1e-6


def test_a_time_limit_that_is_not_met_changes_nothing(large: seedrank.GraphStore, tmp_path: Path) -> None:
    files = []
    limits: tuple[dict[str, Any], ...] = ({}, {"timeout_s": 1000.0, "deadline_s": 1000.0})
    options: dict[Any, dict[str, Any]] = {"walk": {}, "bfs": {"max_hops": 2}, "ppr": {}}
    for number, limit in enumerate(limits):
        for method, own in options.items():
            run = seedrank.score(
                large, queries=hits_of(3), out=tmp_path / f"{method}-{number}", method=method, **own, **limit
            )
            files.append([file.read_bytes() for table in (run.candidates, run.queries) for file in table.files])
    assert files[:3] == files[3:]


@pytest.mark.parametrize("limit", ["timeout_s", "deadline_s"])
@pytest.mark.parametrize("method", ["bfs", "ppr"])
def test_the_search_for_paths_is_cut_short_too(
    large: seedrank.GraphStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: Any, limit: str
) -> None:
    """What was found before stays; the paths of one query are there, those of the other took too long."""

    def slow(*arguments: Any, flags: StopFlags, **options: Any) -> PathTable:
        flags.started[1] = 1
        begun = time.monotonic()
        while not flags.stop[1] and time.monotonic() - begun < 10:
            time.sleep(0.001)
        flags.stop[0] = 0
        return shortest_paths(*arguments, flags=flags, **options)

    options: dict[str, Any] = {"max_hops": 1, "paths": True, "method": method}
    whole = seedrank.score(large, queries=hits_of(2), out=tmp_path / "whole", **options)
    monkeypatch.setattr("seedrank.jobs.operators.paths.shortest_paths", slow)
    options[limit] = 2.0
    run = seedrank.score(large, queries=hits_of(2), out=tmp_path / "run", **options)
    rows = rows_of(run)
    expected = [("ok", None, None if method == "ppr" else False), ("timed_out", limit, True)]
    if method == "bfs":
        expected[0] = ("ok", "max_hops", False)
    assert [(row["status"], row["budget_hit"], row["truncated"]) for row in rows] == expected
    found, wanted = (run.candidates.to_arrow().to_pylist() for run in (run, whole))
    of_paths = {"path"} if method == "bfs" else {"path", "hops", "anchor_id"}
    for candidate in wanted:
        if candidate["query_id"] == 1:
            candidate.update(dict.fromkeys(of_paths))
    assert found == wanted


@pytest.mark.parametrize("method", ["walk", "ppr"])
def test_the_deadline_of_the_job_leaves_the_rest_untouched(
    large: seedrank.GraphStore, tmp_path: Path, method: Any
) -> None:
    slow: dict[str, Any] = (
        {"walk_steps": ENDLESS} if method == "walk" else {"tolerance": 0, "max_iterations": 1_000_000}
    )
    run = seedrank.score(
        large, queries=hits_of(6), out=tmp_path / "run", method=method, deadline_s=1.5, block_size=1, part_size=2,
        **slow,
    )  # fmt: skip
    rows = rows_of(run)
    assert [row["query_id"] for row in rows] == list(range(6))
    assert {(row["status"], row["budget_hit"], row["truncated"]) for row in rows} == {("timed_out", "deadline_s", True)}
    assert rows[-1]["candidates"] == 0
    assert rows[-1]["iterations"] is None
    assert len(run.manifest.parts) == 3
    assert run.manifest.queries is not None
    assert run.manifest.queries.by_status == {"timed_out": 6}


def test_cancelling_from_another_thread_ends_the_run(large: seedrank.GraphStore, tmp_path: Path) -> None:
    cancel = threading.Event()
    threading.Timer(1.0, cancel.set).start()
    begun = time.monotonic()
    with pytest.raises(InterruptedRunError, match="the run was cancelled"):
        seedrank.score(
            large, queries=hits_of(2), out=tmp_path / "run", method="walk", walk_steps=ENDLESS, cancel=cancel
        )
    assert time.monotonic() - begun < 30
    assert seedrank.open_run(tmp_path / "run").manifest.state == "interrupted"
    assert not (tmp_path / "run" / "_SUCCESS").exists()


@pytest.mark.parametrize("method", ["walk", "ppr"])
def test_cancelling_keeps_finished_parts_and_drops_the_one_in_work(
    large: seedrank.GraphStore, tmp_path: Path, method: Any
) -> None:
    cancel = threading.Event()

    class AfterThree:
        """Cancel once three queries are done."""

        done = 0

        def start(self, queries: int) -> None: ...

        def advance(self, queries: int, error_bound: float | None = None) -> None:
            self.done += queries
            if self.done >= 3:
                cancel.set()

        def finish(self) -> None: ...

    with pytest.raises(InterruptedRunError):
        seedrank.score(
            large, queries=hits_of(8), out=tmp_path / "run", method=method, part_size=2, block_size=1, cancel=cancel,
            reporter=AfterThree(),
        )  # fmt: skip
    run = seedrank.open_run(tmp_path / "run")
    assert run.manifest.state == "interrupted"
    assert [part.part for part in run.manifest.parts] == [0]
    assert [file.name for file in run.candidates.files] == ["part-00000.parquet"]
    assert not (tmp_path / "run" / "_tmp").exists()


@pytest.fixture
def running(forked_commands: Any, large: seedrank.GraphStore, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Start a job that does not end by itself, and wait until it is scoring."""
    hits = tmp_path / "hits.parquet"
    pq.write_table(hits_of(4), hits)
    started = []

    def start(*options: str) -> Any:
        command = ["score", str(large.path), "--queries", str(hits), "--out", str(tmp_path / "run"), *options]
        process = forked_commands.start_until("backend_chosen", command)
        started.append(process)
        time.sleep(1.0)
        return process

    yield start
    for process in started:
        process.send_signal(signal.SIGKILL)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize(
    "options",
    [("--method", "walk", "--walk-steps", str(ENDLESS)), ("--tolerance", "0", "--max-iterations", "1000000")],
    ids=["walk", "ppr"],
)
def test_signals_end_the_run_with_their_code(
    running: Callable[..., Any],
    tmp_path: Path,
    number: signal.Signals,
    code: int,
    options: tuple[str, ...],
) -> None:
    process = running(*options)
    process.send_signal(number)
    assert process.ended() == code
    manifest = seedrank.open_run(tmp_path / "run").manifest
    assert manifest.state == "interrupted"
    assert not (tmp_path / "run" / "_SUCCESS").exists()
    assert not (tmp_path / "run" / "_tmp").exists()


def test_sigterm_leaves_nothing_of_a_build_and_the_handler_as_it_was(
    seedrank_command: Command, write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def terminated(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(10)

    monkeypatch.setattr("seedrank.io.graphstore.write_graph_files", terminated)
    before = signal.getsignal(signal.SIGTERM)
    edges = write("edges.parquet", {"src": [1], "dst": [2]})
    result = seedrank_command("build", edges, "--out", tmp_path / "graph")
    assert result.code == 143
    assert "terminated" in result.err
    assert [path.name for path in tmp_path.iterdir()] == ["edges.parquet"]
    assert signal.getsignal(signal.SIGTERM) is before


def test_an_exception_in_the_waiting_thread_stops_the_kernel() -> None:
    """As a signal handler raises it: the kernel ends before the exception goes on."""
    cancel = threading.Event()
    ended = threading.Event()

    def kernel(flags: Any) -> None:
        cancel.set()
        while not flags.stop.all():
            time.sleep(0.001)
        ended.set()

    with pytest.raises(InterruptedRunError):
        Clock(cancel=cancel).watch(kernel, width=3)
    assert ended.is_set()


def test_an_interrupt_while_the_kernel_is_started_stops_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine it takes a while until the thread of the kernel runs, and a signal may come meanwhile."""
    ended: list[bool] = []

    def kernel(flags: Any) -> None:
        begun = time.monotonic()
        while not flags.stop.all() and time.monotonic() - begun < 5:
            time.sleep(0.001)
        ended.append(bool(flags.stop.all()))

    class Interrupted(ThreadPoolExecutor):
        def submit(self, *arguments: Any, **keywords: Any) -> Any:
            super().submit(*arguments, **keywords)
            raise KeyboardInterrupt

    monkeypatch.setattr("seedrank.jobs.clock.ThreadPoolExecutor", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        Clock().watch(kernel, width=3)
    assert ended == [True]


def test_the_clock_of_a_query_starts_when_the_query_does() -> None:
    def kernel(flags: Any) -> list[float]:
        """Run two queries one after the other, each until its flag is up."""
        seconds = []
        for query in range(2):
            flags.started[query] = 1
            begun = time.monotonic()
            while not flags.stop[query] and time.monotonic() - begun < 10:
                time.sleep(0.001)
            seconds.append(time.monotonic() - begun)
        return seconds

    seconds, limits, spent_s = Clock(timeout_s=0.2).watch(kernel, width=2)
    assert limits.tolist() == ["timeout_s", "timeout_s"]
    assert all(0.19 <= second <= 2 for second in seconds)
    assert (spent_s >= 0.19).all()
    # What a query took before counts.
    before = np.array([0.1, 5.0])
    seconds, limits, spent_s = Clock(timeout_s=0.2).watch(kernel, width=2, spent_s=before)
    assert limits.tolist() == ["timeout_s", "timeout_s"]
    assert 0.09 <= seconds[0] <= 2
    assert seconds[1] < 0.19
    assert (spent_s >= before).all()


def test_the_clock_of_a_query_ends_when_the_query_does() -> None:
    def kernel(flags: Any) -> None:
        for state, seconds in ((1, 0.02), (2, 0.5)):
            flags.started[0] = state
            time.sleep(seconds)

    limits, spent_s = Clock(timeout_s=0.45).watch(kernel, width=1)[1:]
    assert limits.tolist() == [""]
    assert spent_s[0] < 0.4
