"""One ``.npy`` file read range by range with ordinary reads: nothing is mapped, nothing stays in memory."""

from __future__ import annotations

import os
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seedrank.errors import InputDataError
from seedrank.io.storage.files import read_errors, read_fully


class ArrayFile:
    """A one-dimensional array in a file that stays open until the object goes.

    Mapped files count as address space, and their pages come one by one; ranges that are read do neither.

    Parameters
    ----------
    path : of a file that ``seedrank build`` wrote.

    Raises
    ------
    InputDataError
        It is no such file.
    StorageError
        It cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with read_errors(path):
            self._stream = path.open("rb", buffering=0)
        # Closed with the object, which lives as long as the job that reads it.
        weakref.finalize(self, self._stream.close)
        try:
            version = np.lib.format.read_magic(self._stream)
            shape, _, dtype = np.lib.format.read_array_header_1_0(self._stream)
        except ValueError as error:
            raise self._damaged(f"cannot be read ({error})") from error
        if version != (1, 0) or len(shape) != 1 or dtype.hasobject:
            raise self._damaged(f"holds an array of shape {shape} and type {dtype}, in version {version} of the format")
        self.dtype: np.dtype[Any] = dtype
        self._length = int(shape[0])
        self._start = self._stream.tell()

    def __len__(self) -> int:
        return self._length

    def read(self, first: int, last: int) -> npt.NDArray[Any]:
        """Read the elements ``first`` to ``last - 1`` into a new array.

        Raises
        ------
        InputDataError
            The file ends before them.
        StorageError
            The system cannot read them.
        """
        array: npt.NDArray[Any] = np.empty(last - first, dtype=self.dtype)
        with read_errors(self._path):
            whole = read_fully(self._stream.fileno(), array, self._start + first * self.dtype.itemsize)
        if not whole:
            size = os.fstat(self._stream.fileno()).st_size
            raise self._damaged(f"ends after {size} bytes, before element {last} of {self._length}")
        return array

    def _damaged(self, what: str) -> InputDataError:
        return InputDataError(
            f"{self._path} {what}",
            expected="the file that build wrote; its hash is in graph.json",
            fix=f"rebuild it: seedrank build EDGES --out {self._path.parent} --overwrite",
        )
