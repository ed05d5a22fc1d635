"""A process that dies, is told to end or meets a full disk, at any step: the same command then gives the same bytes."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seedrank

Command = Callable[..., Any]

FAULTY = Path(__file__).parents[1] / "faulty.py"
#: Random moments at which the 20-part run is killed; more by this variable of the environment.
KILLS = int(os.environ.get("SEEDRANK_TEST_KILLS", "8"))
NODES, QUERIES = 40, 20
SMALL = ("--part-size", "10", "--top-k", "5", "--backend", "scipy")  # 2 parts, and a process that starts fast
LARGE = ("--part-size", "1", "--top-k", "5")  # 20 parts


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Edges, hits and other hits."""
    folder = tmp_path_factory.mktemp("inputs")
    generator = np.random.default_rng(11)
    edges = {name: generator.integers(0, NODES, 200) for name in ("src", "dst")}
    pq.write_table(pa.table({**edges, "weight": generator.random(200)}), folder / "edges.parquet")
    for name in ("hits", "earlier"):
        columns = {"query_id": np.arange(QUERIES), "node_id": generator.integers(0, NODES, QUERIES)}
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    return folder


def arguments(inputs: Path, out: Path, *options: str, hits: str = "hits") -> list[str]:
    queries = str(inputs / f"{hits}.parquet")
    return ["score", str(inputs / "edges.parquet"), "--queries", queries, "--out", str(out), *options]


def faulty(fault: str, below: Path, command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run the real command with a fault; see tests/faulty.py."""
    environment = {**os.environ, "FAULT": fault, "FAULT_BELOW": str(below)}
    return subprocess.run(
        [sys.executable, FAULTY, *command], env=environment, capture_output=True, text=True, check=False, timeout=120
    )


def steps_of(below: Path, command: list[str], log: Path) -> list[str]:
    """All steps of a command, in order."""
    done = faulty(f"list:{log}", below, command)
    assert done.returncode == 0, done.stderr
    return log.read_text(encoding="utf-8").splitlines()


def numbers_of(steps: list[str], *kinds: str) -> list[int]:
    """Numbers of the steps of some kinds; the files of a graph store, which are written side by side, count as one."""
    files = [number for number, step in enumerate(steps) if step.startswith("open run/.graph.staged-")]
    return [number for number, step in enumerate(steps) if step.startswith(kinds) and number not in files[1:-1]]


def tables(out: Path) -> dict[str, bytes]:
    return {f"{file.parent.name}/{file.name}": file.read_bytes() for file in out.glob("*/part-*.parquet")}


def names(folder: Path) -> set[str]:
    return {child.name for child in folder.iterdir()}


def check_whole(out: Path, expected: dict[str, bytes]) -> None:
    """A finished run with these tables, and nothing else, in it and beside it."""
    assert tables(out) == expected
    assert names(out) == {"run.json", "candidates", "queries", "graph", "_SUCCESS"}
    assert names(out.parent) == {out.name}
    manifest = seedrank.open_run(out).manifest
    assert manifest.state == "finished"
    assert [part.part for part in manifest.parts] == list(range(len(expected) // 2))
    assert manifest.queries is not None
    assert sum(manifest.queries.by_status.values()) == QUERIES
    assert manifest.graph is not None
    assert manifest.graph.path == str(out / "graph")
    assert seedrank.open_graph(manifest.graph.path).facts.fingerprint == manifest.graph.fingerprint


@pytest.fixture(scope="module")
def uninterrupted(inputs: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., dict[str, bytes]]:
    """Tables of a run that nothing disturbed."""
    known: dict[Any, dict[str, bytes]] = {}

    def find(*options: str, hits: str = "hits") -> dict[str, bytes]:
        if (options, hits) not in known:
            out = tmp_path_factory.mktemp("reference") / "run"
            subprocess.run(
                [sys.executable, "-m", "seedrank", *arguments(inputs, out, *options, hits=hits)],
                check=True, capture_output=True,
            )  # fmt: skip
            known[options, hits] = tables(out)
        return known[options, hits]

    return find


KINDS = ("open", "rename", "mkdir", "remove", "rmdir")
THIRDS = pytest.mark.parametrize("third", [0, 1, 2])


@THIRDS
def test_kill_9_before_every_step(
    seedrank_command: Command, inputs: Path, uninterrupted: Command, tmp_path: Path, third: int
) -> None:
    expected = uninterrupted(*SMALL)
    below = tmp_path / "below"
    steps = steps_of(below, arguments(inputs, below / "run", *SMALL), tmp_path / "steps")
    assert {"rename run/candidates/part-00001.parquet", "rename run/run.json", "open run/_SUCCESS"} <= set(steps)
    assert "rename run/graph" in steps
    for number in numbers_of(steps, *KINDS)[third::3]:
        below = tmp_path / f"kill-{number}"
        command = arguments(inputs, below / "run", *SMALL)
        killed = faulty(f"KILL:{number}", below, command)
        assert killed.returncode == -signal.SIGKILL, (steps[number], killed.stderr)
        again = seedrank_command(*command)
        assert again.code == 0, (steps[number], again.err)
        check_whole(below / "run", expected)


@THIRDS
def test_kill_9_of_a_run_that_replaces_another_leaves_one_of_them(
    seedrank_command: Command, inputs: Path, uninterrupted: Command, tmp_path: Path, third: int
) -> None:
    """Up to its first part: then the earlier one is gone by intent."""
    earlier, expected = uninterrupted(*SMALL, hits="earlier"), uninterrupted(*SMALL)
    below = tmp_path / "below"

    def prepared(below: Path) -> tuple[list[str], list[str]]:
        first = arguments(inputs, below / "run", *SMALL, hits="earlier")
        assert seedrank_command(*first).code == 0
        return first, arguments(inputs, below / "run", *SMALL)

    _, second = prepared(below)
    steps = steps_of(below, [*second, "--overwrite"], tmp_path / "steps")
    first_part = steps.index("open run/_tmp/candidates-part-00000.parquet")
    assert any(step.startswith("remove .run.replaced/") for step in steps[:first_part])
    restored = []
    for number in numbers_of(steps[: first_part + 1], *KINDS)[third::3]:
        below = tmp_path / f"kill-{number}"
        first, second = prepared(below)
        killed = faulty(f"KILL:{number}", below, [*second, "--overwrite"])
        assert killed.returncode == -signal.SIGKILL, (steps[number], killed.stderr)
        if number % 2:  # the replacing command again
            again = seedrank_command(*second, "--overwrite")
            assert again.code == 0, (steps[number], again.err)
            check_whole(below / "run", expected)
            continue
        # The command of the earlier run: it is there again, or the later one had taken its place for good.
        again = seedrank_command(*first)
        assert again.code == 0, (steps[number], again.err)
        check_whole(below / "run", earlier)
        restored.append("already_done" in again.err)
    assert True in restored


@pytest.mark.parametrize("number", range(KILLS))
def test_kill_9_at_a_random_moment(
    seedrank_command: Command, inputs: Path, uninterrupted: Command, tmp_path: Path, number: int
) -> None:
    expected = uninterrupted(*LARGE)
    below = tmp_path / "below"
    command = arguments(inputs, below / "run", *LARGE)
    with subprocess.Popen([sys.executable, "-m", "seedrank", *command], stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if b"backend_chosen" in line:
                break
        time.sleep(random.Random(number).uniform(0, 0.3))  # noqa: S311
        process.kill()
    again = seedrank_command(*command)
    assert again.code == 0, again.err
    check_whole(below / "run", expected)


@pytest.mark.parametrize(
    "step", ["open run/_tmp/candidates-part-00001.parquet", "rename run/queries/part-00001.parquet"]
)
def test_sigterm_then_the_same_command(
    seedrank_command: Command, inputs: Path, uninterrupted: Command, tmp_path: Path, step: str
) -> None:
    expected = uninterrupted(*SMALL)
    below = tmp_path / "below"
    number = steps_of(below, arguments(inputs, below / "run", *SMALL), tmp_path / "steps").index(step)
    below = tmp_path / "ended"
    command = arguments(inputs, below / "run", *SMALL)
    ended = faulty(f"TERM:{number}", below, command)
    assert ended.returncode == 143, ended.stderr
    manifest = seedrank.open_run(below / "run").manifest
    assert manifest.state == "interrupted"
    assert set(tables(below / "run")) <= set(expected)
    assert names(below) == {"run"}
    again = seedrank_command(*command)
    assert again.code == 0, again.err
    check_whole(below / "run", expected)
    resumed = seedrank.open_run(below / "run").manifest
    assert resumed.started_at == manifest.started_at
    assert len(resumed.resumed_at) == 1


@THIRDS
@pytest.mark.parametrize(("kind", "kinds"), [("EIO", ("rename", "remove", "rmdir")), ("ENOSPC", ("open", "mkdir"))])
def test_a_storage_error_at_any_step_then_the_same_command(
    seedrank_command: Command,
    inputs: Path,
    uninterrupted: Command,
    tmp_path: Path,
    kind: str,
    kinds: tuple[str, ...],
    third: int,
) -> None:
    """Also where the thread in the background writes: its error ends the run with the code of the storage."""
    expected = uninterrupted(*SMALL)
    below = tmp_path / "below"
    steps = steps_of(below, arguments(inputs, below / "run", *SMALL), tmp_path / "steps")
    codes = set()
    for number in numbers_of(steps, *kinds)[third::3]:
        below = tmp_path / f"fault-{number}"
        command = arguments(inputs, below / "run", *SMALL)
        failed = faulty(f"{kind}:{number}", below, command)
        codes.add(failed.returncode)
        assert failed.returncode in (0, 5), (steps[number], failed.stderr)
        assert "Traceback" not in failed.stderr
        if failed.returncode == 0:  # nothing that mattered: a folder was there already, a lock file stays behind
            assert tables(below / "run") == expected
            assert (below / "run" / "_SUCCESS").exists()
        again = seedrank_command(*command)
        assert again.code == 0, (steps[number], again.err)
        check_whole(below / "run", expected)
    assert 5 in codes
