"""Names of edge types, node types and sources: strings, or integers that stand for their decimal text."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seedrank.errors import InputDataError
from seedrank.io.edge_list.code_chunks import CodeList, Encoded, MakeChunks
from seedrank.io.edge_list.encoders import HashEncoder
from seedrank.io.ids import is_string, plain_type
from seedrank.io.tables import TableInput


class NameEncoder:
    """Number the names of a column of types or sources: strings, or integers by their decimal text.

    Null is a name of its own (None), and the last one.

    Parameters
    ----------
    chunks : callable, optional
        Makes the sequence that the codes of the rows are kept in; by default a list.
    """

    def __init__(self, chunks: MakeChunks = CodeList) -> None:
        self._hashes = HashEncoder(pa.large_string(), columns=1, chunks=chunks)
        self._has_null = False

    def append(self, array: pa.Array) -> None:
        """Take one batch of rows."""
        self._has_null |= _is_any_null(array)
        self._hashes.append([name_dictionary(array)], keep=True)

    def finish(self) -> tuple[npt.NDArray[np.int32], tuple[str | None, ...]]:
        """Return one code per row, and the names sorted by code point."""
        encoded, names = self.encode()
        return encoded.arrays()[0], names

    def encode(self) -> tuple[Encoded, tuple[str | None, ...]]:
        """Number everything like `finish`, but leave the codes of the rows where they are."""
        encoded = self._hashes.finish()
        names: list[str | None] = encoded.values.to_pylist()
        encoded.table[-1] = len(names)  # what code -1 becomes
        return encoded, tuple([*names, None] if self._has_null else names)


def name_dictionary(array: pa.Array) -> pa.Array:
    """Dictionary-encode a column of names; integers become their decimal text, once per distinct value."""
    encoded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
    if pa.types.is_null(encoded.dictionary.type):
        encoded = pa.nulls(len(array), pa.large_string()).dictionary_encode()
    return pa.DictionaryArray.from_arrays(encoded.indices, encoded.dictionary.cast(pa.large_string()))


def _is_any_null(array: pa.Array) -> bool:
    """Whether a row is null, be it that only the dictionary says so."""
    if array.null_count:
        return True
    return bool(
        pa.types.is_dictionary(array.type)
        and array.dictionary.null_count
        and array.cast(array.type.value_type).null_count
    )


def check_name(data_type: pa.DataType, role: str, place: str) -> None:
    """Refuse a column of names that is neither strings nor integers."""
    plain = plain_type(data_type)
    if not (is_string(plain) or pa.types.is_integer(plain) or pa.types.is_null(plain)):
        raise InputDataError(
            f"{place} has type {data_type}, which cannot be the {role}",
            expected="strings or integers, plain or as a dictionary",
            fix=f"write the {role} column as string",
        )


def check_name_type(table: TableInput, role: str, column: str) -> None:
    """Apply `check_name` to a column of all non-empty parts."""
    for part in table.filled_parts:
        data_type = part.type_of(column)
        if data_type is not None:
            check_name(data_type, role, part.place(column))
