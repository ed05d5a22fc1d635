"""Counter-based random numbers in integer arithmetic: the same bits on every machine and in any order.

Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011), as Random123 and
cuRAND have it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from seedrank.kernels._cpu.compiled import compiled

_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_KEY_STEPS = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_FIRST_MULTIPLIER, _SECOND_MULTIPLIER = _MULTIPLIERS
_FIRST_KEY_STEP, _SECOND_KEY_STEP = _KEY_STEPS
_ROUNDS = 10


@compiled(inline=True)
def random_pair(key: Any, stream: Any, counter: Any) -> Any:
    """Two random numbers of 64 bits.

    Parameters
    ----------
    key : uint64
        The key of Philox4x32.
    stream, counter : uint64
        The upper and the lower half of its counter.

    Returns
    -------
    (uint64, uint64)
        The lower and the upper half of its output.
    """
    first_key, second_key = key & _LOW, key >> _HALF
    a, b = counter & _LOW, counter >> _HALF
    c, d = stream & _LOW, stream >> _HALF
    for _ in range(_ROUNDS):
        left, right = a * _FIRST_MULTIPLIER, c * _SECOND_MULTIPLIER
        a, b, c, d = (right >> _HALF) ^ b ^ first_key, right & _LOW, (left >> _HALF) ^ d ^ second_key, left & _LOW
        first_key = (first_key + _FIRST_KEY_STEP) & _LOW
        second_key = (second_key + _SECOND_KEY_STEP) & _LOW
    return (b << _HALF) | a, (d << _HALF) | c


@compiled(inline=True)
def scaled(draw: Any, total: Any) -> Any:
    """The 64 upper bits of the 128-bit product of two uint64: a random number below `total` (Lemire, 2019).

    Every value below `total` has floor or ceil(2**64 / total) of the 2**64 draws, so none is preferred by more than
    total / 2**64 of its probability.
    """
    low, high = draw & _LOW, draw >> _HALF
    total_low, total_high = total & _LOW, total >> _HALF
    middle = high * total_low + ((low * total_low) >> _HALF)
    other = low * total_high + (middle & _LOW)
    return high * total_high + (middle >> _HALF) + (other >> _HALF)
