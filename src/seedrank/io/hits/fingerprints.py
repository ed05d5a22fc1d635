"""What identifies the content of hits: a sum over the rows, which may be added up in any order and in any pieces.

Other inputs are hashed as sorted arrays (`seedrank.io.arrow.fingerprint`). Hits need not all be in memory at one time,
so that here every row is hashed by itself, with the ids it holds and not their numbers, and the hashes are added up.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from seedrank.io.id_hashes import hash_ids
from seedrank.io.ids import is_string, plain_type
from seedrank.io.queries import HitTable

UInt64Array = npt.NDArray[np.uint64]

#: Rows that are hashed at a time: what fits the cache.
_ROWS = 1 << 15
#: Odd numbers without a pattern: 2^64 over the golden ratio, and the multipliers of splitmix64.
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_NULL = np.uint64(0x6E756C6C6E756C6C)
_WORD = 1 << 64


class HitFingerprint:
    """Adds up the hashes of rows.

    Parameters
    ----------
    query_type, node_type : types of the ids, which count.
    columns : names of the columns that the hits have besides query and node; values of absent ones are not the default
        values of others.
    """

    def __init__(self, query_type: pa.DataType, node_type: pa.DataType, columns: tuple[str, ...]) -> None:
        self._form = f"{query_type} {node_type} {' '.join(columns)}"
        self._rows = self._low = self._high = 0

    def add(self, kind: str, *columns: UInt64Array) -> None:
        """Add rows, given by one number or hash of every value; rows of different kinds are different."""
        seed = np.uint64(xxhash.xxh3_64_intdigest(kind.encode()))
        rows = len(columns[0])
        self._rows += rows
        for first in range(0, rows, _ROWS):
            row = np.full(min(_ROWS, rows - first), seed)
            for column in columns:
                row = _mixed((row ^ column[first : first + _ROWS]) * _STEP + _STEP)
            self._low += int(row.sum())
            self._high += int(_mixed(row ^ _STEP).sum())

    def hexdigest(self) -> str:
        """Return 32 hexadecimal digits."""
        text = f"{self._form} {self._rows} {self._low % _WORD} {self._high % _WORD}"
        return xxhash.xxh3_128_hexdigest(text.encode())


def hashed_ids(ids: pa.Array) -> UInt64Array:
    """Hash of every id, by its value whatever the width of its type; null has one, too."""
    if pa.types.is_dictionary(ids.type):
        of_dictionary: UInt64Array = np.append(hashed_ids(ids.dictionary), _NULL)
        codes: npt.NDArray[np.int64] = ids.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
        return of_dictionary[codes]
    if pa.types.is_null(ids.type):
        return np.full(len(ids), _NULL)
    if is_string(plain_type(ids.type)):
        hashes = hash_ids(ids.fill_null(""))
    else:
        wide = pa.uint64() if pa.types.is_unsigned_integer(ids.type) else pa.int64()
        hashes = _mixed(ids.cast(wide).fill_null(0).to_numpy(zero_copy_only=False).astype(np.uint64) + _STEP)
    if ids.null_count:
        hashes[pc.is_null(ids).to_numpy(zero_copy_only=False)] = _NULL
    return hashes


def hashed_names(names: tuple[str | None, ...]) -> UInt64Array:
    """Hash of every name."""
    return np.array([xxhash.xxh3_64_intdigest(repr(name).encode()) for name in names], dtype=np.uint64)


def bits_of(values: npt.NDArray[np.float64] | npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> UInt64Array:
    """64 bits of every number; 0.0 and -0.0 are the same."""
    if values.dtype == np.float64:
        return np.asarray(values + 0.0).view(np.uint64)
    return values.astype(np.int64).view(np.uint64)


def fingerprint_of(hits: HitTable) -> str:
    """Return the fingerprint of hits in memory; the same hits in pieces have it, too."""
    numbers = {"rank": hits.rank, "retriever_weight": hits.retriever_weight}
    columns: dict[str, UInt64Array] = {"weight": bits_of(hits.weight)}
    columns |= {name: bits_of(values) for name, values in numbers.items() if values is not None}
    nodes = np.append(hashed_ids(hits.node_ids), _NULL)
    if hits.source is not None:
        columns["source"] = hashed_names(hits.source_names)[hits.source]
    if hits.fallback is not None:
        columns["fallback"] = nodes[hits.fallback]
    found = HitFingerprint(hits.query_ids.type, hits.node_ids.type, tuple(columns))
    queries = hashed_ids(hits.query_ids)
    found.add("hit", queries[hits.query], nodes[hits.node], *columns.values())
    found.add("query", queries, bits_of(hits.null_list))
    return found.hexdigest()


def _mixed(values: UInt64Array) -> UInt64Array:
    """Return the last step of splitmix64."""
    values = (values ^ (values >> np.uint64(30))) * _FIRST
    values = (values ^ (values >> np.uint64(27))) * _SECOND
    return values ^ (values >> np.uint64(31))
