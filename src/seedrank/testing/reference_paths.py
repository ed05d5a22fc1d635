"""Slow, obvious definitions of distances and paths: dictionaries of ids, every shortest path written out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from seedrank.testing.reference import reference_edges
from seedrank.testing.reference_recall import Ways
from seedrank.testing.toys import Edge


@dataclass(frozen=True)
class ReferenceStep:
    """One edge of a path: its ends, type and weight as stored, and whether it is followed against its direction."""

    source: Any
    target: Any
    type: Any
    weight: float
    reversed: bool


def reference_neighbors(
    edges: Sequence[Edge], *, direction: Ways = "out", type_weights: Mapping[Any, float] | None = None
) -> dict[Any, list[Any]]:
    """Distinct nodes that one step leads to, ascending, by node; arguments as in `reference_choices`."""
    neighbors: dict[Any, set[Any]] = {}
    for step in _steps(edges, direction, type_weights):
        leaving, entering = (step.target, step.source) if step.reversed else (step.source, step.target)
        neighbors.setdefault(leaving, set()).add(entering)
    return {node: sorted(found) for node, found in neighbors.items()}


def reference_shortest_sequences(
    neighbors: Mapping[Any, Sequence[Any]], anchors: Collection[Any], target: Any
) -> list[tuple[Any, ...]]:
    """All node sequences of least length from any anchor to the target, the smallest first; none if there is no path.

    Parameters
    ----------
    neighbors : mapping
        As `reference_neighbors` returns them.
    anchors : collection of ids
    target : id
    """
    sequences: list[tuple[Any, ...]] = [(anchor,) for anchor in sorted(anchors)]
    reached = set(anchors)
    while sequences:
        arrived = [sequence for sequence in sequences if sequence[-1] == target]
        if arrived:
            return sorted(arrived)
        sequences = [
            (*sequence, node)
            for sequence in sequences
            for node in neighbors.get(sequence[-1], ())
            if node not in reached
        ]
        reached.update(sequence[-1] for sequence in sequences)
    return []


def reference_path(
    edges: Sequence[Edge],
    anchors: Collection[Any],
    target: Any,
    *,
    direction: Ways = "out",
    type_weights: Mapping[Any, float] | None = None,
) -> list[ReferenceStep] | None:
    """The steps of the smallest of the shortest paths to a target, or None.

    Of parallel edges the one of largest weight, then of the smallest type, then along its direction; arguments as in
    `reference_choices`.
    """
    neighbors = reference_neighbors(edges, direction=direction, type_weights=type_weights)
    sequences = reference_shortest_sequences(neighbors, anchors, target)
    if not sequences:
        return None
    steps = _steps(edges, direction, type_weights)
    path = []
    for leaving, entering in pairwise(sequences[0]):
        parallel = [
            step
            for step in steps
            if ((step.target, step.source) if step.reversed else (step.source, step.target)) == (leaving, entering)
        ]
        path.append(min(parallel, key=lambda step: (-step.weight, step.type or "", step.reversed)))
    return path


def _steps(edges: Sequence[Edge], direction: Ways, type_weights: Mapping[Any, float] | None) -> list[ReferenceStep]:
    """Every step that can be taken."""
    kept = {key: weight for key, weight in reference_edges(edges).items() if (type_weights or {}).get(key[2], 1.0)}
    against = {"out": (False,), "in": (True,), "both": (False, True)}[direction]
    return [ReferenceStep(*key, weight, way) for key, weight in kept.items() for way in against]
