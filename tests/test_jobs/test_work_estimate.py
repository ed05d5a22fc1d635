"""What ``plan`` says of the work and the seconds of a PageRank job."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seedrank
from seedrank.config import ScoreOptions, make_options
from seedrank.jobs.graphs.work_estimate import ppr_work

Write = Callable[..., Path]
Command = Callable[..., Any]

EDGES = pa.table({"src": [1, 2, 3, 4, 4], "dst": [2, 3, 1, 1, 5]})
HITS = pa.table({"query_id": [1, 2], "node_id": [1, 4]})


@pytest.mark.parametrize(
    ("options", "products"),
    [
        ({"tolerance": 0, "max_iterations": 7}, 7),
        ({"max_iterations": 7}, 7),
        ({"restart": 0.5}, 21),  # 2 · 2^-21 < 1e-6 < 2 · 2^-20
        ({"restart": [0.5, 0.9, 0.75]}, 21),
        ({"restart": 1.0}, 1),
        ({"restart": 1e-9}, 100),
        ({"restart": 0.5, "tolerance": 2.0}, 1),
    ],
)
def test_products_at_most(options: dict[str, Any], products: int) -> None:
    work = ppr_work(make_options(ScoreOptions, options), edges=10, queries=3)
    assert (work.products, work.edge_columns) == (products, products * 30)
    both = ppr_work(make_options(ScoreOptions, {**options, "direction": "both"}), edges=10, queries=3)
    assert both.edge_columns == 2 * work.edge_columns


@pytest.mark.parametrize("backend", ["scipy", "cpu"])
@pytest.mark.parametrize("restart", [0.1, 0.15, 0.5, 0.99])
def test_no_query_takes_more(restart: float, backend: Any, tmp_path: Path) -> None:
    options: dict[str, Any] = {"restart": restart, "backend": backend, "max_iterations": 1000}
    plan = seedrank.plan(EDGES, queries=HITS, **options)
    run = seedrank.score(EDGES, queries=HITS, out=tmp_path / "run", **options)
    iterations = pq.read_table(run.path / "queries", columns=["iterations"]).column(0).to_pylist()
    assert plan.products is not None
    assert 0 < max(iterations) <= plan.products


def test_seconds_are_estimated_when_asked_for(seedrank_command: Command, write: Write) -> None:
    arguments = ("plan", write("edges.parquet", EDGES), "--queries", write("hits.parquet", HITS), "--backend", "scipy")
    without = json.loads(seedrank_command(*arguments, "--json").out)
    assert (without["products"], without["edge_columns"]) == (21, 21 * 5 * 2)
    assert without["edge_columns_per_second"] is without["seconds"] is None
    probed = json.loads(seedrank_command(*arguments, "--json", "--probe", "--precision", "float64").out)
    assert probed["edge_columns_per_second"] > 0
    assert probed["seconds"] == pytest.approx(210 / probed["edge_columns_per_second"])
    assert "seconds" in seedrank_command(*arguments, "--probe").out


def test_weighted_edges_and_the_compiled_backend() -> None:
    weighted = EDGES.append_column("weight", pa.array([1.0, 2.5, 0.5, 1.0, 3.0]))
    plan = seedrank.plan(weighted, queries=HITS, probe=True, backend="cpu")
    assert plan.seconds is not None
    assert 0 < plan.seconds < 60


@pytest.mark.parametrize("method", ["walk", "bfs", "fuse", "neighbors"])
def test_other_methods_have_no_products(method: Any) -> None:
    hits = HITS.append_column("source", pa.array(["a", "a"]))
    plan = seedrank.plan(None if method == "fuse" else EDGES, queries=hits, method=method, probe=True)
    assert (plan.products, plan.edge_columns, plan.edge_columns_per_second, plan.seconds) == (None,) * 4
