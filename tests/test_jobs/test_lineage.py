"""``--lineage-file``: events that a catalogue of OpenLineage takes, and that never end a run."""

from __future__ import annotations

import datetime as dt
import json
import os
import re
from pathlib import Path
from threading import Event
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seedrank
from seedrank.errors import ConfigError, InputDataError, InterruptedRunError
from seedrank.jobs.run.lineage import _dataset

EDGES = pa.table({"src": [0, 1, 2], "dst": [1, 2, 0]})
HITS = pa.table({"query_id": ["a", "b"], "node_id": [0, 1]})
FACET = re.compile(r"https://openlineage\.io/spec/facets/\d-\d-\d/(\w+)\.json#/\$defs/(\w+)")


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    pq.write_table(EDGES, tmp_path / "edges.parquet")
    pq.write_table(HITS, tmp_path / "hits.parquet")
    return tmp_path


def events(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def check_event(event: dict[str, Any]) -> None:
    """What the specification asks of a RunEvent and of facets (2-0-2)."""
    assert event["eventType"] in ("START", "COMPLETE", "FAIL", "ABORT")
    assert dt.datetime.fromisoformat(event["eventTime"]).tzinfo is not None
    UUID(event["run"]["runId"])
    assert event["job"].keys() >= {"namespace", "name"}
    assert re.match(r"[a-z]+:", event["producer"])
    assert event["schemaURL"] == "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
    facets = list(event["run"]["facets"].values())
    for table in (*event["inputs"], *event["outputs"]):
        assert table["namespace"]
        assert table["name"]
        facets += [*table["facets"].values(), *table.get("outputFacets", {}).values()]
    for facet in facets:
        assert facet["_producer"] == event["producer"]
        found = FACET.fullmatch(facet["_schemaURL"])
        assert found is not None
        assert found[1] == found[2]


def test_a_run_that_is_whole(inputs: Path, seedrank_command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "nightly")
    command = (
        "score", inputs / "edges.parquet", "--queries", inputs / "hits.parquet", "--out", inputs / "run",
        "--backend", "scipy", "--lineage-file", inputs / "events.jsonl", "--lineage-job", "candidates",
    )  # fmt: skip
    assert seedrank_command(*command).code == 0
    start, complete = events(inputs / "events.jsonl")
    for event in (start, complete):
        check_event(event)
        assert event["job"] == {"namespace": "nightly", "name": "candidates"}
        assert [table["name"] for table in event["inputs"]] == [
            os.path.realpath(inputs / name) for name in ("edges.parquet", "hits.parquet")
        ]
        assert {table["namespace"] for table in event["inputs"]} == {"file"}
    run = seedrank.open_run(inputs / "run")
    assert (start["eventType"], complete["eventType"]) == ("START", "COMPLETE")
    assert start["run"]["runId"] == complete["run"]["runId"]
    assert UUID(start["run"]["runId"]).hex == run.manifest.run_id
    candidates, queries = complete["outputs"]
    assert [field["name"] for field in candidates["facets"]["schema"]["fields"]] == run.candidates.schema.names
    statistics = candidates["outputFacets"]["outputStatistics"]
    file = inputs / "run" / "candidates" / "part-00000.parquet"
    assert statistics["rowCount"] == len(run.candidates)
    assert (statistics["size"], statistics["fileCount"]) == (file.stat().st_size, 1)
    assert queries["name"] == os.path.realpath(inputs / "run" / "queries")
    assert queries["outputFacets"]["outputStatistics"]["rowCount"] == 2
    assert seedrank_command(*command).code == 0  # already done: another run, which ends well at once
    assert [event["eventType"] for event in events(inputs / "events.jsonl")] == ["START", "COMPLETE"] * 2


def test_a_run_that_fails_and_one_that_is_ended(tmp_path: Path) -> None:
    told = tmp_path / "events.jsonl"
    bad = HITS.append_column("weight", pa.array([1.0, -1.0]))
    options: dict[str, Any] = {"out": tmp_path / "run", "lineage_file": str(told), "backend": "scipy"}
    with pytest.raises(InputDataError):
        seedrank.score(EDGES, queries=bad, **options)
    cancel = Event()
    cancel.set()
    with pytest.raises(InterruptedRunError):
        seedrank.score(EDGES, queries=HITS, cancel=cancel, **options)
    found = events(told)
    for event in found:
        check_event(event)
        assert event["inputs"] == []  # tables in memory
    assert [event["eventType"] for event in found] == ["START", "FAIL", "START", "ABORT"]
    assert "weight" in found[1]["run"]["facets"]["errorMessage"]["message"]
    assert len({event["run"]["runId"] for event in found}) == 2


def test_a_file_that_cannot_be_written_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run = seedrank.score(
        EDGES, queries=HITS, out=tmp_path / "run", backend="scipy", lineage_file=str(tmp_path / "none" / "events.jsonl")
    )
    assert run.manifest.state == "finished"
    assert [record.msg for record in caplog.records].count("lineage_not_written") == 2
    with pytest.raises(ConfigError, match=r"--lineage-file .* is inside --out"):
        seedrank.score(EDGES, queries=HITS, out=tmp_path / "run", lineage_file=str(tmp_path / "run" / "e.jsonl"))


def test_names_of_data_sets() -> None:
    assert _dataset("s3://bucket/runs/tonight/candidates") == {
        "namespace": "s3://bucket", "name": "runs/tonight/candidates", "facets": {},
    }  # fmt: skip
    assert _dataset("file:///data/x") == {"namespace": "file", "name": "/data/x", "facets": {}}


def test_credentials_stay_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-for-anyone-else")
    seedrank.score(
        EDGES, queries=HITS, out=tmp_path / "run", backend="scipy", lineage_file=str(tmp_path / "e.jsonl"),
        lineage_job="job with not-for-anyone-else",
    )  # fmt: skip
    assert "not-for-anyone-else" not in (tmp_path / "e.jsonl").read_text(encoding="utf-8")
