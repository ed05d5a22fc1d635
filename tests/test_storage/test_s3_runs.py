"""Runs and graph stores on S3: the same bytes as on a disk, with no more permission than for one prefix."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import seedrank
from seedrank.errors import StorageError

Command = Callable[..., Any]

OPTIONS = ("--part-size", "5", "--top-k", "5", "--backend", "scipy")


def parts(content: dict[str, bytes]) -> dict[str, bytes]:
    return {name: value for name, value in content.items() if name.endswith(".parquet")}


@pytest.fixture(scope="module")
def reference(inputs: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Parts of the same run on the local disk."""
    out = tmp_path_factory.mktemp("reference") / "run"
    seedrank.score(
        inputs / "edges.parquet", queries=inputs / "hits.parquet", out=out, part_size=5, top_k=5, backend="scipy"
    )
    return {str(file.relative_to(out)): file.read_bytes() for file in out.glob("*/part-*.parquet")}


@pytest.fixture
def arguments(inputs: Path, tmp_path: Path) -> Callable[..., list[str]]:
    def make(out: str, graph: str = str(inputs / "edges.parquet"), hits: str = "") -> list[str]:
        queries = hits or str(inputs / "hits.parquet")
        work = str(tmp_path / "work")
        return ["score", graph, "--queries", queries, "--out", out, "--work-dir", work, *OPTIONS]

    return make


def test_a_run_has_the_bytes_of_a_local_one(
    seedrank_command: Command, s3: Any, arguments: Command, reference: dict[str, bytes]
) -> None:
    result = seedrank_command(*arguments(s3.url("nightly/run")))
    assert result.code == 0, result.err
    found = s3.content("nightly/run")
    assert parts(found) == reference
    assert found.keys() - parts(found).keys() == {"run.json", "_SUCCESS"}
    assert found["_SUCCESS"] == b""
    run = seedrank.open_run(s3.url("nightly/run"))
    assert run.manifest.state == "finished"
    assert len(run.candidates) == run.candidates.to_arrow().num_rows == sum(p.candidates for p in run.manifest.parts)
    assert run.queries.to_polars().height == 20


def test_every_part_is_one_put_and_nothing_is_copied(seedrank_command: Command, s3: Any, arguments: Command) -> None:
    assert seedrank_command(*arguments(s3.url("run"))).code == 0
    puts = [request.path.partition("/")[2] for request in s3.faults.requests if request.method == "PUT"]
    kept = [name for name in puts if name.endswith(".parquet")]
    assert len(kept) == len(set(kept)) == 8
    assert [name for name in puts if name != "run/_lock"][-1] == "run/_SUCCESS"
    methods = {request.method for request in s3.faults.requests}
    assert "POST" not in methods  # neither batches of deletions nor uploads in pieces
    # One look at every part after it was put; that all are still there in the end, one listing says.
    looks = [request.path.partition("/")[2] for request in s3.faults.requests if request.method == "HEAD"]
    assert sorted(name for name in looks if name.endswith(".parquet")) == sorted(kept)
    assert {name for name in looks if name not in kept} <= {"", "run"}
    s3.faults.requests.clear()
    assert seedrank_command(*arguments(s3.url("run"))).code == 0
    assert not [request for request in s3.faults.requests if request.method == "HEAD"]


def test_the_same_command_again_changes_nothing_and_repairs_what_was_changed(
    seedrank_command: Command, s3: Any, arguments: Command, reference: dict[str, bytes]
) -> None:
    command = arguments(s3.url("run"))
    assert seedrank_command(*command).code == 0
    before = s3.content("run")
    again = seedrank_command(*command)
    assert (again.code, "already_done" in again.err) == (0, True), again.err
    assert s3.content("run") == before
    s3.filesystem.pipe_file(
        f"{s3.bucket}/run/candidates/part-00001.parquet", reference["candidates/part-00001.parquet"][:-1]
    )
    s3.filesystem.rm_file(f"{s3.bucket}/run/queries/part-00002.parquet")
    repaired = seedrank_command(*command)
    assert repaired.code == 0, repaired.err
    assert repaired.err.count("part_damaged") == 2
    assert parts(s3.content("run")) == reference


def test_case_62_prefix_only_permission_odd_keys_and_markers(
    seedrank_command: Command, s3: Any, arguments: Command, inputs: Path, reference: dict[str, bytes], tmp_path: Path
) -> None:
    """HEAD of the bucket and listings outside the prefix are denied; keys have spaces, ``=`` and a slash at the end."""
    for name in ("edges", "hits"):
        s3.filesystem.put_file(str(inputs / f"{name}.parquet"), f"{s3.bucket}/my team/in/day=1/{name} of today.parquet")
    for marker in ("my team/", "my team/in/", "my team/in/day=1/", "my team/out/", "my team/out/day=1/"):
        s3.filesystem.pipe_file(f"{s3.bucket}/{marker}", b"")
    s3.faults.only_prefix = f"{s3.bucket}/my team"
    s3.faults.requests.clear()
    edges, hits = (s3.url(f"my team/in/day=1/{name} of today.parquet") for name in ("edges", "hits"))
    result = seedrank_command(*arguments(s3.url("my team/out/day=1/"), graph=edges, hits=hits))
    assert result.code == 0, result.err
    assert s3.url("my team/out/day=1") in result.out
    again = seedrank_command(*arguments(s3.url("my team/out/day=1"), graph=edges, hits=hits))
    assert (again.code, "already_done" in again.err) == (0, True)
    folder = seedrank_command(*arguments(s3.url("my team/out/2"), graph=edges, hits=s3.url("my team/in/")))
    assert folder.code == 3  # the marker is no part; edges have no query_id
    build = seedrank_command("build", edges, "--out", s3.url("my team/graph/"), "--work-dir", tmp_path / "work")
    assert build.code == 0, build.err
    scored = seedrank_command(*arguments(s3.url("my team/out/3"), graph=s3.url("my team/graph"), hits=hits))
    assert scored.code == 0, scored.err
    missing = seedrank_command(*arguments(s3.url("my team/out/4"), graph=edges, hits=s3.url("my team/in/day=2/hits")))
    assert missing.code == 3, missing.err
    assert "my team/in/day=2/hits" in missing.err
    assert not [
        request for request in s3.faults.requests if request.method == "HEAD" and "/" not in request.path.strip("/")
    ]
    s3.faults.only_prefix = None
    for out in ("my team/out/day=1", "my team/out/3"):
        assert parts(s3.content(out)) == reference
    denied = s3.url("elsewhere/run")
    s3.faults.only_prefix = f"{s3.bucket}/my team"
    refused = seedrank_command(*arguments(denied))
    assert (refused.code, "permission" in refused.err) == (5, True), refused.err


def test_case_62_listings_that_lag_behind_are_not_trusted(
    seedrank_command: Command, s3: Any, arguments: Command, reference: dict[str, bytes]
) -> None:
    command = arguments(s3.url("run"))
    s3.faults.fail("empty", lambda request: request.is_listing)
    assert seedrank_command(*command).code == 0
    other = seedrank_command(*command, "--include-seeds")
    assert (other.code, "another run" in other.err) == (2, True), other.err
    again = seedrank_command(*command)
    assert (again.code, "already_done" in again.err) == (0, True), again.err
    s3.faults.clear()
    assert parts(s3.content("run")) == reference


def test_a_graph_store_is_fetched_once_and_verified(
    seedrank_command: Command, s3: Any, arguments: Command, inputs: Path, tmp_path: Path
) -> None:
    url, work = s3.url("graphs/today"), tmp_path / "work"
    assert seedrank_command("build", inputs / "edges.parquet", "--out", url, "--work-dir", tmp_path / "other").code == 0
    assert seedrank_command(*arguments(s3.url("a"), graph=url)).code == 0
    s3.faults.requests.clear()
    assert seedrank_command(*arguments(s3.url("b"), graph=url)).code == 0
    assert not [request for request in s3.faults.requests if request.method == "GET" and request.path.endswith(".npy")]
    manifest = seedrank.open_run(s3.url("b")).manifest
    assert manifest.graph is not None
    assert (manifest.graph.path, manifest.graph.built_in_this_run) == (url, False)
    explained = seedrank.explain(s3.url("b"), query=0, node=_first(s3.url("b")), work_dir=str(work))
    assert explained.rank == 1
    (copy,) = (work / "graphs").glob("[0-9a-f]*")
    (copy / "order.npy").unlink()  # somebody cleans up
    healed = seedrank_command(*arguments(s3.url("c"), graph=url))
    assert (healed.code, "cached_graph_damaged" in healed.err) == (0, True), healed.err
    s3.filesystem.pipe_file(f"{s3.bucket}/graphs/today/order.npy", b"x" * 100)
    damaged = seedrank_command("check", url, "--queries", inputs / "hits.parquet", "--work-dir", tmp_path / "third")
    assert (damaged.code, "order.npy has the content hash" in damaged.err) == (3, True), damaged.err
    assert not list((tmp_path / "third" / "graphs").glob("[0-9a-f]*"))


def _first(url: str) -> Any:
    table = seedrank.open_run(url).candidates.to_arrow()
    return table["node_id"][table["query_id"].index(0).as_py()].as_py()


def test_plan_reads_no_more_of_a_graph_store_than_its_facts(
    seedrank_command: Command, s3: Any, inputs: Path, tmp_path: Path
) -> None:
    url = s3.url("graph")
    seedrank.build(inputs / "edges.parquet", out=url, work_dir=str(tmp_path / "work"))
    s3.faults.requests.clear()
    result = seedrank_command("plan", url, "--queries", inputs / "hits.parquet", "--out", s3.url("run"))
    assert result.code == 0, result.err
    read = [request.path.partition("/")[2] for request in s3.faults.requests if request.method == "GET"]
    assert [name for name in read if name.startswith("graph/")] == ["graph/graph.json"]
    assert not [request for request in s3.faults.requests if request.method == "PUT"]


def test_overlap_foreign_objects_and_second_stores_are_refused(
    seedrank_command: Command, s3: Any, arguments: Command, inputs: Path, tmp_path: Path
) -> None:
    s3.filesystem.put_file(str(inputs / "edges.parquet"), f"{s3.bucket}/in/edges.parquet")
    s3.filesystem.pipe_file(f"{s3.bucket}/mine/notes.txt", b"keep me")
    seedrank.build(inputs / "edges.parquet", out=s3.url("graph"), work_dir=str(tmp_path / "work"))
    edges = s3.url("in/edges.parquet")
    before = {name: s3.content(name) for name in ("in", "mine", "graph")}
    for graph, out, word in (
        (edges, "in", "overlap"),
        (s3.url("in"), "in/run", "overlap"),
        (s3.url("in/**"), "in/a/run", "overlap"),
        (s3.url("graph"), "graph/run", "overlap"),
        (edges, "mine", "notes.txt"),
        (edges, "graph", "not part of a run"),
    ):
        result = seedrank_command(*arguments(s3.url(out), graph=graph), "--overwrite")
        assert (result.code, word in result.err) == (2, True), (out, result.err)
    for out, word in (("graph", "already holds a graph store"), ("mine", "notes.txt"), ("in", "overlap")):
        result = seedrank_command("build", edges, "--out", s3.url(out), "--work-dir", tmp_path / "work")
        assert (result.code, word in result.err) == (2, True), result.err
    assert {name: s3.content(name) for name in before} == before
    nothing = seedrank_command(*arguments("s3://"))
    assert nothing.code == 2, nothing.err
    with pytest.raises(StorageError, match="bucket"):
        seedrank.score(edges, queries=inputs / "hits.parquet", out="s3://no-such-bucket-of-ours/run")
