"""A slow, obvious definition of vector search: exact fractions under one square root, one pair at a time."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from typing import Any


def reference_cosine(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Cosine of two vectors of one width, rounded once at the end; None if one of them has length 0."""
    dot = sum((Fraction(a) * Fraction(b) for a, b in zip(first, second, strict=True)), Fraction(0))
    squares = [sum((Fraction(a) ** 2 for a in vector), Fraction(0)) for vector in (first, second)]
    if not all(squares):
        return None
    square = dot * dot / (squares[0] * squares[1])
    return math.copysign(math.sqrt(square), dot)


def reference_nearest(
    query: Sequence[float],
    nodes: Mapping[Any, Sequence[float]],
    *,
    k: int,
    excluded: Collection[Any] = (),
    min_score: float = -1.0,
) -> list[tuple[Any, float]]:
    """Nodes of the k largest cosines with their cosines, best first, ties by id."""
    cosines = {node: reference_cosine(query, vector) for node, vector in nodes.items() if node not in excluded}
    found = [(node, value) for node, value in cosines.items() if value is not None and value >= min_score]
    return sorted(found, key=lambda row: (-row[1], row[0]))[:k]
