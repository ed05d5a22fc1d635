"""``check`` and ``explain`` of many queries: one segment, or one query, in memory, and what they say all the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seedrank
from seedrank.errors import ConfigError, InputDataError
from seedrank.io.queries import HitTable
from seedrank.jobs.queries import one_query, segment_size
from seedrank.jobs.queries.loading import load_query_set
from seedrank.jobs.queries.query_set import QuerySet

EDGES = {"src": list("abcdeab"), "dst": list("bcdeacd")}
QUERIES = 23


def hits() -> pa.Table:
    """Two hits a query, of two sources; every third has a node that the graph does not have, the last no other."""
    rows: list[tuple[str, str | None, float, str]] = []
    for number in range(QUERIES):
        rows.append((f"q{number:02d}", "abcde"[number % 5], 1.0 + number % 3, "dense"))
        rows.append((f"q{number:02d}", "zoe" if number % 3 == 0 else "abcde"[(number + 2) % 5], 0.5, "sparse"))
    rows[-2:] = [("q22", "zoe", 1.0, "dense"), ("q22", None, 1.0, "only here")]
    names = ("query_id", "node_id", "weight", "source")
    return pa.table({name: [row[place] for row in rows[::-1]] for place, name in enumerate(names)})


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    nodes = pa.table({"id": list("abcdef"), "type": ["page"] * 4 + ["term"] * 2})
    return seedrank.build(pa.table(EDGES), nodes=nodes, out=tmp_path_factory.mktemp("graph") / "graph").path


@pytest.fixture
def files(tmp_path: Path) -> Path:
    pq.write_table(hits(), tmp_path / "hits.parquet", row_group_size=5)
    return tmp_path / "hits.parquet"


def noted_sizes(monkeypatch: pytest.MonkeyPatch, *modules: str) -> list[int]:
    """Numbers of queries of the query sets that these modules load from now on."""
    sizes: list[int] = []

    def noted(*arguments: Any, **keywords: Any) -> QuerySet:
        query_set = load_query_set(*arguments, **keywords)
        sizes.append(len(query_set))
        return query_set

    for module in modules:
        monkeypatch.setattr(f"seedrank.jobs.queries.{module}.load_query_set", noted)
    return sizes


@pytest.mark.parametrize("which", [{}, {"parts": "2:5"}, {"parts": "4:"}], ids=["all", "2:5", "4:"])
def test_check_holds_one_segment(
    graph: Path, files: Path, monkeypatch: pytest.MonkeyPatch, which: dict[str, Any]
) -> None:
    """The counts are those of all queries together, with --parts those of the range."""
    options: dict[str, Any] = {"queries": files, "part_size": 2, **which}
    whole = seedrank.check(graph, **options)
    monkeypatch.setattr(segment_size, "SEGMENT_QUERIES", 6)
    sizes = noted_sizes(monkeypatch, "in_files", "query_segments")
    assert seedrank.check(graph, **options) == whole
    first, end = {"2:5": (4, 10), "4:": (8, 23)}.get(which.get("parts", ""), (0, 23))
    assert max(sizes) == 6
    numbers = range(first, end)
    assert whole.queries == len(numbers)
    assert whole.seeds_missing == sum(number % 3 == 0 for number in numbers if number < 22) + 2 * (22 in numbers)
    assert whole.queries_without_valid_seeds == (22 in numbers)
    assert whole.part_range == {"2:5": "2:5", "4:": "4:12"}.get(which.get("parts", ""))


def test_check_of_ranges_and_nodes(
    graph: Path, files: Path, tmp_path: Path, seedrank_command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = seedrank_command("check", graph, "--queries", files, "--part-size", 2, "--parts", "1:2", "--json")
    assert (json.loads(told.out)["queries"], json.loads(told.out)["part_range"]) == (2, "1:2")
    behind = seedrank_command("check", graph, "--queries", files, "--part-size", 2, "--parts", "12:")
    assert behind.code == 2
    assert "begins behind the last part" in behind.err
    pq.write_table(pa.table(EDGES), tmp_path / "edges.parquet")
    for arguments in ({"graph": tmp_path / "edges.parquet"}, {"graph": graph, "overwrite": True}):
        with pytest.raises(ConfigError, match="--parts 0:1"):
            seedrank.check(**arguments, queries=files, parts="0:1")
    monkeypatch.setattr(segment_size, "SEGMENT_QUERIES", 2)
    sizes = noted_sizes(monkeypatch, "by_node")
    assert seedrank.check(graph, all_nodes="page", part_size=2).queries == 4
    assert sizes == [0, 2, 2]


def test_check_finds_the_last_bad_row_before_the_first_segment(graph: Path, files: Path) -> None:
    bad = hits().slice(0, 3).to_pylist()
    bad[2]["weight"] = -1.0
    pq.write_table(pa.Table.from_pylist(bad, hits().schema), files.with_name("more.parquet"))
    with pytest.raises(InputDataError, match=r"more\.parquet"):
        seedrank.check(graph, queries=[files, files.with_name("more.parquet")])


OPTIONS: dict[str, dict[str, Any]] = {
    "ppr": {},
    "walk": {"method": "walk", "walk_steps": 50},
    "rrf": {"fusion": "rrf"},
    "fuse": {"method": "fuse"},
    "auto": {"method": "auto", "source_role": {"dense": "dense", "sparse": "sparse", "only here": "sparse"}},
    "nodes": {"all_nodes": "page"},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_explain_holds_one_query(
    graph: Path, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The same explanation as with all queries in memory."""
    options = OPTIONS[name] | ({} if name == "nodes" else {"queries": files})
    run = seedrank.score(None if name == "fuse" else graph, out=tmp_path / "run", **options)
    row = run.candidates.to_arrow().to_pylist()[-1]
    sizes = noted_sizes(monkeypatch, "one_query")
    found = seedrank.explain(run.path, query=row["query_id"], node=row["node_id"])
    assert sizes == [1]
    assert (found.rank, found.score, found.candidate) == (row["rank"], row["score"], True)
    monkeypatch.setattr(one_query, "is_on_storage", lambda _: False)
    if name != "nodes":
        assert seedrank.explain(run.path, query=row["query_id"], node=row["node_id"]) == found
        assert sizes[1:] == [QUERIES]


def test_explain_reads_all_to_see_that_it_is_the_same(
    graph: Path, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row of another query that changed is noticed; rows of no query in memory but the one."""
    run = seedrank.score(graph, queries=files, out=tmp_path / "run")
    kept: list[int] = []

    def noted(store: Any, inputs: Any, options: Any) -> QuerySet:
        assert isinstance(inputs.queries, HitTable)
        kept.append(len(inputs.queries.query))
        return load_query_set(store, inputs, options)

    monkeypatch.setattr(one_query, "load_query_set", noted)
    assert seedrank.explain(run.path, query="q07", node="d").candidate
    assert kept == [2]
    with pytest.raises(InputDataError, match="query 'q99' is not in the hits of"):
        seedrank.explain(run.path, query="q99", node="c")
    changed = hits().to_pylist()
    changed[0]["weight"] = 2.0
    pq.write_table(pa.Table.from_pylist(changed, hits().schema), files)
    with pytest.raises(InputDataError, match="queries: the content is not the one"):
        seedrank.explain(run.path, query="q07", node="d")


@pytest.mark.parametrize("given", ["query_vectors", "query_info"])
def test_explain_of_hits_that_are_searched_by_vectors(graph: Path, files: Path, tmp_path: Path, given: str) -> None:
    """All hits are kept: which sources there are depends on the vectors, too."""
    for name, column, ids in (
        ("nodes", "id", list("abcde")),
        (given, "query_id", [f"q{n:02d}" for n in range(QUERIES)]),
    ):
        rows = [[1.0, float(place % 4)] for place in range(len(ids))]
        pq.write_table(pa.table({column: ids, "vector": pa.array(rows, pa.list_(pa.float32()))}), tmp_path / name)
    options: dict[str, Any] = {
        given: tmp_path / given,
        "node_vectors": tmp_path / "nodes",
        "source": ["vectors", "sparse"],
    }
    run = seedrank.score(graph, queries=files, method="semantic", out=tmp_path / "run", **options)
    row = run.candidates.to_arrow().to_pylist()[-1]
    found = seedrank.explain(run.path, query=row["query_id"], node=row["node_id"])
    assert (found.rank, found.score) == (row["rank"], row["score"])
