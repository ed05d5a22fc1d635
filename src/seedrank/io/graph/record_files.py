"""Packed edges of one bucket in temporary files: keys, and weights where there are any."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seedrank.errors import StorageError
from seedrank.io.storage.files import storage_errors

Records = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64] | None]
"""Keys and their weights, both of one length; None: all weights are 1, or there are none yet."""


class RecordFile:
    """Records that are appended, and read again in that order.

    The files are open only while they are written to or read: there may be more buckets than a process may open files.

    Parameters
    ----------
    path : Path
        Of the keys; the weights are beside it. Neither exists before the first `append`.
    weighted : bool
        Whether records have weights.
    """

    def __init__(self, path: Path, *, weighted: bool) -> None:
        self._keys = path.with_name(f"{path.name}-keys")
        self._weights = path.with_name(f"{path.name}-weights") if weighted else None
        self.rows = 0

    @property
    def weighted(self) -> bool:
        """Whether records have weights."""
        return self._weights is not None

    def append(self, key: npt.NDArray[np.int64], weight: npt.NDArray[np.float64] | None) -> None:
        """Add records; those of a file without weights have none."""
        self.rows += len(key)
        _append(self._keys, key)
        if self._weights is not None:
            assert weight is not None
            _append(self._weights, weight)

    def read(self) -> Records:
        """All records at once."""
        return self._read(0, self.rows)

    def batches(self, rows: int) -> Iterator[Records]:
        """All records in order, at most so many at a time."""
        return (self._read(first, min(rows, self.rows - first)) for first in range(0, self.rows, rows))

    def remove(self) -> None:
        """Delete the files."""
        with storage_errors(f"removing the temporary file {self._keys}"):
            for path in (self._keys, self._weights):
                if path is not None:
                    path.unlink(missing_ok=True)
        self.rows = 0

    def _read(self, first: int, count: int) -> Records:
        key = _part(self._keys, np.int64, first, count)
        return key, None if self._weights is None else _part(self._weights, np.float64, first, count)


def _append(path: Path, array: npt.NDArray[Any]) -> None:
    with storage_errors(f"writing the temporary file {path}"), path.open("ab", buffering=0) as stream:
        data = np.ascontiguousarray(array).view(np.uint8).data
        while data:
            # A write may end early, at 2 GiB or where the disk is full; the next one says why.
            data = data[stream.write(data) :]


def _part(path: Path, dtype: Any, first: int, count: int) -> npt.NDArray[Any]:
    if not count:
        return np.empty(0, dtype)
    with storage_errors(f"reading the temporary file {path}"):
        array = np.fromfile(path, dtype, count, offset=first * np.dtype(dtype).itemsize)
    if len(array) < count:
        raise StorageError(
            f"the temporary file {path} has become shorter",
            expected="a folder that nobody else writes to",
            fix="run the same command again",
        )
    return array
