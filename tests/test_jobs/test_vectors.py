"""Vectors in a job: a search as one more source of hits, for every method; counts, refusals, forms of input."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import seedrank
from seedrank.errors import ConfigError, InputDataError

NODES = {"a": [1.0, 0.0], "b": [3.0, 4.0], "c": [0.0, 2.0], "far": [-1.0, -1.0], "zero": [0.0, 0.0]}
QUERIES = {"q": [0.0, 1.0], "r": [1.0, 0.0]}
#: a → b → c
CHAIN = pa.table({"src": ["a", "b"], "dst": ["b", "c"]})


def table(vectors: dict[Any, Any], column: str = "id") -> pa.Table:
    return pa.table({column: list(vectors), "vector": pa.array(list(vectors.values()), pa.list_(pa.float32()))})


@pytest.fixture
def job(tmp_path: Path) -> Callable[..., Any]:
    """Run a job with the vectors above; candidates by query as rows, and the run."""
    numbers = itertools.count()

    def run_job(graph: Any = None, **options: Any) -> tuple[dict[str, list[dict[str, Any]]], seedrank.Run]:
        settings: dict[str, Any] = {
            "node_vectors": table(NODES),
            "query_vectors": table(QUERIES, "query_id"),
            "precision": "float64",
            **options,
        }
        run = seedrank.score(graph, out=tmp_path / f"run-{next(numbers)}", **settings)
        found: dict[str, list[dict[str, Any]]] = {query: [] for query in run.queries.to_arrow()["query_id"].to_pylist()}
        for row in run.candidates.to_arrow().to_pylist():
            found[row["query_id"]].append(row)
        return found, run

    return run_job


def scores(rows: list[dict[str, Any]], column: str = "score") -> dict[str, float]:
    return {row["node_id"]: row[column] for row in rows}


def test_semantic_search_needs_neither_hits_nor_graph(job: Callable[..., Any]) -> None:
    found, run = job(method="semantic")
    assert scores(found["q"]) == pytest.approx({"c": 1.0, "b": 0.8, "a": 0.0, "far": -(2**-0.5)})
    assert [row["node_id"] for row in found["r"]] == ["a", "b", "c", "far"]
    assert list(scores(found["q"])) == ["c", "b", "a", "far"]
    counts = run.manifest.vectors.model_dump()
    assert counts == {
        "width": 2, "node_vectors": 5, "null_node_vectors": 0, "zero_node_vectors": 1, "unknown_nodes": 0,
        "nodes_without_vector": 0, "query_vectors": 2, "zero_query_vectors": 0, "queries_without_vector": 0,
    }  # fmt: skip
    assert job(method="semantic", top_k=2, min_score=0.9)[0]["q"][0]["node_id"] == "c"
    assert sorted(run.manifest.inputs) == ["node_vectors", "query_vectors"]


def test_exclusions_apply_before_the_cut_of_the_search(job: Callable[..., Any]) -> None:
    seen = pa.table({"query_id": ["q", "q"], "node_id": ["c", "b"]})
    found, _ = job(method="semantic", exclude=seen, vector_depth=1)
    assert [row["node_id"] for row in found["q"]] == ["a"]
    assert [row["node_id"] for row in found["r"]] == ["a"]
    found, _ = job(method="semantic", exclude=pa.table({"node_id": ["a", "c"]}), vector_depth=1)
    assert [[row["node_id"] for row in rows] for rows in found.values()] == [["b"], ["b"]]


def test_with_a_graph_its_nodes_are_searched(job: Callable[..., Any]) -> None:
    nodes = pa.table({"id": ["a", "b", "c", "d"], "type": ["page", "page", "person", "page"]})
    found, run = job(CHAIN, method="semantic", nodes=nodes)
    assert [row["node_id"] for row in found["q"]] == ["c", "b", "a"]
    counts = run.manifest.vectors
    assert (counts.unknown_nodes, counts.nodes_without_vector) == (2, 1)
    found, _ = job(CHAIN, method="semantic", nodes=nodes, node_type=["page"], vector_depth=1)
    assert [row["node_id"] for row in found["q"]] == ["b"]


def test_a_source_of_a_fusion(job: Callable[..., Any]) -> None:
    hits = pa.table({"query_id": ["q", "s"], "node_id": ["new", "b"], "source": ["words", "words"]})
    found, run = job(method="fuse", queries=hits)
    assert scores(found["q"]) == {"c": 1 / 61, "new": 1 / 61, "b": 1 / 62, "a": 1 / 63, "far": 1 / 64}
    assert scores(found["q"], "score_vectors")["b"] == 1 / 62
    assert [row["node_id"] for row in found["s"]] == ["b"]
    assert run.manifest.vectors.queries_without_vector == 1
    ranked = hits.append_column("rank", pa.array([2, 1]))
    found, _ = job(method="fuse", queries=ranked)
    assert scores(found["q"]) == {"c": 1 / 61, "b": 1 / 62, "new": 1 / 62, "a": 1 / 63, "far": 1 / 64}
    unnamed, _ = job(method="fuse", queries=hits.drop_columns(["source"]))
    assert scores(unnamed["q"], "score_hits")["new"] == 1 / 61
    assert list(job(method="fuse", queries=hits, source=["words"])[0]["q"]) != []
    only_words, _ = job(method="fuse", queries=hits, source=["words"])
    assert [row["node_id"] for row in only_words["q"]] == ["new"]
    only_vectors, _ = job(method="fuse", queries=hits, source=["vectors"])
    assert [[row["node_id"] for row in rows] for rows in only_vectors.values()] == [
        ["c", "b", "a", "far"], ["a", "b", "c", "far"], [],
    ]  # fmt: skip


def test_cosines_are_seed_weights_unless_negative(job: Callable[..., Any]) -> None:
    vectors = {"a": [1.0, 0.0], "b": [3.0, 4.0], "c": [-1.0, 0.5]}
    found, run = job(
        CHAIN, query_vectors=table({"q": [1.0, 0.0]}, "query_id"), node_vectors=table(vectors), include_seeds=True,
        damping=0.5, tolerance=1e-13,
    )  # fmt: skip
    hits = pa.table({"query_id": ["q", "q"], "node_id": ["a", "b"], "weight": [1.0, 0.6]})
    by_hand, _ = job(
        CHAIN, queries=hits, node_vectors=None, query_vectors=None, include_seeds=True, damping=0.5, tolerance=1e-13
    )
    assert scores(found["q"]) == pytest.approx(scores(by_hand["q"]), abs=1e-12)
    assert run.queries.to_arrow()["seeds_given"].to_pylist() == [3]
    walked, _ = job(CHAIN, method="bfs", query_vectors=table({"q": [1.0, 0.0]}, "query_id"), vector_depth=1)
    assert scores(walked["q"]) == {"b": 0.5, "c": 0.25}
    weighted, _ = job(CHAIN, queries=hits.append_column("source", pa.array(["words"] * 2)),
                      seed_source_weight={"vectors": 0}, include_seeds=True, damping=0.5, tolerance=1e-13)  # fmt: skip
    assert scores(weighted["q"]) == pytest.approx(scores(by_hand["q"]), abs=1e-12)


def test_a_planner_takes_them_for_a_dense_source(job: Callable[..., Any]) -> None:
    info = pa.table({"query_id": ["q", "r"], "semantic": [True, False], "structural": [False, True]})
    hits = pa.table({"query_id": ["r"], "node_id": ["b"], "source": ["sparse"]})
    found, run = job(CHAIN, method="auto", queries=hits, query_info=info, vector_depth=2)
    assert run.queries.to_arrow()["plan"].to_pylist() == ["semantic", "structural_graph"]
    assert scores(found["q"]) == pytest.approx({"c": 1.0, "b": 0.8})
    assert {row["node_id"] for row in found["r"]} == {"b", "c"}
    alone, run = job(method="auto", query_info=info)
    assert run.queries.to_arrow()["plan"].to_pylist() == ["semantic", "semantic"]
    assert [row["node_id"] for row in alone["r"]] == ["a", "b", "c", "far"]
    assert seedrank.plan(method="auto", node_vectors=table(NODES), query_vectors=table(QUERIES, "query_id")).plans == {
        "semantic": 2
    }


def test_hybrid_of_a_search(job: Callable[..., Any]) -> None:
    found, _ = job(CHAIN, method="hybrid", vector_depth=1)
    # q finds c alone, which leads nowhere; r finds a, and b from there.
    assert scores(found["q"]) == {"c": 1.0}
    assert scores(found["r"]) == pytest.approx({"a": 1.0 + 0.1 + 0.1})


def test_vectors_of_length_0_and_queries_without(job: Callable[..., Any]) -> None:
    found, run = job(method="semantic", query_vectors=table({"q": [0.0, 0.0], "r": [1.0, 0.0]}, "query_id"))
    assert (found["q"], len(found["r"])) == ([], 4)
    assert run.manifest.vectors.zero_query_vectors == 1
    assert run.queries.to_arrow()["status"].to_pylist() == ["no_valid_seeds", "ok"]


def test_npy_pairs_and_parquet_give_the_same_bytes(
    job: Callable[..., Any], write: Callable[..., Path], tmp_path: Path
) -> None:
    def files(run: seedrank.Run) -> list[bytes]:
        return [file.read_bytes() for both in (run.candidates, run.queries) for file in both.files]

    rows = np.array(list(NODES.values()), np.float32)
    np.save(tmp_path / "n.npy", rows)
    np.save(tmp_path / "n.ids.npy", np.array(list(NODES)))
    _, first = job(method="semantic", part_size=1)
    for source in (
        str(tmp_path / "n.npy"),
        (list(NODES), rows),
        str(write("n.parquet", table(dict(reversed(NODES.items()))))),
        table(NODES).to_reader(),
    ):
        _, run = job(method="semantic", node_vectors=source, part_size=1, block_size=1)
        assert files(run) == files(first)
        assert run.manifest.run_key == first.manifest.run_key


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"query_vectors": None, "queries": CHAIN}, "--node-vectors is given without --query-vectors"),
        ({"node_vectors": None}, "--query-vectors is given without --node-vectors"),
        ({"node_vectors": None, "query_vectors": None, "vector_depth": 5}, "--vector-depth is given without"),
        ({"node_vectors": None, "query_vectors": None, "rerank": "vectors"}, "--rerank vectors is given without"),
        ({"rerank_depth": 5}, "--rerank-depth is given, but nothing is ranked again"),
        ({"vector_depth": 0}, "nothing else uses them"),
        ({"all_nodes": "page"}, "--query-vectors and --all-nodes are both given"),
    ],
)
def test_options_that_are_refused(job: Callable[..., Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        job(**{"method": "semantic", **options})


def test_data_that_is_refused(job: Callable[..., Any]) -> None:
    with pytest.raises(InputDataError, match=r"have 2 numbers, the query vectors of .* 3"):
        job(method="semantic", query_vectors=table({"q": [1.0, 2.0, 3.0]}, "query_id"))
    clash = pa.table({"query_id": ["q"], "node_id": ["a"], "source": ["vectors"]})
    with pytest.raises(InputDataError, match="a source is called 'vectors'"):
        job(method="fuse", queries=clash)
    with pytest.raises(InputDataError, match="int64 ids"):
        job(method="fuse", queries=pa.table({"query_id": ["q"], "node_id": [1]}))
    with pytest.raises(InputDataError, match=r"no column 'embedding'.*|.*--vector-column"):
        job(method="semantic", vector_column="embedding")


def test_plan_and_check(tmp_path: Path) -> None:
    inputs: dict[str, Any] = {"node_vectors": table(NODES), "query_vectors": table(QUERIES, "query_id")}
    planned = seedrank.plan(method="semantic", vector_depth=3, out=tmp_path / "run", **inputs)
    assert (planned.queries, planned.hits) == (2, 6)
    checked = seedrank.check(CHAIN, method="semantic", **inputs)
    assert checked.vectors is not None
    assert (checked.vectors["zero_node_vectors"], checked.vectors["unknown_nodes"]) == (1, 2)
    hits = pa.table({"query_id": ["r", "s"], "node_id": ["a", "b"]})
    assert seedrank.plan(method="fuse", queries=hits, **inputs).queries == 3


def test_the_command_and_resume(
    seedrank_command: Callable[..., Any], write: Callable[..., Path], tmp_path: Path
) -> None:
    nodes, queries = write("n.parquet", table(NODES)), write("q.parquet", table(QUERIES, "qid"))
    vectors = ["--node-vectors", nodes, "--query-vectors", queries, "--vector-query-column", "qid"]
    out = tmp_path / "run"
    result = seedrank_command("score", "--method", "semantic", *vectors, "--top-k", "1", "--out", out)
    assert result.code == 0, result.err
    assert seedrank.open_run(out).candidates.to_arrow()["node_id"].to_pylist() == ["c", "a"]
    assert seedrank_command("score", "--method", "semantic", *vectors, "--top-k", "1", "--out", out).code == 0
    write("n.parquet", table({**NODES, "a": [9.0, 9.0]}))
    result = seedrank_command("score", "--method", "semantic", *vectors, "--top-k", "1", "--out", out)
    assert result.code == 2
    assert "the node vectors" in result.err
    result = seedrank_command("check", "--method", "semantic", *vectors, "--json")
    assert json.loads(result.out)["vectors"]["node_vectors"] == 5
