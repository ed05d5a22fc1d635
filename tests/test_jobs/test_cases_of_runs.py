"""Cases met in the field about files, ids, failures and exit codes, through the command line and the Python calls."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seedrank
from seedrank.errors import IncompleteRunError, InputDataError, KernelError
from seedrank.kernels.ppr import personalized_pagerank
from seedrank.testing.parity import assert_scores_close
from seedrank.testing.toys import K1, K6, K10, K11

Write = Callable[..., Path]
Command = Callable[..., Any]

EXACT = 1e-11
PRECISE: dict[str, Any] = {
    "precision": "float64",
    "tolerance": 1e-12,
    "max_iterations": 10_000,
    "include_seeds": True,
}
CYCLE = {"src": [1, 2, 3], "dst": [2, 3, 1]}


def scores_of(run: seedrank.Run, query: Any) -> dict[Any, float]:
    return {row["node_id"]: row["score"] for row in run.candidates.to_arrow().to_pylist() if row["query_id"] == query}


def rows_of(run: seedrank.Run) -> dict[Any, dict[str, Any]]:
    return {row["query_id"]: row for row in run.queries.to_arrow().to_pylist()}


def test_case_08_duplicates_in_different_part_files(write: Write, tmp_path: Path) -> None:
    for number, edge in enumerate(K6.edges):
        write(f"parts/{number}.parquet", {"src": [edge[0]], "dst": [edge[1]]})
    hits = pa.table({"query_id": ["q"], "node_id": ["a"]})
    run = seedrank.score(tmp_path / "parts", queries=hits, out=tmp_path / "run", damping=0.85, **PRECISE)
    assert_scores_close(scores_of(run, "q"), K6.expected, EXACT)
    assert run.manifest.graph is not None
    assert (run.manifest.graph.edges, run.manifest.graph.merged_duplicates) == (4, 1)


def test_case_10_integer_edges_and_string_seeds(seedrank_command: Command, write: Write, tmp_path: Path) -> None:
    edges = write("edges.parquet", {name: pa.array(ids, pa.int64()) for name, ids in CYCLE.items()})
    hits = write("hits.parquet", {"query_id": ["q"], "node_id": ["1"]})
    for command in ("score", "check"):
        result = seedrank_command(command, edges, "--queries", hits, "--out", tmp_path / "run")
        assert result.code == 3
        for needle in ("int64", "string", "expected:", "fix:"):
            assert needle in result.err
    assert not (tmp_path / "run" / "_SUCCESS").exists()


def test_case_10_strings_keep_leading_zeros(tmp_path: Path) -> None:
    edges = pa.table({"src": ["007", "7"], "dst": ["a", "b"]})
    hits = pa.table({"query_id": ["q"], "node_id": ["007"]})
    run = seedrank.score(edges, queries=hits, out=tmp_path / "run", damping=0.85, **PRECISE)
    assert scores_of(run, "q").keys() == {"007", "a"}
    assert_scores_close(scores_of(run, "q"), {"007": Fraction(20, 37), "a": Fraction(17, 37)}, EXACT)


@pytest.mark.parametrize("first", [9001, 10**15])
def test_case_13_gaps_between_ids_are_no_nodes(tmp_path: Path, first: int) -> None:
    edges = pa.table({"src": [first, first + 1], "dst": [first + 1, first + 2]})
    hits = pa.table({"query_id": ["q"], "node_id": [first]})
    run = seedrank.score(edges, queries=hits, out=tmp_path / "run", damping=0.85, **PRECISE)
    assert_scores_close(scores_of(run, "q"), {first + i: value for i, value in enumerate(K11.expected.values())}, EXACT)
    assert run.manifest.graph is not None
    assert run.manifest.graph.nodes == 3
    assert run.manifest.graph.store_bytes < 10_000


def test_case_14_spark_folder(seedrank_command: Command, write: Write, tmp_path: Path) -> None:
    write("edges/part-0.parquet", {"src": [1, 2], "dst": [2, 3]})
    write("edges/part-1.snappy.parquet", {"src": [3], "dst": [1]})
    hits = write("hits.parquet", {"query_id": ["q"], "node_id": [1]})
    options = ("--damping", "0.5", "--include-seeds", "--precision", "float64", "--tolerance", "1e-12")
    clean = seedrank_command("score", tmp_path / "edges", "--queries", hits, "--out", tmp_path / "clean", *options)
    assert clean.code == 0, clean.err
    for leftover in ("_SUCCESS", "_metadata", ".part-0.parquet.crc", ".DS_Store", "_temporary/x.parquet"):
        path = tmp_path / "edges" / leftover
        path.parent.mkdir(exist_ok=True)
        path.touch()
    (tmp_path / "edges" / "empty").mkdir()
    cluttered = seedrank_command("score", tmp_path / "edges", "--queries", hits, "--out", tmp_path / "run", *options)
    assert cluttered.code == 0, cluttered.err
    for name in ("candidates", "queries"):
        part = f"{name}/part-00000.parquet"
        assert (tmp_path / "run" / part).read_bytes() == (tmp_path / "clean" / part).read_bytes()
    assert_scores_close(scores_of(seedrank.open_run(tmp_path / "run"), "q"), K10.expected, EXACT)
    (tmp_path / "edges" / "part-2.parquet").touch()
    broken = seedrank_command("score", tmp_path / "edges", "--queries", hits, "--out", tmp_path / "broken", *options)
    assert broken.code == 3
    assert "part-2.parquet" in broken.err


def _nested_hits() -> dict[str, pa.Table]:
    """The same four queries in every list layout: q1 [1, 2], q2 [], q3 null, q4 [1, null]."""
    lists = [[1, 2], [], None, [1, None]]
    ids = ["q1", "q2", "q3", "q4"]
    structs = [None if seeds is None else [{"node_id": node} for node in seeds] for seeds in lists]
    padded = pa.table({"query_id": ["before", *ids, "after"], "seeds": pa.array([[3, 3], *lists, [3]])})
    return {
        "list": pa.table({"query_id": ids, "seeds": pa.array(lists, pa.list_(pa.int64()))}),
        "large_list": pa.table({"query_id": ids, "seeds": pa.array(lists, pa.large_list(pa.int64()))}),
        "sliced": padded.slice(1, 4),
        "structs": pa.table({"query_id": ids, "seeds": structs}),
    }


@pytest.mark.parametrize("layout", list(_nested_hits()))
def test_case_18_null_and_empty_lists(tmp_path: Path, layout: str) -> None:
    hits = _nested_hits()[layout]
    run = seedrank.score(pa.table(CYCLE), queries=hits, out=tmp_path / "run", damping=0.5, **PRECISE)
    pair = {1: Fraction(5, 14), 2: Fraction(3, 7), 3: Fraction(3, 14)}
    assert_scores_close(scores_of(run, "q1"), pair, EXACT)
    assert_scores_close(scores_of(run, "q4"), K10.expected, EXACT)
    found = {
        query: (row["status"], row["seeds_given"], row["seeds_missing"], row["candidates"])
        for query, row in rows_of(run).items()
    }
    assert found == {
        "q1": ("ok", 2, 0, 3),
        "q2": ("no_valid_seeds", 0, 0, 0),
        "q3": ("no_valid_seeds", None, 0, 0),
        "q4": ("ok", 2, 1, 3),
    }


def test_case_18_fixed_size_lists_in_a_file(write: Write, tmp_path: Path) -> None:
    lists = pa.array([[3, 3], [1, 2], None, [1, None]], pa.list_(pa.int64(), 2)).slice(1)
    hits = write("hits.parquet", pa.table({"query_id": ["q1", "q3", "q4"], "seeds": lists}))
    run = seedrank.score(pa.table(CYCLE), queries=hits, out=tmp_path / "run", damping=0.5, **PRECISE)
    assert_scores_close(scores_of(run, "q4"), K10.expected, EXACT)
    assert scores_of(run, "q1")[2] == pytest.approx(3 / 7, abs=EXACT)
    assert [row["seeds_given"] for row in rows_of(run).values()] == [2, None, 2]


class TestCase28:
    """Five blocks, the third fails: exit 6, no success marker, the failed part named, the others kept."""

    @pytest.fixture(autouse=True)
    def third_block_fails(self, monkeypatch: pytest.MonkeyPatch) -> None:
        blocks: list[int] = []

        def sometimes(*arguments: Any, **options: Any) -> Any:
            blocks.append(len(blocks))
            if len(blocks) == 3:
                raise KernelError("mass is lost", expected="1", fix="none")
            return personalized_pagerank(*arguments, **options)

        monkeypatch.setattr("seedrank.jobs.operators.ppr.personalized_pagerank", sometimes)

    @pytest.fixture
    def hits(self, write: Write) -> Path:
        return write("hits.parquet", {"query_id": [f"q{i}" for i in range(10)], "node_id": [1, 2] * 5})

    def test_case_28_five_parts(self, seedrank_command: Command, write: Write, hits: Path, tmp_path: Path) -> None:
        edges, out = write("edges.parquet", CYCLE), tmp_path / "run"
        result = seedrank_command(
            "score", edges, "--queries", hits, "--out", out, "--part-size", "2", "--block-size", "2",
            "--include-seeds",
        )  # fmt: skip
        assert result.code == 6
        assert "2 of 10 queries" in result.err
        assert "part 2: 2" in result.err
        assert "mass is lost" in result.err  # logged with its reason
        assert not (out / "_SUCCESS").exists()
        assert not (out / "_tmp").exists()
        run = seedrank.open_run(out)
        assert [file.name for file in run.candidates.files] == [f"part-{i:05d}.parquet" for i in range(5)]
        assert [pq.read_metadata(file).num_rows for file in run.candidates.files] == [6, 6, 0, 6, 6]
        status = {query: row["status"] for query, row in rows_of(run).items()}
        assert status == {f"q{i}": "failed" if i in (4, 5) else "ok" for i in range(10)}
        failed = rows_of(run)["q4"]
        assert (failed["candidates"], failed["iterations"], failed["error_bound"]) == (0, None, None)
        assert run.manifest.state == "incomplete"
        assert [part.failed_queries for part in run.manifest.parts] == [0, 0, 2, 0, 0]
        assert run.manifest.queries is not None
        assert run.manifest.queries.by_status == {"failed": 2, "ok": 8}

    def test_case_28_five_blocks_of_one_part(self, hits: Path, tmp_path: Path) -> None:
        with pytest.raises(IncompleteRunError, match="part 0: 2") as caught:
            seedrank.score(pa.table(CYCLE), queries=hits, out=tmp_path / "run", block_size=2, **PRECISE)
        assert caught.value.exit_code == 6
        run = seedrank.open_run(tmp_path / "run")
        assert [row["status"] for row in rows_of(run).values()] == ["ok"] * 4 + ["failed"] * 2 + ["ok"] * 4
        assert len(run.candidates) == 24
        assert scores_of(run, "q8").keys() == {1, 2, 3}
        assert not (tmp_path / "run" / "_SUCCESS").exists()


def test_case_50_zero_queries_through_the_command_line(seedrank_command: Command, write: Write, tmp_path: Path) -> None:
    edges = write("edges.parquet", {"src": pa.array([], pa.int64()), "dst": pa.array([], pa.int64())})
    hits = write("hits.parquet", {"query_id": pa.array([], pa.string()), "node_id": pa.array([], pa.int64())})
    result = seedrank_command("score", edges, "--queries", hits, "--out", tmp_path / "run")
    assert result.code == 0, result.err
    run = seedrank.open_run(tmp_path / "run")
    assert (len(run.candidates), len(run.queries)) == (0, 0)
    assert (tmp_path / "run" / "_SUCCESS").exists()


def test_case_54_offsets_are_64_bit_and_neighbours_32_bit(tmp_path: Path) -> None:
    store = seedrank.build(pa.table(CYCLE), out=tmp_path / "graph")
    for rows in (store.by_source, store.by_destination):
        assert rows.offsets.dtype == np.int64
        assert rows.neighbors.dtype == np.int32


def test_case_54_block_of_more_than_2_to_the_31_entries_is_planned(tmp_path: Path) -> None:
    # 40 M nodes are promised by a footer alone; 64 queries on them are 2.56e9 entries.
    store = seedrank.build(pa.table(CYCLE), out=tmp_path / "graph")
    huge = seedrank.GraphStore(store.path, store.facts.model_copy(update={"nodes": 40_000_000}))
    hits = pa.table({"query_id": list(range(64)), "node_id": [1] * 64})
    plan = seedrank.plan(huge, queries=hits, memory_limit="1TB")
    assert plan.block_size == 64
    assert plan.block_size * plan.bytes_per_query > 2**31 * 4
    # The cpu backend computes 16, 32 or 64 columns.
    with_little = seedrank.plan(huge, queries=hits, memory_limit=plan.bytes_per_query * 40)
    assert (with_little.block_size, with_little.block_bytes) == (32, 32 * plan.bytes_per_query)
    one_by_one = seedrank.plan(huge, queries=hits, memory_limit=plan.bytes_per_query * 17, backend="scipy")
    assert one_by_one.block_size == plan.bytes_per_query * 17 // one_by_one.bytes_per_query < 16


class TestCase68:
    """Every node of a type is its own query."""

    edges = pa.table({"src": (1, 3), "dst": (2, 1)})
    nodes = pa.table({"id": [1, 2, 3, 4], "type": ["x", "y", "x", "x"]})

    def test_case_68_all_nodes_of_a_type(self, tmp_path: Path) -> None:
        run = seedrank.score(
            self.edges, nodes=self.nodes, all_nodes="x", out=tmp_path / "run", damping=0.85, part_size=2, **PRECISE
        )
        assert list(rows_of(run)) == [1, 3, 4]
        assert_scores_close(scores_of(run, 1), K1.expected, EXACT)
        assert_scores_close(scores_of(run, 4), {4: 1}, EXACT)
        assert [(row["seeds_given"], row["status"]) for row in rows_of(run).values()] == [(1, "ok")] * 3
        assert len(run.candidates.files) == 2
        assert run.candidates.schema.field("query_id").type == run.candidates.schema.field("node_id").type

    def test_case_68_one_option_on_the_command_line(
        self, seedrank_command: Command, write: Write, tmp_path: Path
    ) -> None:
        edges, nodes = write("edges.parquet", self.edges), write("nodes.parquet", self.nodes)
        assert seedrank_command("build", edges, "--nodes", nodes, "--out", tmp_path / "graph").code == 0
        result = seedrank_command("score", tmp_path / "graph", "--all-nodes", "y", "--out", tmp_path / "run")
        assert result.code == 0, result.err
        assert list(rows_of(seedrank.open_run(tmp_path / "run"))) == [2]
        unknown = seedrank_command("score", tmp_path / "graph", "--all-nodes", "z", "--out", tmp_path / "none")
        assert unknown.code == 3
        assert "'x', 'y'" in unknown.err

    def test_case_68_needs_node_types(self, tmp_path: Path) -> None:
        with pytest.raises(InputDataError, match="no node types"):
            seedrank.score(self.edges, all_nodes="x", out=tmp_path / "run")
