"""Memory runs out while a block is scored: the block is halved, and the result is the same."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seedrank
from seedrank.errors import ResourceError
from seedrank.jobs.operators.blocks import BlockWidth
from seedrank.jobs.operators.fuse import FuseRunner
from seedrank.jobs.operators.outcome import Outcome
from seedrank.jobs.operators.ppr import PprRunner
from seedrank.jobs.operators.recall import RecallRunner

Command = Callable[..., Any]

NODES = 60
EDGES = pa.table(
    {
        "src": [node for node in range(NODES) for _ in range(3)],
        "dst": [(node * step + 1) % NODES for node in range(NODES) for step in (2, 3, 7)],
    }
)
HITS = pa.table(
    {"query_id": [f"q{i:02}" for i in range(40)], "node_id": list(range(40)), "source": ["dense", "sparse"] * 20}
)
METHODS: dict[str, dict[str, Any]] = {
    "ppr": {},
    "ppr with paths": {"paths": True, "max_hops": 2},
    "two restarts": {"restart": (0.3, 0.5)},
    "scipy": {"backend": "scipy", "precision": "float64"},
    "walk": {"method": "walk", "walk_steps": 50},
    "bfs": {"method": "bfs", "max_hops": 2},
    "dfs": {"method": "dfs", "max_hops": 2},
    "neighbors": {"method": "neighbors"},
    "fuse": {"method": "fuse"},
    "ppr, fused": {"fusion": "rrf"},
}


@pytest.fixture
def widest(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], list[int]]:
    """Let every method run out of memory above a width; returns the widths that were tried, as they come."""

    def limit(width: int) -> list[int]:
        tried: list[int] = []
        for runner in (PprRunner, RecallRunner, FuseRunner):
            score = runner.score

            def short(self: Any, queries: npt.NDArray[np.int64], score: Callable[..., Outcome] = score) -> Outcome:
                tried.append(len(queries))
                if len(queries) > width:
                    raise MemoryError(f"no room for {len(queries)} columns")
                return score(self, queries)

            monkeypatch.setattr(runner, "score", short)
        return tried

    return limit


def files_of(run: seedrank.Run) -> list[bytes]:
    return [file.read_bytes() for table in (run.candidates, run.queries) for file in table.files]


@pytest.mark.parametrize("method", METHODS)
def test_case_61_a_block_that_does_not_fit_is_halved_with_the_same_bytes(
    tmp_path: Path, widest: Callable[[int], list[int]], caplog: pytest.LogCaptureFixture, method: str
) -> None:
    graph = None if method == "fuse" else EDGES
    options = {"part_size": 25, **METHODS[method]}
    plain = seedrank.score(graph, queries=HITS, out=tmp_path / "plain", **options)
    assert plain.manifest.backend is not None
    assert plain.manifest.backend.final_block_size == plain.manifest.backend.block_size == 25
    tried = widest(5)
    run = seedrank.score(graph, queries=HITS, out=tmp_path / "short", **options)
    assert tried == [25, 12, 6, 3] + [3] * 7 + [1] + [3] * 5  # and no second try of what did not fit
    assert files_of(run) == files_of(plain)
    assert run.manifest.backend is not None
    assert (run.manifest.backend.block_size, run.manifest.backend.final_block_size) == (25, 3)
    halved = [record.__dict__ for record in caplog.records if record.msg == "block_halved"]
    assert [(record["queries"], record["block_size"]) for record in halved] == [(25, 12), (12, 6), (6, 3)]
    assert halved[0]["reason"] == "no room for 25 columns"
    assert run.manifest.run_key == plain.manifest.run_key


def test_case_61_a_single_query_that_does_not_fit_ends_the_run_and_keeps_its_parts(
    tmp_path: Path, widest: Callable[[int], list[int]], monkeypatch: pytest.MonkeyPatch, seedrank_command: Command
) -> None:
    pq.write_table(EDGES, tmp_path / "edges.parquet")
    pq.write_table(HITS, tmp_path / "hits.parquet")
    command = ("score", tmp_path / "edges.parquet", "--queries", tmp_path / "hits.parquet", "--part-size", "10")
    whole = seedrank_command(*command, "--out", tmp_path / "whole")
    assert whole.code == 0
    score = PprRunner.score

    def short_of_the_third_part(self: PprRunner, queries: npt.NDArray[np.int64]) -> Outcome:
        if queries[-1] >= 20:
            raise MemoryError
        return score(self, queries)

    with monkeypatch.context() as patched:
        patched.setattr(PprRunner, "score", short_of_the_third_part)
        result = seedrank_command(*command, "--out", tmp_path / "run")
    assert result.code == 4
    assert "a single query" in result.err
    assert "Traceback" not in result.err
    manifest = seedrank.open_run(tmp_path / "run").manifest
    assert (manifest.state, [part.part for part in manifest.parts]) == ("failed", [0, 1])
    again = seedrank_command(*command, "--out", tmp_path / "run")
    assert again.code == 0
    assert "parts_kept=2" in again.err
    assert files_of(seedrank.open_run(tmp_path / "run")) == files_of(seedrank.open_run(tmp_path / "whole"))


def test_no_room_outside_a_block_is_exit_code_4(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seedrank_command: Command
) -> None:
    pq.write_table(EDGES, tmp_path / "edges.parquet")
    pq.write_table(HITS, tmp_path / "hits.parquet")

    def no_room(*_: object, **__: object) -> None:
        raise MemoryError("unable to allocate 9 TB")

    monkeypatch.setattr("seedrank.jobs.operators.ppr.build_transition", no_room)
    result = seedrank_command(
        "score", tmp_path / "edges.parquet", "--queries", tmp_path / "hits.parquet", "--out", tmp_path / "run"
    )
    assert result.code == 4
    assert "unable to allocate 9 TB" in result.err
    assert seedrank.open_run(tmp_path / "run").manifest.state == "failed"


def test_a_query_alone_is_refused_with_what_to_do() -> None:
    width = BlockWidth(3)
    width.halve(3, "no room")
    assert width.queries == 1
    with pytest.raises(ResourceError, match="single query was scored \\(no room\\)"):
        width.halve(1, "no room")


LIMITED = """
import json, resource, sys
from seedrank.jobs.progress import Silent
import seedrank

class Tight(Silent):
    def start(self, queries):
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 70_000_000, -1))

    def advance(self, queries, error_bound=None):
        if queries:  # a block has found room; the writer wants a thread of its own
            resource.setrlimit(resource.RLIMIT_AS, (-1, -1))

store, options = seedrank.open_graph(sys.argv[1]), json.loads(sys.argv[5])
# Compiled code is there before the limit is.
seedrank.score(store, queries=sys.argv[2], out=sys.argv[3], block_size=16, **options)
run = seedrank.score(store, queries=sys.argv[2], out=sys.argv[4], memory_limit="40GB", reporter=Tight(), **options)
print(json.dumps([run.manifest.backend.block_size, run.manifest.backend.final_block_size]))
"""


@pytest.mark.parametrize("backend", ["cpu", "scipy"])
def test_case_61_under_a_real_limit_of_the_address_space(tmp_path: Path, backend: str) -> None:
    nodes = 200_000
    seedrank.build(pa.table({"src": np.arange(nodes), "dst": np.roll(np.arange(nodes), 1)}), out=tmp_path / "graph")
    hits = tmp_path / "hits.parquet"
    pq.write_table(pa.table({"query_id": np.arange(64), "node_id": np.arange(64) * 1000}), hits)
    # Two blocks of 64 columns in float32 are 102 MB, of 16 columns 26 MB.
    options = json.dumps({"backend": backend, "threads": 1, "tolerance": 0, "max_iterations": 2})
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, tmp_path / "graph", hits, tmp_path / "plain", tmp_path / "run", options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    planned, final = json.loads(done.stdout)
    assert planned == 64
    assert final < 64
    runs = [seedrank.open_run(tmp_path / name) for name in ("plain", "run")]
    assert files_of(runs[0]) == files_of(runs[1])


@pytest.mark.parametrize(
    ("options", "narrowest", "widest_of_all"),
    [
        ({"max_iterations": 2, "tolerance": 0.0}, 10, 25),
        ({"max_iterations": 2, "tolerance": 1e-9, "restart": (0.2, 0.4, 0.5, 0.6, 0.8)}, 4, 9),
    ],
    ids=["one restart", "five"],
)
def test_blocks_of_a_gpu_are_as_wide_as_the_graph_leaves_room_for(
    gpu_device: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    options: dict[str, Any],
    narrowest: int,
    widest_of_all: int,
) -> None:
    cupy = importlib.import_module("cupy")
    if not cupy.__version__.endswith("fake"):
        pytest.skip("there is a real GPU here, whose memory nobody chooses")
    random = np.random.default_rng(1)
    graph = pa.table({"src": random.integers(0, 2000, 60_000), "dst": random.integers(0, 2000, 60_000)})
    queries = pa.table({"query_id": range(64), "node_id": range(64)})
    free, total = cupy.cuda.Device().mem_info
    # The graph takes some 300 kB, a query some 20 kB.
    monkeypatch.setenv("FAKE_CUPY_MEMORY", str(total - free + 700_000))
    run = seedrank.score(graph, queries=queries, out=tmp_path / "run", backend="gpu", **options)
    record = run.manifest.backend
    assert record is not None
    assert narrowest <= record.block_size <= widest_of_all
    assert "block_halved" not in caplog.text
