"""Every exit code of the command, each from a process of its own."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seedrank
from seedrank import errors

Process = Callable[..., subprocess.CompletedProcess[str]]

RUN = ("score", "edges.parquet", "--queries", "hits.parquet", "--out", "run", "--backend", "scipy")
LOST = ("score", "edges.parquet", "--queries", "lost.parquet", "--out", "run", "--backend", "scipy")
NONE = ("score", "edges.parquet", "--queries", "none.parquet", "--out", "run", "--backend", "scipy")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Edges, and hits of several kinds."""
    pq.write_table(pa.table({"src": [1, 2, 3], "dst": [2, 3, 1]}), tmp_path / "edges.parquet")
    for name, nodes in (("hits", [1, 2]), ("lost", [1, 99])):
        pq.write_table(pa.table({"query_id": ["a", "b"], "node_id": nodes}), tmp_path / f"{name}.parquet")
    none = {"query_id": pa.array([], pa.string()), "node_id": pa.array([], pa.int64())}
    pq.write_table(pa.table(none), tmp_path / "none.parquet")
    pq.write_table(pa.table({"src": [1], "dst": [2], "weight": [-1.0]}), tmp_path / "negative.parquet")
    return tmp_path


@pytest.fixture
def process(workspace: Path, forked_commands: Any) -> Process:
    """Run the command, with a fault at one of its steps (see tests/faulty.py), or as it is."""

    def run(*arguments: str, fault: str = "") -> subprocess.CompletedProcess[str]:
        environment = {"FAULT": fault, "FAULT_BELOW": str(workspace)} if fault else {}
        ended: subprocess.CompletedProcess[str] = forked_commands.run(
            arguments, environment=environment, folder=workspace
        )
        return ended

    return run


#: Exit code → how to get it: arguments, fault, and what standard error says then.
WAYS: dict[int, tuple[tuple[str, ...], str, str]] = {
    0: (RUN, "", "run_closed"),
    1: (RUN, "BUG:9", "this is a bug in seedrank"),
    2: ((*RUN, "--top-k", "0"), "", "greater than or equal to 1"),
    3: (("build", "negative.parquet", "--out", "graph"), "", "negative.parquet"),
    4: ((*RUN, "--memory-limit", "1"), "", "memory for at least one query"),
    5: (RUN, "ENOSPC:9", "No space left on device"),
    6: ((*LOST, "--strict"), "", "no_valid_seeds"),
    99: ((*NONE, "--skip-code"), "", "run_closed"),
    130: (RUN, "INT:9", "interrupted"),
    143: (RUN, "TERM:9", "terminated"),
}


@pytest.mark.parametrize("code", WAYS)
def test_every_exit_code(workspace: Path, process: Process, code: int) -> None:
    arguments, fault, said = WAYS[code]
    ended = process(*arguments, fault=fault)
    assert ended.returncode == code, ended.stderr
    assert said in ended.stderr
    assert ("Traceback" in ended.stderr) == (code == 1)
    if code == 1:
        assert "LookupError" in ended.stderr.partition("Traceback")[2]  # what a report needs
    if fault:
        assert process(*arguments).returncode == 0  # nothing that was left behind is in the way
        assert seedrank.open_run(workspace / "run").manifest.state == "finished"


def test_no_exit_code_is_missing_here() -> None:
    classes = [value for value in vars(errors).values() if inspect.isclass(value)]
    assert WAYS.keys() >= {value.exit_code for value in classes if issubclass(value, errors.SeedrankError)}


@pytest.mark.parametrize("arguments", [RUN, NONE], ids=["finished before", "no queries"])
def test_99_where_there_was_nothing_to_do(workspace: Path, process: Process, arguments: tuple[str, ...]) -> None:
    first = process(*arguments, "--skip-code")
    assert first.returncode == (0 if arguments is RUN else 99), first.stderr
    before = {file: file.stat().st_mtime_ns for file in (workspace / "run").rglob("*")}
    again = process(*arguments, "--skip-code", "--json")
    assert again.returncode == 99
    assert '"state": "finished"' in again.stdout
    assert process(*arguments).returncode == 0
    assert {file: file.stat().st_mtime_ns for file in (workspace / "run").rglob("*")} == before


def test_a_block_without_room_for_threads_ends_the_run(workspace: Path, process: Process) -> None:
    """Its queries have not failed: the same command goes on when there is room."""
    script = (
        "import sys\n"
        "import seedrank.jobs.cli.main as main\n"
        "import seedrank.jobs.operators.ppr as ppr\n"
        "def full(*_, **__):\n"
        '    raise RuntimeError("can\'t start new thread")\n'
        "ppr.personalized_pagerank = full\n"
        "sys.exit(main.run(sys.argv[1:]))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script, *RUN], cwd=workspace, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 4, ended.stderr
    assert "no room for another thread" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert process(*RUN).returncode == 0


def test_a_machine_without_room_for_threads_is_no_bug(workspace: Path) -> None:
    script = (
        "import sys, threading\n"
        "def full(*_):\n"
        '    raise RuntimeError("can\'t start new thread")\n'
        "import seedrank.jobs.cli.main as main\n"
        "threading.Thread.start = full\n"
        "sys.exit(main.run(sys.argv[1:]))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script, *RUN], cwd=workspace, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 4, ended.stderr
    assert "Traceback" not in ended.stderr
