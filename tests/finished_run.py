"""A finished run of four parts that tests damage or run again: fixtures of several test modules."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import seedrank

EDGES = pa.table({"src": list(range(40)), "dst": [(node * 7 + 1) % 40 for node in range(40)]})
HITS = pa.table({"query_id": list(range(20)), "node_id": [(node * 3) % 40 for node in range(20)]})
OPTIONS: dict[str, Any] = {"part_size": 6, "top_k": 5}
PARTS = 4


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> seedrank.GraphStore:
    return seedrank.build(EDGES, out=tmp_path_factory.mktemp("store") / "graph")


@pytest.fixture(scope="module")
def finished(store: seedrank.GraphStore, tmp_path_factory: pytest.TempPathFactory) -> seedrank.Run:
    return seedrank.score(store, queries=HITS, out=tmp_path_factory.mktemp("finished") / "run", **OPTIONS)


@pytest.fixture
def run(finished: seedrank.Run, tmp_path: Path) -> seedrank.Run:
    """A finished run that a test may damage."""
    shutil.copytree(finished.path, tmp_path / "run")
    return seedrank.open_run(tmp_path / "run")


def content(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def parts_of(run: seedrank.Run) -> dict[str, bytes]:
    return {name: data for name, data in content(run.path).items() if name.endswith(".parquet")}


def files_of_part(run: seedrank.Run, part: int) -> tuple[Path, Path]:
    name = f"part-{part:05d}.parquet"
    return run.path / "candidates" / name, run.path / "queries" / name


def again(run: seedrank.Run, store: seedrank.GraphStore, **options: Any) -> seedrank.Run:
    return seedrank.score(store, queries=HITS, out=run.path, **{**OPTIONS, **options})
