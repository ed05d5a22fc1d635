"""Processes that die or meet a full disk while they write to S3: the same command then gives the same bytes."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import seedrank

Command = Callable[..., Any]


#: Steps before which the run is killed, evenly spread; more by this variable of the environment.
KILLS = int(os.environ.get("SEEDRANK_TEST_KILLS", "3"))


@pytest.fixture(scope="module")
def reference(inputs: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Parts of the same run on the local disk."""
    out = tmp_path_factory.mktemp("reference") / "run"
    seedrank.score(
        inputs / "edges.parquet", queries=inputs / "hits.parquet", out=out, part_size=10, top_k=5, backend="scipy"
    )
    return {str(file.relative_to(out)): file.read_bytes() for file in out.glob("*/part-*.parquet")}


@pytest.fixture
def command(inputs: Path, tmp_path: Path) -> Callable[..., list[str]]:
    def make(out: str, work: str = "work") -> list[str]:
        hits = str(inputs / "hits.parquet")
        options = ["--work-dir", str(tmp_path / work), "--part-size", "10", "--top-k", "5", "--backend", "scipy"]
        return ["score", str(inputs / "edges.parquet"), "--queries", hits, "--out", out, *options]

    return make


def check_whole(s3: Any, key: str, reference: dict[str, bytes], work: Path) -> None:
    found = s3.content(key)
    assert {name: value for name, value in found.items() if name.endswith(".parquet")} == reference
    assert found.keys() - reference.keys() == {"run.json", "_SUCCESS"}
    manifest = seedrank.open_run(s3.url(key)).manifest
    assert manifest.state == "finished"
    assert manifest.graph is not None
    # Of all attempts only the graph store of the last one is left in the work folder.
    assert seedrank.open_graph(manifest.graph.path).facts.fingerprint == manifest.graph.fingerprint
    kept = {file.parent for file in work.rglob("*") if file.is_file()}
    assert {folder for folder in kept if folder.parents[1] == Path(manifest.graph.path).parents[1]} == {
        Path(manifest.graph.path)
    }


def changes(request: Any) -> bool:
    return request.method in ("PUT", "DELETE")


def test_kill_9_before_every_step(
    seedrank_command: Command,
    s3: Any,
    command: Command,
    reference: dict[str, bytes],
    waits: list[float],
    forked_commands: Any,
    tmp_path: Path,
) -> None:
    s3.faults.requests.clear()
    assert seedrank_command(*command(s3.url("whole"))).code == 0
    steps = [request.path.partition("/")[2] for request in s3.faults.requests if changes(request)]
    assert steps[0] == steps[-1] == "whole/_lock"
    assert len(steps) >= 12
    for number in range(0, len(steps), max(1, len(steps) // KILLS)):
        key = f"killed-{number}"
        process = forked_commands.start(command(s3.url(key)), environment=s3.environment)

        def kill(process: Any = process) -> None:
            process.send_signal(signal.SIGKILL)

        seen: list[Any] = []

        def at_that_step(request: Any, number: int = number, seen: list[Any] = seen) -> bool:
            seen += [request] if changes(request) else []
            return changes(request) and len(seen) == number + 1

        s3.faults.fail(kill, at_that_step, times=1)
        assert process.ended() == -signal.SIGKILL, steps[number]
        s3.faults.clear()
        again = seedrank_command(*command(s3.url(key)))
        assert again.code == 0, (steps[number], again.err)
        check_whole(s3, key, reference, tmp_path / "work")


def test_sigterm_closes_the_run_and_gives_the_lock_back(
    seedrank_command: Command,
    s3: Any,
    command: Command,
    reference: dict[str, bytes],
    tmp_path: Path,
    forked_commands: Any,
) -> None:
    process = forked_commands.start(command(s3.url("run")), environment=s3.environment)

    def terminate() -> None:
        process.send_signal(signal.SIGTERM)

    s3.faults.fail(terminate, lambda request: request.path.endswith("queries/part-00000.parquet"), times=1)
    assert process.ended() == 143
    assert seedrank.open_run(s3.url("run")).manifest.state == "interrupted"
    assert not {"_lock", "_SUCCESS"} & s3.content("run").keys()
    assert seedrank_command(*command(s3.url("run"))).code == 0
    check_whole(s3, "run", reference, tmp_path / "work")


@pytest.mark.parametrize(("fault", "file"), [("ENOSPC", "candidates-part-00001"), ("EIO", "queries-part-00000")])
def test_a_full_or_failing_work_folder(
    seedrank_command: Command,
    s3: Any,
    command: Command,
    reference: dict[str, bytes],
    tmp_path: Path,
    forked_commands: Any,
    fault: str,
    file: str,
) -> None:
    variables = {"FAULT": f"{fault}:{file}", "FAULT_BELOW": str(tmp_path / "work")}
    ended = forked_commands.run(command(s3.url("run")), environment={**s3.environment, **variables})
    assert (ended.returncode, file in ended.stderr) == (5, True), ended.stderr
    manifest = seedrank.open_run(s3.url("run")).manifest
    assert (manifest.state, len(manifest.parts)) == ("failed", int(file[-1]))
    assert seedrank_command(*command(s3.url("run"))).code == 0
    check_whole(s3, "run", reference, tmp_path / "work")
