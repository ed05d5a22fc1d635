"""Device and memory of the stand-in for CuPy; streams stand beside."""

from __future__ import annotations

import os

from cupy.cuda import cublas as cublas
from cupy.cuda import driver as driver
from cupy.cuda import runtime as runtime
from cupy.cuda.streams import Event as Event
from cupy.cuda.streams import Stream as Stream
from cupy.cuda.streams import alloc_pinned_memory as alloc_pinned_memory
from cupy.cuda.streams import get_current_stream as get_current_stream

_used = 0


class OutOfMemoryError(MemoryError):
    """As ``cupy.cuda.memory.OutOfMemoryError``."""


def _total() -> int:
    return int(os.environ.get("FAKE_CUPY_MEMORY", str(256 << 20)))


def allocate(size: int) -> None:
    """Take memory, where there is any left."""
    global _used  # noqa: PLW0603
    runtime.check("memory")
    if _used + size > _total():
        raise OutOfMemoryError(f"Out of memory allocating {size} bytes (allocated so far: {_used} bytes)")
    _used += size


def release(size: int) -> None:
    """Give memory back."""
    global _used  # noqa: PLW0603
    _used -= size


class Device:
    """The current device."""

    @property
    def mem_info(self) -> tuple[int, int]:
        """Free and total bytes."""
        return max(0, _total() - _used), _total()
