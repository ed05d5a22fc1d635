"""Vectors as kernels see them: rows of floats of any width, and their lengths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seedrank.kernels.arrays import Float64Array, Int64Array

VectorRows = npt.NDArray[np.floating[Any]]
"""float16, float32 or float64 (rows, d); may be mapped from disk."""


@dataclass(frozen=True)
class Vectors:
    """v vectors of one width d.

    Attributes
    ----------
    rows : float16, float32 or float64 (r, d)
        Finite. May be mapped from disk.
    places : int64 (v)
        Row of each vector.
    norms : float64 (v)
        Euclidean length of each, from `norms_of`; a vector of length 0 has no direction.
    """

    rows: VectorRows
    places: Int64Array
    norms: Float64Array

    @property
    def width(self) -> int:
        """Numbers of a vector, d."""
        return int(self.rows.shape[1])

    def units(self, positions: npt.NDArray[np.integer[Any]]) -> Float64Array:
        """Vectors at some positions, scaled to length 1; none may have length 0."""
        # A mapped array is indexed once, and only copied where it is read.
        units: Float64Array = np.asarray(self.rows[self.places[positions]], dtype=np.float64)
        return units / self.norms[positions, np.newaxis]


def norms_of(rows: VectorRows) -> Float64Array:
    """Euclidean length of each row, without overflow or underflow on the way."""
    values = np.asarray(rows, dtype=np.float64)
    largest = np.abs(values).max(axis=1, initial=0.0)
    scaled = np.divide(values, largest[:, np.newaxis], out=np.zeros_like(values), where=largest[:, np.newaxis] > 0)
    norms: Float64Array = largest * np.sqrt((scaled * scaled).sum(axis=1))
    return norms


def product_error(width: int) -> float:
    """Most that a product of two vectors of length 1 in float32 is off by, both rounded first, in any order of sums."""
    return 1.01 * (width + 4) * 2.0**-24
