"""Runs on an object store in memory: what becomes of the run that stands there, at every moment."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import seedrank
from seedrank.errors import ConfigError, InputDataError
from seedrank.io.run.run_objects import RunObjects
from seedrank.io.storage.objects import ObjectFolder

OUT = "memory://bucket/nightly run/day=1"
EDGES = pa.table({"src": [1, 2, 3, 4], "dst": [2, 3, 1, 1]})
HITS = pa.table({"query_id": range(6), "node_id": [1, 2, 3, 4, 1, 2]})
BAD = pa.table({"query_id": range(6), "node_id": [1, 2, 3, 4, 1, 2], "weight": [-1.0] * 6})

Job = Callable[..., seedrank.Run]


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    """A run of three parts on an empty store."""
    monkeypatch.setattr(MemoryFileSystem, "store", {})

    def run(**keywords: Any) -> seedrank.Run:
        options: dict[str, Any] = {"queries": HITS, "part_size": 2, "backend": "scipy", "out": OUT}
        options["work_dir"] = str(tmp_path / "work")
        return seedrank.score(keywords.pop("graph", EDGES), **options | keywords)

    return run


def stored() -> dict[str, bytes]:
    """Everything below the prefix, by its key."""
    below = "/bucket/nightly run/day=1/"
    files = MemoryFileSystem.store
    return {name.removeprefix(below): files[name].getvalue() for name in files if name.startswith(below)}


def rows(run: seedrank.Run) -> list[dict[str, Any]]:
    table = run.candidates.to_arrow()
    return list(table.to_pylist())


def test_the_same_tables_as_on_a_disk(job: Job, tmp_path: Path) -> None:
    run, local = job(), job(out=tmp_path / "run")
    for name in ("candidates", "queries"):
        here, there = getattr(run, name), getattr(local, name)
        assert here.to_arrow().equals(there.to_arrow(), check_metadata=True)
        assert [file.name for file in here.files] == [file.name for file in there.files]
    assert (run.url, run.name) == (OUT, OUT)
    assert str(run.path) == "/bucket/nightly run/day=1"
    assert {name: (tmp_path / "run" / name).read_bytes() for name in stored() if name.endswith(".parquet")} == {
        name: content for name, content in stored().items() if name.endswith(".parquet")
    }
    assert len(seedrank.open_run(OUT + "/").candidates) == len(run.candidates)
    with pytest.raises(InputDataError, match=r"is not a run folder \(FileNotFoundError"):
        seedrank.open_run("memory://bucket/nothing")


def test_another_run_is_refused_and_overwrite_replaces_it(job: Job) -> None:
    job()
    before = stored()
    with pytest.raises(ConfigError, match="another run: --top-k: 100 there, 1 here"):
        job(top_k=1)
    with pytest.raises(ConfigError, match="already holds the parts of a run"):
        job(resume="never")
    assert stored() == before
    run = job(top_k=1, part_size=4, overwrite=True)
    assert len(rows(run)) == 6
    assert stored().keys() == {"run.json", "_SUCCESS"} | {
        f"{folder}/part-0000{part}.parquet" for folder in ("candidates", "queries") for part in (0, 1)
    }


@pytest.mark.parametrize("keywords", [{"queries": BAD}, {"edge_type": ("nope",)}, {"exclude": "memory://nothing"}])
def test_a_run_that_is_refused_at_the_door_leaves_the_earlier_one(
    job: Job, tmp_path: Path, keywords: dict[str, Any]
) -> None:
    job()
    before, work = stored(), sorted((tmp_path / "work").rglob("*"))
    with pytest.raises(InputDataError):
        job(**keywords, overwrite=True)
    with pytest.raises((InputDataError, ConfigError)):
        job(**keywords)
    assert stored() == before
    assert sorted((tmp_path / "work").rglob("*")) == work


def test_what_overwrite_does_in_which_order(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """Marker, manifest, old parts, new parts: in no moment do parts of two runs stand under one marker or manifest."""
    job()
    done: list[str] = []
    for name, verb in (("write", "put"), ("upload", "put"), ("remove", "remove")):
        original = getattr(ObjectFolder, name)

        def noted(self: ObjectFolder, key: str, *rest: Any, original: Any = original, verb: str = verb) -> Any:
            done.append(f"{verb} {key}")
            return original(self, key, *rest)

        monkeypatch.setattr(ObjectFolder, name, noted)
    job(top_k=1, part_size=4, overwrite=True)
    steps = [step for step in done if "_lock" not in step]
    assert steps[:2] == ["remove _SUCCESS", "put run.json"]
    assert steps[2:8] == [
        f"remove {folder}/part-0000{part}.parquet" for folder in ("queries", "candidates") for part in (2, 1, 0)
    ]
    assert steps[8:] == [
        "put candidates/part-00000.parquet",
        "put queries/part-00000.parquet",
        "put run.json",
        "put candidates/part-00001.parquet",
        "put queries/part-00001.parquet",
        "put run.json",
        "put run.json",
        "put _SUCCESS",
    ]


class Stopped(BaseException):
    """As a process that dies: nothing is tidied up after it."""


@pytest.mark.parametrize("step", range(10))
def test_a_replacing_run_that_dies_at_any_step_can_be_repeated_or_gone_on_with(
    job: Job, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    earlier = rows(job())
    expected = rows(job(top_k=1, part_size=4, out="memory://bucket/other"))
    left = [step]
    with monkeypatch.context() as patch:
        for name in ("write", "upload", "remove"):
            original = getattr(ObjectFolder, name)

            def dying(self: ObjectFolder, key: str, *rest: Any, original: Any = original) -> Any:
                if key != "_lock":
                    if left[0] == 0:
                        raise Stopped
                    left[0] -= 1
                return original(self, key, *rest)

            patch.setattr(ObjectFolder, name, dying)
        with pytest.raises(Stopped):
            job(top_k=1, part_size=4, overwrite=True)
    if "_SUCCESS" in stored():
        assert rows(seedrank.open_run(OUT)) == earlier
    manifest = json.loads(stored()["run.json"])
    again = job(top_k=1, part_size=4, overwrite=manifest["part_size"] == 2)
    assert rows(again) == expected
    assert {name for name in stored() if "part-" in name} == {
        f"{folder}/part-0000{part}.parquet" for folder in ("candidates", "queries") for part in (0, 1)
    }


def test_what_no_run_wrote_is_left_alone(job: Job) -> None:
    filesystem = MemoryFileSystem()
    filesystem.pipe_file("/bucket/nightly run/day=1/notes.txt", b"mine")
    for keywords in ({}, {"overwrite": True}):
        with pytest.raises(ConfigError, match=r"holds 'notes.txt', which is not part of a run"):
            job(**keywords)
    assert stored() == {"notes.txt": b"mine"}


def test_a_manifest_that_cannot_be_read(job: Job) -> None:
    job()
    MemoryFileSystem().pipe_file("/bucket/nightly run/day=1/run.json", b"{")
    with pytest.raises(ConfigError, match=r"its run\.json cannot be read"):
        job()
    assert len(rows(job(overwrite=True))) > 0


def test_a_store_without_conditional_puts(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = MemoryFileSystem.pipe_file

    def pipe_file(self: MemoryFileSystem, path: str, value: bytes) -> None:
        pipe(self, path, value)

    monkeypatch.setattr(MemoryFileSystem, "pipe_file", pipe_file)
    assert job().manifest.state == "finished"
    write = RunObjects.write_part

    def write_part(self: RunObjects, part: int, **tables: pa.Table) -> Any:
        monkeypatch.setattr(RunObjects, "write_part", write)
        return job(overwrite=True) and write(self, part, **tables)

    monkeypatch.setattr(RunObjects, "write_part", write_part)
    with pytest.raises(ConfigError, match="being written"):
        job(overwrite=True)


def test_what_reads_a_run_reads_it_from_its_url(job: Job, tmp_path: Path) -> None:
    run, local = job(), job(out=tmp_path / "run")
    gold = pa.table({"query_id": [0, 1], "node_id": [2, 1]})
    there, here = (
        seedrank.evaluate(place, gold=gold, metrics=["recall@3", "mrr"]) for place in (OUT, tmp_path / "run")
    )
    assert there.to_dict() == here.to_dict()
    node = rows(run)[0]["node_id"]
    why = [seedrank.explain(place, query=0, node=node, queries=HITS) for place in (OUT, tmp_path / "run")]
    assert why[0].to_dict() == why[1].to_dict()
    assert local.url is None


def test_results_are_taken_over_from_a_run_at_a_url(job: Job, tmp_path: Path) -> None:
    store = seedrank.build(EDGES, out=tmp_path / "graph")
    earlier = job(out="memory://bucket/yesterday", graph=store)
    key = "/bucket/yesterday/candidates/part-00001.parquet"
    data = bytearray(MemoryFileSystem.store[key].getvalue())
    data[10] ^= 1
    MemoryFileSystem.store[key].seek(0)
    MemoryFileSystem.store[key].write(bytes(data))
    run = job(since=earlier.url, graph=store)
    assert [part.taken_over for part in run.manifest.parts] == [2, 0, 2]
    assert run.candidates.to_arrow().equals(job(out=tmp_path / "run").candidates.to_arrow())
