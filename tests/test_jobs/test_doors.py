"""Refusals at the door: what an earlier run, a plan and a message look like after them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import seedrank
from seedrank.errors import InputDataError, ResourceError

Write = Callable[..., Path]

CYCLE = pa.table({"src": [1, 2, 3], "dst": [2, 3, 1]})
HITS = pa.table({"query_id": ["q1"], "node_id": [1]})


def content(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize(
    ("queries", "options", "error"),
    [
        ("nowhere.parquet", {}, InputDataError),
        (HITS, {"edge_type": ("none",)}, InputDataError),
        (HITS, {"source": ("none",)}, InputDataError),
        (HITS, {"memory_limit": 1}, ResourceError),
    ],
)
def test_a_run_that_is_refused_leaves_the_earlier_one_as_it_was(
    tmp_path: Path, queries: object, options: dict[str, object], error: type[Exception]
) -> None:
    out = tmp_path / "run"
    seedrank.score(CYCLE, queries=HITS, out=out)
    before = content(out)
    with pytest.raises(error):
        seedrank.score(CYCLE, queries=queries, out=out, overwrite=True, **options)  # type: ignore[arg-type]
    assert content(out) == before
    assert [child.name for child in tmp_path.iterdir()] == ["run"]


def test_a_run_that_starts_replaces_the_earlier_one_completely(tmp_path: Path) -> None:
    out = tmp_path / "run"
    many = pa.table({"query_id": range(5), "node_id": [1, 2, 3, 1, 2]})
    seedrank.score(CYCLE, queries=many, out=out, part_size=1)
    seedrank.score(CYCLE, queries=HITS, out=out, overwrite=True)
    assert [file.name for file in (out / "candidates").iterdir()] == ["part-00000.parquet"]
    assert [child.name for child in tmp_path.iterdir()] == ["run"]


def test_the_tables_of_a_run_without_parts_say_so(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with pytest.raises(InputDataError):
        seedrank.score(CYCLE, queries="nowhere.parquet", out=out)
    run = seedrank.open_run(out)
    assert run.manifest.state == "failed"
    assert "nowhere.parquet" in (run.manifest.error or "")
    with pytest.raises(InputDataError, match="no parts"):
        run.candidates.to_arrow()


def test_plan_counts_a_table_in_memory(tmp_path: Path) -> None:
    stream = pa.RecordBatchReader.from_batches(CYCLE.schema, CYCLE.to_batches())
    found = seedrank.plan(stream, queries=HITS)
    assert (found.edges, found.nodes) == (3, 6)


def test_case_10_the_message_names_both_places(tmp_path: Path) -> None:
    words = pa.table({"src": ["a"], "dst": ["b"]})
    with pytest.raises(
        InputDataError,
        match=r"node_id of the hits in queries \(table in memory\) has int64 ids, the graph .*/graph has string ids",
    ):
        seedrank.score(words, queries=HITS, out=tmp_path / "run")


def test_plan_refuses_names_that_the_graph_does_not_have(tmp_path: Path) -> None:
    nodes = pa.table({"id": [1], "type": ["x"]})
    store = seedrank.build(CYCLE, nodes=nodes, out=tmp_path / "graph")
    with pytest.raises(InputDataError, match="--node-type 'y'"):
        seedrank.plan(store, queries=HITS, node_type=["x", "y"])
    with pytest.raises(InputDataError, match="--edge-type 'y'"):
        seedrank.plan(store, queries=HITS, edge_type=["y"])


def test_top_k_beyond_the_graph_costs_nothing(tmp_path: Path) -> None:
    run = seedrank.score(CYCLE, queries=HITS, out=tmp_path / "run", top_k=2**31 - 1, include_seeds=True)
    assert len(run.candidates) == 3


def test_what_an_interrupted_start_leaves_is_taken_over(tmp_path: Path) -> None:
    out = tmp_path / "run"
    for leftover in (".graph.staged-4711", "_tmp"):
        (out / leftover).mkdir(parents=True)
    (out / ".run.json.staged").touch()
    run = seedrank.score(CYCLE, queries=HITS, out=out)
    assert run.manifest.state == "finished"
    assert {child.name for child in out.iterdir()} == {"run.json", "candidates", "queries", "graph", "_SUCCESS"}


def test_parts_beyond_99999_come_in_order(tmp_path: Path) -> None:
    run = seedrank.score(CYCLE, queries=HITS, out=tmp_path / "run")
    folder = run.candidates.folder
    for part in (99_999, 100_000):
        (folder / f"part-{part:05d}.parquet").write_bytes((folder / "part-00000.parquet").read_bytes())
    assert [file.name for file in run.candidates.files][-2:] == ["part-99999.parquet", "part-100000.parquet"]


@pytest.mark.parametrize("options", [{"restart": 1e-9}, {"tolerance": 5e-324}, {"restart": 1.0}])
def test_extreme_restarts_and_tolerances_run(tmp_path: Path, options: dict[str, float]) -> None:
    run = seedrank.score(CYCLE, queries=HITS, out=tmp_path / "run", precision="float64", **options)  # type: ignore[arg-type]
    assert run.queries.to_arrow().column("status").to_pylist()[0] in ("ok", "not_converged")
