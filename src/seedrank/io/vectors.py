"""Vectors of nodes and queries: from Parquet, or mapped from ``.npy`` with their ids beside it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from seedrank.errors import InputDataError
from seedrank.io.arrow.columns import bad_rows, id_type_of, null_rows, require_column
from seedrank.io.arrow.fingerprint import content_fingerprint
from seedrank.io.ids import IdEncoder
from seedrank.io.matrix import Matrix, RowStore, is_matrix, read_matrix
from seedrank.io.records import InputFileRecord
from seedrank.io.tables import Batch, InputPart, TableInput

VectorRows = npt.NDArray[np.floating[Any]]

#: Rows that are hashed at a time.
_HASHED_ROWS = 1 << 12
_SHOWN_IDS = 5


@dataclass(frozen=True, eq=False)
class VectorTable:
    """v vectors of one width d.

    Parameters
    ----------
    ids : pyarrow.Array, length v
        Distinct, sorted.
    rows : ndarray, shape (v, d), float16, float32 or float64
        As they were read, finite; mapped from a file where they are many.
    places : ndarray, shape (v,), int64
        Row of each id.
    without_vector : int
        Rows of the input whose vector was null.
    fingerprint : str
        Hash of ids and vectors; independent of the order of rows and files.
    records : list of InputFileRecord
        What was read.
    what : str
        What messages call the vectors.
    """

    ids: pa.Array
    rows: VectorRows
    places: npt.NDArray[np.int64]
    without_vector: int
    fingerprint: str
    records: list[InputFileRecord]
    what: str

    def some(self, first: int, last: int) -> VectorTable:
        """Return the vectors of the ids ``first`` … ``last - 1``; what was read and its fingerprint stay."""
        return replace(self, ids=self.ids.slice(first, last - first), places=self.places[first:last])

    @property
    def width(self) -> int | None:
        """Numbers of a vector, d; None without a vector."""
        return int(self.rows.shape[1]) if len(self.ids) else None

    @property
    def place(self) -> str:
        """The first file, for messages."""
        return self.records[0].uri if self.records else self.what

    @property
    def place_of_ids(self) -> str:
        """Name the ids in messages."""
        return f"ids of the {self.what} in {self.place}"


def read_vectors(source: Any, *, what: str, id_column: str, vector_column: str) -> VectorTable:
    """Read and validate vectors.

    Parameters
    ----------
    source : path, glob, URL, table, Arrow stream or a list of these, of Parquet; or a path that ends in ``.npy``
        Rows (id, vector), vector a list or fixed-size list of float16, float32 or float64. They are read as a stream;
        many are kept in a temporary file that is mapped. A ``.npy`` file of two dimensions is mapped as it is. Its ids
        are in a file beside it (``x.ids.parquet`` or ``x.ids.npy`` for ``x.npy``) or in a second path. A pair (ids,
        array of two dimensions) is taken as it is.
    what : str
        "node vectors" or "query vectors".
    id_column, vector_column : str
        Columns of Parquet.

    Raises
    ------
    InputDataError
        Missing columns, another type, a null or repeated id, vectors of several widths, NaN or infinity, as many ids
        as vectors not being there, files that are none.
    """
    if is_matrix(source):
        return _sorted_by_id(read_matrix(source, what=what, id_column=id_column), what, nulls=0)
    table = TableInput.open(source, what=what)
    require_column(table, "id", id_column)
    require_column(table, "vector", vector_column)
    reader = VectorReader(table, id_column, vector_column)
    for batch in table.batches([id_column, vector_column]):
        reader.append(batch)
    return reader.finish(what)


class VectorReader:
    """Takes the rows (id, vector) of a table as they are read, whatever else is read of them.

    Parameters
    ----------
    table : TableInput
        Has both columns.
    id_column, vector_column : str

    Raises
    ------
    InputDataError
        The second one holds no vectors.
    """

    def __init__(self, table: TableInput, id_column: str, vector_column: str) -> None:
        self._table = table
        self._id_column = id_column
        self._vector_column = vector_column
        kinds = {_element_type(part, vector_column) for part in table.filled_parts} - {None}
        self._rows = RowStore(np.result_type(*kinds, np.float16))
        self._kind = id_type_of(table, id_column)
        self._ids, self._nulls = [pa.array([], self._kind)], 0

    def append(self, batch: Batch) -> None:
        """Take some rows.

        Raises
        ------
        InputDataError
            A null id, or what is wrong with a vector.
        """
        own = _ids_of(batch, self._id_column)
        present = ~null_rows(batch.table.column(self._vector_column))
        self._nulls += len(present) - int(present.sum())
        self._rows.append(_numbers(batch, self._id_column, self._vector_column, present, self._rows.width))
        self._ids.append((own if present.all() else own.filter(pa.array(present))).cast(self._kind))

    def finish(self, what: str) -> VectorTable:
        """Return all vectors, under the name that messages call them.

        Raises
        ------
        InputDataError
            An id twice.
        """
        place = self._table.parts[0].uri if self._table.parts else self._table.what
        matrix = Matrix(pa.concat_arrays(self._ids), self._rows.finish(), place, self._table.records)
        return _sorted_by_id(matrix, what, nulls=self._nulls)


def _sorted_by_id(matrix: Matrix, what: str, *, nulls: int) -> VectorTable:
    encoder = IdEncoder(matrix.ids.type, what=f"ids of the {what}")
    encoder.append(matrix.ids)
    (codes,), distinct = encoder.finish()
    _refuse_repeated(codes, distinct, matrix.place, what)
    places = np.empty(len(codes), dtype=np.int64)
    places[codes] = np.arange(len(codes))
    return VectorTable(
        ids=distinct,
        rows=matrix.rows,
        places=places,
        without_vector=nulls,
        fingerprint=_fingerprint(distinct, matrix.rows, places),
        records=matrix.records,
        what=what,
    )


def read_vector_ids(source: Any, *, what: str, id_column: str) -> pa.Array:
    """Read the ids of vectors and nothing else, as they come.

    Raises
    ------
    InputDataError
        As `read_vectors`, as far as ids show it.
    """
    if is_matrix(source):
        return read_matrix(source, what=what, id_column=id_column, only_ids=True).ids
    table = TableInput.open(source, what=what)
    require_column(table, "id", id_column)
    kind = id_type_of(table, id_column)
    arrays = [_ids_of(batch, id_column) for batch in table.batches([id_column])]
    return pa.concat_arrays([pa.array([], kind), *(array.cast(kind) for array in arrays)])


def _ids_of(batch: Batch, column: str) -> pa.Array:
    ids = batch.table.column(column)
    missing = null_rows(ids)
    if missing.any():
        raise InputDataError(
            bad_rows(batch, missing, column, "is null", show=[]),
            expected="an id in every row",
            fix="remove these rows, or write the id",
        )
    return ids.cast(ids.type.value_type) if pa.types.is_dictionary(ids.type) else ids


def _element_type(part: InputPart, column: str) -> Any:
    """Type of the numbers of a part; None where nothing shows it."""
    kind: Any = part.type_of(column)
    if pa.types.is_null(kind):
        return None
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    if not is_list or not pa.types.is_floating(kind.value_type):
        raise InputDataError(
            f"{part.place(column)} has type {kind}, which is no vector",
            expected="a fixed-size list, or lists of one length, of float16, float32 or float64",
            fix="write the column as such, or name another one (--vector-column)",
        )
    return kind.value_type.to_pandas_dtype()


def _numbers(
    batch: Batch, id_column: str, column: str, present: npt.NDArray[np.bool_], width: int | None
) -> VectorRows:
    """Vectors of the rows that have one, of shape (rows, d)."""
    vectors = batch.table.column(column)
    if pa.types.is_null(vectors.type) or not present.any():
        return np.zeros((0, width or 0), dtype=np.float16)
    lengths = np.asarray(pc.list_value_length(vectors).fill_null(-1).to_numpy(zero_copy_only=False))
    width = int(lengths[present][0]) if width is None else width
    wrong = present & (lengths != width)
    if wrong.any() or width == 0:
        raise InputDataError(
            bad_rows(
                batch,
                wrong if wrong.any() else present,
                column,
                f"has {int(lengths[wrong if wrong.any() else present][0])} numbers",
                show=[id_column],
            ),
            expected=f"{width} numbers in every vector, as in the first one" if width else "at least one number",
            fix="write vectors of one model",
        )
    # `flatten` skips what lies below null lists and respects the offset of slices.
    elements = vectors.flatten()
    numbers = np.asarray(elements.to_numpy(zero_copy_only=False)).reshape(-1, width)
    finite = np.isfinite(numbers).all(axis=1)
    if not finite.all():
        bad = np.zeros(len(present), dtype=np.bool_)
        bad[np.flatnonzero(present)[~finite]] = True
        raise InputDataError(
            bad_rows(batch, bad, column, "has a number that is null, NaN or infinite", show=[id_column]),
            expected="finite numbers",
            fix="correct these vectors, or write null for a node without one",
        )
    return numbers


def _refuse_repeated(codes: npt.NDArray[np.int32], ids: pa.Array, place: str, what: str) -> None:
    if len(codes) == len(ids):
        return
    counts = np.bincount(codes, minlength=len(ids))
    repeated = ids.take(pa.array(np.flatnonzero(counts > 1)[:_SHOWN_IDS])).to_pylist()
    raise InputDataError(
        f"{place}: {int((counts > 1).sum())} ids of the {what} occur more than once: " + ", ".join(map(repr, repeated)),
        expected="one vector for each id",
        fix="remove the others, or average them",
    )


def _fingerprint(ids: pa.Array, rows: VectorRows, places: npt.NDArray[np.int64]) -> str:
    digest = xxhash.xxh3_128()
    for first in range(0, len(places), _HASHED_ROWS):
        digest.update(np.ascontiguousarray(rows[places[first : first + _HASHED_ROWS]]).view(np.uint8).data)
    about = (rows.dtype.newbyteorder("=").str, str(rows.shape), digest.hexdigest())
    return content_fingerprint({"ids": ids, "vectors": about})
