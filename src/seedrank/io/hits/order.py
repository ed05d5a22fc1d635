"""The order in which hits stand, however they were read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

_LARGEST_KEY = np.iinfo(np.int64).max


def hit_order(
    query: npt.NDArray[np.int32],
    source: npt.NDArray[np.int32] | None,
    node: npt.NDArray[np.int32],
    further: Sequence[npt.NDArray[Any] | None],
) -> npt.NDArray[np.int64]:
    """Sorting permutation by (query, source, node, and further values, the first one first)."""
    values = tuple(value for value in reversed(further) if value is not None)
    sources, nodes = _span(source), _span(node)
    if _span(query) * sources * nodes <= _LARGEST_KEY:
        # One key instead of three; a stable sort of it is linear where the input is sorted already.
        key = query.astype(np.int64) * sources + (0 if source is None else source)
        key = key * nodes + (node + np.int64(1))
        order = np.argsort(key, kind="stable")
        key = key[order]
        # Only hits that agree in all three are left to be told apart by weight and the like.
        same = key[1:] == key[:-1]
        tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
        order[tied] = order[tied][np.lexsort((*(value[order[tied]] for value in values), key[tied]))]
        return order
    keys = (node,) if source is None else (node, source)
    return np.lexsort((*values, *keys, query))


def _span(codes: npt.NDArray[np.int32] | None) -> int:
    """Number of values from -1 up to the largest code."""
    return 1 if codes is None or not len(codes) else int(codes.max()) + 2
