"""``--method auto``: every plan gives what its method alone gives, whatever runs beside it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import seedrank
from seedrank.config.names import Method, SourceRole
from seedrank.errors import ConfigError, InputDataError

Auto = Callable[..., seedrank.Run]

QUERIES = 90
NODES = 60
ROLES: dict[str, SourceRole] = {"words": "sparse", "vectors": "dense"}
#: Signals of a query by its number, so that every plan occurs.
SIGNALS = {
    0: (True, False, False), 1: (False, True, False), 2: (False, False, True), 3: (False, False, False),
    4: (False, True, True),
}  # fmt: skip
PLAN_OF = {0: "structural_graph", 1: "fast_lexical", 2: "semantic", 3: "hybrid_fusion", 4: "hybrid_fusion"}
#: What a plan is, as a run of its own.
ALONE: dict[str, dict[str, Any]] = {
    "structural_graph": {"method": "ppr", "source": ["words"], "include_seeds": True},
    "fast_lexical": {"method": "fuse", "source": ["words"]},
    "semantic": {"method": "semantic", "source": ["vectors"]},
    "hybrid_fusion": {"method": "ppr", "fusion": "rrf", "fusion_depth": 100, "seed_source_weight": {"vectors": 0.0}},
}


def name(query: int) -> str:
    return f"q{query:03}"


@pytest.fixture(scope="module")
def edges() -> pa.Table:
    chance = np.random.default_rng(5)
    src, dst = chance.integers(0, NODES, (2, 240))
    return pa.table({"src": [f"n{node}" for node in src], "dst": [f"n{node}" for node in dst]})


@pytest.fixture(scope="module")
def hits() -> pa.Table:
    chance = np.random.default_rng(7)
    rows = [
        (name(query), f"n{node}", source, float(chance.random()))
        for query in range(QUERIES)
        for source in ROLES
        for node in chance.choice(NODES + 10, chance.integers(1, 6), replace=False)
    ]
    return pa.table(
        dict(zip(("query_id", "node_id", "source", "weight"), map(list, zip(*rows, strict=True)), strict=True))
    )


@pytest.fixture(scope="module")
def info() -> pa.Table:
    columns = zip(*(SIGNALS[query % len(SIGNALS)] for query in range(QUERIES)), strict=True)
    signals = dict(zip(("structural", "lexical", "semantic"), map(list, columns), strict=True))
    return pa.table({"query_id": [name(query) for query in range(QUERIES)], **signals})


@pytest.fixture
def auto(tmp_path: Path, edges: pa.Table) -> Auto:
    """Run auto on a graph, by default the module's."""
    runs = iter(range(100))

    def run_job(hits: pa.Table, info: Any = None, *, graph: Any = edges, **options: Any) -> seedrank.Run:
        settings = {"method": "auto", "source_role": ROLES, **options}
        settings = {option: value for option, value in settings.items() if value is not None}
        return seedrank.score(graph, queries=hits, query_info=info, out=tmp_path / f"auto{next(runs)}", **settings)

    return run_job


def rows_of(run: seedrank.Run, queries: list[str], columns: list[str]) -> list[dict[str, Any]]:
    table = run.candidates.to_arrow().select(columns)
    rows: list[dict[str, Any]] = table.filter(pc.is_in(table["query_id"], pa.array(queries))).to_pylist()
    return rows


def files(run: seedrank.Run) -> list[bytes]:
    return [file.read_bytes() for table in (run.candidates, run.queries) for file in table.files]


def test_every_plan_gives_what_its_method_alone_gives(
    auto: Auto, edges: pa.Table, hits: pa.Table, info: pa.Table, tmp_path: Path
) -> None:
    run = auto(hits, info, top_k=20)
    rows = run.queries.to_arrow().to_pylist()
    for row in rows:
        wanted = PLAN_OF[int(row["query_id"][1:]) % len(SIGNALS)]
        # Without a seed in the graph there is no graph for the query.
        trace = json.loads(row["trace"])
        if trace["capabilities"]["graph"] or wanted != "structural_graph":
            assert row["plan"] == wanted
    for plan, options in ALONE.items():
        alone = seedrank.score(edges, queries=hits, out=tmp_path / plan, top_k=20, **options)
        mine = [row["query_id"] for row in rows if row["plan"] == plan and row["method"] == options["method"]]
        # A query whose words are all unknown to the graph starts from all of its hits.
        seeded = {row["query_id"] for row in alone.queries.to_arrow().to_pylist() if row["status"] == "ok"}
        mine = [query for query in mine if query in seeded]
        assert len(mine) > 5
        columns = [column for column in alone.candidates.schema.names if column in run.candidates.schema.names]
        assert rows_of(run, mine, columns) == rows_of(alone, mine, columns)


def test_blocks_threads_order_and_parts_of_the_input_do_not_matter(auto: Auto, hits: pa.Table, info: pa.Table) -> None:
    plain = files(auto(hits, info))
    shuffled = hits.take(np.random.default_rng(0).permutation(len(hits)))
    assert files(auto(shuffled, info.take(list(range(QUERIES))[::-1]), block_size=3, threads=1)) == plain
    assert files(auto([hits.slice(200), hits.slice(0, 200)], [info.slice(11), info.slice(0, 11)])) == plain


def test_a_run_that_goes_on_gives_the_same_bytes(auto: Auto, edges: pa.Table, hits: pa.Table, info: pa.Table) -> None:
    run = auto(hits, info, part_size=40)
    before = files(run)
    lost = run.candidates.files[1]
    lost.unlink()
    again = seedrank.score(
        edges, queries=hits, query_info=info, out=run.path, method="auto", source_role=ROLES, part_size=40
    )
    assert again.manifest.resumed_at
    assert files(again) == before
    with pytest.raises(ConfigError, match="the query attributes"):
        seedrank.score(edges, queries=hits, out=run.path, method="auto", source_role=ROLES, part_size=40)


def test_traces_and_the_schema(auto: Auto, hits: pa.Table) -> None:
    info = pa.table(
        {
            "query_id": [name(0), name(1), name(2), "q999"],
            "text": ["which modules depend on the parser", "why is it slow", None, "why"],
            "semantic": [None, False, None, None],
            "budget": ["fast", None, "thorough", None],
        }
    )
    run = auto(hits, info)
    rows = {row["query_id"]: row for row in run.queries.to_arrow().to_pylist()}
    traces = {query: json.loads(rows[query]["trace"]) for query in rows}
    assert len(rows) == QUERIES + 1
    assert traces[name(0)] == {
        "signals": {
            "structural": {"value": True, "from": "text: dependency"},
            "lexical": {"value": False, "from": "text"},
            "semantic": {"value": False, "from": "text"},
        },
        "budget": {"value": "fast", "from": "query_info"},
        "capabilities": {"dense": True, "sparse": True, "graph": True, "graph_allowed": False},
        "rule": 4,
        "gave_way": [],
    }
    assert (rows[name(0)]["plan"], rows[name(0)]["method"]) == ("hybrid_fusion", "fuse")
    assert traces[name(1)]["signals"]["semantic"] == {"value": False, "from": "query_info"}
    assert (rows[name(1)]["plan"], rows[name(1)]["method"]) == ("hybrid_fusion", "ppr")
    assert traces[name(2)]["signals"]["lexical"] == {"value": False, "from": "nothing"}
    assert traces[name(2)]["budget"] == {"value": "thorough", "from": "query_info"}
    # A query without a hit: no plan, and the row says why.
    assert {key: rows["q999"][key] for key in ("plan", "method", "status", "seeds_given", "candidates")} == {
        "plan": None, "method": "auto", "status": "no_valid_seeds", "seeds_given": 0, "candidates": 0,
    }  # fmt: skip
    assert traces["q999"]["gave_way"] == ["hybrid_fusion", "semantic", "fast_lexical", "structural_graph"]
    assert run.candidates.schema.names == [
        "query_id", "rank", "node_id", "score", "score_vectors", "score_words", "score_graph",
    ]  # fmt: skip


def test_without_a_graph(auto: Auto, hits: pa.Table, info: pa.Table) -> None:
    negative = hits.set_column(3, "weight", pc.subtract(hits["weight"], 0.5))
    run = auto(negative, info, graph=None)
    rows = run.queries.to_arrow()
    assert set(rows["method"].to_pylist()) == {"fuse", "semantic"}
    plans = dict(zip(rows["query_id"].to_pylist(), rows["plan"].to_pylist(), strict=True))
    assert [plans[name(query)] for query in range(5)] == [
        "hybrid_fusion", "fast_lexical", "semantic", "hybrid_fusion", "hybrid_fusion",
    ]  # fmt: skip
    assert pc.all(pc.greater(rows["candidates"], 0)).as_py()


def test_methods_that_queries_name(auto: Auto, edges: pa.Table, hits: pa.Table, tmp_path: Path) -> None:
    methods: list[Method | None] = ["bfs", "walk", "hybrid", "fuse", "ppr", "semantic", None]
    info = pa.table({"query_id": list(map(name, range(7))), "method": methods})
    run = auto(hits, info, paths=True, top_k=10)
    rows = run.queries.to_arrow().to_pylist()
    assert [row["method"] for row in rows[:7]] == ["bfs", "walk", "hybrid", "fuse", "ppr", "semantic", "ppr"]
    assert [row["plan"] for row in rows[:7]] == [None] * 6 + ["hybrid_fusion"]
    assert rows[0]["visited_nodes"] is not None
    assert rows[3]["visited_nodes"] is None
    for query, method in enumerate(methods):
        if method is None:
            continue
        options: dict[str, Any] = {"include_seeds": True} if method in ("bfs", "walk", "ppr") else {}
        if method in ("bfs", "walk", "ppr"):
            options["paths"] = True
        alone = seedrank.score(edges, queries=hits, out=tmp_path / str(method), method=method, top_k=10, **options)
        columns = alone.candidates.schema.names
        assert rows_of(run, [name(query)], columns) == rows_of(alone, [name(query)], columns)


def test_exclusions_of_queries_hold_for_every_method(
    auto: Auto, edges: pa.Table, hits: pa.Table, info: pa.Table, tmp_path: Path
) -> None:
    run = auto(hits, info, top_k=5)
    best = {row["query_id"]: row["node_id"] for row in run.candidates.to_arrow().to_pylist() if row["rank"] == 1}
    lists = [[best[query], None] if query in best else None for query in info["query_id"].to_pylist()]
    other = pa.table({"node_id": ["n3"]})
    less = auto(hits, info.append_column("exclude", pa.array(lists)), top_k=5, exclude=other)
    found = less.candidates.to_arrow().to_pylist()
    assert all(row["node_id"] != best[row["query_id"]] for row in found)
    assert all(row["node_id"] != "n3" for row in found)
    assert len(found) > 300
    # The same lists as a table of exclusions, for a method without a planner.
    pairs = pa.table({"query_id": list(best), "node_id": list(best.values())})
    given = pa.table({"query_id": info["query_id"], "exclude": pa.array(lists)})
    one = seedrank.score(edges, queries=hits, query_info=given, out=tmp_path / "one")
    two = seedrank.score(edges, queries=hits, exclude=pairs, out=tmp_path / "two")
    assert one.candidates.to_arrow().equals(two.candidates.to_arrow())
    assert "query_info" in one.manifest.inputs


def test_what_is_refused(auto: Auto, hits: pa.Table, info: pa.Table) -> None:
    with pytest.raises(ConfigError, match="does not know what kind of store the source 'vectors' is"):
        auto(hits, info, source_role={"words": "sparse"})
    with pytest.raises(InputDataError, match="--source-role 'word': no hit has this source"):
        auto(hits, info, source_role={**ROLES, "word": "sparse"})
    with pytest.raises(ConfigError, match="has no plan with budget fast"):
        auto(hits, info, source_role=dict.fromkeys(ROLES, "graph"), budget="fast")
    with pytest.raises(ConfigError, match="and there is no graph"):
        auto(hits, info, graph=None, source_role=dict.fromkeys(ROLES, "graph"))
    with pytest.raises(ConfigError, match="plans have scores of different units"):
        auto(hits, info, min_score=0.1)
    with pytest.raises(ConfigError, match="source_role"):
        auto(hits, info, source_role={"words": "keyword"})
    with pytest.raises(ConfigError, match="--budget is given, but --method ppr does not use it"):
        auto(hits, info, method="ppr", budget="fast", source_role=None)
    with pytest.raises(ConfigError, match="--query-info speaks of the queries of hits"):
        auto(None, info, method="ppr", all_nodes="person", source_role=None)
    with pytest.raises(InputDataError, match="query_id of the"):
        auto(hits, pa.table({"query_id": [1]}))
    only_graph = auto(hits, info, source_role=dict.fromkeys(ROLES, "graph"))
    assert set(only_graph.queries.to_arrow()["plan"].to_pylist()) <= {"structural_graph", None}


def test_no_queries(auto: Auto, hits: pa.Table) -> None:
    run = auto(hits.slice(0, 0), source_role={})
    assert (len(run.candidates), len(run.queries)) == (0, 0)


def test_plan_and_check_count_the_queries_of_every_plan(
    auto: Auto, edges: pa.Table, hits: pa.Table, info: pa.Table, tmp_path: Path
) -> None:
    named = info.append_column("method", pa.array(["bfs" if row == 0 else None for row in range(QUERIES)]))
    more = pa.table({"query_id": ["q999"], "structural": [True]})
    info = pa.concat_tables([named, more], promote_options="default")
    store = seedrank.build(edges, out=tmp_path / "graph")
    run = auto(hits, info, graph=store, part_size=40)
    rows = run.queries.to_arrow()
    names = [plan or method for plan, method in zip(rows["plan"].to_pylist(), rows["method"].to_pylist(), strict=True)]
    counted = {("none" if name == "auto" else name): names.count(name) for name in names}
    settings: dict[str, Any] = {"queries": hits, "query_info": info, "method": "auto", "source_role": ROLES}
    planned = seedrank.plan(store, out=run.path, part_size=40, **settings)
    assert planned.plans == counted
    assert planned.plans["none"] == 1
    assert (planned.queries, planned.hits, planned.parts, planned.parts_there) == (QUERIES + 1, len(hits), 3, 3)
    assert seedrank.plan(store, out=run.path, part_size=30, **settings).parts_there == 0
    assert seedrank.plan(edges, **settings).plans is None
    assert seedrank.check(store, **settings).plans == counted
    assert seedrank.plan(store, queries=hits, query_info=info).queries == QUERIES + 1
    assert seedrank.check(store, queries=hits).plans is None


def test_command(
    write: Callable[..., Path], seedrank_command: Any, edges: pa.Table, hits: pa.Table, info: pa.Table, tmp_path: Path
) -> None:
    arguments = [write("edges.parquet", edges), "--queries", write("hits.parquet", hits)]
    arguments += ["--query-info", write("info.parquet", info), "--method", "auto", "--out", tmp_path / "run"]
    roles = ["--source-role", "words=sparse", "--source-role", "vectors=dense"]
    assert seedrank_command("score", *arguments, *roles, "--budget", "thorough", "--quiet").code == 0
    assert seedrank.open_run(tmp_path / "run").manifest.planner_rules
    wrong = seedrank_command("score", *arguments, "--source-role", "words=keyword")
    assert wrong.code == 2
    assert "expected: NAME=dense|sparse|graph" in wrong.err
    config = tmp_path / "run.toml"
    config.write_text('[score]\nsource-role = {words = "sparse", vectors = "dense"}\nbudget = "thorough"\n')
    assert seedrank_command("score", *arguments, "--config", config, "--quiet").code == 0
