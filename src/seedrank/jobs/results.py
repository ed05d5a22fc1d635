"""Handles on a finished run: the candidate table, the query rows, the manifest."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from seedrank.errors import InputDataError
from seedrank.io.records import RunManifest
from seedrank.io.runfolder import read_manifest


@contextmanager
def _opened(file: Path) -> Iterator[pq.ParquetFile]:
    # A stream, not a name: Arrow takes a relative name such as "run:2024/…" for a URL.
    with pa.OSFile(str(file)) as stream, pq.ParquetFile(stream) as part:
        yield part


@dataclass(frozen=True)
class ResultTable:
    """The parts of one table of a run, as one table.

    pyarrow, polars, pandas and DuckDB take the object itself (``__arrow_c_stream__``); parts are streamed, so the
    table may be larger than memory.
    """

    folder: Path

    @property
    def files(self) -> list[Path]:
        """The part files in order; `InputDataError` for a run that failed before its first part."""
        files = sorted(self.folder.glob("part-*.parquet"), key=lambda file: (len(file.name), file.name))
        if not files:
            raise InputDataError(
                f"{self.folder} has no parts",
                expected="a run that delivered at least one part",
                fix="look at state and error in run.json, then run score again",
            )
        return files

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema with field and file metadata.

        Raises
        ------
        InputDataError
            The run ended before its first part.
        """
        if not self.files:
            raise InputDataError(
                f"{self.folder} holds no part",
                expected="a run that got as far as its first part",
                fix="see state and error in run.json, then run score again",
            )
        with _opened(self.files[0]) as part:
            return part.schema_arrow

    def __len__(self) -> int:
        rows = 0
        for file in self.files:
            with _opened(file) as part:
                rows += part.metadata.num_rows
        return rows

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Record batches, part by part; of some columns, or of all."""
        for file in self.files:
            with _opened(file) as part:
                yield from part.iter_batches(columns=None if columns is None else list(columns))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        reader = pa.RecordBatchReader.from_batches(self.schema, self.batches())
        return reader.__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pa.Table:
        """Read everything into a ``pyarrow.Table``."""
        return pa.Table.from_batches(self.batches(), schema=self.schema)

    def to_pandas(self) -> Any:
        """Read everything into a ``pandas.DataFrame`` (needs pandas)."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """Read everything into a ``polars.DataFrame`` (needs polars)."""
        import polars as pl  # noqa: PLC0415  # an optional dependency of the caller

        return pl.from_arrow(self.to_arrow())


@dataclass(frozen=True)
class Run:
    """A run folder.

    Attributes
    ----------
    path : Path
        The folder.
    already_done : bool
        Whether `seedrank.score` found it finished and computed nothing.
    """

    path: Path
    already_done: bool = False

    @property
    def candidates(self) -> ResultTable:
        """The result: one row per (query, rank)."""
        return ResultTable(self.path / "candidates")

    @property
    def queries(self) -> ResultTable:
        """What happened: one row per query."""
        return ResultTable(self.path / "queries")

    @cached_property
    def manifest(self) -> RunManifest:
        """``run.json``."""
        return read_manifest(self.path)


def open_run(path: str | os.PathLike[str]) -> Run:
    """Open a run folder for reading.

    Raises
    ------
    InputDataError
        ``path`` is not a run folder of this version.
    """
    run = Run(Path(path))
    _ = run.manifest
    return run
