"""The random choices of a walk in plain Python integers, straight from their definitions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

MASK_32, MASK_64 = 2**32 - 1, 2**64 - 1


def reference_philox(counter: Sequence[int], key: Sequence[int]) -> tuple[int, int, int, int]:
    """Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).

    Parameters
    ----------
    counter : four integers of 32 bits
    key : two integers of 32 bits

    Returns
    -------
    tuple of four integers of 32 bits
    """
    x0, x1, x2, x3 = counter
    k0, k1 = key
    for _ in range(10):
        product_0, product_1 = 0xD2511F53 * x0, 0xCD9E8D57 * x2
        x0, x1, x2, x3 = (
            (product_1 >> 32) ^ x1 ^ k0,
            product_1 & MASK_32,
            (product_0 >> 32) ^ x3 ^ k1,
            product_0 & MASK_32,
        )
        k0, k1 = (k0 + 0x9E3779B9) & MASK_32, (k1 + 0xBB67AE85) & MASK_32
    return x0, x1, x2, x3


def reference_splitmix(seed: int) -> int:
    """The first number of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014)."""
    value = (seed + 0x9E3779B97F4A7C15) & MASK_64
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK_64
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK_64
    return value ^ (value >> 31)


def reference_draws(random_seed: int, query_key: int, anchor_key: int, step: int) -> tuple[int, int]:
    """The two 64-bit draws of a step: whether to return to the anchor, and which edge to take."""
    key = query_key ^ reference_splitmix(random_seed)
    x0, x1, x2, x3 = reference_philox(
        (step & MASK_32, step >> 32, anchor_key & MASK_32, anchor_key >> 32), (key & MASK_32, key >> 32)
    )
    return x0 | x1 << 32, x2 | x3 << 32


def reference_whole_weights(weights: Sequence[float]) -> list[int]:
    """Weights of one node's edges as whole numbers with a sum below 2**62."""
    largest = max(weights, default=0.0)
    if largest == 0:
        return [0] * len(weights)
    scale = Fraction(2) ** (62 - len(weights).bit_length() - math.frexp(largest)[1])
    return [math.floor(Fraction(weight) * scale) for weight in weights]


def reference_choice(draw: int, weights: Sequence[int]) -> int:
    """The place of the entry that a 64-bit draw falls on; weights are whole numbers, their sum is not 0."""
    chosen = draw * sum(weights) >> 64
    place = 0
    while chosen >= weights[place]:
        chosen -= weights[place]
        place += 1
    return place
