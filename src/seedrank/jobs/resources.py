"""What this process may use: memory that is free, memory that was used."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

#: Share of the free memory that a block of scores may take when no limit is given.
DEFAULT_SHARE = 0.5
_CONTROL_GROUP = Path("/sys/fs/cgroup")


def available_memory() -> int:
    """Bytes that can still be allocated: the least of free memory, the control group's rest and the address space."""
    limits = [_free_memory()]
    limits += _control_group_rest()
    address_space, _ = resource.getrlimit(resource.RLIMIT_AS)
    if address_space != resource.RLIM_INFINITY:
        limits.append(address_space)
    return max(min(limits), 0)


def processors() -> int:
    """Processors that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def limited_threads(threads: int | None) -> Iterator[None]:
    """Let Arrow use no more threads than the kernels are granted; None leaves it as it is."""
    before = pa.cpu_count(), pa.io_thread_count()
    if threads is not None:
        pa.set_cpu_count(min(threads, before[0]))
        pa.set_io_thread_count(min(threads, before[1]))
    try:
        yield
    finally:
        pa.set_cpu_count(before[0])
        pa.set_io_thread_count(before[1])


def peak_memory() -> int:
    """Largest resident size of this process so far, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _free_memory() -> int:
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    # Not Linux: no portable figure without a further dependency; 4 GiB is what a small machine can give.
    return 4 << 30


def _control_group_rest() -> list[int]:
    root = _CONTROL_GROUP
    try:
        limit = (root / "memory.max").read_text(encoding="ascii").strip()
        used = int((root / "memory.current").read_text(encoding="ascii"))
        statistics = dict(line.split() for line in (root / "memory.stat").read_text(encoding="ascii").splitlines())
    except (OSError, ValueError):
        return []
    # Pages of files that were read once, as edge lists are, count as used but give way at once.
    cached = int(statistics.get("inactive_file", 0))
    return [] if limit == "max" else [int(limit) - used + cached]
