"""The build of a graph that does not fit into memory: the bytes of the build that does, in bounded memory."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import seedrank
from seedrank.errors import ResourceError, StorageError
from seedrank.io import tables
from seedrank.io.storage.spill import Spill
from seedrank.jobs.building import bucketed as bucketed_build
from seedrank.jobs.building import edge_buckets
from seedrank.jobs.building import memory as build_memory

Write = Callable[..., Path]
Command = Callable[..., Any]

# A build may always plan with 64 MiB: more rows of 52 bytes than that go through buckets, of less than 2^20 rows each.
ROWS = 1_900_000
FAULTY = Path(__file__).parents[1] / "faulty.py"


@contextmanager
def in_buckets(rows: int, *, batch: int = 3, most: int = 4) -> Iterator[None]:
    """Let every build go through buckets of so few rows, dealt out in batches of so few."""
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(build_memory, "memory_of_rows", return_value=1 << 60))
        stack.enter_context(mock.patch.object(bucketed_build, "bucket_rows", return_value=rows))
        for module in (edge_buckets, bucketed_build):
            stack.enter_context(mock.patch.object(module, "BATCH_ROWS", batch))
        stack.enter_context(mock.patch.object(edge_buckets, "MAX_BUCKETS", most))
        stack.enter_context(mock.patch.object(tables, "BATCH_ROWS", batch))
        # Waiting for the device makes every one of hundreds of builds slower, and changes no byte.
        stack.enter_context(mock.patch.object(os, "fsync"))
        yield


def files_of(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.iterdir()}


def assert_same_store(edges: Any, *, rows: int, **options: Any) -> None:
    """Build both ways; nothing but the store may be left."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with mock.patch.object(os, "fsync"):
            expected = seedrank.build(edges, out=folder / "memory" / "graph", **options)
        with in_buckets(rows):
            found = seedrank.build(edges, out=folder / "buckets" / "graph", **options)
        assert files_of(found.path) == files_of(expected.path)
        assert [path.name for path in (folder / "buckets").iterdir() if "lock" not in path.name] == ["graph"]


@st.composite
def edge_tables(draw: st.DrawFn) -> list[pa.Table]:
    """Some tables of a few nodes: duplicates, loops, zero, null and bad weights, null endpoints, types and none."""
    kind = draw(st.sampled_from(["near", "far", "string", "dictionary"]))
    nodes = draw(st.integers(1, 8))
    values = {
        "near": [5 * node - 9 for node in range(nodes)],
        "far": [node * 2**58 for node in range(nodes)],  # no table of distances is large enough
    }.get(kind, [f"é{node}" for node in range(nodes)])
    end = st.one_of(st.sampled_from(values), st.sampled_from(values), st.none())
    columns: dict[str, st.SearchStrategy[Any]] = {"src": end, "dst": end}
    if draw(st.booleans()):
        columns["weight"] = st.sampled_from([1.0, 1.0, 0.1, 0.2, 0.3, 1e16, 0.0, -1.0, float("nan"), None])
    if draw(st.booleans()):
        columns["type"] = st.sampled_from(["a", "b", "c", None])
    lists = draw(st.lists(st.lists(st.fixed_dictionaries(columns), max_size=25), min_size=1, max_size=3))
    id_type: pa.DataType = pa.int64() if kind in ("near", "far") else pa.string()
    if kind == "dictionary":
        id_type = pa.dictionary(pa.int32(), id_type)
    types = {"src": id_type, "dst": id_type, "weight": pa.float64(), "type": pa.string()}
    schema = pa.schema([(name, types[name]) for name in columns])
    return [pa.Table.from_pylist(rows, schema=schema) for rows in lists]


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    edges=edge_tables(),
    rows=st.integers(1, 9),
    duplicate_edges=st.sampled_from(["sum", "max", "min", "mean"]),
    null_weight=st.sampled_from(["drop", "one"]),
)
def test_the_bytes_of_the_build_in_memory(edges: list[pa.Table], rows: int, **options: Any) -> None:
    assert_same_store(edges, rows=rows, on_bad_rows="drop", **options)


@pytest.mark.parametrize("weighted", [False, True])
def test_one_edge_that_is_there_more_often_than_a_bucket_has_rows(weighted: bool) -> None:
    edges = pa.table({"src": [3, 1, 3] * 40, "dst": [1, 1, 1] * 40})
    if weighted:
        # The sum depends on the order of the additions.
        edges = edges.append_column("weight", pa.array([1e16, 1.0, 0.1, 0.3, 1e-3] * 24))
    for rule in ("sum", "max", "min", "mean"):
        assert_same_store(edges, rows=4, duplicate_edges=rule)


def test_a_hub_with_more_edges_than_a_bucket_has_rows() -> None:
    spokes = np.arange(1, 101)
    edges = pa.table({"src": np.r_[np.zeros(100, int), spokes], "dst": np.r_[spokes, np.zeros(100, int)]})
    assert_same_store(edges, rows=7)


def test_node_table_and_files(write: Write) -> None:
    nodes = pa.table({"id": [9, 2, 4], "type": ["x", None, "y"], "year": [1, 2, 3]})
    edges = [write(f"edges/{i}.parquet", {"src": [i, 2, 3], "dst": [2, 2, i], "type": [i, 7, 7]}) for i in range(4)]
    assert_same_store([str(path) for path in edges], rows=2, nodes=nodes)
    assert_same_store(str(edges[0].parent), rows=2, nodes=nodes)


def test_case_50_no_rows() -> None:
    empty = pa.array([], pa.int64())
    assert_same_store(pa.table({"src": empty, "dst": empty}), rows=2)
    assert_same_store(pa.table({"src": [1], "dst": [2], "weight": [0.0], "type": ["a"]}), rows=2)


def test_a_stream_goes_to_files_once_it_is_too_long(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = pa.table({"src": np.arange(500) % 37, "dst": np.arange(500) % 41})
    expected = seedrank.build(table, out=tmp_path / "expected")

    def stream() -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=20))

    spilled: list[Path] = []
    new_file = Spill.new_file

    def noted(spill: Any) -> Path:
        spilled.append(new_file(spill))
        return spilled[-1]

    with (
        mock.patch.object(build_memory, "LEAST_BYTES", 8_000),
        mock.patch.object(Spill, "new_file", noted),
    ):
        # 500 rows take 26 kB, and 4 kB while they are read, of a quarter of the limit.
        for limit, logged in (("100kB", 0), ("17kB", 1), ("8kB", 1)):
            spilled.clear()
            caplog.clear()
            with caplog.at_level(logging.INFO, "seedrank"):
                found = seedrank.build(stream(), out=tmp_path / limit, memory_limit=limit)
            assert bool(spilled) == bool(logged)
            assert sum(record.message == "build_bucketed" for record in caplog.records) == logged
            assert found.facts.fingerprint == expected.facts.fingerprint


def test_memory_does_not_grow_with_the_edges(tmp_path: Path) -> None:
    """NumPy's part, measured by tracemalloc: rows of the list, buckets, and both directions."""
    rows = 400_000
    generator = np.random.default_rng(5)
    edges = pa.table({"src": generator.integers(0, 500, rows), "dst": generator.integers(0, 500, rows)})

    def peak(out: str) -> int:
        tracemalloc.start()
        try:
            seedrank.build(edges, out=tmp_path / out)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    whole = peak("memory")
    with in_buckets(20_000, batch=5_000, most=256):
        bounded = peak("buckets")
    assert whole > 36 * rows
    assert bounded < 36 * rows / 5


def test_plan_says_what_goes_to_files(tmp_path: Path) -> None:
    edges = pa.table({"src": [1, 2, 3], "dst": [2, 3, 1], "type": ["a", "b", "a"]})
    hits = pa.table({"query_id": [1], "node_id": [1]})
    assert seedrank.plan(edges, queries=hits).build_temporary_bytes == 0
    with in_buckets(2):
        assert seedrank.plan(edges, queries=hits).build_temporary_bytes == 3 * 32
        weighted = edges.append_column("weight", pa.array([1.0, 2.0, 3.0]))
        assert seedrank.plan(weighted, queries=hits).build_temporary_bytes == 3 * 36
    store = seedrank.build(edges, out=tmp_path / "graph")
    assert seedrank.plan(store, queries=hits).build_temporary_bytes is None


def test_no_space_for_what_is_temporary(tmp_path: Path) -> None:
    edges = pa.table({"src": [1, 2, 3], "dst": [2, 3, 1]})
    little = mock.Mock(free=47)
    with in_buckets(2), mock.patch.object(shutil, "disk_usage", return_value=little):
        with pytest.raises(StorageError, match="that does not fit into memory takes"):
            seedrank.build(edges, out=tmp_path / "graph")
        # 8 bytes an end and a key of each row do fit, but not both directions of all of them.
        little.free = 48
        with pytest.raises(StorageError, match="writing the edges by source"):
            seedrank.build(edges, out=tmp_path / "graph")
    assert not [path for path in tmp_path.iterdir() if "lock" not in path.name]


def test_too_many_nodes_for_the_limit(tmp_path: Path) -> None:
    edges = pa.table({"src": np.arange(1000), "dst": np.arange(1000)})
    with mock.patch.object(build_memory, "LEAST_BYTES", 8_000), pytest.raises(ResourceError, match="1,000 nodes take"):
        seedrank.build(edges, out=tmp_path / "graph", memory_limit="30kB")
    assert not [path for path in tmp_path.iterdir() if "lock" not in path.name]


def test_edges_that_do_not_fit_a_key(tmp_path: Path) -> None:
    edges = pa.table({"src": [1, 2], "dst": [2, 1]})
    with (
        in_buckets(2),
        mock.patch("seedrank.kernels.building.edge_keys.KEY_BITS", 1),
        pytest.raises(ResourceError, match="63"),
    ):
        seedrank.build(edges, out=tmp_path / "graph")


def test_full_disk_and_kill_leave_nothing_that_stays(tmp_path: Path, forked_commands: Any) -> None:
    edges, folder = tmp_path / "edges.parquet", tmp_path / "there"

    def faulty_build(fault: str) -> subprocess.CompletedProcess[str]:
        """The real command with little memory and a fault; see tests/faulty.py."""
        command = ["build", str(edges), "--out", str(folder / "graph"), "--memory-limit", "1MB"]
        ended: subprocess.CompletedProcess[str] = forked_commands.run(
            command, environment={"FAULT": fault, "FAULT_BELOW": str(folder)}
        )
        return ended

    numbers = np.arange(ROWS)
    pq.write_table(pa.table({"src": numbers % 1009, "dst": numbers * numbers % 2003}), edges)
    folder.mkdir()
    full = faulty_build("ENOSPC:-keys")
    assert full.returncode == 5, full.stderr
    assert "No space left on device" in full.stderr
    assert not [path for path in folder.iterdir() if "lock" not in path.name]

    killed = faulty_build("KILL:by_destination_neighbors")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    left = [path.name for path in folder.iterdir() if ".staged-" in path.name]
    assert len(left) == 2
    assert any(name.endswith("-edges") for name in left)

    again = faulty_build(f"list:{tmp_path / 'steps'}")
    assert again.returncode == 0, again.stderr
    assert "build_bucketed" in again.stderr
    assert [path.name for path in folder.iterdir() if "lock" not in path.name] == ["graph"]
    expected = seedrank.build(edges, out=tmp_path / "expected", memory_limit="1GB")
    assert files_of(folder / "graph") == files_of(expected.path)
