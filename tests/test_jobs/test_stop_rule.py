"""``--stop top-k`` through the Python call and the command: the certificate arrives in ``queries``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import seedrank
from seedrank.errors import ConfigError

STAR = {"src": ["A"] * 5, "dst": list("bcdef")}


def certificates(tmp_path: Path, **options: Any) -> dict[str, Any]:
    hits = pa.table({"query_id": ["seeded", "unknown"], "node_id": ["A", "?"]})
    run = seedrank.score(pa.table(STAR), queries=hits, out=tmp_path / f"run-{options}", **options)
    return {row["query_id"]: (row["status"], row["certificate"]) for row in run.queries.to_arrow().to_pylist()}


@pytest.mark.parametrize(("top_k", "expected"), [(3, "tied"), (5, "certified"), (9, "tolerance")])
def test_certificates(tmp_path: Path, top_k: int, expected: str) -> None:
    found = certificates(tmp_path, stop="top-k", top_k=top_k)
    assert found == {"seeded": ("ok", expected), "unknown": ("no_valid_seeds", None)}


def test_without_the_rule_the_column_is_null(tmp_path: Path) -> None:
    assert certificates(tmp_path)["seeded"] == ("ok", None)


def test_a_fixed_number_of_iterations_proves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--stop top-k is given with --tolerance 0"):
        certificates(tmp_path, stop="top-k", tolerance=0)


def test_the_flag(seedrank_command: Callable[..., Any], write: Callable[..., Path], tmp_path: Path) -> None:
    edges, hits = write("edges.parquet", STAR), write("hits.parquet", {"query_id": [1], "node_id": ["A"]})
    out = tmp_path / "run"
    result = seedrank_command("score", edges, "--queries", hits, "--out", out, "--stop", "top-k", "--top-k", "3")
    assert result.code == 0, result.err
    assert seedrank.Run(out).queries.to_arrow()["certificate"].to_pylist() == ["tied"]
