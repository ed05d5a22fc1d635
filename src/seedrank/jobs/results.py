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
from seedrank.io.run.part_files import files_of, part_name, part_number
from seedrank.io.run.range_folder import read_range_manifests
from seedrank.io.run.range_objects import read_range_objects
from seedrank.io.run.run_objects import read_objects_manifest
from seedrank.io.run.runfolder import not_a_run, read_manifest
from seedrank.io.storage.objects import object_folder
from seedrank.io.storage.retried_stream import RetriedStream
from seedrank.io.uri import InputFile
from seedrank.jobs.locations import local_path, remote_url
from seedrank.part_span import PartSpan
from seedrank.redaction import redacted


@contextmanager
def opened(file: Path | InputFile) -> Iterator[pq.ParquetFile]:
    """Open a part file for the length of a ``with`` block."""
    # A stream, not a name: Arrow takes a relative name such as "run:2024/…" for a URL.
    stream = RetriedStream(file) if isinstance(file, InputFile) else pa.OSFile(str(file))
    with stream, pq.ParquetFile(stream) as part:
        yield part


@dataclass(frozen=True)
class ResultTable:
    """The parts of one table of a run, as one table.

    pyarrow, polars, pandas and DuckDB take the object itself (``__arrow_c_stream__``); parts are streamed, so the
    table may be larger than memory.

    Attributes
    ----------
    folder : Path
        The folder of the parts; of a run on an object store its path there.
    objects : tuple of InputFile or None
        The parts of a run on an object store, as its manifest lists them.
    span : PartSpan or None
        Of a local folder only these parts.
    """

    folder: Path
    objects: tuple[InputFile, ...] | None = None
    span: PartSpan | None = None

    @property
    def files(self) -> list[Path]:
        """The part files in order; `InputDataError` for a run that failed before its first part."""
        return [Path(part.path) if isinstance(part, InputFile) else part for part in self._parts()]

    def _parts(self) -> list[Path] | list[InputFile]:
        files: list[Path] | list[InputFile]
        if self.objects is None:
            there = self.folder.glob("part-*.parquet")
            if self.span is not None:
                there = (file for file in there if self.span.has(part_number(file.name)))
            files = sorted(there, key=lambda file: (len(file.name), file.name))
        else:
            files = list(self.objects)
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
        with opened(self._parts()[0]) as part:
            return part.schema_arrow

    def __len__(self) -> int:
        rows = 0
        for file in self._parts():
            with opened(file) as part:
                rows += part.metadata.num_rows
        return rows

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Record batches, part by part; of some columns, or of all."""
        for file in self._parts():
            with opened(file) as part:
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
        The folder; of a run on an object store its path there, beside `url`.
    url : str or None
        Where a run on an object store is.
    already_done : bool
        Whether `seedrank.score` found it finished and computed nothing.
    span : PartSpan or None
        The range of parts that `seedrank.score` was asked for, which the manifest and the tables are about then.
    """

    path: Path
    url: str | None = None
    already_done: bool = False
    span: PartSpan | None = None

    @property
    def name(self) -> str:
        """The path, or the URL without credentials, for messages."""
        return redacted(self.url or str(self.path))

    @property
    def candidates(self) -> ResultTable:
        """The result: one row per (query, rank)."""
        return self._table("candidates")

    @property
    def queries(self) -> ResultTable:
        """What happened: one row per query."""
        return self._table("queries")

    @cached_property
    def manifest(self) -> RunManifest:
        """``run.json``; of a range its own, unless the whole run has taken it over."""
        if self.span is not None and (found := self._ranges().get(self.span)) is not None:
            return found
        if self.url is None:
            return read_manifest(self.path)
        objects = object_folder(self.url, what="the run")
        manifest = read_objects_manifest(objects)
        if manifest is None:
            raise not_a_run(objects.url, "FileNotFoundError")
        return manifest

    def _ranges(self) -> dict[PartSpan, RunManifest]:
        if self.url is None:
            return read_range_manifests(self.path)
        return read_range_objects(object_folder(self.url, what="the run"))

    def _table(self, name: str) -> ResultTable:
        if self.url is None:
            return ResultTable(self.path / name, span=self.span)
        objects = object_folder(self.url, what="the run")
        return ResultTable(
            self.path / name,
            tuple(
                objects.file(f"{folder}/{part_name(record.part)}", size=written.bytes)
                for record in self.manifest.parts
                if self.span is None or self.span.has(record.part)
                for folder, written, _ in files_of(record)
                if folder == name
            ),
        )


def open_run(path: str | os.PathLike[str]) -> Run:
    """Open a run folder for reading, or a run on an object store by its URL.

    Raises
    ------
    InputDataError
        ``path`` is not a run folder of this version.
    StorageError
        The URL cannot be read.
    """
    url = remote_url(path)
    if url is not None:
        run = Run(Path(object_folder(url, what="the run").path), url=url)
    else:
        local = local_path(path) if "://" in os.fspath(path) else None
        run = Run(local or Path(path))
    _ = run.manifest
    return run
