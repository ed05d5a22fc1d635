"""The run folder: schemas and encodings of both tables, parts, the manifest, the success marker, replacing a run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seedrank
from seedrank.errors import ConfigError, InputDataError
from seedrank.io.records import RunManifest, StoredFile
from seedrank.io.run.runfolder import RunFolder
from seedrank.io.storage.files import hash_file

Write = Callable[..., Path]
Command = Callable[..., Any]

CYCLE = {"src": [1, 2, 3], "dst": [2, 3, 1]}

# name, type, nullable, unit, description: the contract with every reader of a run.
CANDIDATES = [
    ("query_id", "string", False, None, "id of the query, as given"),
    ("rank", "int32", False, "1 = best", "position of the candidate in its query"),
    ("node_id", "int64", False, None, "id of the candidate, as given in the edge list"),
    (
        "score",
        "float",
        False,
        "probability; all nodes of a query sum to 1",
        "personalized PageRank of the node for the query's seeds",
    ),
]
QUERIES = [
    ("query_id", "string", False, None, "id of the query, as given"),
    ("method", "string", False, None, "the method that ran"),
    (
        "status",
        "string",
        False,
        None,
        "how the query ended: ok, no_valid_seeds, fallback_rrf, not_converged, budget_exhausted, timed_out, failed",
    ),
    ("seeds_given", "int32", True, "hits", "hits of the query; null when its seed list is null"),
    ("seeds_missing", "int32", False, "hits", "hits that are null or not in the graph"),
    ("candidates", "int32", False, "rows", "rows of the query in candidates"),
    ("iterations", "int32", True, "iterations", "iterations of the method"),
    (
        "error_bound",
        "double",
        True,
        "L1 distance",
        "upper bound of the L1 distance between the scores of all nodes and the exact solution",
    ),
    (
        "certificate",
        "string",
        True,
        None,
        (
            "what --stop top-k proved of the set of candidates: certified (no other node belongs to it), tied "
            "(rank k and its successor differ by rounding at most), tolerance (not told apart at this tolerance)"
        ),
    ),
    ("visited_nodes", "int64", True, "nodes", "distinct nodes that a walk or a traversal visited, seeds left out"),
    ("visited_edges", "int64", True, "edges", "edges that a walk or a traversal followed"),
    ("budget_hit", "string", True, None, "the limit that was met, named as its option"),
    ("truncated", "bool", True, None, "whether a limit cut something off"),
    ("plan", "string", True, None, "name of the plan that was chosen"),
    ("trace", "string", True, None, "why the plan was chosen, as JSON"),
    ("input_hash", "string", False, None, "xxh3-128 of what the query brings: hits, exclusions, attributes, vector"),
]
STAGES = {
    "read_graph", "build_graph", "write_graph", "transition", "read_queries", "load_backend", "score", "write", "total",
}  # fmt: skip


def hits_of(*queries: tuple[str, int]) -> pa.Table:
    return pa.table({"query_id": [query for query, _ in queries], "node_id": [node for _, node in queries]})


HITS = hits_of(("q3", 3), ("q1", 1), ("q5", 2), ("q2", 2), ("q4", 99))


@pytest.fixture
def run(tmp_path: Path) -> seedrank.Run:
    """Five queries, out of order, in parts of two."""
    return seedrank.score(
        pa.table(CYCLE), queries=HITS, out=tmp_path / "run", damping=0.85, part_size=2, include_seeds=True, top_k=2
    )


def described(schema: pa.Schema) -> list[tuple[str, str, bool, str | None, str]]:
    fields = []
    for field in schema:
        metadata = {key.decode(): value.decode() for key, value in field.metadata.items() if b"PARQUET" not in key}
        unit, description = metadata.pop("unit", None), metadata.pop("description")
        assert metadata == {}
        fields.append((field.name, str(field.type), field.nullable, unit, description))
    return fields


def test_schemas_of_both_tables(run: seedrank.Run) -> None:
    for file in run.candidates.files:
        assert described(pq.read_schema(file)) == CANDIDATES
    for file in run.queries.files:
        assert described(pq.read_schema(file)) == QUERIES


def test_file_metadata_says_what_made_the_table(run: seedrank.Run) -> None:
    facts = {
        "schema_version": 1,
        "method": "ppr",
        "restart": pytest.approx(0.15),
        "direction": "out",
        "edge_type": [],
        "type_weight": {},
        "dangling": "seeds",
        "precision": "float32",
        "top_k": 2,
        "max_hops": None,
        "max_iterations": 100,
        "tolerance": 1e-6,
        "stop": "tolerance",
        "source_normalization": "sum",
        "seed_source_weight": {},
        "seed_weighting": "weight",
        "seed_node_type": [],
    }
    for name, table in (("candidates", run.candidates), ("queries", run.queries)):
        for file in table.files:
            metadata = pq.read_schema(file).metadata
            assert list(metadata) == [b"seedrank"]
            assert json.loads(metadata[b"seedrank"]) == {"table": name, **facts}


def test_score_has_the_precision_of_the_run(tmp_path: Path) -> None:
    run = seedrank.score(pa.table(CYCLE), queries=HITS, out=tmp_path / "run", precision="float64")
    assert run.candidates.schema.field("score").type == pa.float64()
    assert json.loads(run.candidates.schema.metadata[b"seedrank"])["precision"] == "float64"


def test_encodings_are_really_in_the_files(run: seedrank.Run) -> None:
    for table, floats in ((run.candidates, {"score"}), (run.queries, {"error_bound"})):
        for file in table.files[:2]:
            group = pq.ParquetFile(file).metadata.row_group(0)
            columns = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
            assert {column.compression for column in columns.values()} == {"ZSTD"}
            for name in floats:
                assert "BYTE_STREAM_SPLIT" in columns[name].encodings
                assert not columns[name].has_dictionary_page
            for name in ("query_id", "node_id", "status", "method"):
                if name in columns:
                    assert columns[name].has_dictionary_page, name
                    assert "RLE_DICTIONARY" in columns[name].encodings, name


def test_the_columns_inside_paths_have_dictionaries(tmp_path: Path) -> None:
    edges = {**CYCLE, "type": ["x"] * len(CYCLE["src"])}
    run = seedrank.score(pa.table(edges), queries=HITS, out=tmp_path / "run", paths=True)
    group = pq.ParquetFile(run.candidates.files[0]).metadata.row_group(0)
    columns = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
    inside = [f"path.list.element.{name}" for name in ("src", "dst", "type", "weight")]
    assert {name for name in ["hops", "anchor_id", *inside] if not columns[name].has_dictionary_page} == set()


def test_rows_are_sorted_by_query_and_rank(run: seedrank.Run) -> None:
    candidates = run.candidates.to_arrow()
    keys = list(zip(*(candidates.column(name).to_pylist() for name in ("query_id", "rank")), strict=True))
    assert keys == [(f"q{query}", rank) for query in (1, 2, 3, 5) for rank in (1, 2)]
    assert run.queries.to_arrow().column("query_id").to_pylist() == ["q1", "q2", "q3", "q4", "q5"]


def test_parts_are_fixed_ranges_of_queries(run: seedrank.Run) -> None:
    names = [f"part-{part:05d}.parquet" for part in range(3)]
    assert sorted(path.name for path in (run.path / "candidates").iterdir()) == names
    assert sorted(path.name for path in (run.path / "queries").iterdir()) == names
    for table, expected in (
        (run.queries, [["q1", "q2"], ["q3", "q4"], ["q5"]]),
        (run.candidates, [["q1", "q1", "q2", "q2"], ["q3", "q3"], ["q5", "q5"]]),
    ):
        assert [pq.read_table(file).column("query_id").to_pylist() for file in table.files] == expected


def test_query_rows_agree_with_the_candidates(run: seedrank.Run) -> None:
    rows = run.queries.to_arrow().to_pylist()
    assert [row["candidates"] for row in rows] == [2, 2, 2, 0, 2]
    assert [row["status"] for row in rows] == ["ok", "ok", "ok", "no_valid_seeds", "ok"]
    assert {row["method"] for row in rows} == {"ppr"}
    for row in rows:
        unmeasured = ("certificate", "visited_nodes", "visited_edges", "budget_hit", "truncated", "plan", "trace")
        assert [row[name] for name in unmeasured] == [None] * 7
        assert (row["iterations"] is None) == (row["error_bound"] is None) == (row["status"] == "no_valid_seeds")


def test_iterations_exhausted_is_not_converged(tmp_path: Path) -> None:
    run = seedrank.score(pa.table(CYCLE), queries=HITS, out=tmp_path / "a", max_iterations=3, damping=0.85)
    rows = run.queries.to_arrow().to_pylist()
    assert [row["status"] for row in rows] == ["not_converged"] * 3 + ["no_valid_seeds", "not_converged"]
    assert rows[0]["iterations"] == 3
    assert 1e-6 < rows[0]["error_bound"] <= 2 * 0.85**3 + 1e-4
    assert rows[0]["candidates"] == 2
    fixed = seedrank.score(pa.table(CYCLE), queries=HITS, out=tmp_path / "b", max_iterations=3, tolerance=0)
    rows = fixed.queries.to_arrow().to_pylist()
    assert [(row["status"], row["iterations"]) for row in rows[:3]] == [("ok", 3)] * 3


def test_zero_queries_give_one_empty_part_with_schema(tmp_path: Path) -> None:
    run = seedrank.score(pa.table(CYCLE), queries=HITS.slice(0, 0), out=tmp_path / "run")
    assert [file.name for file in run.candidates.files] == ["part-00000.parquet"]
    assert [file.name for file in run.queries.files] == ["part-00000.parquet"]
    assert (len(run.candidates), len(run.queries)) == (0, 0)
    assert described(run.candidates.schema) == CANDIDATES
    assert described(run.queries.schema) == QUERIES
    assert (run.manifest.state, run.manifest.parts_planned) == ("finished", 1)


def test_folder_holds_nothing_else(run: seedrank.Run) -> None:
    assert {path.name for path in run.path.iterdir()} == {"run.json", "candidates", "queries", "graph", "_SUCCESS"}
    assert (run.path / "_SUCCESS").read_bytes() == b""


def test_success_marker_comes_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}

    def look(folder: RunFolder) -> None:
        seen["state"] = RunManifest.model_validate_json((folder.path / "run.json").read_text()).state
        seen["names"] = {path.name for path in folder.path.iterdir()}

    monkeypatch.setattr(RunFolder, "mark_success", look)
    seedrank.score(pa.table(CYCLE), queries=HITS, out=tmp_path / "run")
    assert seen == {"state": "finished", "names": {"run.json", "candidates", "queries", "graph"}}


def test_candidates_of_a_part_appear_before_its_query_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    published: list[str] = []

    def note(staged: Path, final: Path) -> None:
        published.append(f"{final.parent.name}/{final.name}")
        staged.replace(final)

    monkeypatch.setattr("seedrank.io.run.part_writers.publish", note)
    seedrank.score(pa.table(CYCLE), queries=HITS, out=tmp_path / "run", part_size=3)
    assert published == [f"{kind}/part-0000{part}.parquet" for part in (0, 1) for kind in ("candidates", "queries")]


class TestManifest:
    """``run.json`` of a finished run."""

    def test_is_complete(self, run: seedrank.Run) -> None:
        text = (run.path / "run.json").read_text(encoding="utf-8")
        manifest = RunManifest.model_validate_json(text)
        assert manifest == run.manifest
        assert [name for name, value in manifest if value is None] == ["error", "planner_rules", "vectors", "range"]
        assert (manifest.schema_version, manifest.state, manifest.part_size) == (1, "finished", 2)
        assert manifest.seedrank_version == seedrank.__version__
        assert manifest.started_at <= str(manifest.finished_at)
        assert manifest.started_at.endswith("+00:00")
        assert manifest.versions.keys() == {"python", "numpy", "scipy", "numba", "pyarrow"}

    def test_graph_backend_and_queries(self, run: seedrank.Run) -> None:
        manifest = run.manifest
        assert manifest.graph is not None
        assert manifest.backend is not None
        assert manifest.queries is not None
        graph = manifest.graph.model_dump(include={"nodes", "edges", "dangling", "weighted", "id_type"})
        assert graph == {"nodes": 3, "edges": 3, "dangling": 0, "weighted": False, "id_type": "int64"}
        assert manifest.graph.built_in_this_run
        assert Path(manifest.graph.path) == run.path / "graph"
        assert manifest.graph.store_bytes == seedrank.open_graph(run.path / "graph").store_bytes
        assert (manifest.backend.name, manifest.backend.requested) == ("cpu", "auto")
        assert manifest.backend.reason
        assert manifest.backend.bytes_per_query > 0
        assert manifest.queries.model_dump() == {
            "total": 5,
            "by_status": {"no_valid_seeds": 1, "ok": 4},
            "seeds_given": 5,
            "seeds_missing": 1,
            "taken_over": 0,
        }

    def test_parts_agree_with_the_files(self, run: seedrank.Run) -> None:
        parts = run.manifest.parts
        assert [(part.part, part.first_query, part.queries) for part in parts] == [(0, 0, 2), (1, 2, 2), (2, 4, 1)]
        for part, candidates, queries in zip(parts, run.candidates.files, run.queries.files, strict=True):
            assert part.candidates == pq.read_metadata(candidates).num_rows
            for stored, file in ((part.candidates_file, candidates), (part.queries_file, queries)):
                assert (stored.bytes, stored.xxh3_128) == (file.stat().st_size, hash_file(file))
            rows = pq.read_table(queries).to_pylist()
            assert part.iterations == sum(row["iterations"] or 0 for row in rows)
            assert part.largest_error_bound == max(row["error_bound"] or 0 for row in rows)
            assert (part.failed_queries, part.unfinished_queries) == (0, 0)
            assert part.by_status == dict(Counter(row["status"] for row in rows))

    def test_timings_and_memory(self, run: seedrank.Run) -> None:
        timings = run.manifest.timings_s
        assert timings.keys() == STAGES
        assert all(seconds >= 0 for seconds in timings.values())
        # Hits are read and parts are written beside the rest.
        beside = {"read_queries", "write"}
        in_turn = sum(seconds for name, seconds in timings.items() if name not in beside | {"total"})
        assert in_turn <= timings["total"] + 1e-3
        assert all(timings[name] <= timings["total"] for name in beside)
        assert run.manifest.peak_memory_bytes is not None
        assert run.manifest.peak_memory_bytes > 10_000_000

    def test_inputs_are_named_and_counted(self, write: Write, tmp_path: Path) -> None:
        for part in range(2):
            write(f"edges/part-{part}.parquet", {"src": [part], "dst": [part + 1]})
        hits = write("hits.parquet", HITS)
        seen = write("seen.parquet", {"node_id": [2]})
        run = seedrank.score(tmp_path / "edges", queries=hits, exclude=seen, out=tmp_path / "run")
        inputs = run.manifest.inputs
        assert inputs.keys() == {"graph", "queries", "exclude"}
        assert [(Path(file.uri).name, file.rows) for file in inputs["graph"].files] == [
            ("part-0.parquet", 1),
            ("part-1.parquet", 1),
        ]
        (record,) = inputs["queries"].files
        assert (Path(record.uri), record.rows, record.bytes) == (hits, 5, hits.stat().st_size)
        assert all(len(item.fingerprint) == 32 for item in inputs.values())


class TestReplacing:
    """What may stand at --out."""

    def test_parts_of_a_run_need_overwrite(self, run: seedrank.Run) -> None:
        before = (run.path / "run.json").read_bytes()
        with pytest.raises(ConfigError, match=r"(?s)already holds the parts.*--overwrite"):
            seedrank.score(pa.table(CYCLE), queries=HITS, out=run.path, resume="never")
        with pytest.raises(ConfigError, match=r"(?s)holds the parts of another run.*--overwrite"):
            seedrank.score(pa.table(CYCLE), queries=HITS, out=run.path)
        assert (run.path / "run.json").read_bytes() == before
        again = seedrank.score(pa.table(CYCLE), queries=hits_of(("new", 1)), out=run.path, overwrite=True)
        assert [file.name for file in again.candidates.files] == ["part-00000.parquet"]
        assert again.queries.to_arrow().column("query_id").to_pylist() == ["new"]

    @pytest.mark.parametrize("foreign", ["notes.txt", "candidates/part-00000.parquet", "graph/graph.json"])
    def test_a_folder_that_no_run_wrote_is_refused(self, tmp_path: Path, foreign: str) -> None:
        path = tmp_path / "out" / foreign
        path.parent.mkdir(parents=True)
        path.write_text("precious")
        with pytest.raises(ConfigError, match=rf"{Path(foreign).parts[0]}.*not part of a run"):
            seedrank.score(pa.table(CYCLE), queries=HITS, out=tmp_path / "out", overwrite=True)
        assert path.read_text() == "precious"
        assert len(list((tmp_path / "out").rglob("*"))) == len(Path(foreign).parts)

    def test_a_run_folder_with_something_else_in_it_is_refused(self, run: seedrank.Run) -> None:
        (run.path / "notes.txt").write_text("precious")
        with pytest.raises(ConfigError, match=r"notes\.txt"):
            seedrank.score(pa.table(CYCLE), queries=HITS, out=run.path, overwrite=True)
        assert len(run.candidates) == 8

    def test_a_file_is_refused(self, write: Write) -> None:
        path = write("file.parquet", {"x": [1]})
        with pytest.raises(ConfigError, match="is a file"):
            seedrank.score(pa.table(CYCLE), queries=HITS, out=path, overwrite=True)

    def test_an_empty_folder_is_used(self, tmp_path: Path) -> None:
        (tmp_path / "run").mkdir()
        assert len(seedrank.score(pa.table(CYCLE), queries=HITS, out=tmp_path / "run").queries) == 5

    def test_a_failed_run_says_why_and_is_taken_over(self, tmp_path: Path) -> None:
        bad = pa.table({"query_id": ["q"], "node_id": [1], "weight": [-1.0]})
        with pytest.raises(InputDataError) as caught:
            seedrank.score(pa.table(CYCLE), queries=bad, out=tmp_path / "run")
        manifest = RunManifest.model_validate_json((tmp_path / "run" / "run.json").read_text())
        assert (manifest.state, manifest.error) == ("failed", str(caught.value))
        assert manifest.finished_at is not None
        assert not (tmp_path / "run" / "_SUCCESS").exists()
        with pytest.raises(InputDataError, match=r"(?s)no part.*run\.json"):
            seedrank.open_run(tmp_path / "run").candidates.to_arrow()
        run = seedrank.score(pa.table(CYCLE), queries=HITS, out=tmp_path / "run")
        assert (run.manifest.state, run.manifest.error) == ("finished", None)

    def test_a_run_that_dies_half_way_keeps_its_parts_and_no_marker(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(self: RunFolder, part: int, **tables: pa.Table) -> tuple[StoredFile, StoredFile]:
            if part == 1:
                raise KeyboardInterrupt
            return original(self, part, **tables)

        original = RunFolder.write_part
        monkeypatch.setattr(RunFolder, "write_part", full)
        with pytest.raises(KeyboardInterrupt):
            seedrank.score(pa.table(CYCLE), queries=HITS, out=tmp_path / "run", part_size=2)
        run = seedrank.open_run(tmp_path / "run")
        assert (run.manifest.state, run.manifest.error) == ("interrupted", "KeyboardInterrupt()")
        assert [part.part for part in run.manifest.parts] == [0]
        assert len(run.queries) == 2
        assert not (run.path / "_SUCCESS").exists()
