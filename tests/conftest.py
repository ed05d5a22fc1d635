"""Fixtures and helpers shared by all tests."""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fake_device import cugraph_device, device_for_gpu, gpu_device  # noqa: F401  # fixtures

import seedrank

#: A real S3 API on loopback, for the tests of storages; commands in processes that start at once.
pytest_plugins = ["object_store", "forked_commands"]

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the tests that wait for storages and other processes: one of them at the end would run alone."""
    items.sort(key=lambda item: item.path.parent.name != "test_storage")


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


@dataclass(frozen=True)
class Fused:
    """A finished run: candidates of every query in order, and its row, by query id."""

    run: seedrank.Run
    candidates: dict[Any, list[dict[str, Any]]]
    rows: dict[Any, dict[str, Any]]

    def nodes(self, query: Any = "q") -> list[Any]:
        """Candidates, best first."""
        return [row["node_id"] for row in self.candidates[query]]

    def column(self, name: str, query: Any = "q") -> dict[Any, Any]:
        """Candidate → value of a column."""
        return {row["node_id"]: row[name] for row in self.candidates[query]}

    def status(self, query: Any = "q") -> str:
        """How a query ended."""
        return str(self.rows[query]["status"])

    @property
    def files(self) -> list[bytes]:
        """Every part of both tables."""
        return [file.read_bytes() for table in (self.run.candidates, self.run.queries) for file in table.files]


def hit_table(hits: Any, *, columns: Sequence[str] = ("source", "weight")) -> Any:
    """Hits of the query ``q``.

    {source: nodes} is a list in the order of falling weights; tuples are a node and then ``columns``; anything else is
    a table already, or names files.
    """
    if isinstance(hits, Mapping):
        hits = [(node, name, 9.0 - place) for name, nodes in hits.items() for place, node in enumerate(nodes)]
    if not isinstance(hits, list) or not isinstance(hits[0], tuple):
        return hits
    values = map(list, zip(*hits, strict=True))
    return pa.table({"query_id": ["q"] * len(hits), **dict(zip(("node_id", *columns), values, strict=True))})


@pytest.fixture
def fuse(tmp_path: Path) -> Callable[..., Fused]:
    """Run ``--method fuse`` on hits (see `hit_table`), or another method with a graph."""
    numbers = itertools.count()

    def run_job(
        hits: Any, graph: Any = None, *, columns: Sequence[str] = ("source", "weight"), **options: Any
    ) -> Fused:
        settings = {"precision": "float64", **({} if graph is not None else {"method": "fuse"}), **options}
        table = hit_table(hits, columns=columns)
        run = seedrank.score(graph, queries=table, out=tmp_path / f"run-{next(numbers)}", **settings)
        rows = {row["query_id"]: row for row in run.queries.to_arrow().to_pylist()}
        candidates: dict[Any, list[dict[str, Any]]] = {query: [] for query in rows}
        for row in run.candidates.to_arrow().to_pylist():
            candidates[row["query_id"]].append(row)
            assert row["rank"] == len(candidates[row["query_id"]])
        return Fused(run, candidates, rows)

    return run_job


@pytest.fixture(name="hit_table")
def hit_table_function() -> Callable[..., Any]:
    """`hit_table`, for tests that call something else than ``score``."""
    return hit_table
