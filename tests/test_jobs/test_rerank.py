"""``--rerank vectors``: the order, what is counted, and every method that it follows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import seedrank
from seedrank.config.names import Method

#: hub → a … e, by falling weight.
STAR = pa.table({"src": ["hub"] * 5, "dst": list("abcde"), "weight": [5.0, 4.0, 3.0, 2.0, 1.0]})
HITS = pa.table({"query_id": ["q", "bare"], "node_id": ["hub", "hub"]})
#: b has no vector, d one of length 0.
NODES = pa.table({"id": list("acde"), "vector": [[0.0, 1.0], [1.0, 1.0], [0.0, 0.0], [1.0, 0.0]]})
QUERIES = pa.table({"query_id": ["q"], "vector": [[1.0, 0.0]]})


@pytest.fixture
def reranked(tmp_path: Path) -> Callable[..., Any]:
    def run_job(graph: Any = STAR, name: str = "run", **options: Any) -> seedrank.Run:
        settings: dict[str, Any] = {
            "queries": HITS, "node_vectors": NODES, "query_vectors": QUERIES, "rerank": "vectors", **options
        }  # fmt: skip
        return seedrank.score(graph, out=tmp_path / name, overwrite=True, **settings)

    return run_job


def rows_of(run: seedrank.Run, query: str = "q") -> list[dict[str, Any]]:
    return [row for row in run.candidates.to_arrow().to_pylist() if row["query_id"] == query]


def test_the_order_by_hand(reranked: Callable[..., Any]) -> None:
    run = reranked()
    assert [row["node_id"] for row in rows_of(run)] == ["e", "c", "a", "b", "d"]
    assert [row["rank"] for row in rows_of(run)] == [1, 2, 3, 4, 5]
    assert [row["cosine"] for row in rows_of(run)] == pytest.approx([1.0, 2**-0.5, 0.0, None, None])
    # A query without a vector keeps the order of the method; so does what is beyond the depth.
    assert [row["node_id"] for row in rows_of(run, "bare")] == list("abcde")
    queries = {row["query_id"]: row["without_vector"] for row in run.queries.to_arrow().to_pylist()}
    assert queries == {"q": 2, "bare": 5}
    shallow = reranked(rerank_depth=3)
    assert [row["node_id"] for row in rows_of(shallow)] == ["c", "a", "b", "d", "e"]
    assert [row["cosine"] is None for row in rows_of(shallow)] == [False, False, True, True, True]
    assert shallow.queries.to_arrow()["without_vector"].to_pylist() == [3, 1]


def test_scores_are_those_of_the_method(reranked: Callable[..., Any]) -> None:
    plain = reranked(rerank="none", node_vectors=None, query_vectors=None)
    expected = {row["node_id"]: row["score"] for row in rows_of(plain)}
    run = reranked(name="again")
    assert {row["node_id"]: row["score"] for row in rows_of(run)} == expected
    field = run.candidates.to_arrow().schema.field("score")
    assert b"ranks are by the column cosine first" in field.metadata[b"description"]
    assert "cosine" not in plain.candidates.to_arrow().column_names
    assert "without_vector" not in plain.queries.to_arrow().column_names


def test_the_cut_comes_after(reranked: Callable[..., Any]) -> None:
    assert [row["node_id"] for row in rows_of(reranked(top_k=2))] == ["e", "c"]
    assert [row["node_id"] for row in rows_of(reranked(top_k=2, rerank_depth=4))] == ["c", "a"]


@pytest.mark.parametrize("method", ["walk", "bfs", "dfs", "neighbors", "hybrid", "semantic", "fuse"])
def test_after_every_method(reranked: Callable[..., Any], method: Method) -> None:
    hits = pa.table({"query_id": ["q"] * 4, "node_id": ["a", "b", "c", "new"], "weight": [4.0, 3.0, 2.0, 1.0]})
    vectors = pa.concat_tables([NODES, pa.table({"id": ["new"], "vector": [[2.0, 0.0]]})])
    run = reranked(method=method, queries=HITS if method in ("walk", "bfs", "dfs", "neighbors") else hits,
                   node_vectors=vectors)  # fmt: skip
    expected = list("ecabd") if method in ("walk", "bfs", "dfs", "neighbors") else ["new", "c", "a", "b"]
    assert [row["node_id"] for row in rows_of(run)] == expected


def test_with_fusion_paths_several_restarts_and_a_search(reranked: Callable[..., Any]) -> None:
    fused = rows_of(reranked(fusion="rrf", paths=True))
    assert [row["node_id"] for row in fused] == ["e", "c", "a", "hub", "b", "d"]
    assert [len(row["path"]) for row in fused] == [1, 1, 1, 0, 1, 1]
    several = rows_of(reranked(restart=[0.3, 0.6]))
    assert [(row["restart"], row["node_id"]) for row in several] == [
        (restart, node) for restart in (0.3, 0.6) for node in "ecabd"
    ]
    searched = rows_of(reranked(vector_depth=1, include_seeds=True))
    assert [row["node_id"] for row in searched] == ["e", "c", "a", "hub", "b", "d"]


def test_a_budget_decides_whether_a_planner_ranks_again(reranked: Callable[..., Any]) -> None:
    hits = pa.table({"query_id": ["q"] * 2, "node_id": ["a", "c"], "weight": [2.0, 1.0], "source": ["dense"] * 2})
    for budget, nodes in (("fast", ["a", "c"]), ("balanced", ["c", "a"])):
        info = pa.table({"query_id": ["q"], "semantic": [True], "budget": [budget]})
        run = reranked(method="auto", queries=hits, query_info=info)
        assert [row["node_id"] for row in rows_of(run)] == nodes
        assert [row["cosine"] is None for row in rows_of(run)] == [budget == "fast"] * 2
        assert run.queries.to_arrow()["without_vector"].to_pylist() == [None if budget == "fast" else 0]


def test_explain_gives_the_ranks_of_the_run(reranked: Callable[..., Any], tmp_path: Path) -> None:
    rows = rows_of(reranked())
    inputs: dict[str, Any] = {"queries": HITS, "node_vectors": NODES, "query_vectors": QUERIES}
    for row in rows:
        found = seedrank.explain(tmp_path / "run", query="q", node=row["node_id"], **inputs)
        assert found.rank == row["rank"]
        assert found.score == pytest.approx(row["score"], abs=1e-6)


def test_blocks_change_no_byte(reranked: Callable[..., Any]) -> None:
    def files(run: seedrank.Run) -> list[bytes]:
        return [file.read_bytes() for table in (run.candidates, run.queries) for file in table.files]

    assert files(reranked(name="one", block_size=1)) == files(reranked(name="two"))
