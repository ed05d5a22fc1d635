"""What this process may use: memory that is free, memory that was used."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import pyarrow as pa

#: Share of the free memory that a block of scores may take when no limit is given.
DEFAULT_SHARE = 0.5
_CONTROL_GROUPS = Path("/sys/fs/cgroup")
_OWN_GROUPS = Path("/proc/self/cgroup")


#: How many processes of this kind share the memory of the machine.
_sharing: ContextVar[int] = ContextVar("sharing", default=1)


@contextmanager
def shared_memory(processes: int) -> Iterator[None]:
    """Let `available_memory` say what is this process's share, among so many that do the same."""
    token = _sharing.set(processes)
    try:
        yield
    finally:
        _sharing.reset(token)


def available_memory() -> int:
    """Bytes that can still be allocated: the least of free memory, the control group's rest and the address space."""
    limits = [rest // _sharing.get() for rest in (_free_memory(), *_control_group_rest())]
    address_space = available_address_space()
    if address_space is not None:
        limits.append(address_space)
    return max(min(limits), 0)


def available_address_space() -> int | None:
    """Bytes that can still be mapped under ``ulimit -v``, files included; None without such a limit."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else max(limit - _address_space_used(), 0)


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


def _address_space_used() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except OSError:
        return 0
    return pages * resource.getpagesize()


def _control_group_rest() -> list[int]:
    """What every control group of this process leaves, its own and those around it; version 2, and 1 as it was."""
    try:
        lines = _OWN_GROUPS.read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = ["0::/"]
    found = []
    for line in lines:
        _, controllers, name = line.split(":", 2)
        if controllers == "":
            found += _rest_of_groups(_CONTROL_GROUPS, name, ("memory.max", "memory.current"), "")
        elif "memory" in controllers.split(","):
            files = ("memory.limit_in_bytes", "memory.usage_in_bytes")
            # Version 1 counts the groups inside only under names that begin with total.
            found += _rest_of_groups(_CONTROL_GROUPS / "memory", name, files, "total_")
    return found


def _rest_of_groups(root: Path, name: str, files: tuple[str, str], prefix: str) -> list[int]:
    """What a group and those around it leave; inside a container the name may lead nowhere, then its root counts."""
    group = root / name.lstrip("/")
    around = [folder for folder in (group, *group.parents) if folder.is_relative_to(root)]
    return [rest for folder in around if (rest := _group_rest(folder, files, prefix)) is not None]


def _group_rest(folder: Path, files: tuple[str, str], prefix: str) -> int | None:
    """Bytes that one group leaves; None if it has no limit."""
    try:
        limit, used = ((folder / file).read_text(encoding="ascii").strip() for file in files)
        lines = (folder / "memory.stat").read_text(encoding="ascii").splitlines()
        statistics = {key: int(value) for key, value in (line.split() for line in lines)}
        # Cached files count as used but give way at once, whether they were read once, as edge lists are, or more
        # often, as graph stores are.
        cached = sum(statistics.get(f"{prefix}{kind}_file", 0) for kind in ("inactive", "active"))
        return None if limit == "max" else int(limit) - int(used) + min(cached, int(used))
    except (OSError, ValueError):
        return None
