"""Rows of a block are made while a device computes the next one: in which order, and what becomes of errors."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seedrank
from seedrank.errors import IncompleteRunError, KernelError, ResourceError
from seedrank.jobs.operators.blocks import ScoredBlock, score_blocks
from seedrank.jobs.operators.ppr import PprRunner

EDGES = pa.table(
    {
        "src": [node for node in range(60) for _ in range(3)],
        "dst": [(node * step + 1) % 60 for node in range(60) for step in (2, 3, 7)],
    }
)
HITS = pa.table({"query_id": list(range(20)), "node_id": [(node * 3) % 60 for node in range(20)]})
BLOCKS = [list(range(first, min(first + 6, 20))) for first in range(0, 20, 6)]

Work = Callable[[str, list[int]], None]


@pytest.fixture(name="watched")
def _watched(monkeypatch: pytest.MonkeyPatch) -> Callable[[Work], list[tuple[str, list[int]]]]:
    """Note when the vectors and when the rows of which queries are made, after some work that may fail."""
    compute, rows = PprRunner.compute, PprRunner._rows

    def watch(work: Work) -> list[tuple[str, list[int]]]:
        seen: list[tuple[str, list[int]]] = []
        queries_of: dict[int, list[int]] = {}

        def computed(self: PprRunner, queries: Any, meanwhile: Any) -> Any:
            work("compute", queries.tolist())
            seen.append(("compute", queries.tolist()))
            made = compute(self, queries, meanwhile)
            seen.append(("computed", queries.tolist()))
            queries_of[id(made.args[0])] = queries.tolist()  # type: ignore[attr-defined]
            return made

        def made_rows(self: PprRunner, block: Any, *rest: Any) -> Any:
            work("rows", queries_of.get(id(block), []))
            seen.append(("rows", queries_of.get(id(block), [])))
            return rows(self, block, *rest)

        monkeypatch.setattr(PprRunner, "compute", computed)
        monkeypatch.setattr(PprRunner, "_rows", made_rows)
        return seen

    return watch


def nothing(_: str, __: list[int]) -> None:
    """Fail nowhere."""


def score(out: Path, **options: Any) -> None:
    common: dict[str, Any] = {"block_size": 6, "part_size": 20, "max_iterations": 5, "tolerance": 0.0}
    seedrank.score(EDGES, queries=HITS, out=out, **common | options)


def files_of(run: Path) -> dict[str, pa.Table]:
    return {name: pq.read_table(run / name) for name in ("candidates", "queries")}


@pytest.fixture(name="expected")
def _expected(gpu_device: None, tmp_path: Path) -> dict[str, pa.Table]:
    score(tmp_path / "expected", backend="gpu", block_size=20, paths=True)
    return files_of(tmp_path / "expected")


@pytest.mark.parametrize("options", [{}, {"restart": (0.3, 0.6), "tolerance": 1e-3}], ids=["one", "two restarts"])
def test_rows_are_made_while_the_next_block_is_computed(
    gpu_device: None, tmp_path: Path, watched: Callable[[Work], Any], options: dict[str, Any]
) -> None:
    score(tmp_path / "whole", backend="gpu", **options | {"block_size": 20})
    seen = watched(nothing)
    score(tmp_path / "run", backend="gpu", **options)
    expected = [("compute", BLOCKS[0]), ("computed", BLOCKS[0])]
    for before, block in pairwise(BLOCKS):
        expected += [("compute", block), ("rows", before), ("computed", block)]
    assert seen == [*expected, ("rows", BLOCKS[-1])]
    for name, table in files_of(tmp_path / "run").items():
        assert table.equals(files_of(tmp_path / "whole")[name])


@pytest.mark.parametrize("options", [{"backend": "cpu"}, {"backend": "gpu", "timeout_s": 60.0}], ids=["cpu", "limited"])
def test_nothing_overlaps_without_a_device_or_under_a_time_limit(
    gpu_device: None, tmp_path: Path, watched: Callable[[Work], Any], options: dict[str, Any]
) -> None:
    seen = watched(nothing)
    score(tmp_path / "run", **options)
    assert [what for what, _ in seen] == ["compute", "computed", "rows"] * 4


def test_nothing_overlaps_where_every_block_is_told(
    gpu_device: None, tmp_path: Path, watched: Callable[[Work], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What ends a worker is looked for among the queries of the block that it told last."""
    seen, told = watched(nothing), []

    def telling(first: int, last: int, **arguments: Any) -> list[ScoredBlock]:
        return score_blocks(first, last, **arguments | {"begin": lambda queries: told.append(len(queries))})

    monkeypatch.setattr("seedrank.jobs.run.part_scorer.score_blocks", telling)
    score(tmp_path / "run", backend="gpu")
    assert [what for what, _ in seen] == ["compute", "computed", "rows"] * 4
    assert told == [6, 6, 6, 2]


@pytest.mark.parametrize("where", ["rows", "compute"])
@pytest.mark.parametrize("number", [0, 3])
def test_what_fails_costs_its_own_block_only(
    expected: dict[str, pa.Table], tmp_path: Path, watched: Callable[[Work], Any], where: str, number: int
) -> None:
    def fail(what: str, queries: list[int]) -> None:
        if what == where and queries == BLOCKS[number]:
            raise KernelError("it failed", expected="that it does not", fix="none")

    watched(fail)
    with pytest.raises(IncompleteRunError, match=f"'failed': {len(BLOCKS[number])}"):
        score(tmp_path / "run", backend="gpu", paths=True)
    found = files_of(tmp_path / "run")
    others = [query not in BLOCKS[number] for query in expected["candidates"]["query_id"].to_pylist()]
    assert found["candidates"].equals(expected["candidates"].filter(pa.array(others)))


@pytest.mark.parametrize("where", ["rows", "compute"])
@pytest.mark.parametrize("number", [0, 3])
def test_a_block_that_memory_does_not_hold_is_halved(
    expected: dict[str, pa.Table], tmp_path: Path, watched: Callable[[Work], Any], where: str, number: int
) -> None:
    failed: list[list[int]] = []

    def short(what: str, queries: list[int]) -> None:
        if what == where and queries == BLOCKS[number]:
            failed.append(queries)
            raise MemoryError("no more")

    seen = watched(short)
    score(tmp_path / "run", backend="gpu", paths=True)
    for name, table in files_of(tmp_path / "run").items():
        assert table.equals(expected[name])
    assert failed == [BLOCKS[number]]
    half = len(BLOCKS[number]) // 2
    assert ("rows", BLOCKS[number][:half]) in seen


def test_a_device_that_is_lost_ends_the_job(gpu_device: None, tmp_path: Path, watched: Callable[[Work], Any]) -> None:
    def lost(what: str, queries: list[int]) -> None:
        if what == "rows" and queries == BLOCKS[1]:
            raise ResourceError("it is gone", expected="that it is there", fix="run it again")

    watched(lost)
    with pytest.raises(ResourceError, match="it is gone"):
        score(tmp_path / "run", backend="gpu")
