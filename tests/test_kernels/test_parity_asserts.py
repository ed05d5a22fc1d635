"""The asserts of `seedrank.testing.parity` must be able to fail."""

from __future__ import annotations

import pytest

from seedrank.testing.parity import assert_same_ranking, assert_scores_close


def test_scores() -> None:
    assert_scores_close({"a": 0.5, "b": 0.1}, {"a": 0.5 + 1e-9, "b": 0.1, "c": 0.0}, 1e-8)
    with pytest.raises(AssertionError, match=r"1 scores differ.*\n  'b': 0.0, expected 0.1"):
        assert_scores_close({"a": 0.5}, {"a": 0.5, "b": 0.1}, 1e-8)
    with pytest.raises(AssertionError, match="nan"):
        assert_scores_close({"a": float("nan")}, {"a": 0.5}, 1e-8)


def test_rankings() -> None:
    expected = [("a", 0.5), ("b", 0.2), ("c", 0.2)]
    assert_same_ranking([("a", 0.5), ("c", 0.2), ("b", 0.2)], expected, 1e-9)
    assert_same_ranking([("a", 0.5), ("b", 0.2), ("d", 0.2)], expected, 1e-9)
    with pytest.raises(AssertionError, match="position 1: 'b'"):
        assert_same_ranking([("b", 0.5), ("a", 0.2), ("c", 0.2)], expected, 1e-9)
    with pytest.raises(AssertionError, match="2 ranked nodes, expected 3"):
        assert_same_ranking(expected[:2], expected, 1e-9)
    with pytest.raises(AssertionError, match="position 2"):
        assert_same_ranking([("a", 0.5), ("b", 0.3), ("c", 0.2)], expected, 1e-9)
    with pytest.raises(AssertionError, match="ranked twice"):
        assert_same_ranking([("a", 0.5), ("b", 0.2), ("b", 0.2)], expected, 1e-9)
