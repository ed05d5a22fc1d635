"""Slow, obvious definitions of walks and traversals: dictionaries of ids, one query at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from seedrank.testing.reference import reference_edges
from seedrank.testing.reference_random import reference_choice, reference_draws, reference_whole_weights
from seedrank.testing.toys import Edge

Ways = Literal["out", "in", "both"]


@dataclass
class ReferenceRecall:
    """What a method finds for one query, before any filter.

    Attributes
    ----------
    scores, hops, anchors, visits : dict
        By id of the visited node, the anchors included.
    visited_nodes, visited_edges : int
        Distinct nodes other than anchors; steps along edges.
    limit : str
        The limit that was met, or "".
    """

    scores: dict[Any, float] = field(default_factory=dict)
    hops: dict[Any, int] = field(default_factory=dict)
    anchors: dict[Any, Any] = field(default_factory=dict)
    visits: dict[Any, int] = field(default_factory=dict)
    visited_nodes: int = 0
    visited_edges: int = 0
    limit: str = ""


@dataclass(frozen=True)
class ReferenceLimits:
    """Limits of a query; None: none."""

    max_hops: int | None = None
    max_visited_nodes: int | None = None
    max_visited_edges: int | None = None


NO_LIMITS = ReferenceLimits()


def reference_choices(
    edges: Sequence[Edge], *, direction: Ways = "out", type_weights: Mapping[Any, float] | None = None
) -> dict[Any, list[tuple[Any, float]]]:
    """The edges that a walk can take from each node, in the order in which random numbers choose among them.

    Parameters
    ----------
    edges : sequence of tuples
        As in `seedrank.testing.reference.reference_edges`.
    direction : "out", "in" or "both"
        ``both``: successors, then predecessors; a self loop once.
    type_weights : mapping, optional
        Edge type → factor, at most 1; 1 for types that are not named; 0 removes.

    Returns
    -------
    dict
        Node id → (neighbour id, weight · type weight), by neighbour, then by type.
    """
    choices: dict[Any, list[tuple[Any, float]]] = defaultdict(list)
    reduced = sorted(reference_edges(edges).items(), key=lambda item: item[0])
    successors = [(source, target, kind, weight) for (source, target, kind), weight in reduced]
    predecessors = sorted((target, source, kind, weight) for source, target, kind, weight in successors)
    sides = {
        "out": successors,
        "in": predecessors,
        "both": successors + [edge for edge in predecessors if edge[0] != edge[1]],
    }
    for node, neighbor, kind, weight in sides[direction]:
        factor = (type_weights or {}).get(kind, 1.0)
        if factor:
            choices[node].append((neighbor, weight * factor))
    return choices


def reference_random_walk(
    edges: Sequence[Edge],
    anchors: Collection[Any],
    *,
    restart: float,
    steps: int,
    random_seed: int,
    query_key: int,
    anchor_keys: Mapping[Any, int],
    direction: Ways = "out",
    type_weights: Mapping[Any, float] | None = None,
    limits: ReferenceLimits = NO_LIMITS,
) -> ReferenceRecall:
    """Random walk with restart, every draw taken from its definition.

    Parameters
    ----------
    edges, direction, type_weights
        As in `reference_choices`.
    anchors : collection of ids
    restart : float
    steps : int
    random_seed, query_key : int
    anchor_keys : mapping
        Anchor id → key.
    limits : ReferenceLimits

    Returns
    -------
    ReferenceRecall
    """
    choices = reference_choices(edges, direction=direction, type_weights=type_weights)
    whole = {node: reference_whole_weights([weight for _, weight in row]) for node, row in choices.items()}
    result = ReferenceRecall()
    walks: dict[Any, dict[Any, list[int]]] = {anchor: {} for anchor in sorted(anchors)}
    place = {anchor: (anchor, 0) for anchor in walks}

    def steps_of_all() -> Iterator[tuple[Any, Any, int]]:
        for step in range(steps):
            for anchor in walks:
                node, length = place[anchor]
                returning, choosing = reference_draws(random_seed, query_key, anchor_keys[anchor], step)
                landed = (anchor, 0)
                if returning >= int(restart * 2**64) and any(whole.get(node, [])):
                    if length == limits.max_hops:
                        result.limit = "max_hops"
                    else:
                        neighbor, _ = choices[node][reference_choice(choosing, whole[node])]
                        if result.visited_edges == limits.max_visited_edges:
                            result.limit = "max_visited_edges"
                            return
                        new = neighbor not in walks and not any(neighbor in visited for visited in walks.values())
                        if new and result.visited_nodes == limits.max_visited_nodes:
                            result.limit = "max_visited_nodes"
                            return
                        result.visited_edges += 1
                        result.visited_nodes += new
                        landed = (neighbor, length + 1)
                place[anchor] = landed
                yield anchor, *landed

    for anchor, node, length in steps_of_all():
        walks[anchor].setdefault(node, []).append(length)
    for anchor, visited in walks.items():
        for node, lengths in visited.items():
            if len(lengths) > result.visits.get(node, 0):
                result.visits[node], result.hops[node], result.anchors[node] = len(lengths), min(lengths), anchor
                result.scores[node] = len(lengths) / steps
    return result
