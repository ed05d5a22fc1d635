"""Rows of numbers in bulk: kept in memory or in a mapped file, read from ``.npy`` with ids beside it."""

from __future__ import annotations

import os
import tempfile
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import fsspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seedrank.errors import InputDataError
from seedrank.io.arrow.columns import null_rows, require_column
from seedrank.io.ids import common_id_type
from seedrank.io.records import InputFileRecord
from seedrank.io.storage.files import storage_errors
from seedrank.io.tables import TableInput

MEMORY_BYTES = 64 << 20
"""Rows of more than so many bytes go to a temporary file, which is mapped."""

_CHECKED_ROWS = 1 << 14
_SHOWN_ROWS = 5
_SUFFIX = ".npy"

#: What NumPy raises for bytes that are no array: the header is a Python literal, which can be wrong in many ways. It is
#: short of memory only for a shape that the file does not hold, as an array that is there is mapped.
_NO_ARRAY = (
    *(ValueError, EOFError, SyntaxError, TypeError, LookupError),
    *(OverflowError, MemoryError, RecursionError, tokenize.TokenError),
)


@dataclass(frozen=True, eq=False)
class Matrix:
    """Ids and rows in the order of the input, of shape (r,) and (r, d); the first file, for messages; all files."""

    ids: pa.Array
    rows: npt.NDArray[np.floating[Any]]
    place: str
    records: list[InputFileRecord]


class RowStore:
    """Rows of numbers that arrive bit by bit and are then one array.

    Parameters
    ----------
    dtype : numpy.dtype
        What the array is to hold.
    """

    def __init__(self, dtype: Any) -> None:
        self._dtype = np.dtype(dtype)
        self._waiting: list[npt.NDArray[Any]] = []
        self._bytes = 0
        self._file: IO[bytes] | None = None
        self.width: int | None = None

    def append(self, rows: npt.NDArray[Any]) -> None:
        """Take some rows; all have the width of the first ones."""
        if not len(rows):
            return
        self.width = rows.shape[1]
        self._waiting.append(rows.astype(self._dtype))
        self._bytes += self._waiting[-1].nbytes
        if self._bytes > MEMORY_BYTES:
            self._spill()

    def finish(self) -> npt.NDArray[Any]:
        """Return all rows, read-only where they are mapped. A temporary file goes when the array does."""
        if self._file is None:
            return np.concatenate([np.zeros((0, self.width or 0), self._dtype), *self._waiting])
        self._spill()
        with self._file as file:
            return np.memmap(file, dtype=self._dtype, mode="r", shape=(self._bytes // self._row_bytes, self.width))  # type: ignore[call-overload, no-any-return]

    @property
    def _row_bytes(self) -> int:
        return int(self._dtype.itemsize * (self.width or 1))

    def _spill(self) -> None:
        with storage_errors(f"writing vectors to a temporary file in {tempfile.gettempdir()}"):
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="seedrank-vectors-")  # noqa: SIM115  # `finish` closes it
            for rows in self._waiting:
                self._file.write(rows.data)
            self._file.flush()
        self._waiting.clear()


def is_matrix(source: Any) -> bool:
    """Whether a source is a ``.npy`` file, perhaps with a second path for its ids, or a pair (ids, array)."""
    if isinstance(source, (list, tuple)) and source:
        return is_pair(source) or _is_npy(source[0])
    return _is_npy(source)


def read_matrix(source: Any, *, what: str, id_column: str, only_ids: bool = False) -> Matrix:
    """Map a ``.npy`` file and read its ids, or take a pair (ids, array).

    Parameters
    ----------
    source : see `is_matrix`
    what : str
        What the rows are, for messages.
    id_column : str
        Column of the ids, where they are in Parquet.
    only_ids : bool
        Do not look at the numbers.

    Raises
    ------
    InputDataError
        A file is missing or another one, not two dimensions, no floats, another number of ids, a null id, NaN or
        infinity.
    """
    if isinstance(source, (list, tuple)) and is_pair(source):
        place = f"{what} (array in memory)"
        ids, rows = _id_array(source[0], place), np.asarray(source[1])
        _refuse_other_shapes(rows, place)
        records = [InputFileRecord(uri=place, bytes=rows.nbytes, rows=len(rows))]
    else:
        paths = list(source) if isinstance(source, (list, tuple)) else [source]
        if len(paths) > 2:
            raise InputDataError(
                f"{what}: {len(paths)} paths are given, the first is {paths[0]}",
                expected="one .npy file, and at most one file of its ids",
                fix="write one array, or use Parquet, which may have many files",
            )
        path = _local(paths[0], what)
        place, rows = str(path), _map(path)
        _refuse_other_shapes(rows, place)
        ids_path = _ids_beside(path) if len(paths) == 1 else _local(paths[1], what)
        ids = _read_ids(ids_path, id_column)
        records = [InputFileRecord(uri=str(path), bytes=path.stat().st_size, rows=len(rows))]
        records.append(InputFileRecord(uri=str(ids_path), bytes=ids_path.stat().st_size, rows=len(ids)))
    _refuse_other_lengths(ids, rows, place)
    if not only_ids:
        _refuse_infinite(rows, place)
    return Matrix(ids, rows, place, records)


def _is_npy(source: Any) -> bool:
    return isinstance(source, (str, os.PathLike)) and os.fspath(source).endswith(_SUFFIX)


def is_pair(source: Sequence[Any]) -> bool:
    """Whether a sequence is ids and an array of two dimensions."""
    return len(source) == 2 and isinstance(source[1], np.ndarray) and source[1].ndim == 2


def _local(source: Any, what: str) -> Path:
    text = os.fspath(source)
    protocol, separator, _ = text.partition("://")
    if separator and protocol not in ("file", "local"):
        raise InputDataError(
            f"{what}: {text} is a URL", expected="a local .npy file, which is mapped", fix="copy it, or use Parquet"
        )
    return Path(fsspec.core.url_to_fs(text)[1])


def _map(path: Path) -> npt.NDArray[Any]:
    try:
        try:
            return np.asanyarray(np.load(path, mmap_mode="r", allow_pickle=False))
        except ValueError:  # an empty array cannot be mapped
            return np.asarray(np.load(path, allow_pickle=False))
    except OSError as error:
        raise InputDataError(
            f"{path} cannot be read ({error.strerror or error})", expected="a .npy file", fix="check the path"
        ) from None
    except _NO_ARRAY as error:
        raise InputDataError(
            f"{path} is no .npy file of numbers ({error})",
            expected="an array as numpy.save writes it",
            fix="write it again",
        ) from None


def _ids_beside(path: Path) -> Path:
    stem = path.name.removesuffix(_SUFFIX)
    candidates = [path.with_name(f"{stem}.ids{suffix}") for suffix in (".parquet", _SUFFIX)]
    there = [candidate for candidate in candidates if candidate.is_file()]
    if len(there) == 1:
        return there[0]
    names = " or ".join(map(str, candidates))
    raise InputDataError(
        f"{path}: the ids of its rows are {'in two files' if there else 'nowhere'}",
        expected=f"{names}, one row for each vector",
        fix="write one of the two, or name the file of the ids after the vectors",
    )


def _read_ids(path: Path, column: str) -> pa.Array:
    if path.name.endswith(_SUFFIX):
        return _id_array(_map(path), str(path))
    table = TableInput.open(str(path), what="ids of vectors")
    require_column(table, "id", column)
    arrays = [batch.table.column(column) for batch in table.batches([column])]
    arrays = [array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array for array in arrays]
    return _checked_ids(pa.chunked_array(arrays).combine_chunks() if arrays else pa.array([]), str(path))


def _id_array(values: Any, place: str) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    try:
        array = values if isinstance(values, pa.Array) else pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise InputDataError(
            f"{place}: the ids are no column of ids ({error})", expected="integers or strings", fix="write them as such"
        ) from None
    return _checked_ids(array, place)


def _checked_ids(ids: pa.Array, place: str) -> pa.Array:
    kind = common_id_type([(ids.type, place)])
    missing = null_rows(ids)
    if missing.any():
        raise InputDataError(
            f"{place}: {int(missing.sum())} ids are null, the first in row {int(np.flatnonzero(missing)[0])}",
            expected="an id for every vector",
            fix="remove these rows, or write the id",
        )
    return ids.cast(kind)


def _refuse_other_shapes(rows: npt.NDArray[Any], place: str) -> None:
    if rows.ndim != 2 or rows.dtype.kind != "f" or rows.dtype.itemsize > 8 or (len(rows) and not rows.shape[1]):
        raise InputDataError(
            f"{place} has shape {rows.shape} and type {rows.dtype}",
            expected="two dimensions, a row for each vector, of float16, float32 or float64",
            fix="write the array as such",
        )


def _refuse_other_lengths(ids: pa.Array, rows: npt.NDArray[Any], place: str) -> None:
    if len(ids) != len(rows):
        raise InputDataError(
            f"{place} has {len(rows)} rows, but there are {len(ids)} ids",
            expected="an id for each row, in the same order",
            fix="write both again",
        )


def _refuse_infinite(rows: npt.NDArray[Any], place: str) -> None:
    bad: list[int] = []
    for first in range(0, len(rows), _CHECKED_ROWS):
        finite = np.isfinite(rows[first : first + _CHECKED_ROWS]).all(axis=1)
        bad += (first + np.flatnonzero(~finite)).tolist()
        if len(bad) > _SHOWN_ROWS:
            break
    if bad:
        more = ", and more" if len(bad) > _SHOWN_ROWS else ""
        raise InputDataError(
            f"{place}: NaN or infinite numbers in the rows {', '.join(map(str, bad[:_SHOWN_ROWS]))}{more}",
            expected="finite numbers",
            fix="correct these rows (counted from 0), or leave them out",
        )
