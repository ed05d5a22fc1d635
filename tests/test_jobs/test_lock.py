"""One writer per output folder: processes that meet, processes that died, many side by side."""

from __future__ import annotations

import fcntl
import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seedrank
from seedrank.errors import ConfigError
from seedrank.io.run.lock import locked

Command = Callable[..., Any]

EDGES = pa.table({"src": list(range(40)), "dst": [(node * 7 + 1) % 40 for node in range(40)]})
HITS = pa.table({"query_id": list(range(20)), "node_id": [(node * 3) % 40 for node in range(20)]})


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    pq.write_table(EDGES, folder / "edges.parquet")
    pq.write_table(HITS, folder / "hits.parquet")
    seedrank.build(EDGES, out=folder / "graph")
    return folder


def score_arguments(inputs: Path, out: Path) -> list[str]:
    return ["score", str(inputs / "graph"), "--queries", str(inputs / "hits.parquet"), "--out", str(out)]


def build_arguments(inputs: Path, out: Path) -> list[str]:
    return ["build", str(inputs / "edges.parquet"), "--out", str(out)]


@pytest.fixture
def stopped(forked_commands: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Start a command and stop the process (SIGSTOP) before a step of the given name: it sleeps with its lock."""
    started = []

    def start(command: list[str], step: str) -> Any:
        below, log = tmp_path / "rehearsal", tmp_path / "steps"
        out = Path(command[-1])
        rehearsal = [*command[:-1], str(below / out.name)]
        environment = {"FAULT": f"list:{log}", "FAULT_BELOW": str(below)}
        forked_commands.run(rehearsal, environment=environment).check_returncode()
        steps = log.read_text(encoding="utf-8").splitlines()
        number = next(i for i, name in enumerate(steps) if name.startswith(step))
        environment = {"FAULT": f"STOP:{number}", "FAULT_BELOW": str(out.parent)}
        process = forked_commands.start(command, environment=environment)
        started.append(process)
        assert process.stopped()
        return process

    yield start
    for process in started:
        process.send_signal(signal.SIGKILL)


COMMANDS = pytest.mark.parametrize(
    ("arguments", "step"),
    [(score_arguments, "open out/_tmp/queries-part-00000.parquet"), (build_arguments, "open .out.staged-")],
    ids=["score", "build"],
)


@COMMANDS
def test_a_second_process_is_refused_at_once_and_the_first_is_not_disturbed(
    seedrank_command: Command, stopped: Command, inputs: Path, tmp_path: Path, arguments: Any, step: str
) -> None:
    command = arguments(inputs, tmp_path / "place" / "out")
    first = stopped(command, step)
    begun = time.monotonic()
    for options in ([], ["--overwrite"]):
        second = seedrank_command(*command, *options)
        assert second.code == 2
        assert f"is being written by another process, number {first.pid} on " in second.err
    assert time.monotonic() - begun < 10
    first.send_signal(signal.SIGCONT)
    assert first.ended() == 0
    assert [child.name for child in (tmp_path / "place").iterdir()] == ["out"]


@COMMANDS
def test_a_lock_dies_with_its_process(
    seedrank_command: Command, stopped: Command, inputs: Path, tmp_path: Path, arguments: Any, step: str
) -> None:
    command = arguments(inputs, tmp_path / "place" / "out")
    first = stopped(command, step)
    first.send_signal(signal.SIGKILL)
    assert first.ended() == -signal.SIGKILL
    assert (tmp_path / "place" / ".out.lock").exists()
    assert seedrank_command(*command).code == 0
    assert [child.name for child in (tmp_path / "place").iterdir()] == ["out"]


def test_threads_and_links_meet_the_same_lock(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "link").symlink_to("run")
    refused: list[str] = []

    def other(path: Path) -> None:
        try:
            with locked(path):
                pass
        except ConfigError as error:
            refused.append(error.found)

    with locked(tmp_path / "run"):
        for path in (tmp_path / "run", tmp_path / "link", tmp_path / "x" / ".." / "run"):
            thread = threading.Thread(target=other, args=[path])
            thread.start()
            thread.join()
        with locked(tmp_path / "other"):
            pass
    assert len(refused) == 3
    with locked(tmp_path / "link"):
        pass
    assert {child.name for child in tmp_path.iterdir()} == {"run", "link"}


def test_a_folder_that_cannot_be_moved_is_locked_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mounted"
    path.mkdir()
    monkeypatch.setattr(Path, "is_mount", lambda self: self == path)
    with locked(path):
        assert [child.name for child in tmp_path.iterdir()] == ["mounted"]
        assert list(path.iterdir()) == []
        with pytest.raises(ConfigError, match=r"is being written by another process\n"), locked(path):
            pass
    with locked(path):
        pass


def test_a_lock_file_that_was_removed_meanwhile_is_not_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between opening and locking, the last holder may have removed the file: its successor counts."""
    flock, file = fcntl.flock, tmp_path / ".run.lock"
    taken: list[int] = []

    def late(descriptor: int, operation: int) -> None:
        if not taken:
            file.unlink()
        taken.append(descriptor)
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    with locked(tmp_path / "run"):
        assert len(taken) == 2
        assert file.read_text().split()[0] == str(os.getpid())


def test_a_file_system_without_locks_is_said_and_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def none(descriptor: int, operation: int) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", none)
    with caplog.at_level(logging.WARNING, "seedrank"), locked(tmp_path / "run"):
        pass
    assert [record.getMessage() for record in caplog.records] == ["folder_not_locked"]
    assert list(tmp_path.iterdir()) == []


def test_of_processes_that_start_together_one_writes(forked_commands: Any, inputs: Path, tmp_path: Path) -> None:
    command = [forked_commands.program, *score_arguments(inputs, tmp_path / "place" / "run")]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    messages = [process.communicate(timeout=120)[1] for process in running]
    codes = [process.returncode for process in running]
    assert set(codes) <= {0, 2}, messages
    assert 0 in codes
    assert all("another process" in text for text, code in zip(messages, codes, strict=True) if code == 2)
    assert [child.name for child in (tmp_path / "place").iterdir()] == ["run"]
    assert len(seedrank.open_run(tmp_path / "place" / "run").queries) == len(HITS)


def test_24_runs_side_by_side_on_one_store(forked_commands: Any, inputs: Path, tmp_path: Path) -> None:
    reference = seedrank.score(inputs / "graph", queries=HITS, out=tmp_path / "reference", part_size=4)
    expected = {f"{file.parent.name}/{file.name}": file.read_bytes() for file in reference.path.glob("*/*.parquet")}
    runs = [tmp_path / f"run-{number}" for number in range(24)]
    running = [
        subprocess.Popen(
            [forked_commands.program, *score_arguments(inputs, out), "--part-size", "4", "--threads", "1"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        for out in runs
    ]
    messages = [process.communicate(timeout=240)[1] for process in running]
    assert [process.returncode for process in running] == [0] * 24, messages
    for out in runs:
        assert {f"{file.parent.name}/{file.name}": file.read_bytes() for file in out.glob("*/*.parquet")} == expected
        assert (out / "_SUCCESS").exists()
    assert {path.name for path in tmp_path.iterdir()} == {"reference", *(out.name for out in runs)}
