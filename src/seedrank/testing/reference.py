"""Slow, obvious definitions that kernels are compared with: dictionaries, dense matrices, a linear solver."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from seedrank.testing.toys import Edge

ExtendedArray = npt.NDArray[np.longdouble]
REFINEMENTS = 3


def reference_edges(
    edges: Iterable[Edge], *, duplicate_edges: Literal["sum", "max", "min", "mean"] = "sum"
) -> dict[tuple[Any, Any, Any], float]:
    """Reduce an edge list to a dictionary.

    Parameters
    ----------
    edges : iterable of (src, dst), (src, dst, weight) or (src, dst, weight, type)
        A missing weight counts 1 (and a repeated edge without weights counts once under any rule but
        ``sum``); weight 0 is no edge.
    duplicate_edges : "sum", "max", "min" or "mean"

    Returns
    -------
    dict
        (src, dst, type or None) → weight.
    """
    weights: dict[tuple[Any, Any, Any], list[float]] = defaultdict(list)
    for source, target, *rest in edges:
        weight = float(rest[0]) if rest else 1.0
        if weight:
            weights[source, target, rest[1] if len(rest) > 1 else None].append(weight)
    rules: dict[str, Callable[[list[float]], float]] = {
        "sum": sum,
        "max": max,
        "min": min,
        "mean": lambda values: sum(values) / len(values),
    }
    return {key: float(rules[duplicate_edges](sorted(values))) for key, values in weights.items()}


def reference_personalized_pagerank(
    edges: Sequence[Edge],
    seeds: Mapping[Any, float],
    *,
    damping: float,
    direction: Literal["out", "in", "both"] = "out",
    dangling: Literal["seeds", "self", "uniform"] = "seeds",
    type_weights: Mapping[Any, float] | None = None,
    duplicate_edges: Literal["sum", "max", "min", "mean"] = "sum",
    nodes: Iterable[Any] = (),
    iterations: int | None = None,
) -> dict[Any, float]:
    """Personalized PageRank by a dense solve, or by so many steps of the recurrence.

    π = (1 - damping) s + damping Pᵀ π, where the row of a dangling node in P is s (``seeds``), the node
    itself (``self``) or 1/n everywhere (``uniform``). The matrix is held in extended precision and the
    float64 solution refined against it, so that the result is right to the last digit of float64.

    Parameters
    ----------
    edges : sequence of tuples
        As in `reference_edges`.
    seeds : mapping
        Node id → weight >= 0. Unknown ids are dropped, the rest is scaled to sum 1.
    damping : float
        0 <= damping < 1.
    direction : "out", "in" or "both"
        ``both`` adds every edge in both directions, a self loop once.
    dangling : "seeds", "self" or "uniform"
    type_weights : mapping, optional
        Edge type → factor, 1 for types that are not named.
    duplicate_edges : "sum", "max", "min" or "mean"
    nodes : iterable, optional
        Ids that exist without an edge.
    iterations : int, optional
        v⁰ = s and this many steps; None: the limit.

    Returns
    -------
    dict
        Node id → score, for all nodes in ascending order of id; empty when no seed is left.
    """
    known: set[Any] = set(nodes)
    for source, target, *_ in edges:
        known |= {source, target}
    ids = sorted(known)
    place = {node: position for position, node in enumerate(ids)}
    restart_vector = np.zeros(len(ids), dtype=np.longdouble)
    for node in seeds.keys() & place.keys():
        restart_vector[place[node]] = seeds[node]
    if not restart_vector.any():
        return {}
    restart_vector /= restart_vector.sum()
    step = np.zeros((len(ids), len(ids)), dtype=np.longdouble)
    for (source, target, kind), weight in reference_edges(edges, duplicate_edges=duplicate_edges).items():
        value = np.longdouble(weight) * (type_weights or {}).get(kind, 1.0)
        if direction in ("out", "both"):
            step[place[source], place[target]] += value
        if direction == "in" or (direction == "both" and source != target):
            step[place[target], place[source]] += value
    if_dangling = {
        "seeds": np.broadcast_to(restart_vector, step.shape),
        "self": np.eye(len(ids), dtype=np.longdouble),
        "uniform": np.full_like(step, np.longdouble(1) / len(ids)),
    }[dangling]
    for row in range(len(ids)):
        out_weight = step[row].sum()
        step[row] = step[row] / out_weight if out_weight > 0 else if_dangling[row]
    restart = 1.0 - damping
    if iterations is None:
        scores = _solve(np.eye(len(ids), dtype=np.longdouble) - damping * step.T, restart * restart_vector)
    else:
        scores = restart_vector
        for _ in range(iterations):
            scores = damping * (step.T @ scores) + restart * restart_vector
    return {node: float(score) for node, score in zip(ids, scores, strict=True)}


def _solve(matrix: ExtendedArray, right: ExtendedArray) -> ExtendedArray:
    """Solve in float64, then correct with residuals in extended precision."""
    plain = matrix.astype(np.float64)
    solution = np.zeros_like(right)
    for _ in range(1 + REFINEMENTS):
        residual = right - matrix @ solution
        solution = solution + np.linalg.solve(plain, residual.astype(np.float64))
    return solution


def reference_reachable(
    edges: Sequence[Edge],
    seeds: Mapping[Any, float],
    *,
    direction: Literal["out", "in", "both"] = "out",
    type_weights: Mapping[Any, float] | None = None,
) -> set[Any]:
    """Nodes that a walk from a seed of positive weight can visit, the seeds included."""
    successors: dict[Any, set[Any]] = defaultdict(set)
    for source, target, kind in reference_edges(edges):
        if (type_weights or {}).get(kind, 1.0):
            if direction in ("out", "both"):
                successors[source].add(target)
            if direction in ("in", "both"):
                successors[target].add(source)
    waiting = [node for node, weight in seeds.items() if weight > 0]
    reached = set(waiting)
    while waiting:
        for node in successors[waiting.pop()] - reached:
            reached.add(node)
            waiting.append(node)
    return reached


def reference_top_k(
    scores: Mapping[Any, float],
    k: int,
    *,
    eligible: Collection[Any] | None = None,
    excluded: Collection[Any] = (),
    min_score: float = 0.0,
) -> list[tuple[Any, float]]:
    """Filter, sort by score descending and id ascending, cut at k; scores of 0 never appear."""
    allowed = [
        (node, score)
        for node, score in scores.items()
        if score > 0 and score >= min_score and (eligible is None or node in eligible) and node not in excluded
    ]
    return sorted(allowed, key=lambda item: (-item[1], item[0]))[:k]
