"""Cases met in the field, through the whole job: what the scores, the order and the statuses must be.

The numbers are those of the case list; expected values are exact fractions. Runs are float64 with a truncation bound of
1e-12, so that `EXACT` leaves no room for a wrong rule. Files, ids and failures are in ``test_cases_of_runs.py``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import seedrank
from seedrank.errors import ConfigError, InputDataError
from seedrank.testing.parity import assert_scores_close
from seedrank.testing.toys import K2, K3, K5, K6, K7, K10, K11, K12, TOYS, ToyGraph

EXACT = 1e-11
PRECISE: dict[str, Any] = {
    "precision": "float64",
    "tolerance": 1e-12,
    "max_iterations": 10_000,
    "include_seeds": True,
}
STAR = (("A", "b"), ("A", "c"), ("A", "d"), ("A", "e"), ("A", "f"))


@dataclass(frozen=True)
class Outcome:
    """A finished run: ranking and row of every query, by query id."""

    run: seedrank.Run
    rankings: dict[Any, list[tuple[Any, Any]]]
    rows: dict[Any, dict[str, Any]]

    @property
    def scores(self) -> dict[Any, float]:
        """Node → score of the query called ``q``."""
        return dict(self.rankings["q"])

    @property
    def order(self) -> list[Any]:
        """Nodes of the query called ``q``, best first."""
        return [node for node, _ in self.rankings["q"]]


Solve = Callable[..., Outcome]


@pytest.fixture
def solve(tmp_path: Path) -> Solve:
    """Score {query: {node: weight}} (or {node: weight} of one query ``q``) on edge tuples."""
    numbers = itertools.count()

    def run_job(edges: Any, seeds: Mapping[Any, Any], **options: Any) -> Outcome:
        sets = seeds if all(isinstance(value, Mapping) for value in seeds.values()) else {"q": seeds}
        hits = [(query, node, weight) for query, weights in sets.items() for node, weight in weights.items()]
        table = pa.table({name: [hit[i] for hit in hits] for i, name in enumerate(("query_id", "node_id", "weight"))})
        graph = edges if isinstance(edges, pa.Table) else _edge_table(edges)
        out = tmp_path / f"run-{next(numbers)}"
        run = seedrank.score(graph, queries=table, out=out, **{**PRECISE, **options})
        return outcome_of(run)

    return run_job


def outcome_of(run: seedrank.Run) -> Outcome:
    rows = {row["query_id"]: row for row in run.queries.to_arrow().to_pylist()}
    rankings: dict[Any, list[tuple[Any, Any]]] = {query: [] for query in rows}
    for row in run.candidates.to_arrow().to_pylist():
        rankings[row["query_id"]].append((row["node_id"], row["score"]))
        assert row["rank"] == len(rankings[row["query_id"]])
    return Outcome(run, rankings, rows)


def _edge_table(edges: Any) -> pa.Table:
    names = ("src", "dst", "weight", "type")
    return pa.table({name: list(column) for name, column in zip(names, zip(*edges, strict=True), strict=False)})


def _options_of(toy: ToyGraph) -> dict[str, Any]:
    return {
        "damping": toy.damping,
        "direction": toy.direction,
        "dangling": toy.dangling,
        "duplicate_edges": toy.duplicate_edges,
        "type_weight": toy.type_weights or {},
    }


@pytest.mark.parametrize("toy", TOYS, ids=lambda toy: toy.name)
def test_known_answers(solve: Solve, toy: ToyGraph) -> None:
    result = solve(toy.edges, toy.seeds, **_options_of(toy))
    assert set(result.scores) == set(toy.expected)
    assert_scores_close(result.scores, toy.expected, EXACT)
    assert result.order == sorted(toy.expected, key=lambda node: (-toy.expected[node], node))
    assert result.rows["q"]["status"] == "ok"
    assert 0 < result.rows["q"]["error_bound"] < EXACT


def test_case_01_dangling_mass_returns_to_the_seeds(solve: Solve) -> None:
    assert solve(K3.edges, K3.seeds, damping=0.85).rankings["q"] == [("C", pytest.approx(1, abs=EXACT))]
    uniform = solve(K2.edges, K2.seeds, damping=0.85, dangling="uniform")
    assert uniform.scores["A"] == pytest.approx(0.245621, abs=1e-6)
    assert uniform.scores["B"] == pytest.approx(0.304399, abs=1e-6)
    assert uniform.order[0] == "B"
    assert solve(K2.edges, K2.seeds, damping=0.85).order == ["A", "B", "C", "D"]


def test_case_02_mass_of_a_sink_is_not_lost(solve: Solve) -> None:
    result = solve([("a", "b"), ("b", "c")], {"a": 1}, damping=0.85)
    assert_scores_close(result.scores, dict(zip("abc", K11.expected.values(), strict=True)), EXACT)
    assert sum(result.scores.values()) == pytest.approx(1, abs=EXACT)


def test_case_04_seeds_that_are_not_in_the_graph(solve: Solve) -> None:
    result = solve(K10.edges, {"q1": {1: 1, 99: 1}, "q2": {99: 1}, "q3": {2: 1}}, damping=0.5)
    assert_scores_close(dict(result.rankings["q1"]), K10.expected, EXACT)
    assert result.rankings["q2"] == []
    rotated = {2: Fraction(4, 7), 3: Fraction(2, 7), 1: Fraction(1, 7)}
    assert_scores_close(dict(result.rankings["q3"]), rotated, EXACT)
    found = {
        query: (row["status"], row["seeds_given"], row["seeds_missing"], row["candidates"])
        for query, row in result.rows.items()
    }
    assert found == {"q1": ("ok", 2, 1, 3), "q2": ("no_valid_seeds", 1, 1, 0), "q3": ("ok", 1, 0, 3)}
    assert result.rows["q2"]["iterations"] is None
    assert result.rows["q2"]["error_bound"] is None


def test_case_05_partial_personalization_is_zero_elsewhere_and_scale_free(solve: Solve) -> None:
    small = solve(K7.edges, K7.seeds, damping=0.5, direction="both")
    large = solve(K7.edges, {"A": 30, "D": 10}, damping=0.5, direction="both")
    assert_scores_close(large.scores, K7.expected, EXACT)
    assert [(node, round(score, 6)) for node, score in small.rankings["q"]] == [
        (node, round(score, 6)) for node, score in large.rankings["q"]
    ]


def test_case_06_seed_weights_that_are_all_zero(solve: Solve) -> None:
    result = solve(K10.edges, {1: 0, 2: 0}, damping=0.5)
    assert result.rankings["q"] == []
    row = result.rows["q"]
    assert (row["status"], row["seeds_given"], row["seeds_missing"]) == ("no_valid_seeds", 2, 0)


@pytest.mark.parametrize(("query", "seeds"), [("q2", {1: -1, 2: 2}), ("q3", {1: float("nan"), 2: 2})])
def test_case_06_seed_weights_negative_or_nan(solve: Solve, query: str, seeds: dict[int, float]) -> None:
    with pytest.raises(InputDataError, match=rf"(?s){query}.*node_id.*1") as caught:
        solve(K10.edges, {"q1": {1: 1.0}, query: seeds})
    assert caught.value.exit_code == 3


@pytest.mark.parametrize(
    ("rule", "b", "c"),
    [
        ("sum", Fraction(1, 6), Fraction(1, 6)),
        ("max", Fraction(1, 8), Fraction(5, 24)),
        ("min", Fraction(2, 21), Fraction(5, 21)),
        ("mean", Fraction(1, 9), Fraction(2, 9)),
    ],
)
def test_case_08_duplicate_edges(solve: Solve, rule: str, b: Fraction, c: Fraction) -> None:
    rows = [("a", "b", 2.0), ("a", "b", 3.0), ("a", "c", 5.0), ("b", "a", 1.0), ("c", "a", 1.0)]
    for order in (rows, rows[::-1]):
        result = solve(order, {"a": 1}, damping=0.5, duplicate_edges=rule)
        assert_scores_close(result.scores, {"a": Fraction(2, 3), "b": b, "c": c}, EXACT)
        assert result.run.manifest.graph is not None
        assert result.run.manifest.graph.merged_duplicates == 1


def test_case_08_unweighted_duplicates_collapse_to_one_under_max(solve: Solve) -> None:
    collapsed = solve(K6.edges, K6.seeds, damping=0.85, duplicate_edges="max").scores
    assert_scores_close(collapsed, {"a": Fraction(20, 37), "b": Fraction(17, 74), "c": Fraction(17, 74)}, EXACT)


def test_case_19_zero_weight_is_no_edge(solve: Solve) -> None:
    result = solve([("a", "b", 0.0), ("a", "c", 1.0)], {"a": 1}, damping=0.85)
    assert set(result.scores) == {"a", "c"}
    assert_scores_close(result.scores, {"a": Fraction(20, 37), "c": Fraction(17, 37)}, EXACT)
    dangling = solve([("a", "b", 0.0), ("b", "a", 1.0)], {"a": 1}, damping=0.85)
    assert dangling.rankings["q"] == [("a", pytest.approx(1, abs=EXACT))]


def test_case_19_null_weight(solve: Solve) -> None:
    edges = [("a", "b", 1.0), ("a", "c", None)]
    with pytest.raises(InputDataError, match=r"(?s)'weight'.*null.*fix:"):
        solve(edges, {"a": 1})
    dropped = solve(edges, {"a": 1}, damping=0.5, null_weight="drop").scores
    assert set(dropped) == {"a", "b"}
    assert_scores_close(dropped, {"a": Fraction(2, 3), "b": Fraction(1, 3)}, EXACT)
    one = solve(edges, {"a": 1}, damping=0.5, null_weight="one").scores
    assert_scores_close(one, {"a": Fraction(2, 3), "b": Fraction(1, 6), "c": Fraction(1, 6)}, EXACT)


def test_case_19_negative_weight(solve: Solve) -> None:
    edges = [(1, 2, 1.0), (2, 3, 2.0), (3, 1, 3.0), (2, 1, -1.0)]
    with pytest.raises(InputDataError, match=r"(?s)'weight'.*negative.*-1"):
        solve(edges, {1: 1})
    dropped = solve(edges, {1: 1}, damping=0.5, on_bad_rows="drop").scores
    assert_scores_close(dropped, K10.expected, EXACT)


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("block_size", [1, 64])
@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4), (4, 2, 0, 3, 1), (3, 4, 1, 0, 2)])
def test_case_20_ties_at_the_cut(solve: Solve, precision: str, block_size: int, order: tuple[int, ...]) -> None:
    result = solve(
        [STAR[i] for i in order],
        {"q": {"A": 1}, "other": {"A": 1}},
        damping=0.5,
        top_k=3,
        include_seeds=False,
        precision=precision,
        block_size=block_size,
    )
    assert result.order == ["b", "c", "d"]
    assert_scores_close(result.scores, dict.fromkeys("bcd", Fraction(1, 15)), 1e-6)
    assert len(set(result.scores.values())) == 1


def test_case_20_integer_ids_tie_in_numeric_order(solve: Solve) -> None:
    assert solve([(1, 10), (1, 9), (1, 2)], {1: 1}, include_seeds=False).order == [2, 9, 10]
    assert solve([(1, 10), (1, 9), (1, 2)], {1: 1}, include_seeds=False, top_k=2).order == [2, 9]
    assert solve([("1", "10"), ("1", "9"), ("1", "2")], {"1": 1}, include_seeds=False).order == ["10", "2", "9"]


def test_case_35_weights_share_the_walk(solve: Solve) -> None:
    result = solve([("A", "B", 9), ("A", "C", 1), ("B", "A", 1), ("C", "A", 1)], {"A": 1}, damping=0.85)
    expected = {"A": Fraction(20, 37), "B": Fraction(153, 370), "C": Fraction(17, 370)}
    assert_scores_close(result.scores, expected, EXACT)


def test_case_36_edge_types(solve: Solve) -> None:
    likes = {"a": Fraction(2, 3), "c": Fraction(1, 3)}
    for options in ({"edge_type": ["likes"]}, {"type_weight": {"follows": 0}}):
        kept = solve(K12.edges, K12.seeds, damping=0.5, **options).scores
        assert set(kept) == {"a", "c"}
        assert_scores_close(kept, likes, EXACT)
    # a→b 2·.25 and a→c .5: equal shares.
    equal = solve(K12.edges, K12.seeds, damping=0.5, type_weight={"follows": 0.25}).scores
    assert_scores_close(equal, {"a": Fraction(2, 3), "b": Fraction(1, 6), "c": Fraction(1, 6)}, EXACT)


@pytest.mark.parametrize("option", [{"edge_type": ["liked"]}, {"type_weight": {"liked": 2}}, {"node_type": ["liked"]}])
def test_case_36_unknown_type_name(solve: Solve, option: dict[str, Any]) -> None:
    with pytest.raises(InputDataError, match="liked" if "node_type" not in option else "node type"):
        solve(K12.edges, K12.seeds, **option)


@pytest.mark.parametrize(
    ("direction", "expected"),
    [
        ("out", {"C": Fraction(1)}),
        ("in", {"C": Fraction(4, 7), "B": Fraction(2, 7), "A": Fraction(1, 7)}),
        ("both", {"C": Fraction(7, 12), "B": Fraction(1, 3), "A": Fraction(1, 12)}),
    ],
)
def test_case_36_direction(solve: Solve, direction: str, expected: dict[str, Fraction]) -> None:
    scores = solve([("A", "B"), ("B", "C")], {"C": 1}, damping=0.5, direction=direction).scores
    assert set(scores) == set(expected)
    assert_scores_close(scores, expected, EXACT)


def test_case_46_filters_apply_before_the_cut(solve: Solve) -> None:
    seen = pa.table({"query_id": ["q", "q", "else"], "node_id": ["b", "c", "d"]})
    star: dict[str, Any] = {"damping": 0.5, "top_k": 3, "include_seeds": False}
    assert solve(STAR, {"A": 1}, exclude=seen, **star).order == ["d", "e", "f"]
    everywhere = pa.table({"node_id": ["b", "c"]})
    assert solve(STAR, {"A": 1}, exclude=everywhere, **star).order == ["d", "e", "f"]
    every_leaf = pa.table({"query_id": ["q"] * 5, "node_id": list("bcdef")})
    none_left = solve(STAR, {"A": 1}, exclude=every_leaf, **star)
    assert none_left.rankings["q"] == []
    assert (none_left.rows["q"]["status"], none_left.rows["q"]["candidates"]) == ("ok", 0)


def test_case_46_node_types_apply_before_the_cut(solve: Solve) -> None:
    nodes = pa.table({"id": list("Abcdef"), "type": ["hub", "x", "x", "y", "y", "y"]})
    star: dict[str, Any] = {"damping": 0.5, "top_k": 3, "nodes": nodes}
    assert solve(STAR, {"A": 1}, node_type=["y"], **star).order == ["d", "e", "f"]
    assert solve(STAR, {"A": 1}, node_type=["x", "hub"], **star).order == ["A", "b", "c"]


def test_case_46_filters_where_the_hub_is_not_the_first_id(solve: Solve) -> None:
    # The store puts z first, because it has the most edges; by id it is the last.
    edges = [("z", leaf) for leaf in "abcde"]
    nodes = pa.table({"id": list("edcbaz"), "type": ["y", "y", "x", "y", "x", "hub"]})
    star: dict[str, Any] = {"damping": 0.5, "nodes": nodes}
    assert solve(edges, {"z": 1}, node_type=["x"], **star).order == ["a", "c"]
    assert solve(edges, {"z": 1}, node_type=["hub", "y"], **star).order == ["z", "b", "d", "e"]
    assert solve(edges, {"z": 1}, node_type=["hub", "y"], include_seeds=False, **star).order == ["b", "d", "e"]
    seen = pa.table({"query_id": ["q", "q"], "node_id": ["b", "d"]})
    assert solve(edges, {"z": 1}, exclude=seen, **star).order == ["z", "a", "c", "e"]
    assert solve(edges, {"z": 1}, exclude=seen.select(["node_id"]), **star).order == ["z", "a", "c", "e"]


def test_case_46_min_score_is_inclusive(solve: Solve) -> None:
    scores = dict(zip((1, 2, 3), (2**-1, 2**-2, 2**-2), strict=True))
    # α .5 on a chain that ends in a loop: 1/2, 1/4, 1/4, exactly representable after enough iterations.
    result = solve([(1, 2), (2, 3), (3, 3)], {1: 1}, damping=0.5, min_score=0.25, tolerance=0, max_iterations=200)
    assert result.scores == scores
    assert solve([(1, 2), (2, 3), (3, 3)], {1: 1}, damping=0.5, min_score=0.2500001).order == [1]


def test_case_47_more_asked_than_there_is(solve: Solve) -> None:
    result = solve(K2.edges, K2.seeds, damping=0.85, top_k=10)
    assert result.order == ["A", "B", "C", "D"]
    assert result.scores["C"] == result.scores["D"]
    ranks = result.run.candidates.to_arrow().column("rank").to_pylist()
    assert ranks == [1, 2, 3, 4]


@pytest.mark.parametrize("k", [0, -1])
def test_case_47_top_k_must_be_positive(solve: Solve, k: int) -> None:
    with pytest.raises(ConfigError, match="top_k"):
        solve(K2.edges, K2.seeds, top_k=k)


def test_case_48_scores_go_with_their_ids(solve: Solve) -> None:
    result = solve([("z", "y"), ("y", "x")], {"z": 1}, damping=0.85)
    assert result.order == ["z", "y", "x"]
    assert_scores_close(result.scores, dict(zip("zyx", K11.expected.values(), strict=True)), EXACT)


def test_case_49_several_seeds_sum_to_one(solve: Solve) -> None:
    scores = solve(K7.edges, {"A": 1, "D": 1}, damping=0.5, direction="both").scores
    expected = {"A": Fraction(3, 10), "B": Fraction(1, 5), "C": Fraction(1, 5), "D": Fraction(3, 10)}
    assert_scores_close(scores, expected, EXACT)


def test_case_50_one_node_with_a_loop(solve: Solve) -> None:
    assert solve([(1, 1)], {1: 1}, damping=0.85).rankings["q"] == [(1, pytest.approx(1, abs=EXACT))]


def test_case_50_no_edges_and_no_queries(solve: Solve) -> None:
    nothing = pa.table({"src": pa.array([], pa.int64()), "dst": pa.array([], pa.int64())})
    empty = solve(nothing, {"q": {1: 1}})
    assert empty.rankings == {"q": []}
    assert (empty.rows["q"]["status"], empty.rows["q"]["seeds_missing"]) == ("no_valid_seeds", 1)
    assert empty.run.candidates.schema.names == ["query_id", "rank", "node_id", "score"]
    nodes = pa.table({"id": [1, 2]})
    only_nodes = solve(nothing, {"q": {2: 1}}, nodes=nodes)
    assert only_nodes.rankings["q"] == [(2, pytest.approx(1, abs=EXACT))]


def test_case_51_isolated_nodes(solve: Solve) -> None:
    nodes, edges = pa.table({"id": [1, 2, 3]}), [(1, 2), (2, 1)]
    alone = solve(edges, {3: 1}, nodes=nodes, damping=0.5)
    assert alone.rankings["q"] == [(3, pytest.approx(1, abs=EXACT))]
    mixed = solve(edges, {3: 1, 1: 1}, nodes=nodes, damping=0.5).scores
    assert_scores_close(mixed, {1: Fraction(4, 9), 3: Fraction(1, 3), 2: Fraction(2, 9)}, EXACT)


def test_case_52_self_loops(solve: Solve) -> None:
    assert_scores_close(solve(K5.edges, K5.seeds, damping=0.85).scores, K5.expected, EXACT)
    kept = solve([(1, 1), (1, 2)], {1: 1}, damping=0.5).scores
    assert_scores_close(kept, {1: Fraction(4, 5), 2: Fraction(1, 5)}, EXACT)


def test_case_69_damping_is_one_minus_restart(solve: Solve) -> None:
    damping = solve(K11.edges, K11.seeds, damping=0.85).scores
    assert_scores_close(damping, K11.expected, EXACT)
    assert_scores_close(solve(K11.edges, K11.seeds, restart=0.15).scores, K11.expected, EXACT)
    swapped = solve(K11.edges, K11.seeds, damping=0.15).scores
    assert swapped[1] == pytest.approx(0.852878, abs=1e-6)
