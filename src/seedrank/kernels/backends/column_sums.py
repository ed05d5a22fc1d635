"""Sums of the columns of a matrix that have the same bits whatever the number of columns."""

from __future__ import annotations

import numpy as np

from seedrank.kernels.arrays import Float64Array


def column_sums(values: Float64Array) -> Float64Array:
    """Add up each column along a fixed tree.

    NumPy's own sum over the first axis changes its order of addition with the width (a single column is
    summed pairwise). Here the lower half of the rows is added to the upper half until one row is left, so
    the order depends on the number of rows alone, and sums of very many equal terms keep their digits.

    Parameters
    ----------
    values : float64 (r, b)
        C order; not changed.

    Returns
    -------
    float64 (b)
        Zeros for no rows. The relative error for terms >= 0 is at most log₂(r) half units in the last place.
    """
    if not len(values):
        return np.zeros(values.shape[1], dtype=np.float64)
    rows = len(values)
    half = (rows + 1) // 2
    sums: Float64Array = values[:half].copy()
    sums[: rows - half] += values[half:]
    while half > 1:
        rows, half = half, (half + 1) // 2
        sums[: rows - half] += sums[half:rows]
    total: Float64Array = sums[0]
    return total
