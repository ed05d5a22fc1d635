"""One query in process: the same rows as a job, to the last bit, whatever the method and the form of the hits."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import seedrank
from seedrank import Ranker
from seedrank.errors import ConfigError, InputDataError

SOURCES = ("dense", "sparse")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> seedrank.GraphStore:
    random = np.random.default_rng(3)
    ends = [[f"n{i:03}" for i in random.integers(0, 300, 1500)] for _ in range(2)]
    edges = pa.table(
        {
            "src": ends[0],
            "dst": ends[1],
            "weight": random.integers(1, 5, 1500) / 2,
            "type": random.choice(["x", "y"], 1500),
        }
    )
    nodes = pa.table({"id": [f"n{i:03}" for i in range(300)], "type": ["a", "b", "c"] * 100})
    return seedrank.build(edges, nodes=nodes, out=tmp_path_factory.mktemp("ranker") / "graph")


@pytest.fixture(scope="module")
def hits() -> pa.Table:
    """Of six queries; q5 has nothing that the graph knows, q4 hits of one source only, and new nodes are foreign."""
    random = np.random.default_rng(4)
    rows = [
        (f"q{query}", f"n{node:03}" if query < 5 and node < 300 else f"new{node}", SOURCES[query != 4 and node % 2],
         weight)
        for query in range(6)
        for node, weight in zip(random.choice(310, 8, replace=False).tolist(), random.random(8).tolist(), strict=True)
    ]  # fmt: skip
    return pa.table(
        dict(zip(("query_id", "node_id", "source", "weight"), map(list, zip(*rows, strict=True)), strict=True))
    )


CASES: dict[str, dict[str, Any]] = {
    "ppr": {"direction": "both", "node_type": ["a", "b"]},
    "ppr-64-bit": {"damping": 0.85, "precision": "float64", "include_seeds": True, "type_weight": {"x": 3.0}},
    "ppr-iterations": {"tolerance": 0, "max_iterations": 7, "backend": "scipy"},
    "ppr-restarts": {"restart": [0.2, 0.6]},
    "ppr-paths": {"paths": True, "max_hops": 2, "seed_source_weight": {"sparse": 2.0}},
    "walk": {"method": "walk", "walk_steps": 200},
    "bfs": {"method": "bfs", "max_hops": 2, "paths": True},
    "neighbors": {"method": "neighbors", "min_score": 0.1},
    "fallback": {"fallback": "rrf"},
    "fused-graph": {"fusion": "rrf", "fusion_depth": 20, "source_weight": {"graph": 0.5, "sparse": 2.0}},
    "fuse": {"method": "fuse", "fusion": "weighted"},
    "semantic": {"method": "semantic"},
    "hybrid": {"method": "hybrid", "include_expanded": True, "edge_type": ["y"]},
    "auto": {"method": "auto", "direction": "both"},
    "one-source": {"source": ["dense"]},
}


@pytest.mark.parametrize("case", CASES)
def test_equals_the_job_bit_for_bit(case: str, store: seedrank.GraphStore, hits: pa.Table, tmp_path: Path) -> None:
    options = {"top_k": 15, **CASES[case]}
    job = seedrank.score(store, queries=hits, out=tmp_path / "run", **options).candidates.to_arrow()
    ranker = Ranker(store, sources=() if options.get("source") else SOURCES, **options)
    for query in pc.unique(hits["query_id"]).to_pylist():
        own = hits.filter(pc.equal(hits["query_id"], query))
        expected = job.filter(pc.equal(job["query_id"], query)).combine_chunks()
        found = ranker.rank(own)
        assert found.schema.equals(expected.schema, check_metadata=True)
        assert found.combine_chunks().equals(expected), query


def test_forms_of_hits(store: seedrank.GraphStore) -> None:
    ranker = Ranker(store, direction="both", top_k=5)
    expected = ranker.rank([("n001", 2.0), ("n002", 1.0)])
    assert expected.num_rows == 5
    assert set(expected["query_id"].to_pylist()) == {"query"}
    table = pa.table({"node_id": ["n002", "n001"], "weight": [1.0, 2.0]})
    for hits in ({"n001": 2.0, "n002": 1}, [("n002", 1.0, "s"), ("n001", 2.0, "s")], table, table.to_batches()[0]):
        assert ranker.rank(hits).equals(expected)
        assert seedrank.rerank(hits, ranker).equals(expected)
    assert seedrank.rerank({"n001": 2.0, "n002": 1}, store, direction="both", top_k=5).equals(expected)
    assert seedrank.rerank({"n001": 2.0, "n002": 1}, store.path, direction="both", top_k=5).equals(expected)
    assert ranker.rank({"n001": 1.0}, query_id=7)["query_id"].to_pylist() == [7] * 5
    without: tuple[Any, ...] = ([], {}, {"unknown": 1.0}, table.slice(0, 0))
    for nothing in without:
        assert ranker.rank(nothing).schema.equals(expected.schema)
        assert ranker.rank(nothing).num_rows == 0


def test_ids_take_the_type_of_the_graph(tmp_path: Path) -> None:
    edges = pa.table({"src": pa.array([2**64 - 1, 1], pa.uint64()), "dst": pa.array([1, 2], pa.uint64())})
    store = seedrank.build(edges, out=tmp_path / "graph")
    found = seedrank.rerank({2**64 - 1: 1.0}, store, fusion="rrf")
    assert found["node_id"].to_pylist() == [2**64 - 1, 1, 2]
    assert found["node_id"].type == pa.uint64()
    with pytest.raises(InputDataError, match="nothing is converted silently"):
        seedrank.rerank({"1": 1.0}, store)


def test_without_a_graph() -> None:
    found = seedrank.rerank([("a", 0.9, "dense"), ("b", 0.8, "dense"), ("b", 3.0, "words")], method="fuse")
    assert found["node_id"].to_pylist() == ["b", "a"]
    assert "score_words" in found.column_names
    assert seedrank.rerank({"a": -1.0, "b": 0.5}, method="semantic")["node_id"].to_pylist() == ["b", "a"]
    with pytest.raises(ConfigError, match="no graph is given"):
        seedrank.rerank({"a": 1.0})


def test_sources_that_a_query_has_no_hit_of(store: seedrank.GraphStore) -> None:
    ranker = Ranker(store, seed_source_weight={"sparse": 2.0}, fusion="rrf", sources=["dense", "sparse"])
    found = ranker.rank([("n001", 1.0, "dense")])
    assert [name for name in found.column_names if name.startswith("score_")] == [
        "score_dense", "score_sparse", "score_graph",
    ]  # fmt: skip
    assert found["score_sparse"].null_count == found.num_rows
    assert Ranker(store, source=["sparse"]).rank([("n001", 1.0, "dense")]).num_rows == 0


def test_threads_take_turns(store: seedrank.GraphStore) -> None:
    ranker = Ranker(store, direction="both")
    queries = [{f"n{i:03}": 1.0} for i in range(24)]
    expected = [ranker.rank(hits) for hits in queries]
    found: list[Any] = [None] * len(queries)

    def work(first: int) -> None:
        for i in range(first, len(queries), 4):
            found[i] = ranker.rank(queries[i])

    threads = [threading.Thread(target=work, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(one.equals(other) for one, other in zip(found, expected, strict=True))


@pytest.mark.parametrize(
    ("hits", "message"),
    [
        ({"n001": -1.0}, "negative"),
        ({"n001": float("nan")}, "NaN"),
        ([("n001", 1.0), ("n002", 1.0, "s")], "rows of 2 and 3 values"),
        ([("n001",)], "rows of 1 values"),
        (pa.table({"query_id": ["a", "b"], "node_id": ["n001", "n002"]}), "rows of 2 queries"),
        (pa.table({"node": ["n001"]}), "no column 'node_id'"),
        ([(1, 1.0)], "nothing is converted silently"),
    ],
)
def test_hits_that_are_refused(store: seedrank.GraphStore, hits: Any, message: str) -> None:
    with pytest.raises(InputDataError, match=message):
        seedrank.rerank(hits, store)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"part_size": 5}, "option 'part_size' is given for a query in process"),
        ({"all_nodes": "a"}, "'all_nodes'"),
        ({"rerank": "vectors"}, "--rerank vectors is given without --node-vectors"),
        ({"weight_column": "other"}, "given with a graph store that was built with"),
        ({"top_n": 5}, "unknown option"),
    ],
)
def test_options_that_are_refused(store: seedrank.GraphStore, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        seedrank.rerank({"n001": 1.0}, store, **options)
    with pytest.raises(ConfigError, match="options are given beside a Ranker"):
        seedrank.rerank({"n001": 1.0}, Ranker(store), top_k=3)
    with pytest.raises(ConfigError, match="is no graph store"):
        seedrank.rerank({"n001": 1.0}, "nowhere")
