"""Pages of mapped files that a process has used and does not need any more."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import numpy.typing as npt


def release_pages(array: npt.NDArray[Any]) -> None:
    """Give the pages of a mapped array back to the system.

    They count as memory of the process for as long as they are mapped. The array stays as good as it was: a page that
    is looked at again is mapped again, from the system's cache where it is still there, else from disk.

    Parameters
    ----------
    array : numpy.ndarray
        As ``numpy.load(..., mmap_mode="r")`` returns it; on any other, and where the system cannot, nothing happens.
    """
    mapping = array.base if isinstance(array, np.memmap) else None
    if isinstance(mapping, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        mapping.madvise(mmap.MADV_DONTNEED)
