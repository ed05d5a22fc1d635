"""Arrays of more elements than 32 bits count, of which a test touches a few: memory that nobody fills is not there."""

from __future__ import annotations

import math
import mmap
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import shim

#: Linux: pages are neither given nor counted before something is written into them.
_NO_RESERVE = 0x4000
NOTHING = np.uintp(0)

Case = Callable[[shim.Kernels], tuple[Any, Any]]
"""Launches a kernel; returns what was found and what was expected, arrays or tuples of them."""


def require_far_memory() -> None:
    """Skip a test where nothing compiles kernels, or the system does not give address space without memory."""
    shim.require_compiler()
    if sys.platform != "linux":
        pytest.skip("address space without memory is asked for as Linux has it")
    try:
        far(1 << 33, np.float64)
    except OSError as error:
        pytest.skip(f"this system gives no address space without memory: {error}")


def far(size: int, dtype: npt.DTypeLike, values: Mapping[int, Any] | None = None) -> npt.NDArray[Any]:
    """An array of zeros, but for what starts at these places (from the end, where negative).

    Before it lies as much memory as an index can miss that has wrapped round to a negative number.
    """
    itemsize, before = np.dtype(dtype).itemsize, 1 << 31
    memory = mmap.mmap(-1, (before + size) * itemsize, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE)
    array = np.frombuffer(memory, dtype)[before:]
    for place, some in (values or {}).items():
        start = place % size
        array[start : start + np.size(some)] = some
    return array


def call(
    kernels: shim.Kernels, name: str, grid: Sequence[int], threads: Sequence[int], *arguments: Any, block: int
) -> None:
    """Run one block of a grid, from the end where it is negative; an int is an ``int``."""
    values = [np.int32(value) if type(value) is int else value for value in arguments]
    number = block % math.prod(grid)
    kernels.launch(name, grid, threads, values, blocks=range(number, number + 1))


def assert_wide(case: Case, source: str, changes: Sequence[tuple[str, str]]) -> None:
    """A case comes out right, and no longer so with the narrow texts in place of the wide ones, each once there."""
    assert _right(*case(shim.Kernels(source)))
    for wide, narrow in changes:
        assert source.count(wide) == 1, wide
        source = source.replace(wide, narrow)
    assert not _right(*case(shim.Kernels(source, quick=True)))


def _right(found: Any, expected: Any) -> bool:
    if isinstance(found, tuple):
        return all(map(_right, found, expected))
    return bool(np.array_equal(found, expected))
