"""What overlaps: order and errors stay those of one thing after the other."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import seedrank
from seedrank.errors import StorageError
from seedrank.io.records import StoredFile
from seedrank.io.run.runfolder import RunFolder
from seedrank.jobs.operators import blocks
from seedrank.jobs.run.pipeline import Background

EDGES = pa.table({"src": list(range(40)), "dst": [(node * 7 + 1) % 40 for node in range(40)]})
HITS = pa.table({"query_id": list(range(20)), "node_id": [(node * 3) % 40 for node in range(20)]})


def test_tasks_run_beside_the_caller_and_in_order() -> None:
    caller, gate, seen = threading.get_ident(), threading.Event(), []

    def first() -> str:
        gate.wait(10)
        seen.append("first")
        return "done"

    with Background() as background:
        result = background.start(first)
        assert not seen  # it waits, the caller goes on
        gate.set()
        other = background.start(threading.get_ident)  # waits for the first
        assert seen == ["first"]
        assert result() == "done"
        assert other() != caller


@pytest.mark.parametrize("tasks", [1, 2])
def test_what_a_task_raises_is_raised_at_the_next_or_at_the_end(tasks: int) -> None:
    def fail() -> None:
        raise ValueError("disk")

    started: list[int] = []

    def work() -> None:
        with Background() as background:
            background.start(fail)
            if tasks == 2:
                background.start(lambda: started.append(1))

    with pytest.raises(ValueError, match="disk"):
        work()
    assert not started


def test_a_failure_of_the_caller_leaves_no_task_half_done() -> None:
    begun, seen = threading.Event(), []

    def write() -> None:
        begun.set()
        threading.Event().wait(0.05)
        seen.append("written")

    def work() -> None:
        with Background() as background:
            background.start(write)
            begun.wait(10)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert seen == ["written"]


def test_a_part_is_written_while_the_next_is_scored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The write of part 0 lasts until part 1 is being scored; one after the other, it would wait in vain."""
    scoring_second, write_part, score_blocks = threading.Event(), RunFolder.write_part, blocks.score_blocks

    def slow_write(self: RunFolder, part: int, **tables: Any) -> tuple[StoredFile, StoredFile]:
        assert part > 0 or scoring_second.wait(20)
        return write_part(self, part, **tables)

    def noted(first: int, last: int, **arguments: Any) -> Any:
        if first > 0:
            scoring_second.set()
        return score_blocks(first, last, **arguments)

    monkeypatch.setattr(RunFolder, "write_part", slow_write)
    monkeypatch.setattr("seedrank.jobs.run.part_scorer.score_blocks", noted)
    run = seedrank.score(EDGES, queries=HITS, out=tmp_path / "run", part_size=6)
    assert [record.part for record in run.manifest.parts] == [0, 1, 2, 3]
    assert run.queries.to_arrow()["query_id"].to_pylist() == list(range(20))
    monkeypatch.undo()
    plain = seedrank.score(EDGES, queries=HITS, out=tmp_path / "plain", part_size=6)
    assert [file.read_bytes() for file in run.candidates.files] == [
        file.read_bytes() for file in plain.candidates.files
    ]


@pytest.mark.parametrize("failing", [0, 2, 3])
def test_a_part_that_cannot_be_written_fails_the_run_and_keeps_those_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    write_part = RunFolder.write_part

    def full(self: RunFolder, part: int, **tables: Any) -> tuple[StoredFile, StoredFile]:
        if part == failing:
            raise StorageError("the disk is full", expected="room", fix="make some")
        return write_part(self, part, **tables)

    monkeypatch.setattr(RunFolder, "write_part", full)
    with pytest.raises(StorageError, match="the disk is full"):
        seedrank.score(EDGES, queries=HITS, out=tmp_path / "run", part_size=6)
    manifest = seedrank.open_run(tmp_path / "run").manifest
    assert manifest.state == "failed"
    assert [record.part for record in manifest.parts] == list(range(failing))
    assert not (tmp_path / "run" / "_SUCCESS").exists()
