"""The numbers that random walks start from: the same on every machine that makes them."""

from __future__ import annotations

import numpy as np

from seedrank.kernels.arrays import UInt64Array


def walk_keys(query_keys: UInt64Array, random_seed: int) -> UInt64Array:
    """Keys of the random numbers of queries, uint64 (B,), from hashes of their ids and the random seed of the run."""
    keys: UInt64Array = query_keys ^ np.uint64(_mixed(random_seed))
    return keys


def largest_restart(restart: float) -> np.uint64:
    """The largest of the 2**64 draws that mean: return to the anchor."""
    return np.uint64(max(1, int(restart * 2.0**64)) - 1)


def _mixed(seed: int) -> int:
    """Spread a seed over 64 bits (the first number of SplitMix64), so that near seeds have nothing in common."""
    mask = 2**64 - 1
    mixed = (seed + 0x9E3779B97F4A7C15) & mask
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & mask
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & mask
    return mixed ^ (mixed >> 31)
