"""What this process may use: memory that is free, memory that was used."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

#: Share of the free memory that a block of scores may take when no limit is given.
DEFAULT_SHARE = 0.5


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
    root = Path("/sys/fs/cgroup")
    try:
        limit = (root / "memory.max").read_text(encoding="ascii").strip()
        used = int((root / "memory.current").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return []
    return [] if limit == "max" else [int(limit) - used]
