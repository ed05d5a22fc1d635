"""Content fingerprints: what an input *says*, independent of file names, times and row order."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash


def content_fingerprint(parts: dict[str, npt.NDArray[Any] | pa.Array | tuple[str | None, ...] | None]) -> str:
    """xxh3-128 over named arrays, in the order given.

    Parameters
    ----------
    parts : name → NumPy array, Arrow array, tuple of names, or None. Arrays must be in a canonical order already;
        types count (int32 and int64 of equal values differ).
    """
    digest = xxhash.xxh3_128()
    for name, values in parts.items():
        digest.update(f"{name}:{type(values).__name__}:".encode())
        if isinstance(values, np.ndarray):
            digest.update(f"{values.dtype.str}{values.shape}".encode())
            digest.update(np.ascontiguousarray(values).view(np.uint8).data)
        elif isinstance(values, pa.Array):
            batch = pa.record_batch([values], names=[name])
            digest.update(batch.schema.serialize())
            digest.update(batch.serialize())
        else:
            digest.update(repr(values).encode())
    return digest.hexdigest()
