"""Fixtures and helpers shared by all tests."""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seedrank

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of real graphs beside the checkout; tests that need it are skipped where it is absent."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"no real data at {SHARED_DATA}: these tests run where it is laid out")
    return SHARED_DATA


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write columns (or a table) to a Parquet file below the test's folder; returns its path."""

    def write_file(name: str, columns: Mapping[str, Any] | pa.Table) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(columns if isinstance(columns, pa.Table) else pa.table(dict(columns)), path)
        return path

    return write_file


@dataclass(frozen=True)
class CommandResult:
    """What a run of the command line left: exit code, stdout, stderr."""

    code: int
    out: str
    err: str


@pytest.fixture
def seedrank_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., CommandResult]]:
    """Run the command line in this process, exactly as the console script does."""
    logger = logging.getLogger("seedrank")
    handlers, propagate, level = logger.handlers, logger.propagate, logger.level
    for name in [key for key in os.environ if key.startswith("SEEDRANK_")]:
        monkeypatch.delenv(name)

    def run_command(*arguments: str | Path) -> CommandResult:
        from seedrank.jobs.cli.main import run  # noqa: PLC0415  # as the console script does

        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return CommandResult(code, captured.out, captured.err)

    yield run_command
    # The command sent the package's log to a stderr that is gone now.
    logger.handlers, logger.propagate = handlers, propagate
    logger.setLevel(level)


EDGE_COLUMNS = ("src", "dst", "weight", "type")


@dataclass(frozen=True)
class Recalled:
    """A finished run: candidates of every query in order, and its row, by query id."""

    run: seedrank.Run
    candidates: dict[Any, list[dict[str, Any]]]
    rows: dict[Any, dict[str, Any]]

    @property
    def nodes(self) -> list[Any]:
        """Candidates of the query called ``q``, best first."""
        return [row["node_id"] for row in self.candidates["q"]]

    @property
    def row(self) -> dict[str, Any]:
        """What happened to the query called ``q``."""
        return self.rows["q"]

    def column(self, name: str) -> dict[Any, Any]:
        """Candidate → value of a column, of the query called ``q``."""
        return {row["node_id"]: row[name] for row in self.candidates["q"]}

    @property
    def files(self) -> list[bytes]:
        """Every part of both tables."""
        return [file.read_bytes() for table in (self.run.candidates, self.run.queries) for file in table.files]


def edge_table(edges: Any) -> pa.Table:
    """Edge tuples as a table; without edges two empty integer columns."""
    if not len(edges):
        return pa.table({"src": pa.array([], pa.int64()), "dst": pa.array([], pa.int64())})
    return pa.table({name: list(column) for name, column in zip(EDGE_COLUMNS, zip(*edges, strict=True), strict=False)})


def recalled(run: seedrank.Run) -> Recalled:
    """Read a run."""
    rows = {row["query_id"]: row for row in run.queries.to_arrow().to_pylist()}
    candidates: dict[Any, list[dict[str, Any]]] = {query: [] for query in rows}
    for row in run.candidates.to_arrow().to_pylist():
        candidates[row["query_id"]].append(row)
        assert row["rank"] == len(candidates[row["query_id"]])
        assert row["score"] > 0
    assert {query: len(found) for query, found in candidates.items()} == {
        query: row["candidates"] for query, row in rows.items()
    }
    return Recalled(run, candidates, rows)


@pytest.fixture
def recall(tmp_path: Path) -> Callable[..., Recalled]:
    """Recall from seeds: a list of nodes (of one query ``q``), or {query: list of nodes}."""
    numbers = itertools.count()

    def run_job(edges: Any, seeds: Any, **options: Any) -> Recalled:
        sets: Mapping[Any, Any] = seeds if isinstance(seeds, Mapping) else {"q": seeds}
        hits = [(query, node) for query, nodes in sets.items() for node in nodes]
        table = pa.table({"query_id": [hit[0] for hit in hits], "node_id": [hit[1] for hit in hits]})
        graph = edges if isinstance(edges, (pa.Table, seedrank.GraphStore)) else edge_table(edges)
        out = tmp_path / f"run-{next(numbers)}"
        return recalled(seedrank.score(graph, queries=table, out=out, **options))

    return run_job
