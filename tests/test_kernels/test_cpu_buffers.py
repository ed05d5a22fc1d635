"""The memory of blocks: what Linux can back with huge pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from seedrank.kernels._cpu.buffers import HUGE_PAGE, huge_array
from seedrank.kernels.arrays import ScoreArray

SMAPS = Path("/proc/self/smaps")


def mapping_of(array: ScoreArray) -> tuple[str, list[str]]:
    """Permissions and flags of the mapping that an array lies in."""
    permissions = ""
    for line in SMAPS.read_text(encoding="ascii", errors="replace").splitlines():
        first, _, rest = line.partition(" ")
        if first == "VmFlags:" and permissions:
            return permissions, rest.split()
        if "-" in first and ":" not in first:
            begin, end = (int(address, 16) for address in first.split("-"))
            permissions = rest.split()[0] if begin <= array.ctypes.data < end else ""
    raise AssertionError("no mapping holds the array")


@pytest.mark.skipif(
    not SMAPS.exists() or "VmFlags" not in SMAPS.read_text(encoding="ascii", errors="replace"),
    reason="only Linux tells what a mapping is",
)
def test_blocks_lie_in_memory_that_gets_huge_pages() -> None:
    array = huge_array(3 * HUGE_PAGE, "float32")
    permissions, flags = mapping_of(array)
    # Shared memory is backed by small pages, unless the system is set up otherwise (``shmem_enabled``).
    assert permissions == "rw-p"
    assert "hg" in flags
    assert array.ctypes.data % HUGE_PAGE == 0
    assert array.shape == (3 * HUGE_PAGE,)
    assert not array.any()
