"""What a run tells the outside world: events, metrics, progress."""

from __future__ import annotations

import ast
import json
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from prometheus_client.parser import text_string_to_metric_families

import seedrank
from seedrank.errors import ConfigError, StorageError
from seedrank.io.run.runfolder import RunFolder
from seedrank.jobs.cli.console import LineReporter
from seedrank.jobs.progress import Silent
from seedrank.jobs.run.metrics import metrics_text

Command = Callable[..., Any]

EDGES = pa.table({"src": [1, 2, 3], "dst": [2, 3, 1]})
HITS = pa.table({"query_id": ["a", "b", "c"], "node_id": [1, 2, 99]})
DOCS = Path(__file__).parents[2] / "docs" / "operations.md"
LEVELS = {"debug", "info", "warning", "error", "exception"}


def samples(path: Path) -> dict[tuple[str, tuple[str, ...]], float]:
    """Metrics of a file, as Prometheus' own parser reads them, by name and the values of their labels."""
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(path.read_text(encoding="utf-8"))
        for sample in family.samples
    }


def test_metrics_say_what_the_manifest_says(tmp_path: Path) -> None:
    file = tmp_path / "seedrank.prom"
    run = seedrank.score(EDGES, queries=HITS, out=tmp_path / "run", part_size=2, metrics_file=str(file))
    found, manifest = samples(file), run.manifest
    assert found["seedrank_queries_total", ("ok",)] == 2
    assert found["seedrank_queries_total", ("no_valid_seeds",)] == 1
    assert found["seedrank_queries_planned", ()] == 3
    assert found["seedrank_candidates_total", ()] == len(run.candidates)
    assert found["seedrank_parts_done", ()] == found["seedrank_parts_planned", ()] == 2
    assert {state[0]: value for (name, state), value in found.items() if name == "seedrank_run_state"} == {
        "running": 0, "finished": 1, "incomplete": 0, "failed": 0, "interrupted": 0,
    }  # fmt: skip
    assert found["seedrank_seconds", ("score",)] == manifest.timings_s["score"]
    assert found["seedrank_peak_memory_bytes", ()] > 1e7
    (labels,) = [labels for name, labels in found if name == "seedrank_run_info"]
    assert manifest.backend is not None
    assert labels == (manifest.seedrank_version, "ppr", manifest.backend.name, manifest.run_id, manifest.run_key)
    assert {child.name for child in tmp_path.iterdir()} == {"seedrank.prom", "run"}


def test_metrics_are_whole_after_every_part_and_remember_the_last_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, done = tmp_path / "seedrank.prom", []
    seedrank.score(EDGES, queries=HITS, out=tmp_path / "first", metrics_file=str(file))
    success = samples(file)["seedrank_last_success_timestamp_seconds", ()]
    write_part = RunFolder.write_part

    def failing(self: RunFolder, part: int, **tables: Any) -> Any:
        found = samples(file)
        done.append(found["seedrank_parts_done", ()])
        assert found["seedrank_run_state", ("running",)] == 1
        assert found["seedrank_last_success_timestamp_seconds", ()] == success
        if part == 2:
            raise StorageError("the disk is full")
        return write_part(self, part, **tables)

    monkeypatch.setattr(RunFolder, "write_part", failing)
    with pytest.raises(StorageError):
        seedrank.score(EDGES, queries=HITS, out=tmp_path / "run", part_size=1, metrics_file=str(file))
    assert done == [0, 1, 2]
    found = samples(file)
    assert found["seedrank_run_state", ("failed",)] == 1
    assert found["seedrank_last_success_timestamp_seconds", ()] == success
    monkeypatch.undo()
    again = seedrank.score(EDGES, queries=HITS, out=tmp_path / "run", part_size=1, metrics_file=str(file))
    assert not again.already_done
    assert samples(file)["seedrank_last_success_timestamp_seconds", ()] > success


def test_metrics_of_a_run_that_was_done_already(tmp_path: Path) -> None:
    seedrank.score(EDGES, queries=HITS, out=tmp_path / "run")
    file = tmp_path / "seedrank.prom"
    assert seedrank.score(EDGES, queries=HITS, out=tmp_path / "run", metrics_file=str(file)).already_done
    assert samples(file)["seedrank_run_state", ("finished",)] == 1
    assert samples(file)["seedrank_queries_total", ("ok",)] == 2


def test_where_metrics_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="inside --out"):
        seedrank.score(EDGES, queries=HITS, out=tmp_path / "run", metrics_file=str(tmp_path / "run" / "m.prom"))
    with pytest.raises(StorageError, match="metrics-file"):
        seedrank.score(EDGES, queries=HITS, out=tmp_path / "run", metrics_file=str(tmp_path / "none" / "m.prom"))
    with pytest.raises(StorageError):  # what stands there is put back
        seedrank.score(
            EDGES, queries=HITS, out=tmp_path / "run", overwrite=True, metrics_file=str(tmp_path / "none" / "m.prom")
        )
    assert "seedrank_last_success" not in metrics_text(
        seedrank.score(EDGES, queries=HITS, out=tmp_path / "run").manifest, last_success=None
    )


def test_labels_are_escaped(tmp_path: Path) -> None:
    manifest = seedrank.score(EDGES, queries=HITS, out=tmp_path / "run").manifest
    odd = manifest.model_copy(update={"run_key": 'a"b\\c\nd'})
    (tmp_path / "m.prom").write_text(metrics_text(odd, last_success=1.5), encoding="utf-8")
    (labels,) = [labels for name, labels in samples(tmp_path / "m.prom") if name == "seedrank_run_info"]
    assert labels[-1] == 'a"b\\c\nd'


def test_every_line_of_a_json_log_has_the_run_id(seedrank_command: Command, tmp_path: Path) -> None:
    pq.write_table(EDGES, tmp_path / "edges.parquet")
    pq.write_table(HITS, tmp_path / "hits.parquet")
    command = ("score", tmp_path / "edges.parquet", "--queries", tmp_path / "hits.parquet", "--out", tmp_path / "run")
    result = seedrank_command(*command, "--log-format", "json")
    lines = [json.loads(line) for line in result.err.splitlines()]
    assert {line["event"] for line in lines} >= {"graph_read", "backend_chosen", "part_done", "run_closed"}
    run_id = seedrank.open_run(tmp_path / "run").manifest.run_id
    assert {line["run_id"] for line in lines} == {run_id}
    parts = [file.read_bytes() for file in (tmp_path / "run").glob("*/part-*.parquet")]
    assert run_id is not None
    assert not any(run_id.encode() in part for part in parts)


def test_case_64_at_most_one_line_an_interval(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = [0.0]
    monkeypatch.setattr("seedrank.jobs.cli.console.time.monotonic", lambda: now[0])
    reporter = LineReporter(interval_s=10)
    with caplog.at_level(logging.INFO, logger="seedrank.progress"):
        reporter.start(1000)
        for _ in range(1000):
            now[0] += 0.035
            reporter.advance(1, 1 / now[0] if now[0] < 15 else None)
        reporter.finish()
    lines = [record.__dict__ for record in caplog.records if record.msg == "progress"]
    assert [line["queries_done"] for line in lines] == [286, 572, 858]
    assert lines[0]["queries_per_second"] == pytest.approx(28.6, abs=0.1)
    assert lines[2]["seconds_left"] == pytest.approx(142 * 0.035, abs=0.1)
    bounds = [line.get("largest_error_bound") for line in lines]  # since the line before
    assert bounds == [pytest.approx(1 / 0.035), pytest.approx(1 / (287 * 0.035)), None]


def test_metrics_are_written_while_a_part_is_in_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("seedrank.jobs.run.metrics.time.monotonic", lambda: now[0])
    file = tmp_path / "m.prom"
    seen = []

    class Watch(Silent):
        def advance(self, queries: int, error_bound: float | None = None) -> None:
            seen.append(samples(file))
            now[0] += 6
            if error_bound is not None:
                bounds.append(error_bound)

    bounds: list[float] = []
    hits = pa.table({"query_id": range(6), "node_id": [1, 2, 3] * 2})
    run = seedrank.score(
        EDGES, queries=hits, out=tmp_path / "run", block_size=1, metrics_file=str(file), reporter=Watch()
    )
    # One part of six blocks (before them the count of queries without seeds): every second one is ten seconds later.
    assert [found["seedrank_queries_scored", ()] for found in seen] == [0, 0, 1, 1, 3, 3, 5]
    assert [found["seedrank_parts_done", ()] for found in seen] == [0] * 7
    assert seen[-1]["seedrank_largest_error_bound", ()] == max(bounds[:5])
    found = samples(file)
    assert found["seedrank_queries_scored", ()] == 6
    assert found["seedrank_largest_error_bound", ()] == run.manifest.parts[0].largest_error_bound == max(bounds)


def test_every_event_is_documented_and_none_else() -> None:
    if not DOCS.is_file():
        pytest.skip("needs a checkout, not only the installed package")
    events = set()
    for file in Path(seedrank.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in LEVELS
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id == "log"
            ):
                (event,) = node.args
                assert isinstance(event, ast.Constant), f"{file}: an event without a fixed name"
                events.add(event.value)
    section = DOCS.read_text(encoding="utf-8").partition("## Logs and metrics")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]+`) \|", section, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == events
