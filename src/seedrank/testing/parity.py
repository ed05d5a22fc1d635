"""Assertions for comparing scores and rankings, with messages that name the nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

SHOWN = 5
"""Differences that a message lists."""


def assert_scores_close(actual: Mapping[Any, float], expected: Mapping[Any, Any], tolerance: float) -> None:
    """Every score lies within `tolerance` (absolute) of the expected one; absent nodes count as 0.

    Parameters
    ----------
    actual, expected : mapping
        Node id → score.
    tolerance : float

    Raises
    ------
    AssertionError
        Naming the worst nodes with both scores.
    """
    differences = sorted(
        (
            (abs(float(actual.get(node, 0.0)) - float(expected.get(node, 0.0))), repr(node), node)
            for node in {**actual, **expected}
        ),
        reverse=True,
    )
    # A NaN compares false with everything, hence the negation.
    wrong = [entry for entry in differences if not entry[0] <= tolerance]
    if wrong:
        lines = [
            f"  {name}: {float(actual.get(node, 0.0))!r}, expected {float(expected.get(node, 0.0))!r}"
            for _, name, node in wrong[:SHOWN]
        ]
        raise AssertionError(f"{len(wrong)} scores differ by more than {tolerance}:\n" + "\n".join(lines))


def assert_same_ranking(
    actual: Sequence[tuple[Any, float]], expected: Sequence[tuple[Any, float]], tie_tolerance: float
) -> None:
    """Two rankings hold the same nodes in the same order, except among scores closer than `tie_tolerance`.

    At the cut a node may stand for another one of (nearly) the same score.

    Parameters
    ----------
    actual, expected : sequence of (node id, score)
        Best first.
    tie_tolerance : float
        Absolute.

    Raises
    ------
    AssertionError
        Naming the first position that differs by more than a tie.
    """
    if len(actual) != len(expected):
        raise AssertionError(f"{len(actual)} ranked nodes, expected {len(expected)}")
    if len({node for node, _ in actual}) != len(actual):
        raise AssertionError(f"a node is ranked twice: {list(actual)!r}")
    expected_scores = dict(expected)
    lowest = expected[-1][1] if expected else 0.0
    for position, ((node, score), (wanted, wanted_score)) in enumerate(zip(actual, expected, strict=True), 1):
        if not abs(score - wanted_score) <= tie_tolerance:
            raise AssertionError(
                f"position {position}: {node!r} has {score!r}, expected {wanted!r} with {wanted_score!r}"
            )
        own = expected_scores.get(node, lowest)
        if node != wanted and not abs(own - wanted_score) <= tie_tolerance:
            raise AssertionError(
                f"position {position}: {node!r} ({own!r}) stands where {wanted!r} ({wanted_score!r}) belongs"
            )
