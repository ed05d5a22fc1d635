"""What the options select of a graph is found once, however many segments the queries of a job are cut into."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seedrank
from seedrank.jobs.queries import segment_size

NODES = 30


def counted(monkeypatch: pytest.MonkeyPatch, calls: list[str], place: str) -> None:
    """Let a function of `seedrank.jobs.queries` say that it is called."""
    module, name = f"seedrank.jobs.queries.{place}".rsplit(".", 1)
    function: Callable[..., Any] = getattr(importlib.import_module(module), name)

    def noted(*arguments: Any, **keywords: Any) -> Any:
        calls.append(name)
        return function(*arguments, **keywords)

    monkeypatch.setattr(f"{module}.{name}", noted)


def test_what_depends_on_no_query_is_found_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(3)
    edges = pa.table({name: random.integers(0, NODES, 120) for name in ("src", "dst")})
    numbers = list(range(NODES))
    nodes = pa.table({"id": numbers, "type": ["even", "odd"] * (NODES // 2), "page": [n // 4 for n in numbers]})
    store = seedrank.build(edges, nodes=nodes, out=tmp_path / "graph")
    hits = {"query_id": np.arange(37).repeat(2), "node_id": random.integers(0, NODES + 3, 74)}
    pq.write_table(pa.table(hits), tmp_path / "hits.parquet")
    keywords: dict[str, Any] = {"queries": tmp_path / "hits.parquet", "part_size": 2, "backend": "scipy"}
    keywords |= {"exclude_neighbors": True, "top_k": 5}
    keywords |= {"where": ["type=even"], "node_type": ["even"], "seed_weighting": "specificity", "direction": "both"}
    keywords |= {"exclude": pa.table({"node_id": [2, 8]}), "group_by": "page", "seed_node_type": ["odd", "even"]}
    whole = seedrank.score(store, out=tmp_path / "whole", **keywords)
    calls: list[str] = []
    for place in ("filter_nodes", "followed_graph", "node_column"):
        counted(monkeypatch, calls, f"graph_selection.{place}")
    counted(monkeypatch, calls, "returnable.read_exclusions")
    counted(monkeypatch, calls, "in_files.load_query_set")
    monkeypatch.setattr(segment_size, "SEGMENT_QUERIES", 4)
    cut = seedrank.score(store, out=tmp_path / "cut", **keywords)
    for table in ("candidates", "queries"):
        parts = [sorted((run.path / table).iterdir()) for run in (whole, cut)]
        assert [file.read_bytes() for file in parts[0]] == [file.read_bytes() for file in parts[1]]
    assert calls.count("load_query_set") == 1 + 10
    # Followed: the successors of seeds, and the neighbours that make seeds specific.
    once = ["filter_nodes", "followed_graph", "followed_graph", "node_column", "read_exclusions"]
    assert sorted(name for name in calls if name != "load_query_set") == once
    assert len(cut.candidates) > 0
