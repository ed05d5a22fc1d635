"""Ranges of parts on an object store: who may write what at which time, and what the whole run takes over."""

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
from seedrank.io.run import lease as module
from seedrank.io.run.lease import LOCK_KEY, Lease, leased
from seedrank.io.run.range_lease import leased_range, leased_without_ranges
from seedrank.io.storage.objects import ObjectFolder, object_folder
from seedrank.part_span import PartSpan

Job = Callable[..., seedrank.Run]

OUT = "memory://bucket/run"
EDGES = pa.table({"src": list(range(40)), "dst": [(node * 7 + 1) % 40 for node in range(40)]})
HITS = pa.table({"query_id": list(range(20)), "node_id": [(node * 3) % 40 for node in range(20)]})


@pytest.fixture
def objects(monkeypatch: pytest.MonkeyPatch) -> ObjectFolder:
    monkeypatch.setattr(MemoryFileSystem, "store", {})
    monkeypatch.setattr(MemoryFileSystem, "pseudo_dirs", [""])
    monkeypatch.setattr(module, "SETTLE_S", 0.0)
    return object_folder(OUT, what="--out")


@pytest.fixture
def job(objects: ObjectFolder, tmp_path: Path) -> Job:
    store = seedrank.build(EDGES, out=tmp_path / "graph")
    work = str(tmp_path / "work")

    def score(parts: str | None = None, **keywords: Any) -> seedrank.Run:
        given: dict[str, Any] = {"out": OUT, "part_size": 4, "top_k": 5} | keywords
        return seedrank.score(store, queries=HITS, work_dir=work, parts=parts, **given)

    return score


def parts_below(objects: ObjectFolder) -> dict[str, bytes | None]:
    return {name: objects.read(name) for name in objects.names() if name.endswith(".parquet")}


def test_ranges_and_the_command_without_give_the_objects_of_one_run(
    job: Job, objects: ObjectFolder, tmp_path: Path
) -> None:
    job(out="memory://bucket/whole")
    whole = object_folder("memory://bucket/whole", what="--out")
    last = job("3:")
    assert [record.part for record in last.manifest.parts] == [3, 4]
    assert last.queries.to_arrow()["query_id"].to_pylist() == list(range(12, 20))
    assert {name for name in objects.names() if not name.endswith(".parquet")} == {"_ranges/parts-00003-end.json"}
    with pytest.raises(InputDataError, match="is not a run folder"):
        seedrank.open_run(OUT)
    job("0:2")
    assert job("0:2").already_done
    run = job()
    assert [record.part for record in run.manifest.parts] == [0, 1, 2, 3, 4]
    assert parts_below(objects) == parts_below(whole)
    assert objects.names() == whole.names()
    assert not list((tmp_path / "work" / "runs").rglob("*.parquet"))
    assert job("0:2").already_done


def test_another_run_is_refused_and_overwrite_replaces_the_ranges(job: Job, objects: ObjectFolder) -> None:
    job("0:2")
    before = objects.names()
    for parts in ("2:4", None):
        with pytest.raises(ConfigError, match="another run: --top-k: 5 there, 6 here"):
            job(parts, top_k=6)
    assert objects.names() == before
    run = job(top_k=6, overwrite=True)
    assert len(run.manifest.parts) == 5
    assert not [name for name in objects.names() if name.startswith("_ranges")]


def test_who_may_write_at_the_same_time(objects: ObjectFolder, waits: list[float]) -> None:
    refused = pytest.raises(ConfigError, match="is being written by another process")
    with leased_range(objects, PartSpan(0, 4)):
        with leased_range(objects, PartSpan(4, 8)):
            assert "_ranges/parts-00000-00004.lock" in objects.names()
        for span in (PartSpan(3, 5), PartSpan(0, None), PartSpan(0, 4)):
            with refused, leased_range(objects, span):
                pass
        with refused, leased_without_ranges(objects):
            pass
        assert objects.names() == ["_ranges/parts-00000-00004.lock"]
    with leased_without_ranges(objects), refused, leased_range(objects, PartSpan(0, 4)):
        pass
    assert objects.names() == []
    assert waits == []


def test_locks_of_dead_writers_are_removed(objects: ObjectFolder, waits: list[float]) -> None:
    dead = Lease(objects)
    objects.write(LOCK_KEY, dead.content(0))
    objects.write("_ranges/parts-00002-00006.lock", dead.content(0))
    with leased_range(objects, PartSpan(0, 4)):
        assert objects.names() == ["_ranges/parts-00000-00004.lock"]
    objects.write("_ranges/parts-00002-00006.lock", dead.content(0))
    with leased_without_ranges(objects):
        assert objects.names() == [LOCK_KEY]
    assert waits == []


def test_a_writer_whose_lock_was_removed_stops(objects: ObjectFolder) -> None:
    with leased_range(objects, PartSpan(0, 4)) as lease:
        objects.remove(lease.key)
        with pytest.raises(ConfigError, match="somebody has removed the lock"):
            lease.check()


def test_the_lock_of_a_range_is_that_of_its_writer(objects: ObjectFolder) -> None:
    with leased(objects, key="_ranges/parts-00000-00001.lock") as lease:
        assert json.loads(objects.read(lease.key) or b"")["holder"] == lease.holder


def test_ranges_on_s3_have_the_bytes_of_a_local_run(s3: Any, inputs: Path, tmp_path: Path) -> None:
    """With the permissions of one prefix, and a command line for each range."""
    store = seedrank.build(inputs / "edges.parquet", out=tmp_path / "graph")
    keywords: dict[str, Any] = {"queries": inputs / "hits.parquet", "part_size": 5, "work_dir": str(tmp_path / "work")}
    local = seedrank.score(store, out=tmp_path / "run", **keywords)
    out = s3.url("nightly/run")
    for parts in ("2:", "0:2"):
        seedrank.score(store, out=out, parts=parts, **keywords)
    assert seedrank.score(store, out=out, parts="0:2", **keywords).already_done
    seedrank.score(store, out=out, **keywords)
    found = s3.content("nightly/run")
    assert found.keys() == {"run.json", "_SUCCESS"} | {
        f"{table}/part-0000{part}.parquet" for table in ("candidates", "queries") for part in range(4)
    }
    for name, content in found.items():
        if name.endswith(".parquet"):
            assert content == (local.path / name).read_bytes(), name
