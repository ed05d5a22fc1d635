"""The compiled kernels of this folder, arrays on the device, and what becomes of its errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import cupy
import numpy as np

from seedrank.errors import KernelError, ResourceError
from seedrank.kernels._gpu.source import LANES, OPTIONS, Group, kernel_source
from seedrank.kernels.arrays import Precision

NULL = np.uintp(0)
"""A null pointer among the arguments of a kernel."""

_OUT_OF_MEMORY = 2

DEVICE_ERRORS = (cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError)
"""What CuPy raises: the first for memory and copies, the second for kernels. Both have a ``status``."""


@cache
def _module(group: Group) -> cupy.RawModule:
    return cupy.RawModule(code=kernel_source(group), options=OPTIONS)


@cache
def _kernel(group: Group, name: str) -> Any:
    return _module(group).get_function(name)


def launch(
    name: str, grid: tuple[int, ...], block: tuple[int, ...], *arguments: Any, group: Group = "pagerank"
) -> None:
    """Start a kernel on the current stream.

    Parameters
    ----------
    name : str
    grid, block : tuple of int
        Numbers of blocks and of threads a block; no block, no launch.
    *arguments
        Device arrays for pointers and NumPy scalars of exactly the type of the parameter; an int is an ``int``.
    group : str
        See `seedrank.kernels._gpu.source.SOURCES`.
    """
    if all(grid):
        values = tuple(np.int32(value) if type(value) is int else value for value in arguments)
        _kernel(group, name)(grid, block, values)


def blocks(elements: int, a_block: int) -> int:
    """Number of blocks that hold so many elements."""
    return -(-elements // a_block)


def lanes_for(columns: int) -> int:
    """Lanes of a block of threads: the power of two that holds the columns, from 2 to `LANES`."""
    return min(LANES, max(2, 1 << (columns - 1).bit_length()))


def stripes(elements: int, a_block: int, most: int = 2048) -> int:
    """Number of blocks for a kernel that strides over its elements: enough to fill any device."""
    return min(blocks(elements, a_block), most)


def free_bytes() -> int:
    """Memory of the device that can be allocated: what nobody has, and what CuPy's pool holds unused."""
    with device_errors():
        free, _ = cupy.cuda.Device().mem_info
        return int(free) + int(cupy.get_default_memory_pool().free_bytes())


def release_unused() -> None:
    """Give memory back that CuPy's pool holds unused, so that blocks of another size find room."""
    cupy.get_default_memory_pool().free_all_blocks()


def device_dtype(precision: Precision) -> np.dtype[np.float32] | np.dtype[np.float64]:
    """Element type of a precision."""
    return np.dtype(np.float32) if precision == "float32" else np.dtype(np.float64)


def filled(size: int, value: Any, dtype: Any) -> cupy.ndarray:
    """A device array of one value."""
    array = cupy.empty(size, dtype)
    array.fill(value)
    return array


@contextmanager
def device_errors() -> Iterator[None]:
    """Turn errors of the driver into those that jobs know.

    Raises
    ------
    MemoryError
        The device has no room; CuPy's own error is one already.
    ResourceError
        The process has no device any more (an address out of bounds, a failed launch, a device that fell off the bus):
        every further call fails likewise.
    KernelError
        The device refused this call only, and takes others.
    """
    try:
        yield
    except DEVICE_ERRORS as error:
        if error.status == _OUT_OF_MEMORY:
            raise MemoryError(str(error)) from error
        check_alive(error)
        raise KernelError(
            f"the GPU refused a call: {error}",
            expected="a call that it takes",
            fix="report this with the output of `seedrank info`; --backend cpu may still work",
        ) from error


def check_alive(error: Exception) -> None:
    """Ask the device, after a call failed with ``error``, whether it still takes calls.

    CUDA repeats an error that leaves the process without a device at every call that follows; any other is forgotten.
    So the answer needs no list of codes, which grows with every release.

    Raises
    ------
    ResourceError
        It does not.
    """
    try:
        cupy.cuda.runtime.deviceSynchronize()
    except DEVICE_ERRORS as lost:
        raise ResourceError(
            f"the GPU failed, and this process cannot use it any more: {error}",
            expected="a device and a driver that work",
            fix="run the same command again: finished parts are kept, it goes on from there; if it fails again, see "
            "the kernel log for Xid errors, or use --backend cpu",
        ) from lost
