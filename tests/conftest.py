"""Fixtures and helpers shared by all tests."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of real graphs beside the checkout; tests that need it are skipped where it is absent."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"no real data at {SHARED_DATA}: these tests run where it is laid out")
    return SHARED_DATA


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write columns (or a table) to a Parquet file below the test's folder; returns its path."""

    def write_file(name: str, columns: Mapping[str, Any] | pa.Table) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(columns if isinstance(columns, pa.Table) else pa.table(dict(columns)), path)
        return path

    return write_file


@dataclass(frozen=True)
class CommandResult:
    """What a run of the command line left: exit code, stdout, stderr."""

    code: int
    out: str
    err: str


@pytest.fixture
def seedrank_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., CommandResult]]:
    """Run the command line in this process, exactly as the console script does."""
    logger = logging.getLogger("seedrank")
    handlers, propagate, level = logger.handlers, logger.propagate, logger.level
    for name in [key for key in os.environ if key.startswith("SEEDRANK_")]:
        monkeypatch.delenv(name)

    def run_command(*arguments: str | Path) -> CommandResult:
        from seedrank.jobs.cli.main import run  # noqa: PLC0415  # as the console script does

        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return CommandResult(code, captured.out, captured.err)

    yield run_command
    # The command sent the package's log to a stderr that is gone now.
    logger.handlers, logger.propagate = handlers, propagate
    logger.setLevel(level)
