"""A slow, obvious definition of fusion: lists of ids, exact fractions, one query at a time."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal


@dataclass(frozen=True)
class ReferenceHit:
    """One entry of a list; without a rank its position follows from the score."""

    node: Any
    score: float
    rank: int | None = None


def reference_ranks(hits: Sequence[ReferenceHit], *, lower_is_better: bool = False) -> dict[Any, int]:
    """Best position of every node of a list, from 1.

    Parameters
    ----------
    hits : sequence of ReferenceHit
        In any order; a node may occur several times.
    lower_is_better : bool
        Whether the scores are distances.

    Returns
    -------
    dict
        Node → position. Without given ranks hits stand by score, best first, ties by id, and a repeated hit occupies
        every position that it stands at.
    """
    ordered = sorted(hits, key=lambda hit: (hit.score if lower_is_better else -hit.score, hit.node))
    ranks: dict[Any, int] = {}
    for position, hit in enumerate(ordered, start=1):
        rank = position if hit.rank is None else hit.rank
        ranks[hit.node] = min(rank, ranks.get(hit.node, rank))
    return ranks


def reference_min_max(hits: Sequence[ReferenceHit], *, lower_is_better: bool = False) -> dict[Any, Fraction]:
    """Score of every node of a list between 0 (the worst) and 1 (the best); 1 for all when all are equal."""
    goodness = [-Fraction(hit.score) if lower_is_better else Fraction(hit.score) for hit in hits]
    values: dict[Any, Fraction] = {}
    for hit, good in zip(hits, goodness, strict=True):
        spread = max(goodness) - min(goodness)
        value = (good - min(goodness)) / spread if spread else Fraction(1)
        values[hit.node] = max(value, values.get(hit.node, value))
    return values


def reference_fusion(
    lists: Mapping[str, Sequence[ReferenceHit]],
    *,
    rule: Literal["rrf", "weighted"] = "rrf",
    rrf_k: int = 60,
    weights: Mapping[str, float] | None = None,
    lower_is_better: Collection[str] = (),
    excluded: Collection[Any] = (),
) -> list[tuple[Any, Fraction, dict[str, Fraction]]]:
    """Fuse the lists of one query.

    Parameters
    ----------
    lists : mapping from the name of a list to its hits.
    rule : "rrf", Σ weight / (rrf_k + rank), or "weighted", Σ weight · min-max score.
    rrf_k : int
    weights : mapping from names to weights; 1 for names that are not there.
    lower_is_better : names of the lists whose scores are distances.
    excluded : ids that are not returned; they keep their positions.

    Returns
    -------
    list of (id, score, contribution of every list that has it)
        Best first, ties by id. A node of which only lists of weight 0 know is none.
    """
    contributions: dict[Any, dict[str, Fraction]] = {}
    heard = set()
    for name, hits in lists.items():
        weight = Fraction((weights or {}).get(name, 1.0))
        distances = name in lower_is_better
        if rule == "rrf":
            ranks = reference_ranks(hits, lower_is_better=distances)
            values = {node: 1 / Fraction(rrf_k + rank) for node, rank in ranks.items()}
        else:
            values = reference_min_max(hits, lower_is_better=distances)
        for node, value in values.items():
            contributions.setdefault(node, {})[name] = weight * value
            if weight:
                heard.add(node)
    found = [
        (node, sum(contributions[node].values(), Fraction(0)), contributions[node]) for node in heard - {*excluded}
    ]
    return sorted(found, key=lambda row: (-row[1], row[0]))
