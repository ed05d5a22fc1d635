"""Large arrays on their way to the device, piece by piece through pinned memory."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import cupy
import numpy as np
import numpy.typing as npt

HostArray = npt.NDArray[Any]

Write = Callable[[int, int, HostArray], None]
"""Writes the elements ``first … last - 1`` of an array into a buffer of that length."""

PIECE_BYTES = 8 << 20
"""Bytes of a buffer: a copy takes some hundred microseconds then, which makes what it costs to start one small."""


class Staging:
    """Two buffers that take turns: while one is copied to the device, the next piece is written into the other.

    Writing a piece is reading a mapped store (pages that have to come from the disk), changing the type of the numbers,
    adding up the rows of two directions. The copies have a stream of their own, so they go on meanwhile, and the host
    holds two pieces of an array, however long it is. ``cupy.asarray`` would pin a copy of the whole array, and CuPy
    would keep that memory for later.

    Where the system gives no pinned memory, buffers are ordinary ones: the driver then copies a piece before it
    returns, so nothing overlaps; the bytes on the device are the same. A `RuntimeWarning` says so.

    Parameters
    ----------
    piece_bytes : int
        >= 8. Of a buffer; without effect on what arrives.
    """

    def __init__(self, piece_bytes: int = PIECE_BYTES) -> None:
        self._piece_bytes = piece_bytes // 8 * 8
        self._buffers = host_memory(2 * self._piece_bytes).reshape(2, self._piece_bytes)
        self._copied = [cupy.cuda.Event(disable_timing=True) for _ in range(2)]
        self._stream = cupy.cuda.Stream(non_blocking=True)
        self._turn = 0

    def upload(self, size: int, dtype: npt.DTypeLike, write: Write) -> cupy.ndarray:
        """Copy an array to the device; it is there when this returns.

        Parameters
        ----------
        size : int
            Number of elements.
        dtype : dtype
            Of the array on the device.
        write : callable
            ``write(first, last, into)`` is called for one piece after the other.

        Returns
        -------
        device array (size)

        Raises
        ------
        MemoryError
            The device has no room.
        """
        array = cupy.empty(size, dtype)
        # CuPy gives out memory that kernels started before may still be using.
        self._stream.wait_event(cupy.cuda.get_current_stream().record())
        pieces = self._piece_bytes // array.dtype.itemsize
        for first in range(0, size, pieces):
            last = min(first + pieces, size)
            buffer, copied = self._buffers[self._turn], self._copied[self._turn]
            copied.synchronize()
            into = buffer.view(array.dtype)[: last - first]
            write(first, last, into)
            array[first:last].set(into, stream=self._stream)
            copied.record(self._stream)
            self._turn = 1 - self._turn
        self._stream.synchronize()
        return array

    def upload_array(self, host: HostArray, dtype: npt.DTypeLike | None = None) -> cupy.ndarray:
        """Copy an array of the host, as another type if one is given."""

        def write(first: int, last: int, into: HostArray) -> None:
            np.copyto(into, host[first:last], casting="same_kind")

        return self.upload(len(host), host.dtype if dtype is None else dtype, write)


def host_memory(size: int) -> HostArray:
    """Pinned memory of so many bytes; ordinary memory where there is none, with a `RuntimeWarning`."""
    try:
        memory = cupy.cuda.alloc_pinned_memory(size)
    except cupy.cuda.runtime.CUDARuntimeError as error:
        warnings.warn(
            f"the system gives no pinned memory ({error}); what is copied to the GPU and back goes through ordinary "
            "memory, which takes longer",
            RuntimeWarning,
            stacklevel=1,  # said once, whoever asks
        )
        return np.empty(size, dtype=np.uint8)
    # CuPy rounds up what it allocates.
    return np.frombuffer(memory, dtype=np.uint8)[:size]
