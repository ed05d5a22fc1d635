"""Arrays that arrive one by one and are too many for the memory: they wait in a temporary folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seedrank.errors import StorageError
from seedrank.io.storage.files import storage_errors


class Spill:
    """Where the arrays of one job wait: in memory while they are few, then in files of one folder.

    Parameters
    ----------
    folder : Path
        Made when the first array goes there. Who made the `Spill` removes it, whatever happened.
    memory : float
        Bytes of arrays that are kept in memory; infinity for all.
    """

    def __init__(self, folder: Path, *, memory: float) -> None:
        self._folder = folder
        self._memory = memory
        self._files = 0

    def chunks(self, dtype: Any) -> Chunks:
        """Return a new, empty sequence of arrays of one type."""
        return Chunks(self, np.dtype(dtype))

    def new_file(self) -> Path:
        """Path of one more file in the folder; the folder is made."""
        with storage_errors(f"making the temporary folder {self._folder}"):
            self._folder.mkdir(parents=True, exist_ok=True)
        self._files += 1
        return self._folder / f"{self._files:06d}"

    def require(self, size: int, what: str) -> None:
        """Refuse to begin what the disk has no space for; nothing is reserved.

        Raises
        ------
        StorageError
        """
        with storage_errors(f"asking for the free space at {self._folder.parent}"):
            self._folder.parent.mkdir(parents=True, exist_ok=True)
            free = shutil.disk_usage(self._folder.parent).free
        if size > free:
            raise StorageError(
                f"{what} takes {size / 1e9:,.1f} GB in {self._folder.parent}, {free / 1e9:,.1f} GB are free",
                expected="space for the temporary files, and for the graph store beside them",
                fix="free space, write to another disk, or raise --memory-limit so that less goes to files",
            )

    def reserve(self, size: int) -> bool:
        """Take so many bytes of the memory that is left; False, and nothing taken, when they are not."""
        if size > self._memory:
            return False
        self._memory -= size
        return True

    def release(self, size: int) -> None:
        """Give back what `reserve` took."""
        self._memory += size


class Chunks:
    """A sequence of one-dimensional arrays, to which arrays are added and whose arrays may be replaced.

    What `list` does of that, where the arrays may be files: an array that is taken out is a copy, which has to be put
    back to change the sequence. Several threads may read different positions, and replace their arrays by others of
    the same length, at a time.
    """

    def __init__(self, spill: Spill, dtype: np.dtype[Any]) -> None:
        self._spill = spill
        self._dtype = dtype
        self._held: list[npt.NDArray[Any] | None] = []
        self._place: list[tuple[int, int]] = []  # first element in the file, number of elements
        self._end = 0
        self._path: Path | None = None

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[npt.NDArray[Any]]:
        return (self[number] for number in range(len(self)))

    def __getitem__(self, number: int) -> npt.NDArray[Any]:
        held = self._held[number]
        return self._read(*self._place[number]) if held is None else held

    def __setitem__(self, number: int, array: npt.NDArray[Any]) -> None:
        held = self._held[number]
        first, length = self._place[number]
        if len(array) != length:
            self._spill.release(0 if held is None else held.nbytes)
            self._held[number], self._place[number] = self._put(array)
        elif held is None:
            self._write(array, first)
        else:
            self._held[number] = array

    def append(self, array: npt.NDArray[Any]) -> None:
        """Add an array at the end."""
        held, place = self._put(array)
        self._held.append(held)
        self._place.append(place)

    @property
    def lengths(self) -> list[int]:
        """Number of elements of each array; nothing is read."""
        return [length for _, length in self._place]

    def clear(self) -> None:
        """Forget all arrays, and free what they take."""
        self._spill.release(sum(held.nbytes for held in self._held if held is not None))
        self._held.clear()
        self._place.clear()
        self._end = 0
        if self._path is not None:
            with storage_errors(f"removing the temporary file {self._path}"):
                self._path.unlink()
            self._path = None

    def _put(self, array: npt.NDArray[Any]) -> tuple[npt.NDArray[Any] | None, tuple[int, int]]:
        if self._spill.reserve(array.nbytes):
            return array, (0, len(array))
        if self._path is None:
            self._path = self._spill.new_file()
        place = self._end, len(array)
        self._end += len(array)
        self._write(array, place[0])
        return None, place

    def _write(self, array: npt.NDArray[Any], first: int) -> None:
        assert self._path is not None
        data = np.ascontiguousarray(array, self._dtype).view(np.uint8).data
        position = first * self._dtype.itemsize
        with storage_errors(f"writing the temporary file {self._path}"):
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                while data:
                    # A write may end early, at 2 GiB or where the disk is full; the next one says why.
                    written = os.pwrite(descriptor, data, position)
                    data, position = data[written:], position + written
            finally:
                os.close(descriptor)

    def _read(self, first: int, length: int) -> npt.NDArray[Any]:
        assert self._path is not None
        with storage_errors(f"reading the temporary file {self._path}"):
            array = np.fromfile(self._path, self._dtype, length, offset=first * self._dtype.itemsize)
        if len(array) < length:
            raise StorageError(
                f"the temporary file {self._path} has become shorter",
                expected="a folder that nobody else writes to",
                fix="run the same command again",
            )
        return array
