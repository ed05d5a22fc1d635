"""Metrics of rankings: by hand, against a plain loop, and against ir-measures as judge."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence

import ir_measures
import numpy as np
import pytest

from seedrank.kernels.ranking_metrics import METRICS, NEEDS_CUT, GoldRanks, ranking_metric

Ranking = Sequence[str]
Gold = Mapping[str, float]


def gold_ranks(rankings: Sequence[Ranking], gold: Sequence[Gold]) -> GoldRanks:
    entries = [
        (ranking.index(node) + 1 if node in ranking else 0, gain)
        for ranking, nodes in zip(rankings, gold, strict=True)
        for node, gain in nodes.items()
    ]
    return GoldRanks(
        offsets=np.cumsum([0, *map(len, gold)]),
        ranks=np.array([rank for rank, _ in entries], dtype=np.int64),
        gains=np.array([gain for _, gain in entries]),
    )


def slow(ranking: Ranking, gold: Gold, name: str, cut: int | None) -> float:
    """Walk down the ranking, once for each metric; a repeat keeps its place and counts once."""
    top = list(ranking)[:cut]
    seen: set[str] = set()
    at = [(place, node) for place, node in enumerate(top, 1) if node in gold and not (node in seen or seen.add(node))]  # type: ignore[func-returns-value]
    best = sorted(gold.values(), reverse=True)[:cut]
    ideal = sum(gain / math.log2(1 + place) for place, gain in enumerate(best, 1))
    return {
        "recall": len(at) / len(gold),
        "all": float(len(at) == len(gold)),
        "hit": float(bool(at)),
        "precision": len(at) / (cut or 1),
        "mrr": 1 / at[0][0] if at else 0.0,
        "map": sum(number / place for number, (place, _) in enumerate(at, 1)) / len(gold),
        "ndcg": sum(gold[node] / math.log2(1 + place) for place, node in at) / ideal,
    }[name]


def test_case_67_a_repeat_counts_once() -> None:
    gold = gold_ranks([list("aacb")], [{"a": 1.0, "b": 1.0}])
    assert ranking_metric(gold, "recall", 2).tolist() == [0.5]
    assert ranking_metric(gold, "recall", 4).tolist() == [1.0]
    assert ranking_metric(gold, "all", 3).tolist() == [0.0]
    assert ranking_metric(gold, "all", 4).tolist() == [1.0]
    assert ranking_metric(gold, "precision", 4).tolist() == [0.5]
    assert ranking_metric(gold, "map", None).tolist() == [(1 + 2 / 4) / 2]
    assert ranking_metric(gold, "ndcg", None) == pytest.approx(
        [(1 + 1 / math.log2(5)) / (1 + 1 / math.log2(3))], abs=1e-15
    )


def random_rankings(seed: int, *, queries: int = 60) -> tuple[list[list[str]], list[dict[str, float]]]:
    chance = random.Random(seed)  # noqa: S311  # test data
    nodes = [f"n{number:02}" for number in range(40)]
    rankings = [chance.sample(nodes, chance.randint(0, 30)) for _ in range(queries)]
    gold = [
        {node: float(chance.randint(1, 3)) for node in chance.sample(nodes, chance.randint(1, 8))} for _ in rankings
    ]
    return rankings, gold


@pytest.mark.parametrize(
    ("name", "cut"),
    [(name, cut) for name in METRICS for cut in (1, 2, 5, 10, 100, None) if cut is not None or name not in NEEDS_CUT],
)
def test_against_a_plain_loop(name: str, cut: int | None) -> None:
    rankings, gold = random_rankings(67)
    expected = [slow(ranking, nodes, name, cut) for ranking, nodes in zip(rankings, gold, strict=True)]
    found = ranking_metric(gold_ranks(rankings, gold), name, cut)
    assert found == pytest.approx(expected, abs=1e-12)
    assert found.min() >= 0
    assert found.max() <= 1 + 1e-12


JUDGED = {
    "recall@5": ir_measures.R @ 5,
    "recall@10": ir_measures.R @ 10,
    "hit@3": ir_measures.Success @ 3,
    "precision@5": ir_measures.P @ 5,
    "mrr": ir_measures.RR,
    "mrr@4": ir_measures.RR @ 4,
    "map": ir_measures.AP,
    "map@7": ir_measures.AP @ 7,
    "ndcg": ir_measures.nDCG,
    "ndcg@10": ir_measures.nDCG @ 10,
}


def test_against_ir_measures() -> None:
    rankings, gold = random_rankings(11)
    qrels = {f"q{number}": {node: int(gain) for node, gain in nodes.items()} for number, nodes in enumerate(gold)}
    run = {
        f"q{number}": {node: float(-place) for place, node in enumerate(ranking)}
        for number, ranking in enumerate(rankings)
    }
    ranks = gold_ranks(rankings, gold)
    judged: dict[str, dict[str, float]] = {str(measure): {} for measure in JUDGED.values()}
    for value in ir_measures.iter_calc(list(JUDGED.values()), qrels, run):
        judged[str(value.measure)][value.query_id] = value.value
    for label, measure in JUDGED.items():
        name, _, cut = label.partition("@")
        found = ranking_metric(ranks, name, int(cut) if cut else None)
        # The judge leaves out queries whose ranking is empty.
        expected = [judged[str(measure)].get(f"q{number}", 0.0) for number in range(len(rankings))]
        assert found == pytest.approx(expected, abs=1e-6), label


def test_no_queries() -> None:
    for name in METRICS:
        assert len(ranking_metric(gold_ranks([], []), name, 3)) == 0
