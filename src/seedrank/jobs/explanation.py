"""What an explanation holds."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class SeedContribution:
    """What a seed brings to a score: its id, its share of the seeds, its part of the score."""

    seed: Any
    weight: float
    contribution: float


@dataclass(frozen=True)
class ScoreTerm:
    """A term of a score: the list or bonus it is from, its part of the score, the node's position in the list.

    ``rank`` is None where the rule of the fusion does not look at positions, or the term is no list.
    """

    name: str
    contribution: float
    rank: int | None


@dataclass(frozen=True)
class Explanation:
    """Why a node is where it is among the candidates of a query.

    Attributes
    ----------
    query, node : the ids, in the types of the inputs.
    method, status : what ran, and how the query ended, without time limits.
    plan, trace : the plan that the method is of, and why it was chosen (``--method auto`` only, else None).
    restart : restart probability of ppr and walks, else None.
    candidate : whether the node is among the first ``top_k``.
    rank : position among the nodes that the query may return; None if it may not return the node, or has no score.
    returnable : number of nodes that the query may return.
    rank_of_all, scored : position among all nodes that have a score, seeds and exclusions included, and their number.
        Before vectors rank again. Where hits are ranked, filters and exclusions are part of the score, and these are
        the ones of the nodes that the query may return.
    score : None when the method gives the node none.
    terms : of the score, the largest first, where lists were fused or bonuses added, else None.
    hops, anchor : of the path; None when no path leads to the node. A walk's hops are its fewest steps.
    path : edges from the anchor to the node: src, dst, type, weight, reversed.
    contributions : of every seed to the score, the largest first (ppr that is not fused, else None).
    contribution_bound : how far their sum may be from ``score``.
    visit_count : as in ``candidates`` (None for ppr).
    visited_nodes, visited_edges, budget_hit, truncated, iterations, error_bound : as in ``queries``.
    """

    query: Any
    node: Any
    method: str
    status: str
    plan: str | None
    trace: dict[str, Any] | None
    restart: float | None
    candidate: bool
    rank: int | None
    returnable: int
    rank_of_all: int | None
    scored: int
    score: float | None
    terms: list[ScoreTerm] | None
    hops: int | None
    anchor: Any
    path: list[dict[str, Any]] | None
    contributions: list[SeedContribution] | None
    contribution_bound: float | None
    visit_count: int | None
    visited_nodes: int | None
    visited_edges: int | None
    budget_hit: str | None
    truncated: bool | None
    iterations: int | None
    error_bound: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as plain values, for JSON."""
        return asdict(self)
