"""``plan`` says what ``score`` then does, ``check`` refuses what ``score`` refuses, ``info`` describes the machine."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import seedrank
from seedrank.errors import ResourceError, SeedrankError
from seedrank.kernels.backends.resolver import create_backend

Write = Callable[..., Path]
Command = Callable[..., Any]

CYCLE = pa.table({"src": [1, 2, 3, 3], "dst": [2, 3, 1, 1]})
NODES = pa.table({"id": [1, 2, 3, 4], "type": ["x", "x", "y", None]})
HITS = pa.table({"query_id": [f"q{i % 7}" for i in range(14)], "node_id": [1, 2, 3, 99] * 3 + [1, 2]})


def files_below(folder: Path) -> dict[str, tuple[int, int] | None]:
    """Modification time and size of every file, None for folders."""
    return {
        str(path.relative_to(folder)): None if path.is_dir() else (path.stat().st_mtime_ns, path.stat().st_size)
        for path in sorted(folder.rglob("*"))
    }


class TestPlan:
    @pytest.mark.parametrize("options", [
        {},
        {"block_size": 3, "part_size": 2},
        {"precision": "float64", "part_size": 4, "top_k": 2},
        {"memory_for": 16, "part_size": 5},
        {"memory_for": 3, "part_size": 5, "backend": "scipy"},
        {"threads": 1, "backend": "cpu"},
    ])  # fmt: skip
    def test_plan_is_what_the_run_then_does(self, tmp_path: Path, options: dict[str, Any]) -> None:
        store = seedrank.build(CYCLE, nodes=NODES, out=tmp_path / "graph")
        options = dict(options)
        fitting = options.pop("memory_for", None)
        if fitting is not None:
            per_query = create_backend(options.get("backend", "auto")).bytes_per_query(4, "float32")
            # Half a query more, so that the limit has to be rounded down.
            options["memory_limit"] = fitting * per_query + per_query // 2
        plan = seedrank.plan(store, queries=HITS, out=tmp_path / "run", **options)
        run = seedrank.score(store, queries=HITS, out=tmp_path / "run", **options)
        manifest = run.manifest
        assert manifest.backend is not None
        assert manifest.graph is not None
        assert manifest.queries is not None
        assert (plan.graph, plan.exact) == ("store", True)
        assert (plan.nodes, plan.edges) == (manifest.graph.nodes, manifest.graph.edges)
        assert (plan.queries, plan.hits) == (manifest.queries.total, HITS.num_rows)
        assert plan.parts == manifest.parts_planned == len(manifest.parts) == len(run.candidates.files)
        assert plan.part_size == manifest.part_size
        assert (plan.backend, plan.backend_reason) == (manifest.backend.name, manifest.backend.reason)
        assert plan.precision == manifest.backend.precision
        assert plan.block_size == manifest.backend.block_size
        assert plan.bytes_per_query == manifest.backend.bytes_per_query
        assert plan.block_bytes == manifest.backend.block_bytes <= plan.memory_budget_bytes
        assert plan.graph_bytes == manifest.graph.store_bytes
        assert len(run.candidates) <= plan.largest_output_rows == 7 * min(options.get("top_k", 100), 4)
        if "memory_limit" in options:
            assert plan.memory_budget_bytes == manifest.backend.memory_budget_bytes == options["memory_limit"]
            # Of scipy as many as fit; of cpu a block of 16, of which the part fills five.
            assert plan.block_size == min(fitting, 5)

    def test_plan_of_an_edge_list_is_an_upper_limit(self, write: Write, tmp_path: Path) -> None:
        edges, nodes, hits = write("e.parquet", CYCLE), write("n.parquet", NODES), write("h.parquet", HITS)
        plan = seedrank.plan(edges, nodes=nodes, queries=hits, part_size=3)
        run = seedrank.score(edges, nodes=nodes, queries=hits, part_size=3, out=tmp_path / "run")
        assert run.manifest.graph is not None
        assert run.manifest.backend is not None
        assert (plan.graph, plan.exact) == ("edge list", False)
        assert plan.edges == 4
        assert plan.nodes == 4 + 2 * 4
        assert plan.nodes >= run.manifest.graph.nodes
        assert plan.bytes_per_query >= run.manifest.backend.bytes_per_query
        assert plan.block_size == run.manifest.backend.block_size
        assert plan.parts == run.manifest.parts_planned == 3

    @pytest.mark.parametrize("stored", [True, False])
    def test_plan_of_all_nodes(self, tmp_path: Path, stored: bool) -> None:
        store = seedrank.build(CYCLE, nodes=NODES, out=tmp_path / "graph")
        graph, nodes = (store, None) if stored else (CYCLE, NODES)
        plan = seedrank.plan(graph, nodes=nodes, all_nodes="x")
        assert (plan.queries, plan.hits, plan.parts) == (2, 2, 1)
        for target in ("plan", "check"):
            with pytest.raises(SeedrankError, match="'z'") as caught:
                getattr(seedrank, target)(graph, nodes=nodes, all_nodes="z")
            assert caught.value.exit_code == 3

    def test_plan_without_queries_has_one_part(self, tmp_path: Path) -> None:
        plan = seedrank.plan(CYCLE, queries=HITS.slice(0, 0))
        assert (plan.queries, plan.parts, plan.block_size, plan.largest_output_rows) == (0, 1, 1, 0)

    @pytest.mark.parametrize("command", ["plan", "check"])
    def test_nothing_is_written(
        self, seedrank_command: Command, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
    ) -> None:
        edges, hits = write("in/edges.parquet", CYCLE), write("in/hits.parquet", HITS)
        for folder in ("here", "scratch"):
            (tmp_path / folder).mkdir()
        monkeypatch.chdir(tmp_path / "here")
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
        store = seedrank.build(edges, out=tmp_path / "graph")
        before = files_below(tmp_path)
        for graph in (edges, store.path):
            result = seedrank_command(command, graph, "--queries", hits, "--out", tmp_path / "run")
            assert result.code == 0, result.err
        assert files_below(tmp_path) == before

    def test_json_is_the_plan(self, seedrank_command: Command, write: Write) -> None:
        edges, hits = write("edges.parquet", CYCLE), write("hits.parquet", HITS)
        arguments = (edges, "--queries", hits, "--block-size", "2", "--memory-limit", "1GiB")
        result = seedrank_command("plan", *arguments, "--json")
        assert json.loads(result.out) == seedrank.plan(edges, queries=hits, block_size=2, memory_limit="1GiB").to_dict()
        table = seedrank_command("plan", *arguments)
        assert "bytes per query" in table.out

    def test_memory_that_does_not_hold_a_query(self) -> None:
        with pytest.raises(ResourceError, match="one query needs"):
            seedrank.plan(CYCLE, queries=HITS, memory_limit=10)

    def test_hits_are_not_read_beyond_their_query_ids(self, write: Write) -> None:
        # Node ids of the wrong kind are a matter of check and score; plan touches one column.
        hits = write("hits.parquet", {"query_id": ["q", "q"], "node_id": ["a", None]})
        assert seedrank.plan(CYCLE, queries=hits).queries == 1
        with pytest.raises(SeedrankError):
            seedrank.check(CYCLE, queries=hits)


class TestCheck:
    def test_good_inputs(self, seedrank_command: Command, write: Write) -> None:
        edges, nodes, hits = write("e.parquet", CYCLE), write("n.parquet", NODES), write("h.parquet", HITS)
        report = seedrank.check(edges, nodes=nodes, queries=hits, node_type=["x"])
        assert report.to_dict() == {
            "nodes": 4,
            "edges": 3,
            "rows": 4,
            "merged_duplicates": 1,
            "zero_weight_rows": 0,
            "dropped_rows": 0,
            "self_loops": 0,
            "dangling": 1,
            "isolated": 1,
            "queries": 7,
            "queries_without_valid_seeds": 0,
            "seeds_given": 14,
            "seeds_missing": 3,
            "eligible_nodes": 2,
            "taken_over": None,
            "part_range": None,
            "vectors": None,
            "plans": None,
            "warnings": [],
        }
        result = seedrank_command("check", edges, "--nodes", nodes, "--queries", hits, "--node-type", "x", "--json")
        assert json.loads(result.out) == report.to_dict()
        text = seedrank_command("check", edges, "--nodes", nodes, "--queries", hits)
        assert text.out.startswith("inputs are valid\n")

    def test_counts_are_those_of_the_run(self, tmp_path: Path) -> None:
        report = seedrank.check(CYCLE, nodes=NODES, queries=HITS)
        manifest = seedrank.score(CYCLE, nodes=NODES, queries=HITS, out=tmp_path / "run").manifest
        assert manifest.graph is not None
        assert manifest.queries is not None
        for name in ("nodes", "edges", "merged_duplicates", "self_loops", "dangling", "isolated"):
            assert getattr(report, name) == getattr(manifest.graph, name), name
        assert (report.queries, report.seeds_given, report.seeds_missing) == (
            manifest.queries.total,
            manifest.queries.seeds_given,
            manifest.queries.seeds_missing,
        )

    @pytest.mark.parametrize(
        ("edges", "hits", "options"),
        [
            ({"src": [1], "dst": [None]}, {}, {}),
            ({"src": [1], "dst": [2], "weight": [float("inf")]}, {}, {}),
            ({"src": [1], "to": [2]}, {}, {}),
            ({"src": [1.5], "dst": [2.5]}, {}, {}),
            ({}, {"query_id": ["q"], "node_id": ["1"]}, {}),
            ({}, {"query_id": [None], "node_id": [1]}, {}),
            ({}, {"query_id": ["q"], "node_id": [1], "weight": [-1.0]}, {}),
            ({}, {"query_id": ["q"]}, {}),
            ({}, {}, {"source": ["dense"]}),
            ({}, {}, {"seed_source_weight": {"dense": 2.0}}),
            ({}, {}, {"edge_type": ["cites"]}),
            ({}, {}, {"type_weight": {"cites": 2.0}}),
            ({}, {}, {"node_type": ["person"]}),
            ({}, {}, {"weight_column": "score"}),
            ({}, {}, {"hit_weight_column": "score"}),
            ({}, {}, {"hit_query_column": "qid"}),
            ({}, {}, {"all_nodes": "x"}),
            ({}, {}, {"exclude": {"query_id": ["q"], "node_id": [None]}}),
        ],
    )
    def test_refuses_what_score_refuses(
        self, write: Write, tmp_path: Path, edges: dict[str, Any], hits: dict[str, Any], options: dict[str, Any]
    ) -> None:
        edge_file = write("edges.parquet", edges or CYCLE)
        arguments: dict[str, Any] = {"queries": write("hits.parquet", hits or HITS), **options}
        if "exclude" in arguments:
            arguments["exclude"] = write("exclude.parquet", arguments["exclude"])
        with pytest.raises(SeedrankError) as scored:
            seedrank.score(edge_file, out=tmp_path / "run", **arguments)
        with pytest.raises(type(scored.value)) as checked:
            seedrank.check(edge_file, **arguments)
        # Both build the graph first, in folders of their own.
        assert re.sub(r"\S+/graph\b", "GRAPH", str(checked.value)) == re.sub(r"\S+/graph\b", "GRAPH", str(scored.value))
        assert scored.value.exit_code in (2, 3)
        for part in ("found", "expected", "fix"):
            assert getattr(scored.value, part), part

    @pytest.mark.parametrize(
        ("edges", "hits", "warning"),
        [
            (CYCLE.slice(0, 0), HITS, "0 nodes and 0 edges"),
            (CYCLE, HITS.slice(0, 0), "there is no query"),
            (CYCLE, pa.table({"query_id": ["q"], "node_id": [99]}), "no query has a valid seed"),
            (CYCLE, pa.table({"query_id": ["q"] * 3, "node_id": [1, 98, 99]}), "2 of 3 hits are not in the graph"),
        ],
    )
    def test_warns_of_what_is_legal_but_hardly_meant(
        self, seedrank_command: Command, write: Write, edges: pa.Table, hits: pa.Table, warning: str
    ) -> None:
        assert any(warning in line for line in seedrank.check(edges, queries=hits).warnings)
        edge_file, hit_file = write("edges.parquet", edges), write("hits.parquet", hits)
        result = seedrank_command("check", edge_file, "--queries", hit_file)
        assert result.code == 0
        assert "  warning: " in result.out
        assert warning in result.out


class TestSearchWithoutLimit:
    """Depth first a node is expanded again at every smaller depth: as often as there are nodes."""

    @pytest.mark.parametrize(
        ("options", "warned"),
        [
            ({"method": "dfs"}, True),
            ({"method": "dfs", "max_visited_nodes": 3}, True),
            ({"method": "dfs", "max_hops": 3}, False),
            ({"method": "dfs", "max_visited_edges": 3}, False),
            ({"method": "dfs", "timeout_s": 3.0}, False),
            ({"method": "dfs", "deadline_s": 3.0}, False),
            ({"method": "bfs"}, False),
        ],
        ids=str,
    )
    def test_is_warned_of(self, options: dict[str, Any], warned: bool) -> None:
        for found in (seedrank.plan(CYCLE, queries=HITS, **options), seedrank.check(CYCLE, queries=HITS, **options)):
            assert [sentence[:12] for sentence in found.warnings] == ["--method dfs"] * warned

    def test_in_the_log_and_on_the_command_line(
        self, seedrank_command: Command, write: Write, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        seedrank.score(CYCLE, queries=HITS, out=tmp_path / "run", method="dfs")
        assert [record.message for record in caplog.records if record.levelname == "WARNING"] == [
            "search_without_limit"
        ]
        arguments = (write("e.parquet", CYCLE), "--queries", write("h.parquet", HITS), "--method", "dfs")
        for command in ("plan", "check"):
            assert "\n  warning: --method dfs without --max-hops" in seedrank_command(command, *arguments).out


class TestInfo:
    def test_json(self, seedrank_command: Command) -> None:
        result = seedrank_command("info", "--json")
        assert result.code == 0
        facts = json.loads(result.out)
        assert facts["seedrank"] == seedrank.__version__
        assert facts["python"] == platform.python_version()
        assert {"numpy", "scipy", "numba", "pyarrow", "click", "pydantic"} <= facts["libraries"].keys()
        assert all(facts["libraries"].values())
        assert facts["backend"] == {"name": "cpu", "requested": "auto", "reason": facts["backend"]["reason"]}
        assert facts["backend"]["reason"]
        assert facts["formats"] == {"graph_store": 1, "run": 1}
        machine = facts["machine"]
        assert machine["processors"] >= 1
        assert 0 < machine["memory_budget_bytes"] <= machine["available_memory_bytes"]

    def test_table_and_python_call(self, seedrank_command: Command) -> None:
        result = seedrank_command("info")
        assert result.code == 0
        for name in seedrank.info():
            assert name in result.out
