"""Fusion against a slow reference of exact fractions, and what may not change it."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seedrank.kernels.fuse import FusedRanking, RankedLists, fuse, largest_fused_score
from seedrank.testing.reference_fusion import ReferenceHit, reference_fusion

Query = Mapping[str, Sequence[ReferenceHit]]
NODES = 12
#: Node → tie rank: not the identity, so that the two cannot be mixed up unnoticed.
ORDER = np.array([7, 3, 11, 0, 5, 9, 1, 10, 2, 8, 6, 4], dtype=np.int32)
NODE_OF_RANK = np.argsort(ORDER).astype(np.int32)


def fuse_queries(
    queries: Sequence[Query],
    names: Sequence[str],
    *,
    weights: Mapping[str, float] | None = None,
    lower_is_better: Sequence[str] = (),
    excluded: Sequence[int] = (),
    shuffle: int | None = None,
    **options: Any,
) -> FusedRanking:
    """Fuse; the ids of the hits are tie ranks."""
    rows = [[(names.index(name), hit) for name in names if name in query for hit in query[name]] for query in queries]
    if shuffle is not None:
        for row in rows:
            random.Random(shuffle).shuffle(row)  # noqa: S311
    flat = [entry for row in rows for entry in row]
    given = bool(flat) and flat[0][1].rank is not None
    entries = RankedLists(
        offsets=np.cumsum([0, *map(len, rows)], dtype=np.int64),
        lists=np.array([code for code, _ in flat], np.int32),
        nodes=NODE_OF_RANK[np.array([hit.node for _, hit in flat], np.int64)],
        scores=np.array([hit.score for _, hit in flat], np.float64),
        ranks=np.array([hit.rank for _, hit in flat], np.int64) if given else None,
        returnable=np.array([hit.node not in excluded for _, hit in flat], np.bool_),
    )
    settings: dict[str, Any] = {"rule": "rrf", "rrf_k": 60, "k": NODES, "min_score": 0.0, "precision": "float64"}
    return fuse(
        entries,
        weights=np.array([(weights or {}).get(name, 1.0) for name in names], np.float64),
        lower_is_better=np.array([name in lower_is_better for name in names], np.bool_),
        order=ORDER,
        **(settings | options),
    )


def rankings(fused: FusedRanking) -> list[list[tuple[int, float]]]:
    """(tie rank, score) of every query."""
    ends = np.cumsum(fused.counts)
    rows = list(zip(ORDER[fused.nodes].tolist(), fused.scores.tolist(), strict=True))
    return [rows[end - count : end] for end, count in zip(ends, fused.counts, strict=True)]


def hits(*nodes: int) -> list[ReferenceHit]:
    """A list in the order of falling scores."""
    return [ReferenceHit(node, float(-position)) for position, node in enumerate(nodes)]


def test_case_37_a_repeat_counts_once_at_its_best_position_and_occupies_the_others() -> None:
    a, b = 0, 1
    fused = fuse_queries([{"L1": hits(a, a, b), "L2": hits(b)}], ["L1", "L2"])
    assert rankings(fused)[0] == [(b, 1 / 63 + 1 / 61), (a, 1 / 61)]


def test_case_38_ranks_from_one_and_nothing_for_lists_that_lack_a_node() -> None:
    a, b, c, x, y = range(5)
    fused = fuse_queries([{"L1": hits(x, a, y), "L2": hits(b, c, y)}], ["L1", "L2"])
    assert rankings(fused)[0] == [(y, 2 / 63), (b, 1 / 61), (x, 1 / 61), (a, 1 / 62), (c, 1 / 62)]
    # Rounded to four digits these two would be tied.
    close = fuse_queries([{"L1": hits(a, b, c), "L2": hits(c, b, a)}], ["L1", "L2"])
    assert [node for node, _ in rankings(close)[0]] == [a, c, b]


def test_case_39_values() -> None:
    for first, second, expected in ((1, 2, 0.0325225), (1, 1, 0.0327869), (2, 2, 0.0322581), (1, 3, 0.0322665)):
        lists = {"L1": [ReferenceHit(0, 0.0, first)], "L2": [ReferenceHit(0, 0.0, second)]}
        ((_, score),) = rankings(fuse_queries([lists], ["L1", "L2"]))[0]
        assert score == pytest.approx(expected, abs=5e-8)


def test_case_43_distances_and_unsorted_scores() -> None:
    a, b = 0, 1
    lists = {"d": [ReferenceHit(b, 0.4), ReferenceHit(a, 0.1)]}
    assert [node for node, _ in rankings(fuse_queries([lists], ["d"], lower_is_better=["d"]))[0]] == [a, b]
    unsorted = {"s": [ReferenceHit(a, 0.2), ReferenceHit(b, 0.9)]}
    assert [node for node, _ in rankings(fuse_queries([unsorted], ["s"]))[0]] == [b, a]


def test_a_silenced_list_contributes_nothing_and_brings_no_candidate() -> None:
    fused = fuse_queries([{"L1": hits(0), "L2": hits(1, 0)}], ["L1", "L2"], weights={"L2": 0.0})
    assert rankings(fused)[0] == [(0, 1 / 61)]
    assert fused.components.tolist() == [[1 / 61], [0.0]]


def test_what_may_not_be_returned_keeps_its_position() -> None:
    fused = fuse_queries([{"L1": hits(0, 1, 2)}], ["L1"], excluded=[0])
    assert rankings(fused)[0] == [(1, 1 / 62), (2, 1 / 63)]
    weighted = fuse_queries([{"L1": hits(0, 1, 2)}], ["L1"], excluded=[0], rule="weighted")
    assert rankings(weighted)[0] == [(1, 0.5), (2, 0.0)]


def test_equal_scores_are_one_and_a_zero_is_a_candidate() -> None:
    equal = {"L1": [ReferenceHit(0, 7.0), ReferenceHit(1, 7.0)], "L2": [ReferenceHit(1, -1.0), ReferenceHit(2, -5.0)]}
    fused = fuse_queries([equal], ["L1", "L2"], rule="weighted")
    assert rankings(fused)[0] == [(1, 2.0), (0, 1.0), (2, 0.0)]
    np.testing.assert_array_equal(fused.components, [[1.0, 1.0, np.nan], [1.0, np.nan, 0.0]])


def test_no_difference_of_scores_overflows() -> None:
    wide = {"L1": [ReferenceHit(0, 1.7e308), ReferenceHit(1, 0.0), ReferenceHit(2, -1.7e308)]}
    assert rankings(fuse_queries([wide], ["L1"], rule="weighted"))[0] == [(0, 1.0), (1, 0.5), (2, 0.0)]


def test_nodes_with_the_same_ranks_in_other_lists_are_exactly_tied() -> None:
    """1/61 + 1/62 + 1/68 depends on the order of the additions; the id must decide, not the rounding."""
    ranks = (1, 2, 8)
    assert (1 / 61 + 1 / 62) + 1 / 68 != 1 / 61 + (1 / 62 + 1 / 68)
    lists: dict[str, list[ReferenceHit]] = {"L0": [], "L1": [], "L2": []}
    for node in range(3):
        for position, rank in enumerate(ranks):
            lists[f"L{(position + node) % 3}"].append(ReferenceHit(node, 0.0, rank))
    fused = fuse_queries([lists], ["L0", "L1", "L2"])
    assert [node for node, _ in rankings(fused)[0]] == [0, 1, 2]
    assert len(set(fused.scores.tolist())) == 1


def test_k_and_the_threshold_cut_after_ranking() -> None:
    query = {"L1": hits(0, 1, 2, 3)}
    assert rankings(fuse_queries([query, {}, query], ["L1"], k=2)) == [
        [(0, 1 / 61), (1, 1 / 62)],
        [],
        [(0, 1 / 61), (1, 1 / 62)],
    ]
    at_the_edge = fuse_queries([query], ["L1"], min_score=1 / 62, precision="float32")
    assert [node for node, _ in rankings(at_the_edge)[0]] == [0, 1]


def test_no_queries_and_no_entries() -> None:
    assert rankings(fuse_queries([], ["L1"])) == []
    assert rankings(fuse_queries([{}, {}], ["L1"], rule="weighted")) == [[], []]


@pytest.mark.parametrize(("rule", "expected"), [("rrf", 1.5 / 61), ("weighted", 1.5)])
def test_the_largest_score_is_that_of_a_node_first_in_every_list(rule: Any, expected: float) -> None:
    weights = {"L1": 1.0, "L2": 0.5}
    fused = fuse_queries([{"L1": hits(0, 1), "L2": hits(0, 2)}], ["L1", "L2"], weights=weights, rule=rule)
    largest = largest_fused_score(rule=rule, rrf_k=60, weights=np.array([1.0, 0.5]))
    assert fused.scores[0] == largest == pytest.approx(expected)


scores = st.one_of(st.sampled_from([0.0, 0.5, 1.0, -1.0]), st.floats(-1e300, 1e300))
NAMES = ("dense", "sparse", "entities")


@st.composite
def fusions(draw: st.DrawFn) -> dict[str, Any]:
    """Some queries with ties, repeats, empty and missing lists, and weights."""
    ranked = draw(st.booleans())
    hit = st.builds(ReferenceHit, st.integers(0, NODES - 1), scores, st.integers(1, 9) if ranked else st.none())
    query = st.dictionaries(st.sampled_from(NAMES), st.lists(hit, max_size=8))
    weight = st.sampled_from([0.0, 0.25, 1.0, 3.0])
    return {
        "queries": draw(st.lists(query, min_size=1, max_size=4)),
        "weights": draw(st.dictionaries(st.sampled_from(NAMES), weight)),
        "lower_is_better": sorted(draw(st.sets(st.sampled_from(NAMES)))),
        "excluded": sorted(draw(st.sets(st.integers(0, NODES - 1), max_size=3))),
        "rrf_k": draw(st.sampled_from([0, 2, 60])),
    }


@pytest.mark.parametrize("rule", ["rrf", "weighted"])
@settings(max_examples=150, deadline=None)
@given(case=fusions())
def test_agrees_with_the_reference(rule: Literal["rrf", "weighted"], case: dict[str, Any]) -> None:
    queries = case.pop("queries")
    fused = fuse_queries(queries, NAMES, rule=rule, **case)
    ends = np.cumsum(fused.counts)
    for query, found, end in zip(queries, rankings(fused), ends, strict=True):
        expected = reference_fusion(query, rule=rule, **case)
        assert sorted(node for node, _ in found) == sorted(node for node, _, _ in expected)
        exact = {node: score for node, score, _ in expected}
        assert [score for _, score in found] == pytest.approx(
            [float(exact[node]) for node, _ in found], rel=1e-12, abs=1e-12
        )
        # In order, but for differences below what float64 resolves.
        for (first, one), (second, other) in itertools.pairwise(found):
            assert exact[first] - exact[second] > -Fraction(1, 10**12)
            assert one > other or (one == other and first < second)
        for row, (node, _) in enumerate(found, start=int(end) - len(found)):
            parts = next(parts for other, _, parts in expected if other == node)
            shown = fused.components[:, row]
            assert [name for name, value in zip(NAMES, shown, strict=True) if not np.isnan(value)] == [
                name for name in NAMES if name in parts
            ]


@pytest.mark.parametrize("rule", ["rrf", "weighted"])
@settings(max_examples=60, deadline=None)
@given(case=fusions(), seed=st.integers(0, 99), names=st.permutations(NAMES))
def test_the_order_of_entries_and_lists_changes_no_bit(
    rule: Literal["rrf", "weighted"], case: dict[str, Any], seed: int, names: list[str]
) -> None:
    queries = case.pop("queries")
    first = fuse_queries(queries, NAMES, rule=rule, precision="float32", **case)
    second = fuse_queries(queries, names, rule=rule, precision="float32", shuffle=seed, **case)
    for name in ("counts", "nodes", "scores"):
        assert getattr(first, name).tobytes() == getattr(second, name).tobytes()
    reordered = second.components[[names.index(name) for name in NAMES]]
    assert first.components.tobytes() == reordered.tobytes()


@settings(max_examples=60, deadline=None)
@given(case=fusions(), k=st.integers(1, 5))
def test_a_cut_is_a_prefix_and_queries_do_not_meet(case: dict[str, Any], k: int) -> None:
    queries = case.pop("queries")
    whole = rankings(fuse_queries(queries, NAMES, **case))
    assert rankings(fuse_queries(queries, NAMES, k=k, **case)) == [found[:k] for found in whole]
    assert [rankings(fuse_queries([query], NAMES, **case))[0] for query in queries] == whole
