"""Parts that workers put on S3."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import seedrank
from seedrank.errors import ConfigError
from seedrank.io.run.lease import LOCK_KEY, leased
from seedrank.io.run.part_writers import ObjectParts
from seedrank.io.storage.objects import object_folder


def test_workers_put_the_bytes_of_a_local_run(
    seedrank_command: Callable[..., Any], s3: Any, inputs: Path, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"part_size": 5, "top_k": 5, "backend": "scipy"}
    store = seedrank.build(inputs / "edges.parquet", out=tmp_path / "graph")
    local = seedrank.score(store, queries=inputs / "hits.parquet", out=tmp_path / "run", **options)
    run = seedrank.score(
        store, queries=inputs / "hits.parquet", out=s3.url("run"), work_dir=str(tmp_path / "work"), workers=1, **options
    )
    assert run.manifest.state == "finished"
    found = s3.content("run")
    expected = {str(file.relative_to(local.path)): file.read_bytes() for file in local.path.glob("*/part-*.parquet")}
    assert {name: data for name, data in found.items() if name.endswith(".parquet")} == expected
    assert found.keys() - expected.keys() == {"run.json", "_SUCCESS"}


def test_a_writer_whose_run_has_ended_puts_nothing(s3: Any, inputs: Path, tmp_path: Path) -> None:
    local = seedrank.score(inputs / "edges.parquet", queries=inputs / "hits.parquet", out=tmp_path / "run", top_k=5)
    tables = {"candidates": local.candidates.to_arrow(), "queries": local.queries.to_arrow()}
    with leased(object_folder(s3.url("run"), what="--out")) as lease:
        writer = ObjectParts(s3.url("run"), lease.holder, lease.key)
        writer.write_part(0, **tables)
    assert LOCK_KEY not in s3.content("run")
    with pytest.raises(ConfigError, match="somebody has removed the lock"):
        writer.write_part(1, **tables)
    assert sorted(s3.content("run")) == ["candidates/part-00000.parquet", "queries/part-00000.parquet"]
