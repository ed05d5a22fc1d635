"""``--restart`` given several times: one pass, a ``restart`` column, the numbers of separate runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import seedrank
from seedrank.errors import ConfigError
from seedrank.testing.toys import K2

Write = Callable[..., Path]

EDGES = {"src": [edge[0] for edge in K2.edges], "dst": [edge[1] for edge in K2.edges]}
HITS = {"query_id": [7, 7, 3, 5], "node_id": ["A", "C", "B", "?"]}
PRECISE: dict[str, Any] = {"precision": "float64", "tolerance": 1e-12, "max_iterations": 1000, "include_seeds": True}


def score(tmp_path: Path, name: str, **options: Any) -> seedrank.Run:
    return seedrank.score(pa.table(EDGES), queries=pa.table(HITS), out=tmp_path / name, **PRECISE, **options)


@pytest.mark.parametrize("backend", ["cpu", "scipy"])
@pytest.mark.parametrize("dangling", ["seeds", "self", "uniform"])
def test_the_numbers_are_those_of_separate_runs(tmp_path: Path, backend: str, dangling: str) -> None:
    options: dict[str, Any] = {"backend": backend, "dangling": dangling}
    run = score(tmp_path, "all", restart=[0.9, 0.15, 0.5], **options)
    table = run.candidates.to_arrow()
    keys = list(zip(*(table[name].to_pylist() for name in ("query_id", "restart", "rank")), strict=True))
    assert keys == sorted(keys)
    for restart in (0.15, 0.5, 0.9):
        alone = score(tmp_path, f"{restart}", restart=restart, **options)
        found = [row for row in table.to_pylist() if row.pop("restart") == restart]
        expected = alone.candidates.to_arrow().to_pylist()
        assert [(row["query_id"], row["rank"], row["node_id"]) for row in found] == [
            (row["query_id"], row["rank"], row["node_id"]) for row in expected
        ]
        assert [row["score"] for row in found] == pytest.approx([row["score"] for row in expected], abs=1e-11)
        rows = [row for row in run.queries.to_arrow().to_pylist() if row.pop("restart") == restart]
        others = alone.queries.to_arrow().to_pylist()
        for name in ("query_id", "status", "seeds_given", "seeds_missing", "candidates"):
            assert [row[name] for row in rows] == [row[name] for row in others]
        assert [row["iterations"] is None for row in rows] == [False, True, False]


def test_damping_is_the_same_setting(tmp_path: Path) -> None:
    by_restart = score(tmp_path, "restart", restart=[0.25, 0.5]).candidates.to_arrow()
    by_damping = score(tmp_path, "damping", damping=(0.75, 0.5)).candidates.to_arrow()
    assert by_restart.equals(by_damping)


def test_the_manifest_counts_results(tmp_path: Path) -> None:
    manifest = score(tmp_path, "run", restart=[0.25, 0.5]).manifest
    assert manifest.options["restart"].value == [0.25, 0.5]
    assert manifest.queries is not None
    assert manifest.queries.total == 3
    assert manifest.queries.by_status == {"no_valid_seeds": 2, "ok": 4}
    assert manifest.backend is not None
    assert manifest.backend.solver == "steps, shared by 2 restart probabilities"


def test_one_restart_has_no_column(tmp_path: Path) -> None:
    run = score(tmp_path, "run", restart=[0.25])
    assert "restart" not in run.candidates.schema.names
    assert run.manifest.options["restart"].value == 0.25


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"restart": [0.2, 0.2]}, "given twice"),
        ({"restart": []}, "without a value"),
        ({"restart": [0.2, 0.5], "tolerance": 0}, "several restart probabilities need --tolerance > 0"),
        ({"restart": [0.2, 0.5], "stop": "top-k"}, "several restart probabilities are given with --stop top-k"),
        ({"restart": [0.2, 1.5]}, "less than or equal to 1"),
        ({"restart": 0.2, "damping": [0.5]}, "one setting"),
        ({"restart": "many"}, "valid number"),
    ],
)
def test_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        seedrank.plan(pa.table(EDGES), queries=pa.table(HITS), **options)


def test_flags_environment_and_file(
    seedrank_command: Callable[..., Any], write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edges, hits = write("edges.parquet", EDGES), write("hits.parquet", HITS)
    config = tmp_path / "run.toml"
    config.write_text("[score]\nrestart = 0.3\n")
    arguments = ["score", edges, "--queries", hits, "--config", config]

    def recorded(name: str, *more: str) -> Any:
        result = seedrank_command(*arguments, "--out", tmp_path / name, *more)
        assert result.code == 0, result.err
        return seedrank.open_run(tmp_path / name).manifest.options["restart"].model_dump()

    assert recorded("file") == {"value": 0.3, "origin": "file"}
    assert recorded("flags", "--restart", "0.5", "--restart", "0.2") == {"value": [0.2, 0.5], "origin": "flag"}
    monkeypatch.setenv("SEEDRANK_SCORE_RESTART", "0.15 0.85")
    assert recorded("environment") == {"value": [0.15, 0.85], "origin": "env"}
    config.write_text("[score]\ndamping = [0.1, 0.2]\n")
    monkeypatch.delenv("SEEDRANK_SCORE_RESTART")
    assert recorded("list") == {"value": pytest.approx([0.8, 0.9]), "origin": "file"}


def test_strict_counts_every_result(seedrank_command: Callable[..., Any], write: Write, tmp_path: Path) -> None:
    """Around a cycle the walk goes on for ever: the difference shrinks by the damping factor only."""
    edges = write("edges.parquet", {"src": [1, 2, 3], "dst": [2, 3, 1]})
    hits = write("hits.parquet", {"query_id": [1], "node_id": [1]})
    arguments = ["score", edges, "--queries", hits, "--restart", "0.05", "--restart", "0.9", "--strict"]
    result = seedrank_command(*arguments, "--out", tmp_path / "run", "--max-iterations", "20")
    assert result.code == 6
    assert "1 of 2 queries ended with a status other than ok" in result.err


def test_paths_and_hops_are_those_of_the_query_whatever_the_restart(tmp_path: Path) -> None:
    options: dict[str, Any] = {"paths": True, "max_hops": 1}
    table = score(tmp_path, "all", restart=[0.9, 0.15], **options).candidates.to_arrow()
    for restart in (0.15, 0.9):
        alone = score(tmp_path, f"{restart}", restart=restart, **options).candidates.to_arrow().to_pylist()
        assert {(row["query_id"], row["node_id"]) for row in alone} == {
            (3, "B"), (3, "C"), (3, "D"), (7, "A"), (7, "B"), (7, "C"),
        }  # fmt: skip
        found = [row for row in table.to_pylist() if row["restart"] == restart]
        for name in ("query_id", "node_id", "hops", "anchor_id", "path"):
            assert [row[name] for row in found] == [row[name] for row in alone]


def test_explain_says_which(tmp_path: Path) -> None:
    run = score(tmp_path, "run", restart=[0.9, 0.15])
    for row in run.candidates.to_arrow().to_pylist():
        found = seedrank.explain(
            run.path, query=row["query_id"], node=row["node_id"], restart=row["restart"], queries=pa.table(HITS)
        )
        assert (found.score, found.rank, found.restart) == (row["score"], row["rank"], row["restart"])
        assert found.contributions is not None
        assert found.contribution_bound is not None
        total = sum(part.contribution for part in found.contributions)
        assert abs(total - row["score"]) <= found.contribution_bound
    with pytest.raises(ConfigError, match=r"(?s)several restart probabilities.*0\.15, 0\.9"):
        seedrank.explain(run.path, query=7, node="A", queries=pa.table(HITS))
    with pytest.raises(ConfigError, match=r"(?s)0\.5 is not in the run.*0\.15, 0\.9"):
        seedrank.explain(run.path, query=7, node="A", restart=0.5, queries=pa.table(HITS))


def test_a_walk_takes_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="2 restart probabilities are given with --method walk"):
        seedrank.score(pa.table(EDGES), queries=pa.table(HITS), out=tmp_path / "run", method="walk", restart=[0.2, 0.5])


def test_a_deadline_leaves_a_row_for_each(tmp_path: Path) -> None:
    rows = score(tmp_path, "run", restart=[0.2, 0.5], deadline_s=1e-9).queries.to_arrow().to_pylist()
    assert [(row["query_id"], row["restart"], row["status"]) for row in rows] == [
        (3, 0.2, "timed_out"), (3, 0.5, "timed_out"), (5, 0.2, "no_valid_seeds"), (5, 0.5, "no_valid_seeds"),
        (7, 0.2, "timed_out"), (7, 0.5, "timed_out"),
    ]  # fmt: skip
