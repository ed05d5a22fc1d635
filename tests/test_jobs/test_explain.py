"""Explanations: what they say is what the run says, through Python and the command line; damaged runs are refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seedrank
from seedrank.errors import InputDataError

Command = Callable[..., Any]
Write = Callable[..., Path]

EDGES = {
    "src": ["a", "b", "b", "c", "d", "e", "x"],
    "dst": ["b", "c", "d", "a", "e", "a", "d"],
    "weight": [1.0, 2.0, 1.0, 1.0, 1.0, 3.0, 1.0],
    "type": ["cites", "cites", "links", "cites", "links", "cites", "links"],
}
HITS = {"query_id": ["q1", "q1", "q2", "none"], "node_id": ["a", "x", "b", "nowhere"], "weight": [3.0, 1.0, 1.0, 1.0]}
METHODS = ("ppr", "walk", "bfs", "dfs", "neighbors")


@pytest.fixture
def score(write: Write, tmp_path: Path) -> Callable[..., seedrank.Run]:
    """Score `HITS` on `EDGES` from files."""
    edges, hits = write("edges.parquet", EDGES), write("hits.parquet", HITS)

    def run(**options: Any) -> seedrank.Run:
        return seedrank.score(edges, queries=hits, out=tmp_path / "run", overwrite=True, **options)

    return run


@pytest.mark.parametrize("method", METHODS)
def test_says_what_the_run_says(score: Callable[..., seedrank.Run], method: Any) -> None:
    run = score(method=method, paths=True, precision="float64")
    rows = {row["query_id"]: row for row in run.queries.to_arrow().to_pylist()}
    candidates = run.candidates.to_arrow().to_pylist()
    assert candidates
    for row in candidates:
        found = seedrank.explain(run.path, query=row["query_id"], node=row["node_id"])
        assert (found.query, found.node, found.method) == (row["query_id"], row["node_id"], method)
        assert (found.candidate, found.rank, found.score) == (True, row["rank"], row["score"])
        assert (found.hops, found.anchor, found.path) == (row["hops"], row["anchor_id"], row["path"])
        assert found.visit_count == row.get("visit_count")
        query = rows[row["query_id"]]
        assert found.returnable == query["candidates"]
        for name in ("status", "visited_nodes", "visited_edges", "budget_hit", "truncated", "iterations"):
            assert getattr(found, name) == query[name], name


@pytest.mark.parametrize("dangling", ["seeds", "self", "uniform"])
@pytest.mark.parametrize("options", [{}, {"direction": "both"}, {"damping": 0.85}, {"type_weight": {"links": 0.5}}])
def test_contributions_sum_to_the_score(
    score: Callable[..., seedrank.Run], dangling: str, options: dict[str, Any]
) -> None:
    run = score(include_seeds=True, dangling=dangling, **options)
    for row in run.candidates.to_arrow().to_pylist():
        found = seedrank.explain(run.path, query=row["query_id"], node=row["node_id"])
        assert found.contributions is not None
        assert found.contribution_bound is not None
        assert {part.seed for part in found.contributions} == ({"a", "x"} if row["query_id"] == "q1" else {"b"})
        total = sum(part.contribution for part in found.contributions)
        assert abs(total - row["score"]) <= found.contribution_bound < 1e-5
        assert sum(part.weight for part in found.contributions) == pytest.approx(1.0)


def test_contributions_of_two_seeds_known_by_hand(tmp_path: Path) -> None:
    """Cycle of two, damping .5: a score is 2/3 at its own seed and 1/3 at the other."""
    edges, hits = (
        pa.table({"src": [1, 2], "dst": [2, 1]}),
        pa.table({"query_id": [7, 7], "node_id": [1, 2], "weight": [3, 1]}),
    )
    run = seedrank.score(edges, queries=hits, out=tmp_path / "run", include_seeds=True, precision="float64")
    found = seedrank.explain(run.path, query=7, node=2, queries=hits)
    assert found.contributions is not None
    assert [(part.seed, part.weight) for part in found.contributions] == [(1, 0.75), (2, 0.25)]
    assert [part.contribution for part in found.contributions] == pytest.approx([0.25, 1 / 6], abs=1e-11)


def test_a_node_that_is_no_candidate_has_its_rank_among_all(score: Callable[..., seedrank.Run]) -> None:
    seed = seedrank.explain(score().path, query="q1", node="a")
    assert (seed.candidate, seed.rank, seed.rank_of_all, seed.hops, seed.path) == (False, None, 1, 0, [])
    below = score(top_k=1).candidates.to_arrow().to_pylist()
    third = seedrank.explain(score(top_k=1).path, query="q1", node="c")
    assert [row["node_id"] for row in below if row["query_id"] == "q1"] != ["c"]
    assert not third.candidate
    assert third.rank is not None
    assert third.rank > 1
    unreached = seedrank.explain(score().path, query="q2", node="x")
    assert (unreached.score, unreached.rank, unreached.rank_of_all, unreached.path) == (None, None, None, None)
    assert unreached.contributions is not None
    assert [part.contribution for part in unreached.contributions] == [0.0]


def test_limits_that_applied(score: Callable[..., seedrank.Run]) -> None:
    found = seedrank.explain(score(method="bfs", max_visited_nodes=1).path, query="q2", node="d")
    assert (found.status, found.budget_hit, found.truncated) == ("budget_exhausted", "max_visited_nodes", True)
    assert (found.visited_nodes, found.score) == (1, None)
    far = seedrank.explain(score(max_hops=1).path, query="q2", node="e")
    assert (far.candidate, far.rank, far.hops) == (False, None, 2)
    assert far.score is not None


def test_text_and_json_of_the_command(seedrank_command: Command, score: Callable[..., seedrank.Run]) -> None:
    run = score(precision="float64")
    text = seedrank_command("explain", run.path, "--query", "q1", "--node", "d")
    assert text.code == 0, text.err
    lines = text.out.splitlines()
    assert lines[0] == "query q1, node d"
    assert "path" in lines
    assert lines[lines.index("path") + 1].strip() == "x -[links 1]-> d"
    assert any(line.startswith("contributions of the seeds") for line in lines)
    document = json.loads(seedrank_command("explain", run.path, "--query", "q1", "--node", "d", "--json").out)
    assert document == json.loads(json.dumps(seedrank.explain(run.path, query="q1", node="d").to_dict()))
    assert document["path"] == [{"src": "x", "dst": "d", "type": "links", "weight": 1.0, "reversed": False}]
    backwards = seedrank_command("explain", score(direction="in").path, "--query", "q2", "--node", "e")
    assert "b <-[cites 1]- a\n  a <-[cites 3]- e" in backwards.out


def test_integer_ids_by_their_digits(seedrank_command: Command, write: Write, tmp_path: Path) -> None:
    big = 2**53 + 1
    edges = write("edges.parquet", {"src": [big], "dst": [-3]})
    hits = write("hits.parquet", {"query_id": [7], "node_id": [big]})
    assert seedrank_command("score", edges, "--queries", hits, "--out", tmp_path / "run").code == 0
    done = seedrank_command("explain", tmp_path / "run", "--query", "7", "--node", "-3", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["anchor"] == big


@pytest.mark.parametrize(
    ("query", "node", "complaint"),
    [
        ("q9", "a", "query 'q9' is not in the hits"),
        ("q1", "zz", "node 'zz' is not in the graph"),
        ("none", "a", "query 'none' has no valid seeds"),
    ],
)
def test_unknown_ids_are_refused(
    seedrank_command: Command, score: Callable[..., seedrank.Run], query: str, node: str, complaint: str
) -> None:
    done = seedrank_command("explain", score().path, "--query", query, "--node", node)
    assert done.code == 3
    assert complaint in done.err
    assert "expected" in done.err
    assert "fix" in done.err


def test_a_run_whose_inputs_are_gone_or_changed_is_refused(score: Callable[..., seedrank.Run], tmp_path: Path) -> None:
    run, hits = score(), tmp_path / "hits.parquet"
    moved = shutil.move(hits, tmp_path / "moved.parquet")
    with pytest.raises(InputDataError, match=r"hits\.parquet"):
        seedrank.explain(run.path, query="q1", node="b")
    assert seedrank.explain(run.path, query="q1", node="b", queries=moved).candidate
    pq.write_table(pa.table({**HITS, "weight": [1.0] * 4}), hits)
    with pytest.raises(InputDataError, match="queries: the content is not the one"):
        seedrank.explain(run.path, query="q1", node="b")
    shutil.rmtree(run.path / "graph")
    with pytest.raises(InputDataError, match="is not a graph store"):
        seedrank.explain(run.path, query="q1", node="b", queries=moved)
    seedrank.build(pa.table({"src": ["a"], "dst": ["b"]}), out=run.path / "graph")
    with pytest.raises(InputDataError, match="its fingerprint differs"):
        seedrank.explain(run.path, query="q1", node="b", queries=moved)
    with pytest.raises(InputDataError, match="is not a run folder"):
        seedrank.explain(tmp_path, query="q1", node="b")


def test_hits_in_memory_are_asked_for(tmp_path: Path) -> None:
    run = seedrank.score(pa.table(EDGES), queries=pa.table(HITS), out=tmp_path / "run")
    with pytest.raises(InputDataError, match="queries was a table in memory"):
        seedrank.explain(run.path, query="q1", node="b")
    assert seedrank.explain(run.path, query="q1", node="b", queries=pa.table(HITS)).rank == 1


def test_queries_made_of_nodes_and_exclusions(write: Write, tmp_path: Path) -> None:
    nodes = write("nodes.parquet", {"id": list("abcdex"), "type": ["page"] * 6})
    exclude = write("exclude.parquet", {"query_id": ["a"], "node_id": ["b"]})
    run = seedrank.score(
        write("edges.parquet", EDGES), nodes=nodes, all_nodes="page", exclude=exclude, out=tmp_path / "run"
    )
    found = seedrank.explain(run.path, query="a", node="b")
    assert (found.candidate, found.rank, found.rank_of_all) == (False, None, 2)
