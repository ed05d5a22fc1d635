"""A graph that is streamed from disk: the files that memory gives, under limits that do not hold it; and its faults."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seedrank
from seedrank.errors import ConfigError, InputDataError, ResourceError, StorageError
from seedrank.io.graph import slab_file
from seedrank.io.graph.slab_file import SlabFile
from seedrank.io.graph.stored_entries import StoredEntries
from seedrank.io.graphstore import GraphStore
from seedrank.jobs.graphs import graph_memory
from seedrank.kernels._cpu import row_order

Command = Callable[..., Any]

NODES = 2_000
HITS = pa.table(
    {
        "query_id": [f"q{query:02}" for query in range(30) for _ in range(4)],
        "node_id": [(query * 61 + 17 * seed) % NODES for query in range(30) for seed in range(4)],
    }
)


def edges(*, weighted: bool, typed: bool) -> pa.Table:
    """20,000 edges; one node in five is dangling."""
    random = np.random.default_rng(5)
    columns: dict[str, Any] = {
        "src": random.integers(0, NODES * 4 // 5, 20_000),
        "dst": (NODES * random.random(20_000) ** 2).astype(np.int64),
    }
    if weighted:
        columns["weight"] = random.uniform(0.5, 3, 20_000)
    if typed:
        columns["type"] = random.choice(["a", "b", "c"], 20_000)
    return pa.table(columns)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, GraphStore]:
    """A graph without, and one with weights and types."""
    folder = tmp_path_factory.mktemp("stores")
    return {
        "plain": seedrank.build(edges(weighted=False, typed=False), out=folder / "plain"),
        "typed": seedrank.build(edges(weighted=True, typed=True), out=folder / "typed"),
    }


@pytest.fixture(autouse=True)
def small_slabs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Many slabs of a small graph; its file in the folder of the test."""
    monkeypatch.setattr(graph_memory, "MOST_SLAB_BYTES", 20_000)
    monkeypatch.setattr(graph_memory, "RANGE_ENTRIES", 1_000)
    monkeypatch.setattr(row_order, "CHUNK_COST", 2_000)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def files_of(run: seedrank.Run) -> list[bytes]:
    return [file.read_bytes() for table in (run.candidates, run.queries) for file in table.files]


@pytest.mark.parametrize(("store", "options"), [
    ("plain", {}),
    ("plain", {"direction": "both", "damping": 0.85, "tolerance": 1e-6}),
    ("typed", {"direction": "in", "edge_type": ("a", "b"), "dangling": "self"}),
    ("typed", {"precision": "float64", "type_weight": {"a": 0.5, "c": 2.0}, "restart": (0.2, 0.5)}),
    ("plain", {"dangling": "uniform", "part_size": 7, "stop": "top-k"}),
    ("typed", {"preset": "memgraphrag", "paths": True, "max_hops": 3}),
    ("plain", {"fusion": "rrf", "top_k": 5}),
])  # fmt: skip
def test_files_are_the_same(
    stores: dict[str, GraphStore], tmp_path: Path, store: str, options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """Every byte of candidates and queries; run.json and the log say how the graph was kept."""
    caplog.set_level("INFO", "seedrank")
    runs = {
        form: seedrank.score(stores[store], queries=HITS, out=tmp_path / form, graph_memory=form, **options)
        for form in ("resident", "streamed")
    }
    assert files_of(runs["streamed"]) == files_of(runs["resident"])
    records = {form: run.manifest.backend for form, run in runs.items()}
    for form, record in records.items():
        assert record is not None
        assert record.graph_memory == form
        assert (record.slab_bytes is not None) == (form == "streamed")
    assert records["streamed"].solver == records["resident"].solver  # type: ignore[union-attr]
    (event,) = [record for record in caplog.records if record.message == "graph_streamed"]
    assert event.scratch_bytes > 2 * event.slab_bytes  # type: ignore[attr-defined]
    # Its file has no name, so nothing is left of it.
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def test_a_resident_run_goes_on_streamed(stores: dict[str, GraphStore], tmp_path: Path) -> None:
    """The form is no part of the run key."""
    options: dict[str, Any] = {"queries": HITS, "part_size": 10}
    whole = seedrank.score(stores["plain"], out=tmp_path / "whole", **options)
    run = seedrank.score(stores["plain"], out=tmp_path / "run", **options)
    for table in ("candidates", "queries"):
        (run.path / table / "part-00001.parquet").unlink()
    again = seedrank.score(stores["plain"], out=tmp_path / "run", graph_memory="streamed", **options)
    assert files_of(again) == files_of(whole)


def test_the_command_line_has_the_option(
    stores: dict[str, GraphStore], tmp_path: Path, seedrank_command: Command
) -> None:
    """And refuses it where it means nothing."""
    pq.write_table(HITS, tmp_path / "hits.parquet")
    command = ("score", stores["plain"].path, "--queries", tmp_path / "hits.parquet", "--graph-memory", "streamed")
    assert seedrank_command(*command, "--out", tmp_path / "run").code == 0
    for more, wrong in (
        (("--method", "walk"), "--method walk does not use it"),
        (("--backend", "scipy"), "the scipy backend holds its graph"),
    ):
        refused = seedrank_command(*command, "--out", tmp_path / "other", *more)
        assert refused.code == 2
        assert wrong in refused.err
        assert not (tmp_path / "other").exists()


class TestDecision:
    """``auto`` streams what does not fit, and only that; plan says so before."""

    @pytest.mark.parametrize("limit_mb", [4.0, 20.0])
    def test_by_the_memory_limit(self, tmp_path: Path, limit_mb: float) -> None:
        """200,000 edges, both ways, and a block of 16 take some 6 MB."""
        pairs = np.unique(np.random.default_rng(1).integers(0, 5_000**2, 200_000))
        store = seedrank.build(pa.table({"src": pairs // 5_000, "dst": pairs % 5_000}), out=tmp_path / "graph")
        options: dict[str, Any] = {"queries": HITS, "direction": "both", "memory_limit": int(limit_mb * 1e6)}
        options["block_size"] = 16
        plan = seedrank.plan(store, **options)
        expected = "streamed" if limit_mb == 4.0 else "resident"
        assert plan.graph_memory == expected
        assert plan.products is not None
        assert plan.bytes_per_step == 2 * 4 * store.facts.edges
        read = 2 * plan.products * plan.bytes_per_step if expected == "streamed" else None
        assert plan.bytes_read == read  # 30 queries in blocks of 16
        assert plan.scratch_bytes == (plan.bytes_per_step if expected == "streamed" else 0)
        run = seedrank.score(store, out=tmp_path / "run", tolerance=1e-2, **options)
        assert run.manifest.backend is not None
        assert run.manifest.backend.graph_memory == expected
        assert run.manifest.backend.block_size == plan.block_size
        assert run.manifest.backend.memory_budget_bytes == plan.memory_budget_bytes

    def test_only_one_backend_streams(self, stores: dict[str, GraphStore], monkeypatch: pytest.MonkeyPatch) -> None:
        """The others hold their graph, and say so when they are asked for more."""
        options: dict[str, Any] = {"queries": HITS, "memory_limit": "2MB"}
        assert seedrank.plan(stores["plain"], backend="scipy", **options).graph_memory == "resident"
        with pytest.raises(ConfigError, match="holds its graph"):
            seedrank.plan(stores["plain"], backend="scipy", graph_memory="streamed", **options)
        monkeypatch.setattr("seedrank.kernels.backends.resolver.why_not_compiled", lambda: "no Numba here")
        with pytest.raises(ResourceError, match="holds its graph"):
            seedrank.plan(stores["plain"], graph_memory="streamed", **options)

    def test_methods_without_pagerank_have_no_form(self, stores: dict[str, GraphStore]) -> None:
        """They map the store."""
        assert seedrank.plan(stores["plain"], queries=HITS, method="walk").graph_memory is None
        assert seedrank.plan(queries=HITS, method="fuse").graph_memory is None


@pytest.fixture
def failing_reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let reading fail with EIO when the number in the list has come down to 0; as long as it is negative, not."""
    left = [-1]
    real = os.preadv

    def preadv(*arguments: Any) -> int:
        if left[0] == 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        left[0] -= left[0] > 0
        return real(*arguments)

    monkeypatch.setattr(os, "preadv", preadv)
    return left


class TestFaults:
    """Disks that break end the run with 5, damaged stores with 3; finished parts stay, and the run goes on."""

    @pytest.mark.parametrize("after", [0, 3, 40])
    def test_a_read_error(
        self, stores: dict[str, GraphStore], tmp_path: Path, failing_reads: list[int], after: int
    ) -> None:
        """In the middle of a block: no query fails, the run does."""
        options: dict[str, Any] = {"queries": HITS, "part_size": 10, "graph_memory": "streamed", "tolerance": 1e-4}
        whole = seedrank.score(stores["plain"], out=tmp_path / "whole", **options)

        class Watch:
            """Breaks the disk when the first part is scored."""

            def __getattr__(self, name: str) -> Callable[..., None]:
                return lambda *_: None

            def advance(self, queries: int, error_bound: float | None = None) -> None:
                if queries:
                    failing_reads[0] = after

        with pytest.raises(StorageError, match="Input/output error"):
            seedrank.score(stores["plain"], out=tmp_path / "run", reporter=Watch(), **options)
        failing_reads[0] = -1
        kept = sorted(path.name for path in (tmp_path / "run" / "candidates").iterdir())
        assert kept[:1] == ["part-00000.parquet"]
        assert len(kept) < 3
        assert files_of(seedrank.score(stores["plain"], out=tmp_path / "run", **options)) == files_of(whole)

    def test_a_truncated_store(self, tmp_path: Path) -> None:
        """Cut while the run goes on: rows that are pushed are read from the store itself."""
        store = seedrank.build(edges(weighted=False, typed=False), out=tmp_path / "graph")
        entries = StoredEntries(store, "by_source")
        neighbors, weights, types = entries.read(5, 25)
        np.testing.assert_array_equal(neighbors, store.by_source.neighbors[5:25])
        assert weights is not None
        assert types is None
        os.truncate(store.path / "by_source_neighbors.npy", 5_000)
        with pytest.raises(InputDataError, match=r"by_source_neighbors\.npy ends after 5000 bytes") as caught:
            entries.read(0, store.facts.edges)
        assert caught.value.exit_code == 3

    @pytest.mark.parametrize("name", ["neighbors", "types", "offsets"])
    def test_an_unsound_store(self, stores: dict[str, GraphStore], tmp_path: Path, name: str) -> None:
        """Entries are checked as they are read: kernels would leave their memory."""
        store = seedrank.build(edges(weighted=True, typed=True), out=tmp_path / "graph")
        file = store.path / f"by_destination_{name}.npy"
        array = np.load(file)
        array[7] = 120 if name == "types" else -1
        np.save(file, array)
        with pytest.raises(InputDataError, match=f"by_destination_{name}.npy holds numbers that no graph has"):
            seedrank.score(store.path, queries=HITS, out=tmp_path / "run", graph_memory="streamed")

    def test_no_room_in_the_work_folder(
        self, stores: dict[str, GraphStore], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Seen before, or when the disk is full; the message names the option."""
        options: dict[str, Any] = {"queries": HITS, "graph_memory": "streamed", "work_dir": str(tmp_path / "work")}

        def full(*_: Any) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patch:
            patch.setattr(slab_file, "write_fully", full)
            with pytest.raises(StorageError, match=r"No space left.*\n.*\n.*--work-dir"):
                seedrank.score(stores["plain"], out=tmp_path / "run", **options)
        usage = type("Usage", (), {"free": 1_000})
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
        with pytest.raises(StorageError, match="has 0 MB free"):
            seedrank.score(stores["plain"], out=tmp_path / "run", **options)


def test_a_file_of_slabs_gives_back_what_was_written(tmp_path: Path) -> None:
    """In any order of writing and reading, one range at a time; a range that was never written is an error."""
    file = SlabFile(tmp_path, np.float64)
    columns = np.arange(1_000, dtype=np.int32)
    file.write(500, columns[500:], columns[500:] / 7)
    file.write(0, columns[:500], columns[:500] / 7)
    assert file.entry_bytes == 12
    bounds = [(900, 1_000), (0, 300), (300, 300), (250, 750)]
    for (first, last), (found, values) in zip(bounds, file.slabs(bounds, padding=3), strict=True):
        assert len(found) == last - first + 3
        np.testing.assert_array_equal(found[:-3], columns[first:last])
        assert values is not None
        np.testing.assert_array_equal(values[:-3], columns[first:last] / 7)
    assert file.bytes_read == 12 * 900
    assert list(file.slabs([], padding=3)) == []
    with pytest.raises(StorageError, match="ends too early"):
        list(file.slabs([(990, 1_010)], padding=0))
    assert list(tmp_path.iterdir()) == []


_UNDER_A_LIMIT = """
import resource, sys
from pathlib import Path
import pyarrow as pa
import seedrank

warm, graph, hits, out, form, more = sys.argv[1:]
options = {"queries": hits, "threads": 1, "top_k": 10, "tolerance": 0, "max_iterations": 4}
for number, kind in enumerate(("resident", "streamed")):
    seedrank.score(warm, out=f"{out}-{number}", graph_memory=kind, **options)
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + int(more), used + int(more)))
try:
    run = seedrank.score(graph, out=out, graph_memory=form, memory_limit="30MB", **options)
except (MemoryError, seedrank.errors.ResourceError) as error:
    print("refused", type(error).__name__)
else:
    print("done", run.manifest.backend.graph_memory)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc and limits the address space")
def test_under_a_limit_that_does_not_hold_the_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph of 48 MB, and 24 MB more when it is loaded, where 35 MB are left: streamed, with the same files.

    Who asks for it in memory is refused.
    """
    monkeypatch.undo()  # the process under the limit knows nothing of small chunks
    nodes = 20_000
    source = np.repeat(np.arange(nodes), 300)
    target = (source + 7 * np.tile(np.arange(300) ** 2 % 2_857 + 1, nodes)) % nodes
    store = seedrank.build(pa.table({"src": source, "dst": target}), out=tmp_path / "graph")
    entries = sum(file.bytes for name, file in store.facts.files.items() if "neighbors" in name)
    assert entries > 45e6
    small = seedrank.build(edges(weighted=False, typed=False), out=tmp_path / "small")
    hits = tmp_path / "hits.parquet"
    pq.write_table(HITS, hits)
    script = tmp_path / "limited.py"
    script.write_text(_UNDER_A_LIMIT, encoding="utf-8")

    def run(form: str) -> str:
        arguments = [small.path, store.path, hits, tmp_path / form, form, 35_000_000]
        done = subprocess.run(
            [sys.executable, str(script), *map(str, arguments)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    assert run("resident").startswith("refused")
    assert run("auto") == "done streamed"
    expected = seedrank.score(
        store, queries=hits, out=tmp_path / "free", top_k=10, tolerance=0, max_iterations=4, graph_memory="resident"
    )
    assert files_of(seedrank.Run(tmp_path / "auto")) == files_of(expected)
