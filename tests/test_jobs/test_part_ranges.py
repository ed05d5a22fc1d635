"""Ranges of parts (``--parts``): any machine computes any, and together they are the run that one would have been."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seedrank
from seedrank.errors import ConfigError, IncompleteRunError, InputDataError, KernelError
from seedrank.io.run.range_folder import RangeFolder
from seedrank.io.run.range_lock import locked_range
from seedrank.io.run.runfolder import RunFolder
from seedrank.kernels.ppr import personalized_pagerank
from seedrank.part_span import PartSpan, parse_part_span, span_of_name

Command = Callable[..., Any]

EDGES = pa.table({"src": list(range(40)), "dst": [(node * 7 + 1) % 40 for node in range(40)]})
HITS = pa.table({"query_id": list(range(40)), "node_id": [(node * 3) % 40 for node in range(40)]})
OPTIONS: dict[str, Any] = {"part_size": 4, "top_k": 5}
PARTS = 10


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> seedrank.GraphStore:
    return seedrank.build(EDGES, out=tmp_path_factory.mktemp("store") / "graph")


@pytest.fixture(scope="module")
def whole(store: seedrank.GraphStore, tmp_path_factory: pytest.TempPathFactory) -> seedrank.Run:
    return seedrank.score(store, queries=HITS, out=tmp_path_factory.mktemp("whole") / "run", **OPTIONS)


@pytest.fixture
def job(store: seedrank.GraphStore, tmp_path: Path) -> Callable[..., seedrank.Run]:
    def score(parts: str | None = None, **keywords: Any) -> seedrank.Run:
        given: dict[str, Any] = {"queries": HITS, "out": tmp_path / "run"} | OPTIONS | keywords
        return seedrank.score(store, parts=parts, **given)

    return score


def parts_in(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*.parquet")}


def names_in(folder: Path) -> set[str]:
    return {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}


def recorded(run: seedrank.Run) -> list[int]:
    return [record.part for record in run.manifest.parts]


@pytest.mark.parametrize(
    ("text", "first", "last"), [("3:5", 3, 5), ("3:", 3, None), (":5", 0, 5), ("3", 3, 4), (" 0:1 ", 0, 1)]
)
def test_how_a_range_is_written(text: str, first: int, last: int | None) -> None:
    assert parse_part_span(text) == PartSpan(first, last)


@pytest.mark.parametrize("text", ["", ":", "5:5", "5:3", "-1:3", "a:b", "1:2:3", "1.5", "٣:٤", "1:99999999999"])
def test_what_is_no_range_is_refused(job: Callable[..., seedrank.Run], text: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="option 'parts' has the value"):
        job(text)
    assert not (tmp_path / "run").exists()


@given(st.integers(0, 30), st.none() | st.integers(1, 12), st.integers(0, 30), st.none() | st.integers(1, 12))
def test_spans_are_sets_of_parts(first: int, length: int | None, other_first: int, other_length: int | None) -> None:
    span = PartSpan(first, None if length is None else first + length)
    other = PartSpan(other_first, None if other_length is None else other_first + other_length)
    mine, others = set(span.of(60)), set(other.of(60))
    assert span.overlaps(other) == bool(mine & others)
    assert {part for part in range(60) if span.has(part)} == mine
    assert span_of_name(span.name) == span
    assert parse_part_span(str(span)) == span


def test_ranges_in_any_order_and_the_command_without_give_the_bytes_of_one_run(
    job: Callable[..., seedrank.Run], whole: seedrank.Run, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    last = job("8:16")  # equal ranges of 8 parts, of which the last is shorter
    assert (recorded(last), last.manifest.state, last.already_done) == ([8, 9], "finished", False)
    assert last.manifest.range is not None
    assert last.manifest.range.model_dump() == {"first": 8, "last": 10, "of": 10}
    assert (last.manifest.parts_planned, last.manifest.queries.total) == (2, 8)  # type: ignore[union-attr]
    assert last.queries.to_arrow()["query_id"].to_pylist() == list(range(32, 40))
    assert names_in(folder) == {
        "_ranges/.claims.lock", "_ranges/parts-00008-00016.json",
        *(f"{table}/part-0000{part}.parquet" for table in ("candidates", "queries") for part in (8, 9)),
    }  # fmt: skip
    job("2:4")
    job("0")
    run = job()
    assert (recorded(run), run.manifest.state) == (list(range(PARTS)), "finished")
    assert parts_in(folder) == parts_in(whole.path)
    assert names_in(folder) == names_in(whole.path)
    assert run.manifest.run_key == whole.manifest.run_key == last.manifest.run_key
    assert run.manifest.queries == whole.manifest.queries
    assert run.manifest.range is None
    assert job().already_done
    # A range of a finished run has nothing left to do, and says what the run says.
    again = job("2:4")
    assert again.already_done
    assert again.manifest == run.manifest
    assert again.queries.to_arrow()["query_id"].to_pylist() == list(range(8, 16))
    assert names_in(folder) == names_in(whole.path) | {"_ranges/.claims.lock"}


def test_the_command_without_takes_over_what_is_whole_and_computes_the_rest(
    job: Callable[..., seedrank.Run], whole: seedrank.Run, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    job("0:5")
    damaged, missing = folder / "candidates" / "part-00001.parquet", folder / "queries" / "part-00003.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
    missing.unlink()
    kept = (folder / "candidates" / "part-00000.parquet").stat().st_ino
    assert recorded(job()) == list(range(PARTS))
    assert parts_in(folder) == parts_in(whole.path)
    assert (folder / "candidates" / "part-00000.parquet").stat().st_ino == kept


def test_a_range_takes_over_what_another_one_or_the_whole_has_computed(
    job: Callable[..., seedrank.Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    job("0:4")
    written: list[int] = []
    original = RunFolder.write_part

    def noted(self: RunFolder, part: int, **tables: pa.Table) -> Any:
        written.append(part)
        return original(self, part, **tables)

    monkeypatch.setattr(RunFolder, "write_part", noted)
    assert recorded(job("2:6")) == [2, 3, 4, 5]
    assert written == [4, 5]
    assert job("2:6").already_done
    assert recorded(job("3:5")) == [3, 4]
    job()
    assert written == [4, 5, 6, 7, 8, 9]
    # A part of the finished run that was damaged: the range computes it, and the whole is no success until it is asked.
    (folder / "queries" / "part-00007.parquet").unlink()
    assert recorded(job("7:")) == [7, 8, 9]
    assert not (folder / "_SUCCESS").exists()
    job()
    assert written == [4, 5, 6, 7, 8, 9, 7]
    assert (folder / "_SUCCESS").exists()


def test_a_range_behind_the_last_part_is_refused_and_says_how_many_there_are(
    seedrank_command: Command, store: seedrank.GraphStore, tmp_path: Path
) -> None:
    pq.write_table(HITS, tmp_path / "hits.parquet")
    command = [store.path, "--queries", tmp_path / "hits.parquet", "--out", tmp_path / "run", "--part-size", "4"]
    refused = seedrank_command("score", *command, "--parts", "10:12")
    assert refused.code == 2
    assert "--parts 10:12 begins behind the last part" in refused.err
    assert "10 parts, 0 to 9" in refused.err
    assert seedrank_command("plan", *command, "--parts", "10:12").code == 2
    planned = json.loads(seedrank_command("plan", *command, "--parts", "8:12", "--json").out)
    assert (planned["parts"], planned["part_range"], planned["parts_there"]) == (10, "8:10", 0)
    done = seedrank_command("score", *command, "--parts", "8:")
    assert (done.code, "8:10 of 10" in done.out) == (0, True)
    assert json.loads(seedrank_command("plan", *command, "--parts", "8:12", "--json").out)["parts_there"] == 2
    assert json.loads(seedrank_command("plan", *command, "--parts", "0:9", "--json").out)["parts_there"] == 1
    assert json.loads(seedrank_command("plan", *command, "--json").out)["parts_there"] == 2
    assert seedrank_command("score", *command, "--parts", "8:", "--skip-code").code == 99
    assert seedrank_command("explain", tmp_path / "run", "--query", "33", "--node", "1").code == 3


def test_a_range_that_would_touch_others_is_refused(
    job: Callable[..., seedrank.Run], store: seedrank.GraphStore, tmp_path: Path
) -> None:
    job("0:4")
    before = names_in(tmp_path / "run")
    with pytest.raises(ConfigError, match="--overwrite is given with --parts 4:8"):
        job("4:8", overwrite=True)
    with pytest.raises(ConfigError, match="--resume never is given with --parts 4:8"):
        job("4:8", resume="never")
    with pytest.raises(ConfigError, match="seedrank build it first"):
        seedrank.score(EDGES, queries=HITS, out=tmp_path / "run", parts="4:8", **OPTIONS)
    with pytest.raises(ConfigError, match="another run: --top-k: 5 there, 6 here"):
        job("4:8", top_k=6)
    with pytest.raises(ConfigError, match="another run: --part-size: 4 there, 5 here"):
        job(part_size=5)
    with pytest.raises(InputDataError, match="ranges of parts that have not been joined"):
        seedrank.open_run(tmp_path / "run")
    assert names_in(tmp_path / "run") == before
    assert recorded(job("4:8")) == [4, 5, 6, 7]


def test_overwrite_without_a_range_replaces_them_all(job: Callable[..., seedrank.Run], tmp_path: Path) -> None:
    job("0:4")
    run = job(top_k=3, overwrite=True)
    assert recorded(run) == list(range(PARTS))
    assert not (tmp_path / "run" / "_ranges").exists()


def test_two_ranges_with_a_part_in_common_and_a_whole_run_exclude_each_other(
    job: Callable[..., seedrank.Run], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    with locked_range(folder, PartSpan(2, 4)):
        for parts in ("0:3", "3:", "2:4"):
            with pytest.raises(ConfigError, match=rf"parts .* of --out {folder} are asked for while another process"):
                job(parts)
        with pytest.raises(ConfigError, match=f"--out {folder} is being written by another process, number"):
            job()
        assert recorded(job("0:2")) == [0, 1]
        assert recorded(job("4:6")) == [4, 5]
    assert recorded(job("1:5")) == [1, 2, 3, 4]


def test_a_range_is_refused_while_the_whole_runs(
    job: Callable[..., seedrank.Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: list[str] = []
    original = RunFolder.write_part

    def meanwhile(self: RunFolder, part: int, **tables: pa.Table) -> Any:
        if not refused:
            with pytest.raises(ConfigError, match="or only ranges of one") as caught:
                job("2:4")
            refused.append(str(caught.value))
        return original(self, part, **tables)

    monkeypatch.setattr(RunFolder, "write_part", meanwhile)
    job()
    assert len(refused) == 1


def test_many_ranges_at_the_same_time(job: Callable[..., seedrank.Run], whole: seedrank.Run, tmp_path: Path) -> None:
    errors: list[BaseException] = []

    def one(parts: str) -> None:
        try:
            job(parts)
        except BaseException as error:  # told by the test
            errors.append(error)

    threads = [threading.Thread(target=one, args=(f"{part}:{part + 2}",)) for part in range(0, PARTS, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    job()
    assert parts_in(tmp_path / "run") == parts_in(whole.path)


def test_failed_queries_of_a_range_are_exit_6_and_computed_again(
    job: Callable[..., seedrank.Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:

        def fails(*_: Any, **__: Any) -> Any:
            raise KernelError("mass is not 1", expected="1", fix="report it")

        patched.setattr("seedrank.jobs.operators.ppr.personalized_pagerank", fails)
        assert personalized_pagerank is not fails
        with pytest.raises(IncompleteRunError, match="8 of 8 queries"):
            job("0:2")
    manifest = json.loads((tmp_path / "run" / "_ranges" / "parts-00000-00002.json").read_text(encoding="utf-8"))
    assert manifest["state"] == "incomplete"
    assert job("0:2").manifest.queries.by_status == {"ok": 8}  # type: ignore[union-attr]
    with pytest.raises(IncompleteRunError, match="with status ok"):
        job("2:4", queries=HITS, max_iterations=1, tolerance=1e-9, strict=True, out=tmp_path / "strict")


def test_metrics_of_a_range_are_its_own(job: Callable[..., seedrank.Run], tmp_path: Path) -> None:
    job("2:5", metrics_file=str(tmp_path / "m.prom"))
    text = (tmp_path / "m.prom").read_text(encoding="utf-8")
    assert "seedrank_parts_planned 3\n" in text
    assert "seedrank_parts_done 3\n" in text
    assert "seedrank_queries_planned 12\n" in text


@pytest.mark.parametrize("killed", ["the range", "the command that joins"])
def test_case_68_kill_9_of_a_range_and_of_the_join(
    store: seedrank.GraphStore, whole: seedrank.Run, tmp_path: Path, forked_commands: Any, killed: str
) -> None:
    """Before every step, or by default some: then the command without --parts gives the bytes of one run."""
    pq.write_table(HITS, tmp_path / "hits.parquet")
    options = ["--queries", str(tmp_path / "hits.parquet"), "--part-size", "4", "--top-k", "5"]
    range_of = [] if killed == "the command that joins" else ["--parts", "2:6"]

    def run(below: Path, fault: str) -> int:
        if not range_of:
            for parts in ("6:", "1:3"):
                seedrank.score(store, queries=HITS, out=below / "run", parts=parts, **OPTIONS)
        command = ["score", str(store.path), *options, *range_of, "--out", str(below / "run")]
        environment = {"FAULT": fault, "FAULT_BELOW": str(below)}
        return int(forked_commands.run(command, environment=environment).returncode)

    assert run(tmp_path / "rehearsal", f"list:{tmp_path / 'steps'}") == 0
    steps = (tmp_path / "steps").read_text(encoding="utf-8").splitlines()
    assert "rename run/queries/part-00004.parquet" in steps
    every, third = range(len(steps)), len(steps) // 3
    for number in every if "SEEDRANK_TEST_KILLS" in os.environ else every[third::third]:
        below = tmp_path / f"kill-{number}"
        assert run(below, f"KILL:{number}") == -signal.SIGKILL, steps[number]
        if range_of and number % 2:
            assert recorded(seedrank.score(store, queries=HITS, out=below / "run", parts="2:6", **OPTIONS)) == [
                2,
                3,
                4,
                5,
            ]
        final = seedrank.score(store, queries=HITS, out=below / "run", **OPTIONS)
        assert recorded(final) == list(range(PARTS)), steps[number]
        assert parts_in(below / "run") == parts_in(whole.path), steps[number]
        assert names_in(below / "run") == names_in(whole.path), steps[number]
        assert [child.name for child in below.iterdir()] == ["run"], steps[number]


def test_case_68_every_node_of_a_type_by_range(tmp_path: Path) -> None:
    nodes = pa.table({"id": list(range(40)), "type": ["odd" if node % 2 else "even" for node in range(40)]})
    store = seedrank.build(EDGES, nodes=nodes, out=tmp_path / "graph")
    whole = seedrank.score(store, all_nodes="odd", out=tmp_path / "whole", **OPTIONS)
    for parts in ("3:", "0:2", "2"):
        seedrank.score(store, all_nodes="odd", out=tmp_path / "run", parts=parts, **OPTIONS)
    seedrank.score(store, all_nodes="odd", out=tmp_path / "run", **OPTIONS)
    assert parts_in(tmp_path / "run") == parts_in(whole.path)


def test_a_range_leaves_alone_what_a_killed_overwrite_left(job: Callable[..., seedrank.Run], tmp_path: Path) -> None:
    job("0:2")
    shutil.copytree(tmp_path / "run", tmp_path / ".run.replaced")
    with pytest.raises(ConfigError, match="run the command without --parts first"):
        job("2:4")
    assert (tmp_path / ".run.replaced" / "candidates").exists()


def test_no_query_is_one_empty_part(job: Callable[..., seedrank.Run], tmp_path: Path) -> None:
    nothing = HITS.slice(0, 0)
    assert recorded(job("0:3", queries=nothing)) == [0]
    with pytest.raises(ConfigError, match="1 parts, 0 to 0"):
        job("1:3", queries=nothing)
    assert recorded(job(queries=nothing)) == [0]
    assert isinstance(RangeFolder(tmp_path, span=PartSpan(0, 1)), RunFolder)


def test_a_whole_run_that_failed_at_the_door_says_nothing_of_the_ranges(
    job: Callable[..., seedrank.Run], whole: seedrank.Run, tmp_path: Path
) -> None:
    with pytest.raises(InputDataError):
        job(edge_type=("nope",))
    assert (tmp_path / "run" / "run.json").exists()
    assert recorded(job("2:4")) == [2, 3]
    assert recorded(job("3:6")) == [3, 4, 5]
    assert recorded(job()) == list(range(PARTS))
    assert parts_in(tmp_path / "run") == parts_in(whole.path)
