"""How many values each column chunk of a Parquet file has, from the bytes of its footer.

PyArrow (26) tells it, too, but ends the process if the statistics of the column are damaged in a certain way: an
exception of C++ leaves a function that promises none.
"""

from __future__ import annotations

from typing import Any

from seedrank.errors import InputDataError

# Types of values in the compact protocol of Thrift.
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
#: Structs, lists and maps within each other; a footer needs six.
_DEEPEST = 32
#: Bytes of a number of 64 bits, seven bits each.
_LONGEST_VARINT = 10


def value_counts(footer: bytes, uri: str) -> list[list[int]]:
    """Return the number of values, nulls and empty lists included, by row group and column.

    Parameters
    ----------
    footer : bytes
        ``FileMetaData`` of parquet.thrift in the compact protocol, as it stands in the file.
    uri : str
        The file, for messages.

    Raises
    ------
    InputDataError
        The bytes are no footer.
    """
    try:
        # row_groups; their columns; of these meta_data, and num_values in it.
        return [[chunk[3][5] for chunk in group[1]] for group in _Reader(footer).struct(0)[4]]
    except (IndexError, KeyError, TypeError) as error:
        raise InputDataError(
            f"{uri} cannot be read as Parquet (its footer is cut or damaged)",
            expected="a complete Parquet file",
            fix="it is truncated, damaged, or not Parquet at all: write it again",
        ) from error


class _Reader:
    """Values of the compact protocol, one after the other; IndexError where there is none.

    Every element of whatever a length announces takes a byte at least, so that the end of the data bounds all loops.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def struct(self, depth: int) -> dict[int, Any]:
        """Return the fields of a struct by their numbers."""
        if depth > _DEEPEST:
            raise IndexError
        fields: dict[int, Any] = {}
        number = 0
        while header := self._byte():
            kind, step = header & 15, header >> 4
            number = number + step if step else self._integer()
            fields[number] = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (_I16, _I32, _I64):
            return self._integer()
        if kind == _STRUCT:
            return self.struct(depth + 1)
        if kind in (_LIST, _SET):
            return self._list(depth + 1)
        if kind == _MAP:
            return self._map(depth + 1)
        if kind in (_BINARY, _DOUBLE):
            return self._skip(8 if kind == _DOUBLE else self._varint())
        if kind not in (_TRUE, _FALSE, _BYTE):
            raise IndexError
        return self._byte()

    def _list(self, depth: int) -> list[Any]:
        if depth > _DEEPEST:
            raise IndexError
        header = self._byte()
        size = header >> 4
        if size == 15:
            size = self._varint()
        return [self._value(header & 15, depth) for _ in range(size)]

    def _map(self, depth: int) -> None:
        size = self._varint()
        kinds = self._byte() if size else 0
        for _ in range(size):
            self._value(kinds >> 4, depth)
            self._value(kinds & 15, depth)

    def _skip(self, size: int) -> None:
        self._at += size

    def _byte(self) -> int:
        byte = self._data[self._at]
        self._at += 1
        return byte

    def _varint(self) -> int:
        number = 0
        for place in range(_LONGEST_VARINT):
            byte = self._byte()
            number |= (byte & 127) << 7 * place
            if byte < 128:
                return number
        raise IndexError

    def _integer(self) -> int:
        number = self._varint()
        return number >> 1 ^ -(number & 1)
