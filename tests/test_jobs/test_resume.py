"""Going on with a run: what is kept, what is computed again, and which runs are the same one."""

# ruff: noqa: F811  # fixtures are imported, and asked for by their names

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seedrank
from finished_run import EDGES, HITS, OPTIONS, PARTS, again, content, files_of_part, finished, parts_of, run, store  # noqa: F401  # fixtures
from seedrank.errors import ConfigError, IncompleteRunError, KernelError
from seedrank.io.run.runfolder import RunFolder
from seedrank.kernels.ppr import personalized_pagerank

Command = Callable[..., Any]


def identities(run: seedrank.Run) -> dict[str, tuple[int, int]]:
    """Part file → what changes when it is written again."""
    return {str(file): (file.stat().st_ino, file.stat().st_mtime_ns) for file in run.path.glob("*/part-*.parquet")}


def test_a_finished_run_is_already_done_and_not_touched(run: seedrank.Run, store: seedrank.GraphStore) -> None:
    before, files = content(run.path), identities(run)
    done = again(run, store)
    assert done.manifest == run.manifest
    assert (content(run.path), identities(run)) == (before, files)


def test_already_done_is_exit_0_and_says_so(
    seedrank_command: Command, run: seedrank.Run, store: seedrank.GraphStore, tmp_path: Path
) -> None:
    pq.write_table(HITS, tmp_path / "hits.parquet")
    arguments = ["--queries", tmp_path / "hits.parquet", "--out", run.path, "--part-size", "6", "--top-k", "5"]
    result = seedrank_command("score", store.path, *arguments)
    assert (result.code, "already_done" in result.err) == (0, True), result.err
    refused = seedrank_command("score", store.path, *arguments, "--resume", "never")
    assert (refused.code, "already holds the parts of a run" in refused.err) == (2, True), refused.err


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-9])


def flip_in_the_middle(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def empty(file: Path) -> None:
    file.write_bytes(b"")


def other_rows(file: Path) -> None:
    table = pq.read_table(file)
    pq.write_table(table.slice(0, max(len(table) - 1, 0)), file)


@pytest.mark.parametrize("damage", [cut, flip_in_the_middle, empty, other_rows, Path.unlink])
@pytest.mark.parametrize("table", [0, 1], ids=["candidates", "queries"])
def test_only_a_damaged_part_is_computed_again(
    run: seedrank.Run, finished: seedrank.Run, store: seedrank.GraphStore, damage: Callable[[Path], None], table: int
) -> None:
    before = identities(run)
    damage(files_of_part(run, 2)[table])
    done = again(run, store)
    assert parts_of(done) == parts_of(finished)
    assert {name for name, identity in identities(done).items() if before[name] != identity} == {
        str(file) for file in files_of_part(run, 2)
    }
    assert [record.part for record in done.manifest.parts] == list(range(PARTS))
    assert done.manifest.queries == finished.manifest.queries
    assert (done.manifest.state, len(done.manifest.resumed_at)) == ("finished", 1)
    assert (done.path / "_SUCCESS").exists()


@pytest.mark.parametrize("numbers", [{"candidates": 29}, {"by_status": {"ok": 7}}], ids=str)
def test_a_part_whose_record_is_damaged_is_computed_again(
    run: seedrank.Run, finished: seedrank.Run, store: seedrank.GraphStore, numbers: dict[str, Any]
) -> None:
    parts = [record.model_copy(update=numbers if record.part == 1 else {}) for record in run.manifest.parts]
    (run.path / "run.json").write_text(run.manifest.model_copy(update={"parts": parts}).model_dump_json())
    done = again(run, store)
    assert parts_of(done) == parts_of(finished)
    assert done.manifest.queries == finished.manifest.queries
    assert len(done.manifest.resumed_at) == 1
    assert [part.candidates for part in done.manifest.parts] == [part.candidates for part in finished.manifest.parts]


def test_what_readers_see_while_a_damaged_part_is_computed_again(
    run: seedrank.Run, store: seedrank.GraphStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    flip_in_the_middle(files_of_part(run, 2)[1])

    def look(*_: object, **__: object) -> None:
        assert not (run.path / "_SUCCESS").exists()
        assert [file.exists() for file in files_of_part(run, 2)] == [False, False]
        raise KeyboardInterrupt

    monkeypatch.setattr("seedrank.jobs.run.part_scorer.score_blocks", look)
    with pytest.raises(KeyboardInterrupt):
        again(run, store)
    ended = seedrank.open_run(run.path).manifest
    assert ended.state == "interrupted"
    assert [record.part for record in ended.parts] == [0, 1, 3]
    assert ended.queries is not None
    assert ended.queries.by_status == {"ok": 14}


def test_a_part_that_is_there_but_not_recorded_is_computed_again(
    run: seedrank.Run, finished: seedrank.Run, store: seedrank.GraphStore
) -> None:
    manifest = run.manifest.model_copy(update={"state": "running", "parts": run.manifest.parts[:1]})
    (run.path / "run.json").write_text(manifest.model_dump_json())
    (run.path / "_SUCCESS").unlink()
    before = identities(run)
    done = again(run, store)
    assert parts_of(done) == parts_of(finished)
    assert sum(before[name] == identity for name, identity in identities(done).items()) == 2


@pytest.mark.parametrize("step", range(3))
def test_a_flipped_byte_of_the_manifest_is_refused_or_does_no_harm(
    seedrank_command: Command,
    finished: seedrank.Run,
    store: seedrank.GraphStore,
    tmp_path: Path,
    step: int,
) -> None:
    pq.write_table(HITS, tmp_path / "hits.parquet")
    text = (finished.path / "run.json").read_bytes()
    codes = set()
    for position in range(step * 89, len(text), 3 * 89):
        out = tmp_path / f"run-{position}"
        shutil.copytree(finished.path, out)
        damaged = bytearray(text)
        damaged[position] ^= 1
        (out / "run.json").write_bytes(damaged)
        result = seedrank_command(
            "score",
            store.path,
            "--queries",
            tmp_path / "hits.parquet",
            "--out",
            out,
            "--part-size",
            "6",
            "--top-k",
            "5",
        )
        codes.add(result.code)
        assert result.code in (0, 2), (position, result.err)
        assert parts_of(seedrank.Run(out)) == parts_of(finished)
    assert codes <= {0, 2}


def test_a_manifest_that_is_gone_or_cut_is_a_clear_refusal(run: seedrank.Run, store: seedrank.GraphStore) -> None:
    before = parts_of(run)
    cut(run.path / "run.json")
    with pytest.raises(ConfigError, match=r"(?s)run\.json cannot be read.*--overwrite"):
        again(run, store)
    (run.path / "run.json").unlink()
    with pytest.raises(ConfigError, match="not part of a run"):
        again(run, store)
    assert parts_of(run) == before


def test_a_damaged_graph_of_the_run_is_built_again(tmp_path: Path) -> None:
    done = seedrank.score(EDGES, queries=HITS, out=tmp_path / "run", **OPTIONS)
    expected = content(done.path / "graph")
    files_of_part(done, 0)[0].unlink()
    cut(done.path / "graph" / "by_source_neighbors.npy")
    flip_in_the_middle(done.path / "graph" / "ids.arrow")
    seedrank.score(EDGES, queries=HITS, out=tmp_path / "run", **OPTIONS)
    assert content(done.path / "graph") == expected


def test_case_28_the_same_command_computes_failed_parts_again(
    store: seedrank.GraphStore, finished: seedrank.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks: list[int] = []

    def sometimes(*arguments: Any, **options: Any) -> Any:
        blocks.append(len(blocks))
        if len(blocks) == 3:
            raise KernelError("mass is lost", expected="1", fix="none")
        return personalized_pagerank(*arguments, **options)

    monkeypatch.setattr("seedrank.jobs.operators.ppr.personalized_pagerank", sometimes)
    with pytest.raises(IncompleteRunError, match=r"(?s)part 2: 6.*the same command computes failed parts again"):
        seedrank.score(store, queries=HITS, out=tmp_path / "run", **OPTIONS)
    broken = seedrank.open_run(tmp_path / "run")
    before = identities(broken)
    assert [part.unfinished_queries for part in broken.manifest.parts] == [0, 0, 6, 0]
    done = again(broken, store)
    assert len(blocks) == PARTS + 1
    assert parts_of(done) == parts_of(finished)
    assert {name for name, identity in identities(done).items() if before[name] != identity} == {
        str(file) for file in files_of_part(done, 2)
    }
    assert (done.manifest.state, (done.path / "_SUCCESS").exists()) == ("finished", True)


@pytest.mark.parametrize("failing", range(PARTS))
def test_an_error_in_the_thread_that_writes(
    store: seedrank.GraphStore, finished: seedrank.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    write_part = RunFolder.write_part

    def broken(self: RunFolder, part: int, **two: Any) -> Any:
        if part == failing:
            raise ZeroDivisionError
        return write_part(self, part, **two)

    with monkeypatch.context() as patched:
        patched.setattr(RunFolder, "write_part", broken)
        with pytest.raises(ZeroDivisionError):
            seedrank.score(store, queries=HITS, out=tmp_path / "run", **OPTIONS)
    ended = seedrank.open_run(tmp_path / "run").manifest
    assert (ended.state, ended.error) == ("failed", "ZeroDivisionError()")
    assert [record.part for record in ended.parts] == list(range(failing))
    before = identities(seedrank.Run(tmp_path / "run"))
    done = seedrank.score(store, queries=HITS, out=tmp_path / "run", **OPTIONS)
    assert parts_of(done) == parts_of(finished)
    assert before.items() <= identities(done).items()


def test_parts_that_the_deadline_cut_are_computed_again(
    store: seedrank.GraphStore, finished: seedrank.Run, tmp_path: Path
) -> None:
    late = seedrank.score(store, queries=HITS, out=tmp_path / "run", deadline_s=1e-9, **OPTIONS)
    assert late.manifest.queries is not None
    assert late.manifest.queries.by_status == {"timed_out": 20}
    assert (late.path / "_SUCCESS").exists()
    done = again(late, store)
    assert parts_of(done) == parts_of(finished)
    assert done.manifest.queries == finished.manifest.queries


def test_strict_counts_for_what_is_there_already(store: seedrank.GraphStore, tmp_path: Path) -> None:
    lost = pa.table({"query_id": [1, 2], "node_id": [1, 99]})
    seedrank.score(store, queries=lost, out=tmp_path / "run")
    for _ in range(2):
        with pytest.raises(IncompleteRunError, match="1 of 2 queries"):
            seedrank.score(store, queries=lost, out=tmp_path / "run", strict=True)
        assert seedrank.open_run(tmp_path / "run").manifest.state == "incomplete"
        assert not (tmp_path / "run" / "_SUCCESS").exists()
    lenient = seedrank.score(store, queries=lost, out=tmp_path / "run")
    assert (lenient.manifest.state, (lenient.path / "_SUCCESS").exists()) == ("finished", True)


def test_a_run_without_queries_is_done_once(store: seedrank.GraphStore, tmp_path: Path) -> None:
    empty_run = seedrank.score(store, queries=HITS.slice(0, 0), out=tmp_path / "run")
    before = content(empty_run.path)
    seedrank.score(store, queries=HITS.slice(0, 0), out=tmp_path / "run")
    assert content(empty_run.path) == before


def test_several_restart_probabilities_go_on(store: seedrank.GraphStore, tmp_path: Path) -> None:
    several = seedrank.score(store, queries=HITS, out=tmp_path / "run", restart=(0.2, 0.5), **OPTIONS)
    expected = parts_of(several)
    flip_in_the_middle(files_of_part(several, 3)[1])
    done = seedrank.score(store, queries=HITS, out=tmp_path / "run", restart=(0.5, 0.2), **OPTIONS)
    assert parts_of(done) == expected
    assert len(done.manifest.resumed_at) == 1


def test_progress_counts_what_is_left(run: seedrank.Run, store: seedrank.GraphStore) -> None:
    told: list[tuple[str, int]] = []

    class Listener:
        def start(self, queries: int) -> None:
            told.append(("start", queries))

        def advance(self, queries: int, error_bound: float | None = None) -> None:
            told.append(("advance", queries))

        def finish(self) -> None:
            told.append(("finish", 0))

    files_of_part(run, 3)[0].unlink()
    again(run, store, reporter=Listener())
    assert told[0] == ("start", 2)
    assert sum(queries for word, queries in told if word == "advance") == 2


def test_a_link_to_a_run_folder_goes_on_with_it(run: seedrank.Run, store: seedrank.GraphStore, tmp_path: Path) -> None:
    (tmp_path / "latest").symlink_to(run.path)
    files_of_part(run, 0)[1].unlink()
    seedrank.score(store, queries=HITS, out=tmp_path / "latest", **OPTIONS)
    assert files_of_part(run, 0)[1].exists()
    seedrank.score(store, queries=HITS.slice(2), out=tmp_path / "latest", overwrite=True)
    assert (tmp_path / "latest").is_symlink()
    assert len(seedrank.open_run(run.path).queries) == 18
    assert json.loads((run.path / "run.json").read_text())["state"] == "finished"
