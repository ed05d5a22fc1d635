"""Cosines of given pairs: a query with its candidates, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from seedrank.kernels.arrays import Float64Array
from seedrank.kernels.vectors import Vectors

NUMBERS_AT_ONCE = 1 << 20
"""Numbers of vectors that are held at a time, in float64."""


def cosines_of_pairs(
    queries: Vectors,
    nodes: Vectors,
    query: npt.NDArray[np.integer[Any]],
    node: npt.NDArray[np.integer[Any]],
) -> Float64Array:
    """Compute the cosine of each of p pairs of a query vector and a node vector.

    Both are scaled to length 1, multiplied and summed in float64, in an order that depends on the width alone. So a
    pair has the same cosine to the last bit wherever it comes up, and equal vectors have equal cosines.

    Parameters
    ----------
    queries, nodes : Vectors
        Of one width.
    query, node : int (p)
        Positions of the vectors of a pair; none of length 0.

    Returns
    -------
    float64 (p)
        -1 to 1.
    """
    cosines = np.empty(len(query))
    pairs = max(NUMBERS_AT_ONCE // max(nodes.width, 1), 1)
    for first in range(0, len(query), pairs):
        part = slice(first, first + pairs)
        asked, of = np.unique(query[part], return_inverse=True)
        products = queries.units(asked)[of]
        products *= nodes.units(node[part])
        cosines[part] = products.sum(axis=1)
    return cosines.clip(-1.0, 1.0)
