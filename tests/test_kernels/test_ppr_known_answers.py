"""Known answers K1-K12 and the field cases that are about numbers, end to end through the kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from seedrank.kernels.backends.scipy import ScipyBackend
from seedrank.testing.harness import RankedQuery, kernel_graph, kernel_personalized_pagerank
from seedrank.testing.parity import assert_same_ranking, assert_scores_close
from seedrank.testing.reference import reference_personalized_pagerank, reference_top_k
from seedrank.testing.toys import K2, K3, K5, K7, K9, K10, K11, TOYS, ToyGraph

STAR = tuple(("A", leaf) for leaf in "bcdef")


def rank(edges: Any, *queries: Mapping[Any, float], damping: float = 0.5, **options: Any) -> list[RankedQuery]:
    return kernel_personalized_pagerank(ScipyBackend(), edges, queries, damping=damping, **options)


def toy_options(toy: ToyGraph) -> dict[str, Any]:
    return {
        "damping": toy.damping,
        "direction": toy.direction,
        "dangling": toy.dangling,
        "type_weights": toy.type_weights,
        "duplicate_edges": toy.duplicate_edges,
        "nodes": toy.nodes,
    }


@pytest.mark.parametrize("toy", TOYS, ids=lambda toy: toy.name)
def test_reference_gives_the_known_answer_exactly(toy: ToyGraph) -> None:
    scores = reference_personalized_pagerank(toy.edges, toy.seeds, **toy_options(toy))
    assert_scores_close(scores, toy.expected, 2e-16)


@pytest.mark.parametrize(("precision", "tolerance"), [("float64", 1e-14), ("float32", 5e-7)])
@pytest.mark.parametrize("toy", TOYS, ids=lambda toy: toy.name)
def test_kernels_give_the_known_answer(toy: ToyGraph, precision: str, tolerance: float) -> None:
    (query,) = rank(toy.edges, toy.seeds, **toy_options(toy), precision=precision, tolerance=1e-14)
    assert_scores_close(query.scores, toy.expected, tolerance)
    assert set(query.scores) == set(toy.expected)
    expected = reference_top_k({node: float(score) for node, score in toy.expected.items()}, len(toy.expected))
    assert_same_ranking(query.ranking, expected, tolerance)
    assert query.converged


@pytest.mark.parametrize("toy", TOYS, ids=lambda toy: toy.name)
def test_edges_table_holds_the_edges(toy: ToyGraph) -> None:
    table = toy.edges_table()
    assert table.column_names == ["src", "dst", "weight", "type"][: len(toy.edges[0])]
    assert [tuple(row.values()) for row in table.to_pylist()] == list(toy.edges)


def test_case_1_dangling_mass_returns_to_the_seeds_not_to_all_nodes() -> None:
    (to_seeds,) = rank(K2.edges, K2.seeds, damping=0.85)
    (to_all,) = rank(K2.edges, K2.seeds, damping=0.85, dangling="uniform")
    assert to_seeds.ranking[0][0] == "A"
    assert to_all.ranking[0][0] == "B"
    assert_scores_close(to_all.scores, {"A": 0.245621, "B": 0.304399, "C": 0.2249897, "D": 0.2249897}, 1e-6)
    (only_c,) = rank(K3.edges, K3.seeds, damping=0.85)
    assert only_c.ranking == [("C", 1.0)]


def test_case_2_no_mass_is_lost_at_the_sink() -> None:
    (query,) = rank((("a", "b"), ("b", "c")), {"a": 1}, damping=0.85)
    assert_scores_close(query.scores, {"a": 0.388727, "b": 0.330418, "c": 0.280855}, 1e-6)


def test_case_4_unknown_seeds_are_dropped_and_the_rest_rescaled() -> None:
    known, unknown, rotated = rank(K10.edges, {1: 1, 99: 1}, {99: 1}, {2: 1})
    assert_scores_close(known.scores, K10.expected, 1e-12)
    assert unknown == RankedQuery([], 0, 0.0, converged=True)
    assert_scores_close(rotated.scores, {2: 4 / 7, 3: 2 / 7, 1: 1 / 7}, 1e-12)


def test_case_5_scale_of_the_seeds_does_not_matter() -> None:
    one, ten = rank(K7.edges, {"A": 3, "D": 1}, {"A": 30, "D": 10}, direction="both")
    assert one == ten


def test_case_6_all_zero_seeds_are_no_seeds() -> None:
    (query,) = rank(K10.edges, {1: 0.0, 2: 0.0})
    assert query.ranking == []


@pytest.mark.parametrize(
    ("rule", "b", "c"), [("sum", 1 / 6, 1 / 6), ("max", 1 / 8, 5 / 24), ("mean", 1 / 9, 2 / 9), ("min", 2 / 21, 5 / 21)]
)
def test_case_8_duplicate_rules(rule: str, b: float, c: float) -> None:
    edges = (("a", "b", 2.0), ("a", "b", 3.0), ("a", "c", 5.0), ("b", "a", 1.0), ("c", "a", 1.0))
    (query,) = rank(edges, {"a": 1}, duplicate_edges=rule)
    assert_scores_close(query.scores, {"a": 2 / 3, "b": b, "c": c}, 1e-12)
    assert kernel_graph(edges).adjacency.merged_duplicates == 1


@pytest.mark.parametrize("rule", ["max", "min", "mean"])
def test_case_8_unweighted_duplicates_collapse(rule: str) -> None:
    edges = (("a", "b"), ("a", "b"), ("a", "c"), ("b", "a"), ("c", "a"))
    (query,) = rank(edges, {"a": 1}, damping=0.85, duplicate_edges=rule)
    assert query.scores["b"] == query.scores["c"] == pytest.approx(0.229730, abs=1e-6)


def test_case_10_ids_that_look_like_numbers_stay_apart() -> None:
    (query,) = rank((("007", "a"), ("7", "b")), {"007": 1}, damping=0.85)
    assert_scores_close(query.scores, {"007": 20 / 37, "a": 17 / 37}, 1e-12)


def test_case_13_gaps_between_ids_are_no_nodes() -> None:
    base = 10**15
    edges = ((base + 9001, base + 9002), (base + 9002, base + 9003))
    assert kernel_graph(edges).adjacency.by_source.nodes == 3
    (query,) = rank(edges, {base + 9001: 1}, damping=0.85)
    assert_scores_close({node - base - 9000: score for node, score in query.ranking}, K11.expected, 1e-12)


def test_case_18_two_seeds_on_the_cycle() -> None:
    (query,) = rank(K10.edges, {1: 1, 2: 1})
    assert_scores_close(query.scores, {1: 5 / 14, 2: 3 / 7, 3: 3 / 14}, 1e-12)


def test_case_19_weight_zero_is_no_edge() -> None:
    (query,) = rank((("a", "b", 0.0), ("a", "c", 1.0)), {"a": 1}, damping=0.85)
    assert_scores_close(query.scores, {"a": 20 / 37, "c": 17 / 37}, 1e-12)
    assert "b" not in query.scores
    (dangling,) = rank((("a", "b", 0.0), ("b", "a", 1.0)), {"a": 1}, damping=0.85)
    assert dangling.ranking == [("a", 1.0)]


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("block_size", [1, 64])
def test_case_20_ties_at_the_cut(block_size: int, precision: str) -> None:
    for edges in (STAR, STAR[::-1], STAR[2:] + STAR[:2]):
        for query in rank(
            edges, *[{"A": 1}] * 3, k=3, excluded=[{"A"}] * 3, block_size=block_size, precision=precision
        ):
            assert [node for node, _ in query.ranking] == ["b", "c", "d"]
            assert_scores_close(query.scores, dict.fromkeys("bcd", 1 / 15), 1e-7)
    (numeric,) = rank(((1, 10), (1, 9), (1, 2)), {1: 1}, excluded=[{1}])
    assert [node for node, _ in numeric.ranking] == [2, 9, 10]


def test_case_35_weights_share_the_mass() -> None:
    edges = (("A", "B", 9.0), ("A", "C", 1.0), ("B", "A", 1.0), ("C", "A", 1.0))
    (query,) = rank(edges, {"A": 1}, damping=0.85)
    assert_scores_close(query.scores, {"A": 20 / 37, "B": 153 / 370, "C": 17 / 370}, 1e-12)


@pytest.mark.parametrize(
    ("direction", "expected"),
    [
        ("out", {"C": 1.0}),
        ("in", {"C": 4 / 7, "B": 2 / 7, "A": 1 / 7}),
        ("both", {"C": 7 / 12, "B": 1 / 3, "A": 1 / 12}),
    ],
)
def test_case_36_direction(direction: str, expected: dict[str, float]) -> None:
    (query,) = rank((("A", "B"), ("B", "C")), {"C": 1}, direction=direction)
    assert_scores_close(query.scores, expected, 1e-12)
    assert set(query.scores) == set(expected)


def test_case_46_filters_apply_before_the_cut() -> None:
    seen, everything = rank(STAR, {"A": 1}, {"A": 1}, k=3, excluded=[set("Abc"), set("Abcdef")])
    assert [node for node, _ in seen.ranking] == ["d", "e", "f"]
    assert everything.ranking == []
    (eligible,) = rank(STAR, {"A": 1}, k=2, eligible={"f", "c", "e"})
    assert [node for node, _ in eligible.ranking] == ["c", "e"]
    (above,) = rank(STAR, {"A": 1}, k=9, min_score=0.07)
    assert [node for node, _ in above.ranking] == ["A"]


def test_case_47_k_above_the_number_of_candidates() -> None:
    (query,) = rank(K2.edges, K2.seeds, damping=0.85, k=10)
    assert [node for node, _ in query.ranking] == ["A", "B", "C", "D"]
    assert query.scores["C"] == query.scores["D"]


def test_case_48_scores_belong_to_their_labels() -> None:
    (query,) = rank((("z", "y"), ("y", "x")), {"z": 1}, damping=0.85)
    assert [node for node, _ in query.ranking] == ["z", "y", "x"]
    assert_scores_close(query.scores, {"z": 0.388727, "y": 0.330418, "x": 0.280855}, 1e-6)


def test_case_49_two_sources_sum_to_one() -> None:
    (query,) = rank(K7.edges, {"A": 1, "D": 1}, direction="both")
    assert_scores_close(query.scores, {"A": 0.3, "B": 0.2, "C": 0.2, "D": 0.3}, 1e-12)


def test_case_50_degenerate_graphs() -> None:
    (no_edges,) = rank((), {1: 1})
    assert no_edges.ranking == []
    (loop,) = rank(((1, 1),), {1: 1}, direction="both")
    assert loop.ranking == [(1, 1.0)]
    assert rank(K10.edges) == []


def test_case_51_isolated_nodes() -> None:
    alone, mixed = rank(((1, 2), (2, 1)), {3: 1}, {3: 1, 1: 1}, nodes=(1, 2, 3))
    assert alone.ranking == [(3, 1.0)]
    assert_scores_close(mixed.scores, {1: 4 / 9, 3: 1 / 3, 2: 2 / 9}, 1e-12)


def test_case_52_self_loops_are_kept_and_counted_once() -> None:
    (query,) = rank(((1, 1), (1, 2)), {1: 1})
    assert_scores_close(query.scores, {1: 4 / 5, 2: 1 / 5}, 1e-12)
    (cycle,) = rank(K5.edges, K5.seeds, damping=0.85)
    assert_scores_close(cycle.scores, K5.expected, 1e-12)
    (undirected,) = rank(K9.edges, K9.seeds, direction="both")
    assert_scores_close(undirected.scores, {"a": 9 / 16, "b": 3 / 8, "c": 1 / 16}, 1e-12)


def test_case_69_damping_and_restart_are_not_swapped() -> None:
    right, wrong = (rank(K11.edges, {1: 1}, damping=damping)[0].scores[1] for damping in (0.85, 0.15))
    assert right == pytest.approx(0.388727, abs=1e-6)
    assert wrong == pytest.approx(0.852878, abs=1e-6)


@pytest.mark.parametrize("scale", [1.0, 1e39, 1e-310, 2.0**-1074, 1e307])
def test_weights_of_any_size_share_alike(scale: float) -> None:
    edges = (("a", "b", 3 * scale), ("a", "c", scale), ("b", "a", scale), ("c", "a", 2 * scale))
    (query,) = rank(edges, {"a": 1})
    assert_scores_close(query.scores, {"a": 2 / 3, "b": 1 / 4, "c": 1 / 12}, 1e-12)


def test_tiny_weight_beside_a_huge_one_reaches_nothing_and_breaks_nothing() -> None:
    (query,) = rank((("a", "b", 1e39), ("a", "c", 1e-310)), {"a": 1})
    assert_scores_close(query.scores, {"a": 2 / 3, "b": 1 / 3}, 1e-12)


def test_huge_weight_times_huge_type_weight() -> None:
    edges = (("a", "b", 1e307, "x"), ("a", "c", 1e307, "y"))
    (query,) = rank(edges, {"a": 1}, type_weights={"x": 3e300, "y": 1e300})
    assert_scores_close(query.scores, {"a": 2 / 3, "b": 1 / 4, "c": 1 / 12}, 1e-12)
