"""Runs of equal keys in sorted arrays, and rows of compressed ones: where they begin, and what is in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from seedrank.kernels.arrays import Int64Array


def run_starts(*keys: npt.NDArray[np.integer[Any]]) -> Int64Array:
    """Positions where a run of equal keys begins; keys are of one length."""
    changed = np.ones(len(keys[0]), dtype=np.bool_)
    changed[1:] = False
    for key in keys:
        changed[1:] |= key[1:] != key[:-1]
    return np.flatnonzero(changed)


def run_lengths(starts: Int64Array, length: int) -> Int64Array:
    """Lengths of the runs of an array of so many elements."""
    return np.diff(starts, append=length)


def places_in_runs(starts: Int64Array, length: int) -> Int64Array:
    """Place of every element within its run, from 0."""
    return np.arange(length) - np.repeat(starts, run_lengths(starts, length))


def offsets_of(lengths: npt.ArrayLike) -> Int64Array:
    """Where rows of these lengths begin, one after the other, and where the last one ends."""
    counts = np.asarray(lengths)
    offsets = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def gather(offsets: Int64Array, rows: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Offsets and entry positions of some rows of a CSR, in the order given."""
    lengths = offsets[rows + 1] - offsets[rows]
    gathered = offsets_of(lengths)
    entries = np.arange(gathered[-1]) + np.repeat(offsets[rows] - gathered[:-1], lengths)
    return gathered, entries


def slices_within(lengths: Int64Array, most: int) -> Iterator[tuple[int, int]]:
    """Cut consecutive rows of these lengths into ranges of at most `most` elements, or of one row that is longer."""
    ends = np.cumsum(lengths)
    first = 0
    while first < len(ends):
        before = int(ends[first - 1]) if first else 0
        last = max(int(np.searchsorted(ends, before + most, side="right")), first + 1)
        yield first, last
        first = last
