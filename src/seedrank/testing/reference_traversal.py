"""Slow, obvious definitions of traversals under a budget: dictionaries of ids, one query at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from seedrank.testing.reference_paths import reference_neighbors, reference_shortest_sequences
from seedrank.testing.reference_recall import NO_LIMITS, ReferenceLimits, ReferenceRecall, Ways
from seedrank.testing.toys import Edge


class _Budget:
    """Counts what a traversal follows, and ends it before what it may not follow."""

    def __init__(self, anchors: Collection[Any], limits: ReferenceLimits) -> None:
        self.limits = limits
        self.visited = set(anchors)
        self.anchors = len(self.visited)
        self.edges = 0
        self.followed: dict[Any, set[Any]] = defaultdict(set)

    def follow(self, node: Any, neighbor: Any) -> bool:
        """Follow an edge; returns whether it leads to a new node."""
        if self.edges == self.limits.max_visited_edges:
            raise _ExhaustedError("max_visited_edges")
        new = neighbor not in self.visited
        if new and len(self.visited) - self.anchors == self.limits.max_visited_nodes:
            raise _ExhaustedError("max_visited_nodes")
        self.edges += 1
        self.visited.add(neighbor)
        self.followed[node].add(neighbor)
        return new


class _ExhaustedError(Exception):
    """The budget does not allow the next step; says which limit."""


def reference_breadth_first(
    edges: Sequence[Edge],
    anchors: Collection[Any],
    *,
    hop_decay: float = 0.5,
    direction: Ways = "out",
    type_weights: Mapping[Any, float] | None = None,
    limits: ReferenceLimits = NO_LIMITS,
) -> ReferenceRecall:
    """Level by level; the nodes of a level take turns of one neighbour, all by ascending id.

    Parameters
    ----------
    edges, direction, type_weights
        As in `seedrank.testing.reference_recall.reference_choices`.
    anchors : collection of ids
    hop_decay : float
    limits : ReferenceLimits

    Returns
    -------
    ReferenceRecall
    """
    neighbors = reference_neighbors(edges, direction=direction, type_weights=type_weights)
    budget = _Budget(anchors, limits)
    limit = ""
    level, hops = sorted(budget.visited), 0
    try:
        while level and hops != limits.max_hops:
            waiting = {node: list(neighbors.get(node, ())) for node in level}
            level, hops = [], hops + 1
            while any(waiting.values()):
                for node, row in waiting.items():
                    if row and budget.follow(node, row[0]):
                        level.append(row[0])
                    del row[:1]
            level.sort()
    except _ExhaustedError as error:
        limit = str(error)
    return _evaluated(budget, anchors, neighbors, limit, hop_decay)


def reference_depth_first(
    edges: Sequence[Edge],
    anchors: Collection[Any],
    *,
    hop_decay: float = 0.5,
    direction: Ways = "out",
    type_weights: Mapping[Any, float] | None = None,
    limits: ReferenceLimits = NO_LIMITS,
) -> ReferenceRecall:
    """Into the depth by ascending id, anchor by anchor; from a node that is met at a smaller depth once more.

    Parameters and result as in `reference_breadth_first`.
    """
    neighbors = reference_neighbors(edges, direction=direction, type_weights=type_weights)
    budget = _Budget(anchors, limits)
    depth = dict.fromkeys(anchors, 0)

    def go_on_from(node: Any) -> None:
        if depth[node] == limits.max_hops:
            return
        for neighbor in neighbors.get(node, ()):
            new = budget.follow(node, neighbor)
            if new or depth[neighbor] > depth[node] + 1:
                depth[neighbor] = depth[node] + 1
                go_on_from(neighbor)

    limit = ""
    try:
        for anchor in sorted(anchors):
            go_on_from(anchor)
    except _ExhaustedError as error:
        limit = str(error)
    return _evaluated(budget, anchors, neighbors, limit, hop_decay)


def reference_one_hop(
    edges: Sequence[Edge],
    anchors: Collection[Any],
    *,
    hop_decay: float = 0.5,
    per_seed: int | None = None,
    direction: Ways = "out",
    type_weights: Mapping[Any, float] | None = None,
    limits: ReferenceLimits = NO_LIMITS,
) -> ReferenceRecall:
    """The first `per_seed` neighbours of each anchor, a successor and a predecessor by turns; anchors take turns too.

    Parameters and result as in `reference_breadth_first`; the hop limit does not count.
    """
    sides: dict[str, list[Ways]] = {"out": ["out"], "in": ["in"], "both": ["out", "in"]}
    rows = [reference_neighbors(edges, direction=side, type_weights=type_weights) for side in sides[direction]]
    waiting: dict[Any, list[Any]] = {}
    for anchor in sorted(anchors):
        lists = [[node for node in row.get(anchor, ()) if node != anchor] for row in rows]
        longest = max(map(len, lists))
        alternating = [row[place] for place in range(longest) for row in lists if place < len(row)]
        waiting[anchor] = list(dict.fromkeys(alternating))[:per_seed]
    budget = _Budget(anchors, limits)
    limit = ""
    try:
        while any(waiting.values()):
            for anchor, row in waiting.items():
                if row:
                    budget.follow(anchor, row[0])
                del row[:1]
    except _ExhaustedError as error:
        limit = str(error)
    return _evaluated(budget, anchors, {}, limit, hop_decay)


def _evaluated(
    budget: _Budget,
    anchors: Collection[Any],
    neighbors: Mapping[Any, Sequence[Any]],
    limit: str,
    hop_decay: float,
) -> ReferenceRecall:
    """Hops, anchors and counts from the shortest node sequences along the edges that were followed."""
    result = ReferenceRecall(
        visited_nodes=len(budget.visited) - budget.anchors, visited_edges=budget.edges, limit=limit
    )
    followed = {node: sorted(reached) for node, reached in budget.followed.items()}
    for node in budget.visited:
        sequences = reference_shortest_sequences(followed, anchors, node)
        anchor = sequences[0][0]
        result.hops[node], result.anchors[node] = len(sequences[0]) - 1, anchor
        result.visits[node] = sum(sequence[0] == anchor for sequence in sequences)
        result.scores[node] = hop_decay ** result.hops[node]
        if not limit and result.hops[node] == budget.limits.max_hops and neighbors.get(node):
            result.limit = "max_hops"
    return result
