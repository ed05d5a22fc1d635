"""The same bytes whatever the threads, the block, the order of rows, and in another process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seedrank

METHODS = ("walk", "bfs", "dfs", "neighbors", "ppr")
BUDGET: dict[str, dict[str, Any]] = {
    "walk": {"max_visited_nodes": 150},
    "bfs": {"max_visited_nodes": 150, "max_hops": 4},
    "dfs": {"max_visited_edges": 400},
    "neighbors": {"max_visited_nodes": 10},
    "ppr": {"max_hops": 2},
}
Files = list[bytes]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> tuple[pa.Table, pa.Table]:
    """A graph with hubs, ties, weights and types, and 80 queries of up to three seeds."""
    generator = np.random.default_rng(11)
    count = 6000
    edges = pa.table(
        {
            "src": (1500 * generator.random(count) ** 2).astype(np.int64),
            "dst": (1500 * generator.random(count) ** 2).astype(np.int64),
            "weight": generator.integers(1, 4, count).astype(np.float64),
            "type": generator.choice(["x", "y"], count),
        }
    )
    hits = pa.table(
        {"query_id": generator.integers(0, 80, 200), "node_id": edges["src"].take(pa.array(np.arange(200)))}
    )
    return edges, hits


def files_of(run: seedrank.Run) -> Files:
    return [file.read_bytes() for table in (run.candidates, run.queries) for file in table.files]


@pytest.fixture
def compute(inputs: tuple[pa.Table, pa.Table], tmp_path: Path) -> Callable[..., Files]:
    def run(method: Any, *, shuffle: int | None = None, **options: Any) -> Files:
        edges, hits = inputs
        if shuffle is not None:
            generator = np.random.default_rng(shuffle)
            edges, hits = (table.take(pa.array(generator.permutation(len(table)))) for table in inputs)
        settings = {"direction": "both", "paths": True, "top_k": 20, **BUDGET[method], **options}
        return files_of(
            seedrank.score(edges, queries=hits, out=tmp_path / "run", method=method, overwrite=True, **settings)
        )

    return run


@pytest.mark.parametrize("method", METHODS)
def test_bytes_do_not_depend_on_how_it_was_computed(compute: Callable[..., Files], method: Any) -> None:
    first = compute(method, threads=1, block_size=1)
    assert compute(method, threads=2, block_size=64) == first
    assert compute(method, threads=2, block_size=7, shuffle=1) == first
    assert compute(method, shuffle=2) == first


@pytest.mark.parametrize("method", METHODS)
def test_another_process_writes_the_same_bytes(
    inputs: tuple[pa.Table, pa.Table],
    compute: Callable[..., Files],
    tmp_path: Path,
    method: Any,
    forked_commands: Any,
) -> None:
    for table, name in zip(inputs, ("edges", "hits"), strict=True):
        pq.write_table(table, tmp_path / f"{name}.parquet")
    limits = [f"--{name.replace('_', '-')}={value}" for name, value in BUDGET[method].items()]
    command = ["score", "edges.parquet", "--queries", "hits.parquet", "--out", "other", "--method", method]
    options = ["--direction", "both", "--paths", "--top-k", "20", *limits]
    forked_commands.run([*command, *options], folder=tmp_path).check_returncode()
    assert files_of(seedrank.open_run(tmp_path / "other")) == compute(method)


def test_the_random_seed_changes_a_walk_and_nothing_else(compute: Callable[..., Files]) -> None:
    assert compute("walk", random_seed=1) != compute("walk", random_seed=2)
    assert compute("walk", random_seed=1) == compute("walk", random_seed=1)


def test_a_walk_depends_on_the_ids_of_query_and_anchor_only(tmp_path: Path, inputs: tuple[pa.Table, pa.Table]) -> None:
    """Other queries, another numbering of the nodes and another width of the ids change no walk."""
    edges, _ = inputs
    alone = pa.table({"query_id": pa.array([5], pa.int8()), "node_id": edges["src"].slice(0, 1).cast(pa.int32())})
    company = pa.table({"query_id": [1, 5, 9], "node_id": edges["src"].take(pa.array([3, 0, 4]))})
    # An unconnected component renumbers the nodes inside.
    more = pa.concat_tables(
        [edges, pa.table({"src": [-1] * 3, "dst": [-2, -3, -4], "weight": [1.0] * 3, "type": ["x"] * 3})]
    )
    found = []
    for number, (graph, hits) in enumerate([(edges, alone), (edges, company), (more, alone)]):
        run = seedrank.score(graph, queries=hits, out=tmp_path / f"run-{number}", method="walk", top_k=50)
        rows = run.candidates.to_arrow().to_pylist()
        found.append([(row["node_id"], row["visit_count"]) for row in rows if row["query_id"] == 5])
    assert found[0]
    assert found[0] == found[1] == found[2]
