"""A fused run that goes on: the same bytes, also where the graph is built again or there is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import seedrank
from seedrank.errors import ConfigError

EDGES = pa.table({"src": list(range(40)), "dst": [(node * 7 + 1) % 40 for node in range(40)]})
#: Every third hit is not in the graph; query 8 has no other.
HITS = pa.table(
    {
        "query_id": [number // 2 for number in range(40)],
        "node_id": [number * 3 % 40 if number % 3 and number // 2 != 8 else 1000 + number for number in range(40)],
        "source": ["dense", "words"] * 20,
        "weight": [float(number % 5) + 1 for number in range(40)],
    }
)
RUNS: list[tuple[pa.Table | None, dict[str, Any]]] = [
    (None, {"method": "fuse"}),
    (EDGES, {"fusion": "rrf"}),
    (EDGES, {"fallback": "rrf"}),
]


def parts(run: seedrank.Run) -> dict[str, bytes]:
    return {str(file.relative_to(run.path)): file.read_bytes() for file in run.path.glob("*/part-*.parquet")}


@pytest.mark.parametrize(("graph", "options"), RUNS, ids=["fuse", "fusion", "fallback"])
def test_a_lost_part_is_computed_again(tmp_path: Path, graph: Any, options: dict[str, Any]) -> None:
    settings = {"part_size": 6, **options}
    run = seedrank.score(graph, queries=HITS, out=tmp_path / "run", **settings)
    before = parts(run)
    assert len(before) == 8
    (run.path / "candidates" / "part-00001.parquet").unlink()
    again = seedrank.score(graph, queries=HITS, out=tmp_path / "run", **settings)
    assert parts(again) == before
    assert (again.manifest.state, len(again.manifest.resumed_at)) == ("finished", 1)
    if "fallback" in options:
        statuses = again.queries.to_arrow()["status"].to_pylist()
        assert [number for number, status in enumerate(statuses) if status == "fallback_rrf"] == [8]


def test_other_weights_or_ranks_are_another_run(tmp_path: Path) -> None:
    options: dict[str, Any] = {"method": "fuse", "out": tmp_path / "run"}
    seedrank.score(queries=HITS, **options)
    with pytest.raises(ConfigError, match="--rrf-k: 60 there, 2 here"):
        seedrank.score(queries=HITS, rrf_k=2, **options)
    with pytest.raises(ConfigError, match="the hits: "):
        seedrank.score(queries=HITS.append_column("rank", pa.array([1] * 40)), **options)


def test_a_preset_and_its_options_are_the_same_run(tmp_path: Path) -> None:
    run = seedrank.score(EDGES, queries=HITS, out=tmp_path / "run", preset="hipporag")
    spelled: dict[str, Any] = {
        "restart": 0.5, "direction": "both", "source_normalization": "none", "include_seeds": True,
    }  # fmt: skip
    again = seedrank.score(EDGES, queries=HITS, out=tmp_path / "run", **spelled)
    assert again.manifest == run.manifest
