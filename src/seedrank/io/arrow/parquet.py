"""Parquet files: footers, and row groups as bounded batches of just the columns needed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from seedrank.errors import InputDataError, SeedrankError, StorageError
from seedrank.io.arrow.value_counts import value_counts
from seedrank.io.storage.retried_stream import RetriedStream
from seedrank.io.uri import InputFile
from seedrank.redaction import without_credentials

# Budget of the columns of one batch, for rows that hold long lists or texts.
BATCH_BYTES = 64 << 20
# More rows a byte than any writer stores: pages hold some ten thousand rows, and some ten bytes of what they are.
_ROWS_PER_BYTE = 100_000
_READ_BUFFER = 8 << 20


@dataclass(frozen=True, eq=False)
class Footer:
    """Schema, number of rows, and the row number after each row group (int64)."""

    schema: pa.Schema
    rows: int
    group_ends: npt.NDArray[np.int64]


def read_footer(file: InputFile) -> Footer:
    """Read the footer of one file; InputDataError if it is not a complete Parquet file."""
    with _Translated(file), _Opened(file) as parquet:
        metadata = parquet.metadata
        sizes = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        _check_rows(file, metadata.num_rows, sizes)
        return Footer(parquet.schema_arrow, metadata.num_rows, np.cumsum(sizes, dtype=np.int64))


def read_file(
    file: InputFile, columns: Sequence[str], fields: Mapping[str, frozenset[str]], *, max_rows: int
) -> Iterator[pa.RecordBatch]:
    """Read columns of one file.

    Parameters
    ----------
    file : InputFile
        The file.
    columns : sequence of str
        At least one column; each must be in the file.
    fields : mapping of str to frozenset of str
        For columns of lists of structs, the struct fields to read.
    max_rows : int
        Upper limit of the rows in a batch.

    Yields
    ------
    pyarrow.RecordBatch
        Rows in the order of the file, about `BATCH_BYTES` at most.
    """
    with _Translated(file), _Opened(file) as parquet:
        paths = _leaf_paths(parquet, columns, fields)
        rows = min(max_rows, _rows_in_budget(parquet, paths, file))
        yield from parquet.iter_batches(batch_size=rows, columns=paths)


def _leaf_paths(parquet: pq.ParquetFile, columns: Sequence[str], fields: Mapping[str, frozenset[str]]) -> list[str]:
    """Full paths of the Parquet columns to read, without the struct fields that nobody asked for."""
    paths = []
    for i in range(len(parquet.schema)):
        leaf = parquet.schema.column(i)
        for column in columns:
            # A list of structs is stored as column.list.element.field.
            nested = leaf.path.startswith(column + ".")
            unwanted = column in fields and leaf.path.count(".") >= 3 and leaf.name not in fields[column]
            if leaf.path == column or (nested and not unwanted):
                paths.append(leaf.path)
                break
    return paths


def _check_rows(file: InputFile, rows: int, sizes: list[int]) -> None:
    """Refuse a footer whose numbers of rows cannot be, before anything is made as large as they say."""
    if min(sizes, default=0) < 0 or sum(sizes) != rows:
        raise _damaged(file, f"its footer has {rows} rows, its row groups {sum(sizes)}")
    if not 0 <= rows <= _ROWS_PER_BYTE * file.size:
        raise _damaged(file, f"{rows:,} rows in {file.size:,} bytes")


def _damaged(file: InputFile, why: str) -> InputDataError:
    return InputDataError(
        f"{file.uri} cannot be read as Parquet ({why})",
        expected="a complete Parquet file",
        fix="it is truncated, damaged, or not Parquet at all: write it again",
    )


def _rows_in_budget(parquet: pq.ParquetFile, paths: Sequence[str], file: InputFile) -> int:
    """Rows a batch, so that the widest row group stays within the byte budget.

    Row groups count as a whole; only columns of lists are asked how many values they have.
    """
    metadata = parquet.metadata
    lists = [i for i in range(len(parquet.schema)) if "." in (path := parquet.schema.column(i).path) and path in paths]
    values = _value_counts(parquet, file) if lists else []
    # Encoded pages may be far smaller than what they decode to: count 8 bytes a value at least.
    widest = 8.0 * len(paths)
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        decoded = sum(8 * values[number][i] for i in lists) if lists else 0
        widest = max(widest, max(group.total_byte_size, decoded) / max(group.num_rows, 1))
    return max(int(BATCH_BYTES / widest), 1)


def _value_counts(parquet: pq.ParquetFile, file: InputFile) -> list[list[int]]:
    """Number of values by row group and column."""
    metadata = parquet.metadata
    size = metadata.serialized_size
    with Path(file.path).open("rb") if file.is_local else RetriedStream(file) as stream:
        stream.seek(-size - 8, os.SEEK_END)
        counts = value_counts(stream.read(size), file.uri)
    if [len(group) for group in counts] != [metadata.num_columns] * metadata.num_row_groups:
        raise _damaged(file, "its footer says nothing of some columns")
    return counts


class _Opened:
    """A Parquet file that is open for the length of a ``with`` block."""

    def __init__(self, file: InputFile) -> None:
        self._file = file
        self._stream: Any = None

    def __enter__(self) -> pq.ParquetFile:
        self._stream = None if self._file.is_local else RetriedStream(self._file)
        # Streams of 8 MiB instead of whole column chunks: a row group may be larger than the memory.
        self._parquet = pq.ParquetFile(
            self._file.path if self._stream is None else self._stream,
            buffer_size=_READ_BUFFER,
            pre_buffer=False,
        )
        return self._parquet

    def __exit__(self, *_: object) -> None:
        if self._stream is not None:
            self._stream.close()
        elif hasattr(self, "_parquet"):
            self._parquet.close()


class _Translated:
    """Translate what reading raises: damaged files are the data's fault, the rest is the storage's."""

    def __init__(self, file: InputFile) -> None:
        self._file = file

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, SeedrankError):
            return
        # Arrow reports damage as ArrowInvalid, or as an OSError that no system call stands behind; the Python around
        # it stumbles over names that are not UTF-8.
        if isinstance(error, pa.ArrowException | UnicodeDecodeError) or (
            isinstance(error, OSError) and error.errno is None
        ):
            raise _damaged(self._file, str(error)) from error
        if isinstance(error, OSError) or (isinstance(error, Exception) and not self._file.is_local):
            raise StorageError(
                f"{self._file.uri} cannot be read ({type(error).__name__}: {error})",
                expected="permission to read it, and a storage that answers",
                fix="check permissions, credentials and network, then run the same command again",
            ) from without_credentials(error)
