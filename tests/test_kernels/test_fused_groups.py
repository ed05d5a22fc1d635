"""Rankings of groups: collapsed, and fused, against slow definitions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedrank.kernels.collapse import collapse
from seedrank.kernels.fuse import FusionRule, RankedLists
from seedrank.kernels.fuse_groups import fuse_groups
from seedrank.testing.reference_fusion import ReferenceHit, reference_fusion
from seedrank.testing.reference_groups import reference_collapse, reference_group_fusion


def test_groups_rank_by_their_best_member_and_list_all() -> None:
    found = collapse(np.array([4, 0, 2], np.int32), np.array([7, 3, 7, -1, 3, 3], np.int32), k=2)
    assert found.counts.tolist() == [2, 0, 1]
    assert found.best.tolist() == [0, 1, 4]
    assert (found.offsets.tolist(), found.members.tolist()) == ([0, 2, 3, 5], [0, 2, 1, 4, 5])


def test_no_rows() -> None:
    found = collapse(np.zeros(2, np.int32), np.zeros(0, np.int32), k=1)
    assert (found.counts.tolist(), len(found.best), found.offsets.tolist()) == ([0, 0], 0, [0])


@given(
    rankings=st.lists(st.lists(st.integers(-1, 3), max_size=8), min_size=1, max_size=4),
    k=st.integers(1, 5),
)
def test_collapsing_is_the_reference(rankings: list[list[int]], k: int) -> None:
    flat = np.array([group for ranking in rankings for group in ranking], dtype=np.int32)
    found = collapse(np.array([len(ranking) for ranking in rankings], np.int32), flat, k=k)
    first, group = 0, 0
    for count, ranking in zip(found.counts, rankings, strict=True):
        groups = {first + place: None if key < 0 else key for place, key in enumerate(ranking)}
        expected = reference_collapse([(row, None) for row in groups], groups, k=k)
        assert count == len(expected)
        for best, _, rows in expected:
            assert found.best[group] == best
            members = found.members[found.offsets[group] : found.offsets[group + 1]]
            assert members.tolist() == [row for row, _ in rows]
            group += 1
        first += len(ranking)


def fused(lists: dict[str, list[ReferenceHit]], groups: dict[int, int], **options: Any) -> list[tuple[Any, ...]]:
    """Fuse lists of nodes 0 … 9 of one query through the kernel: (best member, score, members)."""
    names = sorted(lists)
    hits = [(place, hit) for place, name in enumerate(names) for hit in lists[name]]
    excluded = options.pop("excluded", ())
    entries = RankedLists(
        offsets=np.array([0, len(hits)], dtype=np.int64),
        lists=np.array([place for place, _ in hits], dtype=np.int32),
        nodes=np.array([hit.node for _, hit in hits], dtype=np.int32),
        scores=np.array([hit.score for _, hit in hits], dtype=np.float64),
        ranks=np.array([hit.rank for _, hit in hits], dtype=np.int64) if hits and hits[0][1].rank else None,
        returnable=np.array([hit.node not in excluded for _, hit in hits], dtype=np.bool_),
    )
    weights, distances = options.pop("weights", {}), options.pop("lower_is_better", ())
    found = fuse_groups(
        entries,
        np.array([groups.get(node, -1) for node in range(10)], dtype=np.int32),
        weights=np.array([weights.get(name, 1.0) for name in names]),
        lower_is_better=np.array([name in distances for name in names], dtype=np.bool_),
        order=np.arange(10, dtype=np.int32),
        **{"rule": "rrf", "rrf_k": 60, "k": 100, "min_score": 0.0, "precision": "float64", **options},
    )
    assert len(found.offsets) == len(found.ranking.nodes) + 1
    return [
        (node, score, found.members[first:last].tolist())
        for node, score, first, last in zip(
            found.ranking.nodes, found.ranking.scores, found.offsets, found.offsets[1:], strict=False
        )
    ]


def hits_of(nodes: list[int]) -> list[ReferenceHit]:
    """A list, best first."""
    return [ReferenceHit(node, 9.0 - place) for place, node in enumerate(nodes)]


def test_positions_count_groups() -> None:
    """File A has the nodes 0, 1, 2, file B 3 and 4: list s ranks A, A, B, node 9; list t ranks B, A."""
    groups = {0: 0, 1: 0, 2: 0, 3: 1, 4: 1}
    lists = {"s": hits_of([1, 0, 3, 9]), "t": hits_of([4, 2])}
    found = fused(lists, groups)
    assert found == [
        (1, pytest.approx(1 / 61 + 1 / 62), [1, 0, 2]),
        (4, pytest.approx(1 / 61 + 1 / 62), [4, 3]),
        (9, pytest.approx(1 / 63), [9]),
    ]
    assert [row[:2] for row in fused(lists, groups, weights={"t": 2.0}, k=1)] == [(4, pytest.approx(2 / 61 + 1 / 62))]


def test_what_may_not_be_returned_is_left_out_first() -> None:
    lists = {"s": hits_of([0, 5, 1])}
    assert fused(lists, {0: 0, 1: 0, 5: 1}, excluded=(0,)) == [
        (5, pytest.approx(1 / 61), [5]),
        (1, pytest.approx(1 / 62), [1]),
    ]
    assert fused(lists, {0: 0, 1: 0, 5: 0}, excluded=(0, 1, 5)) == []


def test_ties_go_to_the_lower_best_member() -> None:
    lists = {"s": hits_of([3, 7]), "t": hits_of([2, 8])}
    assert [row[0] for row in fused(lists, {7: 0, 8: 0})] == [7, 2, 3]
    assert [row[0] for row in fused(lists, {3: 0, 7: 0, 2: 1, 8: 1})] == [2, 3]


@st.composite
def grouped_lists(draw: st.DrawFn, *, ranks: bool) -> dict[str, list[ReferenceHit]]:
    """Lists of nodes 0 … 6; nodes may repeat and tie, given ranks are distinct."""
    lists = {}
    for name in draw(st.sampled_from([["s"], ["s", "t"], ["s", "t", "u"]])):
        rows = draw(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 4)), max_size=6))
        lists[name] = [
            ReferenceHit(node, score / 2, place + 1 if ranks else None) for place, (node, score) in enumerate(rows)
        ]
    return lists


@pytest.mark.parametrize(("rule", "ranks"), [("rrf", False), ("rrf", True), ("weighted", False)])
@given(data=st.data())
def test_fusing_groups_is_the_reference(rule: FusionRule, ranks: bool, data: st.DataObject) -> None:
    lists = data.draw(grouped_lists(ranks=ranks))
    groups = data.draw(st.dictionaries(st.integers(0, 6), st.integers(0, 2)))
    options: dict[str, Any] = {
        "rule": rule,
        # Under these weights no two nodes have the same sum of different terms, whose rounding would decide.
        "rrf_k": 60,
        "weights": {"s": 1.0, "t": data.draw(st.sampled_from([0.0, 0.5])), "u": 0.25},
        "lower_is_better": data.draw(st.sampled_from([(), ("s",)])) if not ranks else (),
        "excluded": data.draw(st.sets(st.integers(0, 6), max_size=2)),
        "k": data.draw(st.integers(1, 8)),
    }
    expected = reference_group_fusion(lists, groups, **options)
    found = fused(lists, groups, **options)
    assert [(best, members) for best, _, members in found] == [(best, members) for best, _, members in expected]
    assert [score for _, score, _ in found] == pytest.approx([float(score) for _, score, _ in expected], abs=1e-12)


@given(lists=grouped_lists(ranks=False))
def test_groups_of_one_are_the_fusion_of_nodes(lists: dict[str, list[ReferenceHit]]) -> None:
    """But for repeats, whose further positions are not counted among groups."""
    distinct = {name: list({hit.node: hit for hit in hits}.values()) for name, hits in lists.items()}
    expected = [(node, score) for node, score, _ in reference_fusion(distinct)]
    found = fused(distinct, {})
    assert [(best, members) for best, _, members in found] == [(node, [node]) for node, _ in expected]
    assert [Fraction(score).limit_denominator(10**9) for _, score, _ in found] == [
        Fraction(score).limit_denominator(10**9) for _, score in expected
    ]
