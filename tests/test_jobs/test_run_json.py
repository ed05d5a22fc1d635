"""``run.json`` of many parts, written now and then; manifests of ranges that begin in the same moment."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import seedrank
from seedrank.errors import ConfigError, KernelError
from seedrank.io.run.run_objects import RunObjects
from seedrank.io.run.runfolder import RunFolder
from seedrank.jobs.run import score_job

EDGES = pa.table({"src": [1, 2, 3], "dst": [2, 3, 1]})
HITS = pa.table({"query_id": range(12), "node_id": [1, 2, 3] * 4})
OPTIONS: dict[str, Any] = {"queries": HITS, "part_size": 1, "backend": "scipy"}


@pytest.fixture
def saved(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], list[int]]:
    """Let ``run.json`` be written after the first three parts, then as rarely as said; returns its parts each time."""

    def rarely(share: float) -> list[int]:
        monkeypatch.setattr(score_job, "MOST_SAVED_AT_ONCE", 3)
        monkeypatch.setattr(score_job, "SAVING_SHARE", share)
        parts: list[int] = []
        for kind in (RunFolder, RunObjects):
            original = kind.write_manifest

            def noted(self: Any, manifest: Any, original: Any = original) -> None:
                parts.append(len(manifest.parts))
                original(self, manifest)

            monkeypatch.setattr(kind, "write_manifest", noted)
        return parts

    return rarely


def parts_of(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("part-*.parquet")}


def at_part(monkeypatch: pytest.MonkeyPatch, number: int, do: Callable[[], object]) -> None:
    """Do something instead of writing a part."""
    for kind in (RunFolder, RunObjects):
        original = kind.write_part

        def write(self: Any, part: int, original: Any = original, **tables: pa.Table) -> Any:
            if part == number:
                do()
            return original(self, part, **tables)

        monkeypatch.setattr(kind, "write_part", write)


def test_it_is_written_rarely_and_whole_at_the_end(saved: Callable[[float], list[int]], tmp_path: Path) -> None:
    whole = seedrank.score(EDGES, out=tmp_path / "whole", **OPTIONS)
    written = saved(1e-9)
    run = seedrank.score(EDGES, out=tmp_path / "run", **OPTIONS)
    assert written == [0, 0, 1, 2, 3, 12]
    assert [part.part for part in seedrank.open_run(run.path).manifest.parts] == list(range(12))
    assert run.manifest.queries == whole.manifest.queries
    assert (run.path / "_SUCCESS").exists()
    assert seedrank.score(EDGES, out=tmp_path / "run", **OPTIONS).already_done
    # As much of the time as there is.
    often = saved(1e9)
    seedrank.score(EDGES, out=tmp_path / "often", **OPTIONS)
    assert set(often) == set(range(13))


def test_a_killed_run_computes_again_what_was_not_in_it(
    saved: Callable[[float], list[int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder as it is in the moment of a SIGKILL: seven parts, of which three are recorded."""
    saved(1e-9)
    with monkeypatch.context() as patch:
        at_part(patch, 7, lambda: shutil.copytree(tmp_path / "run", tmp_path / "killed"))
        seedrank.score(EDGES, out=tmp_path / "run", **OPTIONS)
    assert len(parts_of(tmp_path / "killed")) == 14
    assert len(seedrank.open_run(tmp_path / "killed").manifest.parts) == 3
    begun: list[int] = []
    at_part(monkeypatch, 3, lambda: begun.append(3))
    seedrank.score(EDGES, out=tmp_path / "killed", **OPTIONS)
    assert begun == [3]
    assert parts_of(tmp_path / "killed") == parts_of(tmp_path / "run")


@pytest.mark.parametrize("out", ["folder", "memory://bucket/run"])
def test_a_run_that_fails_keeps_all_finished_parts(
    saved: Callable[[float], list[int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str
) -> None:
    monkeypatch.setattr(MemoryFileSystem, "store", {})
    saved(1e-9)
    place: Any = tmp_path / "run" if out == "folder" else out

    def fail() -> None:
        raise KernelError("no further", expected="more", fix="none")

    options = {**OPTIONS, "work_dir": str(tmp_path / "work")}
    with monkeypatch.context() as patch:
        at_part(patch, 7, fail)
        with pytest.raises(KernelError):
            seedrank.score(EDGES, out=place, **options)
    failed = seedrank.open_run(place)
    assert [part.part for part in failed.manifest.parts] == list(range(7))
    at_part(monkeypatch, 6, fail)  # not a second time
    run = seedrank.score(EDGES, out=place, **options)
    assert len(run.candidates.to_arrow()) == len(
        seedrank.score(EDGES, out=tmp_path / "whole", **OPTIONS | {"part_size": 12}).candidates
    )


@pytest.mark.parametrize("out", ["folder", "memory://bucket/run"])
def test_ranges_of_two_runs_that_begin_together_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str
) -> None:
    """The second range begins while the first one, which has read everything, has written no part yet."""
    monkeypatch.setattr(MemoryFileSystem, "store", {})
    place: Any = tmp_path / "run" if out == "folder" else out
    graph = seedrank.build(EDGES, out=tmp_path / "graph")
    options = {**OPTIONS, "work_dir": str(tmp_path / "work")}
    seen: list[str] = []

    def another() -> None:
        with pytest.raises(ConfigError, match="--top-k: 100 there, 2 here"):
            seedrank.score(graph, out=place, parts="6:", top_k=2, **options)
        seedrank.score(graph, out=place, parts="9:", **options)
        seen.append("both")

    with monkeypatch.context() as patch:
        at_part(patch, 0, another)
        seedrank.score(graph, out=place, parts=":6", **options)
    assert seen == ["both"]
    assert len(seedrank.score(graph, out=place, **options).manifest.parts) == 12


@pytest.mark.parametrize("out", ["folder", "memory://bucket/run"])
def test_a_range_that_ended_without_a_part_keeps_nobody_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str
) -> None:
    monkeypatch.setattr(MemoryFileSystem, "store", {})
    place: Any = tmp_path / "run" if out == "folder" else out
    graph = seedrank.build(EDGES, out=tmp_path / "graph")
    options = {**OPTIONS, "work_dir": str(tmp_path / "work")}

    def fail() -> None:
        raise KernelError("no further", expected="more", fix="none")

    with monkeypatch.context() as patch:
        at_part(patch, 0, fail)
        with pytest.raises(KernelError):
            seedrank.score(graph, out=place, parts=":6", top_k=2, **options)
    assert len(seedrank.score(graph, out=place, parts="6:", **options).manifest.parts) == 6
