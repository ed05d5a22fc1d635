"""A slow, obvious definition of hybrid scores: dictionaries and exact fractions, one query at a time."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from seedrank.testing.toys import Edge


@dataclass(frozen=True)
class ReferenceHybrid:
    """A candidate with the three terms of its score."""

    node: Any
    semantic: Fraction
    edge: Fraction
    centrality: Fraction

    @property
    def score(self) -> Fraction:
        """The sum."""
        return self.semantic + self.edge + self.centrality


def reference_hybrid(
    edges: Sequence[Edge],
    hits: Sequence[tuple[Any, float, float | None]],
    *,
    depth: int,
    include_expanded: bool = False,
    edge_bonus: float = 0.1,
    centrality_bonus: float = 0.1,
    direction: Literal["out", "in", "both"] = "out",
    type_weights: Mapping[Any, float] | None = None,
    unreturnable: Collection[Any] = (),
) -> list[ReferenceHybrid]:
    """Rank the hits of one query, and what is around them.

    Parameters
    ----------
    edges : sequence of (src, dst, weight, type)
        Each (src, dst, type) at most once, weights > 0.
    hits : sequence of (node, semantic score, retriever weight)
        A retriever weight of None is 1, one below 0 is 0. Of a repeated node the largest product counts.
    depth : int
        0: the semantic score alone.
    include_expanded : bool
        Whether nodes that are no hits are candidates.
    edge_bonus, centrality_bonus : float
    direction : "out", "in" or "both"
        In which direction steps follow edges.
    type_weights : mapping, optional
        Edge type → weight, 1 for those that are not there; edges of weight 0 are none.
    unreturnable : collection of ids
        Not returned, but nodes of the subgraph like others.

    Returns
    -------
    list of ReferenceHybrid
        Best first, ties by id.
    """
    semantic: dict[Any, Fraction] = {}
    for node, score, retriever_weight in hits:
        value = Fraction(score) * max(Fraction(1 if retriever_weight is None else retriever_weight), Fraction(0))
        semantic[node] = max(value, semantic.get(node, value))
    followed = [
        (edge[0], edge[1], Fraction(edge[2]) * Fraction((type_weights or {}).get(edge[3], 1.0))) for edge in edges
    ]
    followed = [edge for edge in followed if edge[2] > 0]
    inside = set(semantic)
    for _ in range(depth):
        ahead = {target for source, target, _ in followed if source in inside} if direction != "in" else set()
        back = {source for source, target, _ in followed if target in inside} if direction != "out" else set()
        inside |= ahead | back
    edge_sums = dict.fromkeys(inside, Fraction(0))
    degrees = dict.fromkeys(inside, 0)
    for source, target, weight in followed if depth else ():
        if source in inside and target in inside:
            for end in {source, target}:
                edge_sums[end] += weight
                degrees[end] += 1
    others = len(inside) - 1
    found = [
        ReferenceHybrid(
            node=node,
            semantic=semantic.get(node, Fraction(0)),
            edge=Fraction(edge_bonus) * edge_sums[node],
            centrality=Fraction(centrality_bonus) * Fraction(degrees[node], others) if others else Fraction(0),
        )
        for node in (inside if include_expanded else semantic)
        if node not in unreturnable
    ]
    return sorted(found, key=lambda candidate: (-candidate.score, candidate.node))
