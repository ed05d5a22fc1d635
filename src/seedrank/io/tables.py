"""Tables as streams: Parquet files or Arrow data in memory, only the columns asked for, in bounded batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import PathLike as OsPathLike
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seedrank.errors import InputDataError
from seedrank.io.arrow.parquet import read_file, read_footer
from seedrank.io.arrow.string_views import without_views
from seedrank.io.arrow.value_checks import refuse_broken_values
from seedrank.io.records import InputFileRecord
from seedrank.io.uri import InputFile, PathLike, find_files

# A path, a pyarrow.Table or RecordBatch, anything with __arrow_c_stream__ (pandas, polars, DuckDB, …), or a
# list.
TableSource = Any

BATCH_ROWS = 1 << 20
_FOOTER_THREADS = 8


@dataclass(frozen=True, eq=False)
class InputPart:
    """One file, or one table in memory.

    Parameters
    ----------
    uri : str
        Name for messages.
    schema : pyarrow.Schema
        All columns that the part itself has.
    rows : int or None
        Number of rows; None for a stream, whose end is not known yet.
    bytes : int
        Size on storage; for memory the size of the buffers, 0 where it is not known.
    partition : Mapping[str, str | None]
        Columns that the folder names add; a column of the same name in the file wins.
    group_ends : ndarray, shape (row groups,), int64
        Row number after each row group; empty in memory.
    source : object
        The `InputFile`, table or stream behind it.
    """

    uri: str
    schema: pa.Schema
    rows: int | None
    bytes: int
    partition: Mapping[str, str | None]
    group_ends: npt.NDArray[np.int64]
    source: Any

    @property
    def column_names(self) -> list[str]:
        """Names of all columns, those of the folder names last."""
        return [*self.schema.names, *(key for key in self.partition if key not in self.schema.names)]

    def type_of(self, column: str) -> pa.DataType | None:
        """Type of a column, None if the part does not have it; columns from folder names are strings."""
        if column in self.schema.names:
            return self.schema.field(column).type
        if column not in self.partition:
            return None
        return pa.null() if self.partition[column] is None else pa.string()

    def place(self, column: str) -> str:
        """``file, column 'name'`` for messages."""
        return f"{self.uri}, column {column!r}"


@dataclass(frozen=True, eq=False)
class Batch:
    """Consecutive rows of one part.

    Parameters
    ----------
    table : pyarrow.RecordBatch
        The columns asked for, without those that the part does not have.
    part : InputPart
        Where the rows are from.
    first_row : int
        Number of the first row within the part, from 0.
    """

    table: pa.RecordBatch
    part: InputPart
    first_row: int

    @property
    def uri(self) -> str:
        """Name of the part."""
        return self.part.uri

    @property
    def row_group(self) -> int | None:
        """Row group of the first row, None in memory."""
        return self.row_group_of(0)

    def row_group_of(self, index: int) -> int | None:
        """Row group of a row of this batch, None in memory."""
        ends = self.part.group_ends
        return int(np.searchsorted(ends, self.first_row + index, side="right")) if len(ends) else None

    def column(self, name: str) -> pa.Array | None:
        """Return a column, None if the part does not have it."""
        return self.table.column(name) if name in self.table.schema.names else None


class TableInput:
    """An opened table: footers are read, rows are not.

    Use `TableInput.open`. ``parts`` are sorted by name for files, in the given order for tables in memory.
    """

    def __init__(self, parts: Sequence[InputPart], *, what: str) -> None:
        self.parts = tuple(parts)
        self.what = what
        self._rows_read: dict[int, int] = {}

    @classmethod
    def open(cls, source: TableSource, *, what: str) -> TableInput:
        """Open a path, glob, URL, table, Arrow stream, or a list of these.

        Raises
        ------
        InputDataError
            Nothing there, not Parquet, a truncated file, a column name that occurs twice, not a table at all.
        """
        entries = list(source) if isinstance(source, list | tuple) else [source]
        paths = [entry for entry in entries if isinstance(entry, str | OsPathLike)]
        parts = _open_files(paths, what) if paths or not entries else []
        memory = [entry for entry in entries if not isinstance(entry, str | OsPathLike)]
        for number, entry in enumerate(memory):
            name = f"{what} (table in memory)" if len(memory) == 1 else f"{what} (table {number} in memory)"
            parts.append(_open_memory(entry, name))
        for part in parts:
            _check_names(part)
        return cls(parts, what=what)

    @property
    def filled_parts(self) -> tuple[InputPart, ...]:
        """The parts that have rows, or all if none has: an empty part has no say in types and columns."""
        return tuple(part for part in self.parts if part.rows != 0) or self.parts

    @property
    def records(self) -> list[InputFileRecord]:
        """One record a part; streams are counted once they are read."""
        return [
            InputFileRecord(
                uri=part.uri,
                bytes=part.bytes,
                rows=self._rows_read.get(i, 0) if part.rows is None else part.rows,
            )
            for i, part in enumerate(self.parts)
        ]

    def batches(self, columns: Sequence[str], *, fields: Mapping[str, frozenset[str]] | None = None) -> Iterator[Batch]:
        """Stream the named columns, part by part, in the order of the rows.

        Parameters
        ----------
        columns : sequence of str
            Columns to read; nothing else is. One that a part lacks is missing from its batches.
        fields : mapping of str to frozenset of str, optional
            For a column of lists of structs: the struct fields that are needed.

        Yields
        ------
        Batch
            At most 2^20 rows and about 64 MiB. Small row groups may share one, see `Batch.row_group_of`.

        Raises
        ------
        InputDataError
            The file is damaged, or a column holds values that its type does not allow.
        """
        wanted = list(dict.fromkeys(columns))
        for number, part in enumerate(self.parts):
            if part.rows == 0:
                continue
            first_row = 0
            for table in _part_batches(part, wanted, fields or {}):
                if table.num_rows:
                    yield Batch(table, part, first_row)
                first_row += table.num_rows
            self._rows_read[number] = first_row


def _open_files(paths: Sequence[PathLike], what: str) -> list[InputPart]:
    files = find_files(paths, what=what)
    if len(files) == 1:
        return [_open_file(files[0])]
    with ThreadPoolExecutor(_FOOTER_THREADS) as pool:  # footers of object stores are a matter of latency
        return list(pool.map(_open_file, files))


def _open_file(file: InputFile) -> InputPart:
    footer = read_footer(file)
    return InputPart(
        uri=file.uri,
        schema=footer.schema,
        rows=footer.rows,
        bytes=file.size,
        partition=file.partition,
        group_ends=footer.group_ends,
        source=file,
    )


def _open_memory(entry: Any, name: str) -> InputPart:
    if isinstance(entry, pa.RecordBatch):
        entry = pa.Table.from_batches([entry])
    if isinstance(entry, pa.Table):
        schema, rows, size = entry.schema, entry.num_rows, entry.nbytes
    elif hasattr(entry, "__arrow_c_stream__"):
        # Kept open: a stream can be read once, and a query engine would run its query again.
        entry = pa.RecordBatchReader.from_stream(entry)
        schema, rows, size = entry.schema, None, 0
    else:
        raise InputDataError(
            f"{name}: a {type(entry).__module__}.{type(entry).__qualname__} is not a table",
            expected="a path, a pyarrow.Table, or an object with __arrow_c_stream__ (pandas, polars, DuckDB, …)",
            fix="pass one of these",
        )
    return InputPart(name, schema, rows, size, {}, np.empty(0, np.int64), entry)


def _check_names(part: InputPart) -> None:
    repeated = sorted((name, count) for name, count in Counter(part.schema.names).items() if count > 1)
    if repeated:
        name, count = repeated[0]
        raise InputDataError(
            f"{part.uri}: column {name!r} is there {count} times",
            expected="column names that are unique within a table",
            fix="rename or drop the repetitions",
        )


def _part_batches(
    part: InputPart, columns: Sequence[str], fields: Mapping[str, frozenset[str]]
) -> Iterator[pa.RecordBatch]:
    own = [name for name in columns if name in part.schema.names]
    added = [name for name in columns if name not in part.schema.names and name in part.partition]
    if not own:  # everything asked for stands in the folder names; only the number of rows is needed
        for start in range(0, part.rows or 0, BATCH_ROWS):
            rows = min(BATCH_ROWS, (part.rows or 0) - start)
            yield pa.RecordBatch.from_arrays([_constant(part.partition[c], rows) for c in added], names=added)
        return
    if isinstance(part.source, InputFile):
        batches = read_file(part.source, own, fields, max_rows=BATCH_ROWS)
    elif isinstance(part.source, pa.Table):
        batches = iter(part.source.select(own).to_batches(max_chunksize=BATCH_ROWS))
    else:
        batches = (piece for batch in part.source for piece in _slices(batch.select(own)))
    for batch in batches:
        for name in own:
            refuse_broken_values(batch.column(name), part.place(name))
        arrays = [without_views(batch.column(name)) for name in own]
        arrays += [_constant(part.partition[name], batch.num_rows) for name in added]
        yield pa.RecordBatch.from_arrays(arrays, names=own + added)


def _slices(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for start in range(0, batch.num_rows, BATCH_ROWS):
        yield batch.slice(start, BATCH_ROWS)


def _constant(value: str | None, rows: int) -> pa.Array:
    if value is None:
        return pa.nulls(rows)
    return pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), pa.array([value]))
