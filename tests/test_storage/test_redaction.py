"""Credentials appear nowhere: not in logs, not in run.json or graph.json, not in messages, not in what lies beneath."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import seedrank
from seedrank.errors import StorageError
from seedrank.io.storage.objects import object_folder
from seedrank.redaction import redacted, redacted_values, without_credentials

Command = Callable[..., Any]

PASSWORD = "pAssw0rd/of=the@tests"  # noqa: S105


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("s3://key:sec/ret@bucket/x y", "s3://***@bucket/x y"),
        ("ftp://u:p@ss@host/a and b@c", "ftp://***@host/a and b@c"),
        ("https://token@host/a", "https://***@host/a"),
        ("https://h/x?X-Amz-Credential=A%2F2&X-Amz-Signature=ff&n=1", "https://h/x?X-Amz-Credential=***&X-Amz-Signature=***&n=1"),
        ("https://a.blob/c?sv=1&sig=ab%3D&se=2 failed", "https://a.blob/c?sv=1&sig=***&se=2 failed"),
        ("AccountName=n;AccountKey=ab==;EndpointSuffix=s", "AccountName=n;AccountKey=***;EndpointSuffix=s"),
        ("({'key': 'K', 'secret': 's', \"token\": \"t\"})", "({'key': 'K', 'secret': '***', \"token\": \"***\"})"),
        # What is no credential stays.
        ("http://host:9000/a@b?x=1", "http://host:9000/a@b?x=1"),
        ("abfs://container@account.dfs/x", "abfs://container@account.dfs/x"),
        ("s3://bucket/token=5/sig=2/part-0.parquet", "s3://bucket/token=5/sig=2/part-0.parquet"),
        ("--seed-source-weight dense=0.5", "--seed-source-weight dense=0.5"),
    ],
)  # fmt: skip
def test_redacted(text: str, hidden: str) -> None:
    assert redacted(text) == hidden
    assert redacted(hidden) == hidden
    assert redacted_values({"a": [text, 1, None]}) == {"a": [hidden, 1, None]}


def test_values_of_variables_are_hidden_wherever_they_turn_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "abcdefgh12345678")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "short")
    assert redacted("signing with abcdefgh12345678 in short") == "signing with *** in short"


def test_messages_and_what_lies_beneath_them() -> None:
    error = StorageError(f"https://u:{PASSWORD}@h/x is away", expected="?sig=abc", fix="pass 'secret': 'xyz'")
    assert str(error) == "https://***@h/x is away\nexpected: ?sig=***\nfix: pass 'secret': '***'"
    outer = ValueError("cannot read")
    outer.__cause__ = OSError("https://h/x?sig=abc refused")
    clean = without_credentials(outer)
    assert clean is not outer
    assert "abc" not in "".join(traceback.format_exception(clean))
    plain = ValueError("nothing to hide")
    assert without_credentials(plain) is plain


class Vault(MemoryFileSystem):  # type: ignore[misc]
    """A storage whose URLs carry a user and a password, as those of servers do; it fails with the whole URL."""

    protocol = "vault"
    broken = False

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return "/" + str(path).removeprefix("vault://").lstrip("/").rstrip("/")

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        if type(self).broken:
            raise ConnectionError(f"vault:/{path} does not answer")
        return bytes(super().cat_file(path, start, end))


@pytest.fixture
def vault(monkeypatch: pytest.MonkeyPatch) -> str:
    """URL of a prefix there."""
    fsspec.register_implementation("vault", Vault, clobber=True)
    monkeypatch.setattr(Vault, "broken", False)
    monkeypatch.setattr(MemoryFileSystem, "store", {})
    return f"vault://user:{PASSWORD}@host"


def test_a_run_whose_urls_carry_a_password(
    seedrank_command: Command, vault: str, inputs: Path, tmp_path: Path, waits: list[float]
) -> None:
    filesystem = fsspec.filesystem("vault")
    for name in ("edges", "hits"):
        filesystem.put_file(str(inputs / f"{name}.parquet"), f"{vault}/in/{name}.parquet")
    common = ("--work-dir", tmp_path / "work", "--log-format", "json", "--verbose")
    told = seedrank_command("build", f"{vault}/in/edges.parquet", "--out", f"{vault}/graph", *common)
    assert told.code == 0, told.err
    arguments = (f"{vault}/graph", "--queries", f"{vault}/in/hits.parquet", "--backend", "scipy", *common)
    for options in ((), ("--top-k", "3"), ("--json", "--overwrite")):
        result = seedrank_command("score", *arguments, "--out", f"{vault}/run", *options)
        assert result.code == (2 if "--top-k" in options else 0), result.err
        assert PASSWORD not in result.out + result.err
    Vault.broken = True
    failed = seedrank_command("score", *arguments, "--out", f"{vault}/run")
    Vault.broken = False
    assert (failed.code, len(waits)) == (5, 5), failed.err
    assert "storage_retried" in failed.err
    written = b"".join(filesystem.cat_file(name) for name in filesystem.store if name.endswith(".json"))
    written += b"".join(file.read_bytes() for file in (tmp_path / "work").rglob("*") if file.is_file())
    for text in (told.out, told.err, failed.out, failed.err, written.decode(errors="replace")):
        assert PASSWORD not in text
        assert "of=the@tests" not in text
    manifest = json.loads(filesystem.cat_file(f"{vault}/run/run.json"))
    assert manifest["graph"]["path"] == "vault:///***@host/graph"
    assert manifest["inputs"]["queries"]["files"][0]["uri"] == "vault:///***@host/in/hits.parquet"
    with pytest.raises(seedrank.errors.InputDataError, match="was given with credentials"):
        seedrank.explain(f"{vault}/run", query=0, node=0, work_dir=str(tmp_path / "work"))


def test_errors_in_python_and_their_tracebacks(
    vault: str, waits: list[float], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Vault, "broken", True)
    with caplog.at_level(logging.DEBUG, logger="seedrank"), pytest.raises(StorageError) as caught:
        seedrank.score(pa.table({"src": [1], "dst": [2]}), queries=pa.table({"query_id": [1]}), out=f"{vault}/run")
    assert PASSWORD not in "".join(traceback.format_exception(caught.value))
    assert waits
    logged = [str(vars(record)) for record in caplog.records if record.name.startswith("seedrank")]
    assert any("storage_retried" in line for line in logged)
    assert not any(PASSWORD in line for line in logged)


def test_the_name_of_a_prefix_has_no_password(vault: str) -> None:
    assert object_folder(f"{vault}/run/", what="--out").url == "vault:///***@host/run"
