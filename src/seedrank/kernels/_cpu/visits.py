"""A hash table that counts visits of walkers to nodes; its memory grows with what is visited, not with the graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from seedrank.kernels._cpu.compiled import compiled

_FIRST_ENTRIES = 1 << 11
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


@compiled()
def new_visits() -> Any:
    """An empty table.

    Returns
    -------
    tuple
        places : int32 (a power of two), entry or -1, where open addressing finds it;
        keys, counts : int64, hops : int32 (half as many each), by entry.
    """
    places = np.full(2 * _FIRST_ENTRIES, -1, np.int32)
    return (
        places,
        np.empty(_FIRST_ENTRIES, np.int64),
        np.empty(_FIRST_ENTRIES, np.int64),
        np.empty(_FIRST_ENTRIES, np.int32),
    )


@compiled(inline=True)
def place_of(places: Any, keys: Any, key: Any) -> Any:
    """Place that holds the entry of a key, or the free one where it belongs."""
    mask = places.shape[0] - 1
    place = np.int64((np.uint64(key) * _SPREAD) >> _HALF) & mask
    while places[place] >= 0 and keys[places[place]] != key:
        place = (place + 1) & mask
    return place


@compiled()
def with_room(table: Any, entries: int, more: int) -> Any:
    """The same table with room for more entries, at most half full."""
    places, keys, counts, hops = table
    while keys.shape[0] < entries + more:
        keys, counts, hops = _doubled(keys), _doubled(counts), _doubled(hops)
        places = np.full(2 * places.shape[0], -1, np.int32)
        for entry in range(entries):
            places[place_of(places, keys, keys[entry])] = entry
    return places, keys, counts, hops


@compiled()
def _doubled(values: Any) -> Any:
    longer = np.empty(2 * values.shape[0], values.dtype)
    longer[: values.shape[0]] = values
    return longer
