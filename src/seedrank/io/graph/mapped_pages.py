"""Pages of mapped files that a process has used and does not need any more."""

from __future__ import annotations

import mmap

import numpy as np

from seedrank.io.graph.graph_files import StoredRows


def release_pages(rows: StoredRows) -> None:
    """Give the pages of mapped arrays back to the system.

    They count as memory of the process for as long as they are mapped. The arrays stay as good as they were: a page
    that is looked at again is mapped again, from the cache of the system where it is still there, else from disk.

    Parameters
    ----------
    rows : StoredRows
        Of an open graph store. Arrays that are not mapped stay, and where the system cannot, nothing happens.
    """
    for array in (rows.offsets, rows.neighbors, rows.weights, rows.types):
        mapping = array.base if isinstance(array, np.memmap) else None
        if isinstance(mapping, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            mapping.madvise(mmap.MADV_DONTNEED)
