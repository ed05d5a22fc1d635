"""Device and memory of the stand-in for CuPy."""

from __future__ import annotations

import os

from cupy.cuda import cublas as cublas
from cupy.cuda import driver as driver
from cupy.cuda import runtime as runtime

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


class Stream:
    """The only stream: everything has happened when a call returns."""

    def synchronize(self) -> None:
        """Wait for what was started; errors of kernels are raised here."""
        runtime.check("memory")


def get_current_stream() -> Stream:
    """Return the stream that kernels are started on."""
    return Stream()
