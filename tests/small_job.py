"""A small job that is scored here and elsewhere: fixtures of several test modules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seedrank

NODES = 400
EDGES = pa.table(
    {
        "src": np.arange(4 * NODES) // 4,
        "dst": (np.arange(4 * NODES) * 7919 + 1) % NODES,
        "type": np.where(np.arange(4 * NODES) % 3, "cites", "likes"),
    }
)
HITS = pa.table(
    {
        "query_id": np.arange(80) // 2,
        "node_id": (np.arange(80) * 31) % NODES,
        "weight": 1.0 + np.arange(80) % 5,
        "source": ["dense", "sparse"] * 40,
    }
)
OPTIONS: dict[str, Any] = {"part_size": 7, "top_k": 10}
PARTS = 6


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> seedrank.GraphStore:
    return seedrank.build(EDGES, out=tmp_path_factory.mktemp("store") / "graph")


@pytest.fixture(scope="module")
def hits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hits") / "hits.parquet"
    pq.write_table(HITS, path)
    return path


@pytest.fixture(scope="module")
def local(store: seedrank.GraphStore, hits: Path, tmp_path_factory: pytest.TempPathFactory) -> seedrank.Run:
    return seedrank.score(store, queries=hits, out=tmp_path_factory.mktemp("local") / "run", **OPTIONS)


def content(run: seedrank.Run) -> dict[str, bytes]:
    return {str(file.relative_to(run.path)): file.read_bytes() for file in sorted(run.path.rglob("*.parquet"))}


def same(run: seedrank.Run, other: seedrank.Run) -> bool:
    return content(run) == content(other)
