"""Entries of a matrix in a file without a name: written once, read in slabs, the next one while one is computed."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt

from seedrank.errors import StorageError
from seedrank.io.storage.files import read_errors, read_fully, storage_errors, write_fully

_Slab = tuple[npt.NDArray[np.int32], npt.NDArray[Any] | None]


class SlabFile:
    """Columns, and values where there are any, in two files that vanish with the process, however it ends.

    Ordinary reads into two buffers: the memory is theirs alone, whatever the size of the files, under a limit of the
    address space as well as under one of a control group (cached pages of files give way).

    Parameters
    ----------
    folder : existing folder on a disk with 4 bytes an entry free, and `values`' bytes.
    values : dtype of the values, or None.
    """

    def __init__(self, folder: Path, values: npt.DTypeLike | None) -> None:
        self._folder = folder
        dtypes = [np.dtype(np.int32), *([] if values is None else [np.dtype(values)])]
        with storage_errors(f"making a file in the work folder {folder}"):
            self._files = [(self._new_file(), dtype) for dtype in dtypes]
        self._buffers: list[list[npt.NDArray[Any]]] = [[], []]
        #: Bytes that were read so far.
        self.bytes_read = 0

    def _new_file(self) -> BinaryIO:
        # No name: nothing is left, not even by kill -9. Closed with the object, which lives as long as the backend.
        file = cast(BinaryIO, tempfile.TemporaryFile(dir=self._folder, buffering=0))  # noqa: SIM115
        weakref.finalize(self, file.close)
        return file

    @property
    def entry_bytes(self) -> int:
        """Bytes of an entry."""
        return sum(dtype.itemsize for _, dtype in self._files)

    def write(self, first: int, columns: npt.NDArray[np.int32], values: npt.NDArray[Any] | None) -> None:
        """Keep the entries from `first` on.

        Raises
        ------
        StorageError
            There is no room in the work folder.
        """
        arrays: list[npt.NDArray[Any]] = [columns] if values is None else [columns, values]
        for (file, dtype), array in zip(self._files, arrays, strict=True):
            try:
                write_fully(file.fileno(), np.ascontiguousarray(array, dtype=dtype), first * dtype.itemsize)
            except OSError as error:
                raise StorageError(
                    f"writing the graph for streaming into {self._folder} failed: {error.strerror or error}",
                    expected=f"{self.entry_bytes} bytes of free space for each edge, twice for --direction both",
                    fix="free space, let --work-dir name a folder on a larger disk, or pass --graph-memory resident on "
                    "a machine with more memory",
                ) from error

    def slabs(self, bounds: Sequence[tuple[int, int]], *, padding: int) -> Iterator[_Slab]:
        """Read ranges of entries in the order given; each is good until the next is asked for.

        Parameters
        ----------
        bounds : sequence of (first, last)
        padding : elements that the arrays have beyond the range, with any content.

        Raises
        ------
        StorageError
            The system cannot read them.
        """
        if not bounds:
            return
        self._make_room(max(last - first for first, last in bounds) + padding)
        with ThreadPoolExecutor(1, thread_name_prefix="slabs") as pool:
            reading: Future[_Slab] = pool.submit(self._read, 0, *bounds[0], padding)
            for number in range(len(bounds)):
                slab = reading.result()
                if number + 1 < len(bounds):
                    reading = pool.submit(self._read, (number + 1) % 2, *bounds[number + 1], padding)
                yield slab

    def _make_room(self, entries: int) -> None:
        if not self._buffers[0] or len(self._buffers[0][0]) < entries:
            self._buffers = [[], []]
            self._buffers = [[np.zeros(entries, dtype) for _, dtype in self._files] for _ in range(2)]

    def _read(self, side: int, first: int, last: int, padding: int) -> _Slab:
        views = []
        for (file, dtype), buffer in zip(self._files, self._buffers[side], strict=True):
            wanted = buffer[: last - first]
            with read_errors(self._folder):
                whole = read_fully(file.fileno(), wanted, first * dtype.itemsize)
            if not whole:
                raise StorageError(
                    f"the graph for streaming in {self._folder} ends too early",
                    expected="the file that this run wrote there",
                    fix="run the same command again; finished parts are kept",
                )
            self.bytes_read += wanted.nbytes
            views.append(buffer[: last - first + padding])
        return views[0], views[1] if len(views) > 1 else None
