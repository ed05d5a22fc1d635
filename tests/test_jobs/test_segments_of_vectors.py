"""Queries with vectors and attributes in segments: the bytes of a run that has them all in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seedrank
from seedrank.errors import InputDataError
from seedrank.jobs.queries import segment_size
from seedrank.jobs.queries.loading import load_query_set

RANDOM = np.random.default_rng(12)
COUNT = 30
EDGES = pa.table({name: RANDOM.integers(0, COUNT, 150) for name in ("src", "dst")})
#: Of 23 queries, every third one has no hit and is known by its attributes or its vector alone.
HITS = pa.table(
    {
        "query_id": pa.array([query for query in range(23) if query % 3 for _ in range(2)], pa.int16()),
        "node_id": RANDOM.integers(0, COUNT + 2, 30),
        "weight": RANDOM.random(30),
    }
)
INFO = pa.table(
    {
        "query_id": pa.array(range(0, 23, 3), pa.int64()),
        "exclude": [RANDOM.integers(0, COUNT, 3).tolist() for _ in range(8)],
        "vector": pa.array([None, *RANDOM.standard_normal((7, 3)).tolist()], pa.list_(pa.float32())),
    }
)
NODES = (pa.array(range(COUNT + 1)), RANDOM.standard_normal((COUNT + 1, 3)).astype(np.float32))
VECTORS = (pa.array(range(1, 23, 2)), RANDOM.standard_normal((11, 3)).astype(np.float32))
EXCLUDE = pa.table({"query_id": [1, 4, 9], "node_id": [2, 3, 4]})
CASES: dict[str, dict[str, Any]] = {
    "attributes": {"query_info": INFO, "exclude": EXCLUDE},
    "vectors": {"node_vectors": NODES, "query_vectors": VECTORS},
    "both": {"node_vectors": NODES, "query_vectors": VECTORS, "query_info": INFO.drop_columns("vector")},
    "vectors in attributes": {"node_vectors": NODES, "query_info": INFO, "vector_depth": 3},
    "again": {"node_vectors": NODES, "query_info": INFO, "rerank": "vectors"},
    "walk": {"node_vectors": NODES, "query_vectors": VECTORS, "method": "walk", "walk_steps": 30},
    "no hits": {"queries": None, "node_vectors": NODES, "query_vectors": VECTORS, "query_info": INFO.select([0, 1])},
    "distances": {
        "node_vectors": NODES,
        "query_vectors": VECTORS,
        "lower_is_better": ["hits"],
        "source_normalization": "minmax",
    },
}


def parts_of(run: seedrank.Run) -> dict[str, bytes]:
    return {str(file.relative_to(run.path)): file.read_bytes() for file in run.path.rglob("part-*.parquet")}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> seedrank.GraphStore:
    return seedrank.build(EDGES, out=tmp_path_factory.mktemp("store") / "graph")


@pytest.mark.parametrize("case", CASES)
def test_segments_give_the_bytes_of_all_queries_together(
    case: str, store: seedrank.GraphStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(HITS, tmp_path / "hits.parquet", row_group_size=7)
    keywords: dict[str, Any] = {"queries": tmp_path / "hits.parquet", "part_size": 2, "top_k": 5, **CASES[case]}
    if "method" not in keywords:
        keywords["backend"] = "scipy"
    whole = seedrank.score(store, out=tmp_path / "whole", **keywords)
    assert len(whole.candidates) > 10
    monkeypatch.setattr(segment_size, "SEGMENT_QUERIES", 4)
    cut = seedrank.score(store, out=tmp_path / "cut", **keywords)
    assert parts_of(cut) == parts_of(whole)
    assert cut.manifest.inputs == whole.manifest.inputs
    assert cut.manifest.queries == whole.manifest.queries
    assert cut.manifest.vectors == whole.manifest.vectors
    assert cut.manifest.run_key == whole.manifest.run_key
    count = whole.manifest.queries.total  # type: ignore[union-attr]
    assert seedrank.plan(store, **keywords).query_segments == -(-count // 4)
    if case == "both":
        for parts in ("3:", ":3"):
            seedrank.score(store, out=tmp_path / "ranges", parts=parts, **keywords)
        assert parts_of(seedrank.score(store, out=tmp_path / "ranges", **keywords)) == parts_of(whole)


def test_only_one_segment_is_loaded_at_a_time(
    store: seedrank.GraphStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(HITS, tmp_path / "hits.parquet")
    loaded: list[tuple[int, int, int]] = []

    def noted(store: Any, inputs: Any, *rest: Any, **keywords: Any) -> Any:
        query_set = load_query_set(store, inputs, *rest, **keywords)
        loaded.append((len(query_set), len(inputs.query_info.table.query_ids), len(inputs.query_vectors.ids)))
        return query_set

    monkeypatch.setattr("seedrank.jobs.queries.in_files.load_query_set", noted)
    monkeypatch.setattr(segment_size, "SEGMENT_QUERIES", 6)
    vectors = {"node_vectors": NODES, "query_vectors": VECTORS, "query_info": INFO.drop_columns("vector")}
    seedrank.score(
        store, queries=tmp_path / "hits.parquet", out=tmp_path / "run", part_size=6, backend="scipy", **vectors
    )
    assert loaded == [(0, 0, 0), (6, 2, 3), (6, 2, 3), (6, 2, 3), (5, 2, 2)]


def test_what_is_wrong_is_said_before_anything_is_scored(
    store: seedrank.GraphStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = HITS.append_column("source", pa.array(["vectors"] * 30))
    pq.write_table(named, tmp_path / "hits.parquet")
    monkeypatch.setattr(segment_size, "SEGMENT_QUERIES", 4)
    keywords: dict[str, Any] = {"queries": tmp_path / "hits.parquet", "out": tmp_path / "run", "part_size": 2}
    with pytest.raises(InputDataError, match="a source is called 'vectors'"):
        seedrank.score(store, node_vectors=NODES, query_vectors=VECTORS, **keywords)
    text = INFO.set_column(0, "query_id", pa.array([f"q{number}" for number in range(8)]))
    with pytest.raises(InputDataError, match="nothing is converted silently"):
        seedrank.score(store, query_info=text, **keywords)
