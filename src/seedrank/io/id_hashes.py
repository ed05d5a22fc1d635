"""64-bit hashes of ids: what random numbers are keyed by, so that no row order and no numbering can matter."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from seedrank.io.ids import is_string


def hash_ids(ids: pa.Array) -> npt.NDArray[np.uint64]:
    """Hash each id by its text.

    Parameters
    ----------
    ids : pyarrow.Array
        Integers of any width or strings, without dictionary and without nulls.

    Returns
    -------
    ndarray, shape (len(ids),), uint64
        XXH3 (64 bit, seed 0) of the UTF-8 text; of an integer, of its decimal digits with a minus sign where it is
        negative. So the width of an integer column does not matter, and 7 hashes like ``"7"``.
    """
    # Large offsets: 2 GiB of text do not fit 32-bit ones.
    text = ids.cast(pa.large_string()) if is_string(ids.type) else ids.cast(pa.string()).cast(pa.large_string())
    _, offset_buffer, data = text.buffers()
    if offset_buffer is None or data is None:
        # Nothing but empty strings, or nothing at all: there need not be a buffer.
        return np.full(len(text), xxhash.xxh3_64_intdigest(b""), dtype=np.uint64)
    offsets = np.frombuffer(offset_buffer, dtype=np.int64)[text.offset : text.offset + len(text) + 1].tolist()
    view = memoryview(data)
    hashes = (xxhash.xxh3_64_intdigest(view[a:b]) for a, b in itertools.pairwise(offsets))
    return np.fromiter(hashes, dtype=np.uint64, count=len(text))
