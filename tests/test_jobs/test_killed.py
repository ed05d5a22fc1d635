"""A process that dies, is told to end or meets a full disk, at any step: the same command then gives the same bytes."""

from __future__ import annotations

import os
import random
import signal
import subprocess
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
Faulty = Callable[[str, Path, list[str]], subprocess.CompletedProcess[str]]

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
    pq.write_table(pa.table({**columns, "weight": np.full(QUERIES, -1.0)}), folder / "wrong.parquet")
    return folder


def arguments(inputs: Path, out: Path, *options: str, hits: str = "hits") -> list[str]:
    queries = str(inputs / f"{hits}.parquet")
    return ["score", str(inputs / "edges.parquet"), "--queries", queries, "--out", str(out), *options]


@pytest.fixture
def faulty(forked_commands: Any) -> Faulty:
    """Run the real command with a fault; see tests/faulty.py."""

    def run(fault: str, below: Path, command: list[str]) -> subprocess.CompletedProcess[str]:
        environment = {"FAULT": fault, "FAULT_BELOW": str(below)}
        ended: subprocess.CompletedProcess[str] = forked_commands.run(command, environment=environment)
        return ended

    return run


def steps_of(faulty: Faulty, below: Path, command: list[str], log: Path) -> list[str]:
    """All steps of a command, in order."""
    done = faulty(f"list:{log}", below, command)
    assert done.returncode == 0, done.stderr
    return log.read_text(encoding="utf-8").splitlines()


def numbers_of(steps: list[str], *kinds: str) -> list[int]:
    """Numbers of the steps of some kinds; the files of a graph store, which are written side by side, count as one."""
    files = [number for number, step in enumerate(steps) if step.startswith("open") and ".graph.staged-" in step]
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
def uninterrupted(
    forked_commands: Any, inputs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., dict[str, bytes]]:
    """Tables of a run that nothing disturbed."""
    known: dict[Any, dict[str, bytes]] = {}

    def find(*options: str, hits: str = "hits") -> dict[str, bytes]:
        if (options, hits) not in known:
            out = tmp_path_factory.mktemp("reference") / "run"
            forked_commands.run(arguments(inputs, out, *options, hits=hits)).check_returncode()
            known[options, hits] = tables(out)
        return known[options, hits]

    return find


KINDS = ("open", "rename", "mkdir", "remove", "rmdir")
THIRDS = pytest.mark.parametrize("third", [0, 1, 2])


@THIRDS
def test_kill_9_before_every_step(
    seedrank_command: Command, faulty: Faulty, inputs: Path, uninterrupted: Command, tmp_path: Path, third: int
) -> None:
    expected = uninterrupted(*SMALL)
    below = tmp_path / "below"
    steps = steps_of(faulty, below, arguments(inputs, below / "run", *SMALL), tmp_path / "steps")
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
    seedrank_command: Command, faulty: Faulty, inputs: Path, uninterrupted: Command, tmp_path: Path, third: int
) -> None:
    """Up to its first part: then the earlier one is gone by intent."""
    earlier, expected = uninterrupted(*SMALL, hits="earlier"), uninterrupted(*SMALL)
    below = tmp_path / "below"

    def prepared(below: Path) -> tuple[list[str], list[str]]:
        first = arguments(inputs, below / "run", *SMALL, hits="earlier")
        assert seedrank_command(*first).code == 0
        return first, arguments(inputs, below / "run", *SMALL)

    _, second = prepared(below)
    steps = steps_of(faulty, below, [*second, "--overwrite"], tmp_path / "steps")
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


def test_kill_9_of_a_run_that_clears_what_a_refused_one_left(
    seedrank_command: Command, faulty: Faulty, inputs: Path, uninterrupted: Command, tmp_path: Path
) -> None:
    """A folder that is cleared in part is still known as a run's."""
    expected = uninterrupted(*SMALL)

    def prepared(below: Path) -> list[str]:
        assert seedrank_command(*arguments(inputs, below / "run", *SMALL, hits="wrong")).code == 3
        assert names(below / "run") == {"run.json", "graph", "candidates", "queries"}
        return arguments(inputs, below / "run", *SMALL)

    steps = steps_of(faulty, tmp_path / "below", prepared(tmp_path / "below"), tmp_path / "steps")
    clearing = numbers_of(steps[: steps.index("rename run/run.json")], "remove", "rmdir")
    assert len(clearing) > 8
    for number in (*clearing[1:-2:4], *clearing[-2:]):
        below = tmp_path / f"kill-{number}"
        command = prepared(below)
        assert faulty(f"KILL:{number}", below, command).returncode == -signal.SIGKILL
        again = seedrank_command(*command)
        assert again.code == 0, (steps[number], again.err)
        check_whole(below / "run", expected)


def test_kill_9_of_a_build_leaves_the_old_store_or_the_new_one(
    seedrank_command: Command, faulty: Faulty, inputs: Path, tmp_path: Path
) -> None:
    new = seedrank.build(inputs / "edges.parquet", out=tmp_path / "new").facts.fingerprint
    reversed_columns = ("--src-column", "dst", "--dst-column", "src")

    def prepared(below: Path) -> tuple[str, list[str]]:
        build = ["build", str(inputs / "edges.parquet"), "--out", str(below / "graph")]
        assert seedrank_command(*build, *reversed_columns).code == 0
        return seedrank.open_graph(below / "graph").facts.fingerprint, [*build, "--overwrite"]

    _, command = prepared(tmp_path / "below")
    steps = steps_of(faulty, tmp_path / "below", command, tmp_path / "steps")
    found = []
    for number in numbers_of(steps, *KINDS):
        below = tmp_path / f"kill-{number}"
        old, command = prepared(below)
        assert faulty(f"KILL:{number}", below, command).returncode == -signal.SIGKILL
        # A refused build, which does nothing itself, settles what the killed one left.
        assert seedrank_command(*command[:-1]).code == 2
        assert names(below) == {"graph"}, steps[number]
        found.append(seedrank.open_graph(below / "graph").facts.fingerprint)
        assert seedrank_command(*command).code == 0
        assert seedrank.open_graph(below / "graph").facts.fingerprint == new != old
        assert names(below) == {"graph"}
    assert set(found) == {old, new}
    assert found == sorted(found, key=[old, new].index)


@pytest.mark.parametrize("number", range(KILLS))
def test_kill_9_at_a_random_moment(
    seedrank_command: Command,
    forked_commands: Any,
    inputs: Path,
    uninterrupted: Command,
    tmp_path: Path,
    number: int,
) -> None:
    expected = uninterrupted(*LARGE)
    below = tmp_path / "below"
    command = arguments(inputs, below / "run", *LARGE)
    process = forked_commands.start_until("backend_chosen", command)
    time.sleep(random.Random(number).uniform(0, 0.3))  # noqa: S311
    process.send_signal(signal.SIGKILL)
    assert process.ended() in (0, -signal.SIGKILL)
    again = seedrank_command(*command)
    assert again.code == 0, again.err
    check_whole(below / "run", expected)


@pytest.mark.parametrize(
    "step", ["open run/_tmp/candidates-part-00001.parquet", "rename run/queries/part-00001.parquet"]
)
def test_sigterm_then_the_same_command(
    seedrank_command: Command, faulty: Faulty, inputs: Path, uninterrupted: Command, tmp_path: Path, step: str
) -> None:
    expected = uninterrupted(*SMALL)
    below = tmp_path / "below"
    number = steps_of(faulty, below, arguments(inputs, below / "run", *SMALL), tmp_path / "steps").index(step)
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
    faulty: Faulty,
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
    steps = steps_of(faulty, below, arguments(inputs, below / "run", *SMALL), tmp_path / "steps")
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
