"""The files of a graph store's arrays and tables: written and hashed at once, from memory or piece by piece."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seedrank.io.records import StoredFile
from seedrank.io.storage.files import HashedFile

_WRITE_THREADS = 4
_WRITE_CHUNK = 1 << 22  # hashed and written while it is in the cache

_Write = Callable[[HashedFile, Any], None]


@dataclass(frozen=True)
class StoredRows:
    """One CSR of the store; see `seedrank.io.graphstore` for dtypes and shapes."""

    offsets: npt.NDArray[np.int64]
    neighbors: npt.NDArray[np.int32]
    weights: npt.NDArray[np.float64] | None
    types: npt.NDArray[Any] | None


RowPiece = tuple[npt.NDArray[np.int32], npt.NDArray[np.float64] | None, npt.NDArray[Any] | None]
"""Neighbors, weights and types of consecutive entries."""


@dataclass(frozen=True, eq=False)
class RowStream:
    """One CSR of the store whose entries come piece by piece.

    Parameters
    ----------
    offsets : int64 (nodes + 1)
    weighted : bool
        Whether pieces have weights.
    type_dtype : numpy.dtype or None
        Of the types of a piece; None: there are none.
    pieces : iterable of RowPiece
        All entries in order; read once.
    """

    offsets: npt.NDArray[np.int64]
    weighted: bool
    type_dtype: np.dtype[Any] | None
    pieces: Iterable[RowPiece]


def write_graph_files(
    folder: Path,
    ids: pa.Array,
    attributes: pa.Table | None,
    arrays: Mapping[str, npt.NDArray[Any]],
    rows: Mapping[str, StoredRows | RowStream],
) -> dict[str, StoredFile]:
    """Write all tables and arrays of a store.

    Parameters
    ----------
    folder : Path
        Where; it is there.
    ids, attributes, rows
        See `seedrank.io.graphstore.write_graph_store`.
    arrays : mapping from name to array

    Returns
    -------
    dict of str to StoredFile
        What was written, by name of the file, sorted.
    """
    tables = {"ids.arrow": pa.table({"id": ids})}
    if attributes is not None:
        tables["node_attributes.arrow"] = attributes
    contents: dict[str, tuple[_Write, Any]] = {name: (_write_arrow, table) for name, table in tables.items()}
    contents |= {f"{name}.npy": (_write_npy, array) for name, array in arrays.items()}
    for side, stored in rows.items():
        if isinstance(stored, RowStream):
            contents[f"{side}_offsets.npy"] = (_write_npy, stored.offsets)
            continue
        for field in fields(stored):
            array = getattr(stored, field.name)
            if array is not None:
                contents[f"{side}_{field.name}.npy"] = (_write_npy, array)

    def write(name: str) -> StoredFile:
        function, content = contents[name]
        with HashedFile(folder / name) as file:
            function(file, content)
        return StoredFile(bytes=file.bytes, xxh3_128=file.xxh3_128)

    # Side by side: most of the time is the device's.
    with ThreadPoolExecutor(_WRITE_THREADS) as pool:
        written = dict(zip(contents, pool.map(write, contents), strict=True))
    for side, stored in rows.items():
        if isinstance(stored, RowStream):
            written |= _write_stream(folder, side, stored)
    return dict(sorted(written.items()))


def _write_stream(folder: Path, side: str, rows: RowStream) -> dict[str, StoredFile]:
    """Write neighbors, weights and types of one CSR while they come."""
    dtypes = {
        "neighbors": np.dtype(np.int32),
        "weights": np.dtype(np.float64) if rows.weighted else None,
        "types": rows.type_dtype,
    }
    entries = (int(rows.offsets[-1]),)
    with ExitStack() as stack:
        files: dict[int, HashedFile] = {}
        for number, (name, dtype) in enumerate(dtypes.items()):
            if dtype is not None:
                files[number] = stack.enter_context(HashedFile(folder / f"{side}_{name}.npy"))
                _write_header(files[number], {"descr": dtype.str, "fortran_order": False, "shape": entries})
        for piece in rows.pieces:
            for number, file in files.items():
                array = piece[number]
                assert array is not None
                _write_content(file, array)
    names = list(dtypes)
    return {
        f"{side}_{names[number]}.npy": StoredFile(bytes=file.bytes, xxh3_128=file.xxh3_128)
        for number, file in files.items()
    }


def _write_npy(file: HashedFile, array: npt.NDArray[Any]) -> None:
    _write_header(file, np.lib.format.header_data_from_array_1_0(array))
    _write_content(file, array)


def _write_header(file: HashedFile, header: dict[str, Any]) -> None:
    text = io.BytesIO()
    np.lib.format.write_array_header_1_0(text, header)
    file.write(text.getvalue())


def _write_content(file: HashedFile, array: npt.NDArray[Any]) -> None:
    content = np.ascontiguousarray(array).view(np.uint8).data
    for start in range(0, len(content), _WRITE_CHUNK):
        file.write(content[start : start + _WRITE_CHUNK])


def _write_arrow(file: HashedFile, table: pa.Table) -> None:
    # One record batch, uncompressed: the file can be mapped and a column is one contiguous array.
    with pa.ipc.new_file(file, table.schema) as writer:
        for batch in table.combine_chunks().to_batches():
            writer.write_batch(batch)
