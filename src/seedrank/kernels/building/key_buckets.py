"""Buckets of keys that one after the other are sorted in memory: where to cut, and which key goes where."""

from __future__ import annotations

import numpy as np

from seedrank.kernels.arrays import Int64Array


def choose_cuts(sample: Int64Array, buckets: int) -> Int64Array:
    """Cut the range of the keys so that buckets get about equally many of them.

    A key that alone fills more than one bucket gets one for itself, from it to the next integer: nothing could cut it
    further, and it needs no sorting.

    Parameters
    ----------
    sample : int64 (s)
        Some of the keys, in any order.
    buckets : int
        How many are wanted, >= 1.

    Returns
    -------
    int64 (c)
        Strictly ascending; bucket ``b`` holds the keys from ``cuts[b - 1]``, included, to ``cuts[b]``, excluded.
    """
    if not len(sample) or buckets == 1:
        return np.empty(0, dtype=np.int64)
    ordered = np.sort(sample)
    quantiles = ordered[len(ordered) * np.arange(1, buckets) // buckets]
    crowded = quantiles[1:][quantiles[1:] == quantiles[:-1]]
    return np.unique(np.concatenate((quantiles, crowded + 1)))


def split_keys(key: Int64Array, cuts: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Bring keys into the order of their buckets; within a bucket they stay in order.

    Parameters
    ----------
    key : int64 (m)
    cuts : int64 (c)
        Ascending; a key equal to a cut belongs behind it.

    Returns
    -------
    order : int64 (m)
        Positions of the keys, bucket by bucket.
    ends : int64 (c + 1)
        Where each bucket ends in ``order``.
    """
    bucket = np.searchsorted(cuts, key, side="right").astype(np.min_scalar_type(len(cuts)))
    # NumPy sorts integers of 8 and 16 bits by radix.
    return np.argsort(bucket, kind="stable"), np.cumsum(np.bincount(bucket, minlength=len(cuts) + 1))
