"""S3 that fails: what may pass is tried again, what may not ends at once with exit code 5; finished parts are kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import seedrank
from seedrank.errors import StorageError
from seedrank.io.run.run_objects import RunObjects
from seedrank.io.storage import retries

Command = Callable[..., Any]

OPTIONS = ("--part-size", "5", "--top-k", "5", "--backend", "scipy")


@pytest.fixture(scope="module")
def reference(inputs: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Parts of the same run on the local disk."""
    out = tmp_path_factory.mktemp("reference") / "run"
    seedrank.score(
        inputs / "edges.parquet", queries=inputs / "hits.parquet", out=out, part_size=5, top_k=5, backend="scipy"
    )
    return {str(file.relative_to(out)): file.read_bytes() for file in out.glob("*/part-*.parquet")}


@pytest.fixture
def command(s3: Any, inputs: Path, tmp_path: Path) -> list[str]:
    """A run of four parts on S3, of inputs on S3."""
    for name in ("edges", "hits"):
        s3.filesystem.put_file(str(inputs / f"{name}.parquet"), f"{s3.bucket}/in/{name}.parquet")
    edges, hits = s3.url("in/edges.parquet"), s3.url("in/hits.parquet")
    return ["score", edges, "--queries", hits, "--out", s3.url("run"), "--work-dir", str(tmp_path / "work"), *OPTIONS]


def check_whole(s3: Any, reference: dict[str, bytes]) -> None:
    found = s3.content("run")
    assert {name: value for name, value in found.items() if name.endswith(".parquet")} == reference
    assert found.keys() - reference.keys() == {"run.json", "_SUCCESS"}


def puts(name: str) -> Callable[[Any], bool]:
    return lambda request: request.method == "PUT" and request.path.endswith(name)


@pytest.mark.parametrize(
    ("kind", "s3"),
    [("InternalError", 30), ("SlowDown", 30), ("cut", 30), ("lost", 30), ("timeout", 0.5)],
    indirect=["s3"],
)
def test_what_passes_is_tried_again(
    seedrank_command: Command, s3: Any, command: list[str], reference: dict[str, bytes], waits: list[float], kind: str
) -> None:
    """One failure of each kind while reading, writing parts, the manifest and the marker."""
    wanted: list[Callable[[Any], bool]] = [
        puts("candidates/part-00001.parquet"),
        puts("run.json"),
        lambda request: request.method == "GET" and request.path.endswith("in/hits.parquet"),
        lambda request: request.method == "HEAD" and request.path.endswith("queries/part-00002.parquet"),
    ]
    if kind != "timeout":  # each takes its time
        wanted += [puts("_SUCCESS"), puts("_lock"), lambda request: request.is_listing]
        wanted += [lambda request: request.method == "DELETE"]
    for when in wanted:
        s3.faults.fail(kind, when, times=1)
    result = seedrank_command(*command)
    assert result.code == 0, result.err
    assert [times for _, _, times in s3.faults.rules] == [0] * len(wanted)
    assert result.err.count("storage_retried") == len(waits)
    if kind in ("InternalError", "SlowDown"):  # when a connection ends, the client repeats some requests itself
        assert len(waits) == len(wanted)
    s3.faults.clear()
    check_whole(s3, reference)


@pytest.mark.parametrize("kind", ["InternalError", "cut"])
def test_what_does_not_pass_ends_with_5_and_the_same_command_goes_on(
    seedrank_command: Command, s3: Any, command: list[str], reference: dict[str, bytes], waits: list[float], kind: str
) -> None:
    s3.faults.fail(kind, puts("queries/part-00002.parquet"))
    result = seedrank_command(*command)
    assert result.code == 5, result.err
    assert f"queries/part-00002.parquet failed after {retries.ATTEMPTS} attempts" in result.err
    assert len(waits) == retries.ATTEMPTS - 1
    manifest = seedrank.open_run(s3.url("run")).manifest
    assert (manifest.state, [part.part for part in manifest.parts]) == ("failed", [0, 1])
    found = s3.content("run")
    assert "candidates/part-00002.parquet" not in found
    assert not {"_SUCCESS", "_lock"} & found.keys()
    kept = {name: value for name, value in found.items() if name.endswith(".parquet")}
    assert kept == {name: value for name, value in reference.items() if name in kept}
    s3.faults.clear()
    again = seedrank_command(*command)
    assert again.code == 0, again.err
    assert not [request for request in s3.faults.requests if puts("part-00000.parquet")(request)]
    check_whole(s3, reference)


def test_a_storage_that_is_gone_altogether(
    seedrank_command: Command, s3: Any, command: list[str], reference: dict[str, bytes], waits: list[float]
) -> None:
    """Not even the manifest or the lock can be written any more: the message is still about what failed first."""
    broken: list[int] = []

    def gone(request: Any) -> bool:
        if puts("candidates/part-00001.parquet")(request):
            broken.append(1)
        return bool(broken)

    s3.faults.fail("ServiceUnavailable", gone)
    result = seedrank_command(*command)
    assert (result.code, "candidates/part-00001.parquet" in result.err.rpartition("error:")[2]) == (5, True)
    s3.faults.clear()
    assert "_lock" in s3.content("run")
    assert seedrank.open_run(s3.url("run")).manifest.state == "running"
    again = seedrank_command(*command)  # of the same process: its lock holds nobody up
    assert again.code == 0, again.err
    check_whole(s3, reference)


@pytest.mark.parametrize(
    ("when", "word"),
    [
        (lambda request: request.method == "PUT", "permission"),
        (lambda request: request.method == "GET" and request.path.endswith("in/hits.parquet"), "permission"),
    ],
    ids=["writing", "reading"],
)
def test_what_is_denied_ends_at_once(
    seedrank_command: Command, s3: Any, command: list[str], waits: list[float], when: Any, word: str
) -> None:
    s3.faults.fail("AccessDenied", when)
    result = seedrank_command(*command)
    assert (result.code, word in result.err, waits) == (5, True, []), result.err


def test_no_bucket_and_no_credentials_end_at_once(
    seedrank_command: Command, s3: Any, command: list[str], waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = command.index("--out") + 1
    nowhere = [*command[:place], "s3://no-such-bucket-of-ours/run", *command[place + 1 :]]
    result = seedrank_command(*nowhere)
    assert (result.code, "a bucket or container that exists" in result.err, waits) == (5, True, []), result.err
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    type(s3.filesystem).clear_instance_cache()
    try:
        result = seedrank_command(*command)
    finally:
        type(s3.filesystem).clear_instance_cache()
    assert (result.code, "redentials" in result.err, waits) == (5, True, []), result.err


def test_a_part_that_somebody_replaces_meanwhile_keeps_the_run_from_success(
    s3: Any, inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = RunObjects.mark_success

    def meddle(self: RunObjects) -> None:
        s3.filesystem.pipe_file(f"{s3.bucket}/run/candidates/part-00000.parquet", b"of another run")
        finish(self)

    monkeypatch.setattr(RunObjects, "mark_success", meddle)
    keywords: dict[str, Any] = {"queries": inputs / "hits.parquet", "part_size": 10, "backend": "scipy"}
    keywords |= {"out": s3.url("run"), "work_dir": str(tmp_path / "work")}
    with pytest.raises(StorageError, match="is not the object that this run has put there"):
        seedrank.score(inputs / "edges.parquet", **keywords)
    assert "_SUCCESS" not in s3.content("run")

    def remove(self: RunObjects) -> None:
        s3.filesystem.rm_file(f"{s3.bucket}/run/queries/part-00001.parquet")
        finish(self)

    monkeypatch.setattr(RunObjects, "mark_success", remove)
    with pytest.raises(StorageError, match=r"queries/part-00001.parquet is not the object"):
        seedrank.score(inputs / "edges.parquet", **keywords)
