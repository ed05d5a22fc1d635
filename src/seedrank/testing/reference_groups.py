"""A slow, obvious definition of rankings of groups: lists of ids, one query at a time."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal

from seedrank.testing.reference_fusion import ReferenceHit, reference_fusion

GroupedNodes = list[tuple[Any, Any, list[tuple[Any, Any]]]]
"""(best member, score, [(member, its score), …]) of each group."""


def reference_collapse(ranking: Sequence[tuple[Any, Any]], groups: Mapping[Any, Any], *, k: int) -> GroupedNodes:
    """Rank groups by their best member.

    Parameters
    ----------
    ranking : (node, score), best first.
    groups : node → group; a node without one, or with None, is a group of its own.
    k : groups to keep.
    """
    members: dict[Any, list[tuple[Any, Any]]] = {}
    for node, score in ranking:
        members.setdefault(reference_group(node, groups), []).append((node, score))
    return [(rows[0][0], rows[0][1], rows) for rows in list(members.values())[:k]]


def reference_group(node: Any, groups: Mapping[Any, Any]) -> tuple[str, Any]:
    """What the members of a group have in common."""
    return ("alone", node) if groups.get(node) is None else ("group", groups[node])


def reference_group_fusion(
    lists: Mapping[str, Sequence[ReferenceHit]],
    groups: Mapping[Any, Any],
    *,
    k: int,
    rule: Literal["rrf", "weighted"] = "rrf",
    rrf_k: int = 60,
    weights: Mapping[str, float] | None = None,
    lower_is_better: Collection[str] = (),
    excluded: Collection[Any] = (),
) -> list[tuple[Any, Fraction, list[Any]]]:
    """Fuse the lists of one query into a ranking of groups.

    Parameters
    ----------
    lists, rule, rrf_k, weights, lower_is_better, excluded
        As in `seedrank.testing.reference_fusion.reference_fusion`.
    groups, k : as in `reference_collapse`.

    Returns
    -------
    list of (best member, score of the group, members)
        Best first, ties by the id of the best member.
    """
    settings: dict[str, Any] = {"rule": rule, "rrf_k": rrf_k, "weights": weights, "lower_is_better": lower_is_better}
    ranking = [(node, score) for node, score, _ in reference_fusion(lists, excluded=excluded, **settings)]
    members = {
        reference_group(best, groups): [node for node, _ in rows]
        for best, _, rows in reference_collapse(ranking, groups, k=len(ranking))
    }
    collapsed = {
        name: _collapsed(hits, groups, members, distances=name in lower_is_better) for name, hits in lists.items()
    }
    fused = reference_fusion(collapsed, **settings)
    return [(best, score, members[reference_group(best, groups)]) for best, score, _ in fused[:k]]


def _collapsed(
    hits: Sequence[ReferenceHit], groups: Mapping[Any, Any], members: Mapping[Any, Sequence[Any]], *, distances: bool
) -> list[ReferenceHit]:
    """One hit for every group of a list, by the id of the best member that the group has in the fusion."""
    found: dict[Any, ReferenceHit] = {}
    for hit in sorted(hits, key=lambda hit: (hit.rank or 0, hit.score if distances else -hit.score, hit.node)):
        group = reference_group(hit.node, groups)
        if hit.node in members.get(group, ()) and group not in found:
            found[group] = ReferenceHit(members[group][0], hit.score, len(found) + 1)
    return list(found.values())
