"""Explanations of runs that rank hits: every term of a score, by the list it is from, with and without a planner."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import seedrank
from seedrank.errors import InputDataError

EDGES = {"src": ["a", "b", "b", "c", "d", "e"], "dst": ["b", "c", "d", "a", "e", "a"]}
HITS = {
    "query_id": ["q1"] * 5 + ["q2", "q2", "q3"],
    "node_id": ["a", "c", "new", "b", "a", "d", "new", "nowhere"],
    "source": ["words", "words", "words", "vectors", "vectors", "vectors", "words", "words"],
    "weight": [5.0, 3.0, 2.0, 0.9, 0.8, 0.7, 1.0, 1.0],
}
INFO = {
    "query_id": ["q1", "q2", "q3"],
    "structural": [False, True, True],
    "text": [None, "why", None],
}
OPTIONS: dict[str, dict[str, Any]] = {
    "fuse": {"method": "fuse"},
    "weighted": {"method": "fuse", "fusion": "weighted"},
    "ppr with rrf": {"method": "ppr", "fusion": "rrf"},
    "ppr with weighted": {"method": "ppr", "fusion": "weighted", "source_weight": {"words": 2.0}},
    "ppr with fallback": {"method": "ppr", "fallback": "rrf"},
    "bfs with rrf": {"method": "bfs", "fusion": "rrf"},
    "semantic": {"method": "semantic"},
    "hybrid": {"method": "hybrid"},
    "auto": {"method": "auto", "source_role": {"words": "sparse", "vectors": "dense"}},
}


@pytest.fixture
def score(write: Callable[..., Path], tmp_path: Path) -> Callable[..., seedrank.Run]:
    """Score `HITS` with `INFO`, on `EDGES` or without a graph."""
    edges, hits, info = (
        write(name, table) for name, table in (("edges.parquet", EDGES), ("hits.parquet", HITS), ("info.parquet", INFO))
    )

    def run(*, graph: bool = True, **options: Any) -> seedrank.Run:
        settings = {"precision": "float64", **options}
        given = edges if graph else None
        return seedrank.score(given, queries=hits, query_info=info, out=tmp_path / "run", overwrite=True, **settings)

    return run


@pytest.mark.parametrize(("name", "graph"), [(name, True) for name in OPTIONS] + [("fuse", False), ("auto", False)])
def test_says_what_the_run_says(score: Callable[..., seedrank.Run], name: str, *, graph: bool) -> None:
    run = score(graph=graph, **OPTIONS[name])
    queries = {row["query_id"]: row for row in run.queries.to_arrow().to_pylist()}
    rows = run.candidates.to_arrow().to_pylist()
    assert len(rows) > 5
    for row in rows:
        found = seedrank.explain(run.path, query=row["query_id"], node=row["node_id"])
        query = queries[row["query_id"]]
        assert (found.method, found.status, found.plan) == (query["method"], query["status"], query["plan"])
        assert (found.candidate, found.rank, found.score) == (True, row["rank"], row["score"])
        assert found.returnable == query["candidates"]
        assert found.trace == (None if query["trace"] is None else json.loads(query["trace"]))
        columns = {column: value for column, value in row.items() if column.startswith("score_") and value is not None}
        terms = {f"score_{term.name}": term.contribution for term in found.terms or []}
        assert terms == columns
        if terms:
            assert sum(terms.values()) == pytest.approx(row["score"], abs=1e-12)


def test_terms_name_the_position_in_each_list(score: Callable[..., seedrank.Run]) -> None:
    run = score(method="ppr", fusion="rrf", rrf_k=3, source_weight={"words": 2.0})
    found = seedrank.explain(run.path, query="q1", node="a")
    assert found.terms is not None
    assert {term.name: term.rank for term in found.terms} == {"words": 1, "vectors": 2, "graph": 1}
    assert [term.name for term in found.terms] == ["words", "graph", "vectors"]
    assert found.terms[0].contribution == 2 / (3 + 1)
    assert found.path == []
    new = seedrank.explain(run.path, query="q1", node="new")
    assert (new.hops, new.path, new.contributions) == (None, None, None)
    assert new.terms is not None
    assert [(term.name, term.rank) for term in new.terms] == [("words", 3)]
    absent = seedrank.explain(run.path, query="q2", node="c")
    assert absent.terms is not None
    assert [term.name for term in absent.terms] == ["graph"]


def test_a_hit_that_may_not_be_returned_and_what_is_unknown(score: Callable[..., seedrank.Run], tmp_path: Path) -> None:
    run = score(method="fuse", top_k=1)
    second = seedrank.explain(run.path, query="q2", node="new")
    assert (second.candidate, second.rank, second.returnable) == (False, 2, 2)
    other = seedrank.explain(run.path, query="q2", node="a")
    assert (other.rank, other.score, other.terms) == (None, None, None)
    with pytest.raises(InputDataError, match=r"node 'zzz' is not in the graph .* or the hits"):
        seedrank.explain(run.path, query="q1", node="zzz")


def test_a_query_without_a_plan_is_refused(score: Callable[..., seedrank.Run]) -> None:
    run = score(graph=False, **(OPTIONS["auto"] | {"source": ["vectors"], "source_role": {"vectors": "dense"}}))
    with pytest.raises(InputDataError, match="query 'q3' has no valid seeds"):
        seedrank.explain(run.path, query="q3", node="a")


def test_command(score: Callable[..., seedrank.Run], seedrank_command: Any) -> None:
    run = score(**OPTIONS["auto"])
    shown = seedrank_command("explain", run.path, "--query", "q1", "--node", "a")
    assert shown.code == 0
    lines = [line.strip() for line in shown.out.splitlines()]
    assert "plan         hybrid_fusion" in lines
    assert "words    0.0163934  rank 1" in lines
    assert "budget: balanced (option)" in lines
    assert "signals: structural no (query_info), lexical no (nothing), semantic no (nothing)" in lines
    assert "gave way: none" in lines
    as_json = json.loads(seedrank_command("explain", run.path, "--query", "q1", "--node", "a", "--json").out)
    assert as_json["plan"] == "hybrid_fusion"
    assert as_json["terms"][0]["rank"] == 1


def test_tables_in_memory_are_given_once_more(tmp_path: Path) -> None:
    hits, info = pa.table(HITS), pa.table(INFO)
    run = seedrank.score(queries=hits, query_info=info, out=tmp_path / "run", **OPTIONS["auto"])
    with pytest.raises(InputDataError, match="was a table in memory"):
        seedrank.explain(run.path, query="q1", node="a")
    assert seedrank.explain(run.path, query="q1", node="a", queries=hits, query_info=info).candidate
