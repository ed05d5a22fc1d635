"""Parity matrix: reference × backend × block size × precision × dangling rule × direction × kind of edges.

Not compared: the order within ties that differ by rounding (the reference sums in another order), and float32
beyond its stated bound.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from seedrank.kernels.backends.resolver import create_backend
from seedrank.testing.harness import kernel_personalized_pagerank
from seedrank.testing.parity import assert_same_ranking, assert_scores_close
from seedrank.testing.reference import reference_personalized_pagerank, reference_top_k
from seedrank.testing.toys import Edge

BACKENDS = ("scipy", "cpu", "gpu", "cugraph")
DAMPING = 0.6
KINDS = ("plain", "weighted", "typed", "typed and weighted")
TYPE_WEIGHTS = {"x": 0.5, "y": 0.0, "z": 2.0}
NODES = tuple(range(36))


@lru_cache
def edges_of(kind: str) -> tuple[Edge, ...]:
    random = np.random.default_rng(20240607)
    edges: list[Edge] = []
    for _ in range(130):
        # Nodes 30 and above have no outgoing edge, 35 has none at all: dangling and isolated.
        edge: list[Any] = [int(random.integers(0, 30)), int(random.integers(0, 35) ** 2 // 35)]
        if kind != "plain":
            edge.append(float(random.integers(1, 9)) / 3 if "weighted" in kind else 1.0)
        if "typed" in kind:
            edge.append(str(random.choice(list("xyz"))))
        edges.append(tuple(edge))
    return tuple(edges)


QUERIES: tuple[dict[Any, float], ...] = (
    {0: 1.0},
    {3: 2.0, 17: 1.0, 99: 5.0},
    {35: 1.0},
    {31: 1.0, 4: 1.0},
    {99: 1.0},
    {node: 1.0 + node for node in range(12)},
    {29: 1e-300, 28: 1e-300},
    {33: 1.0},
)


@lru_cache
def expected_of(kind: str, direction: Any, dangling: Any) -> tuple[dict[Any, float], ...]:
    return tuple(
        reference_personalized_pagerank(
            edges_of(kind),
            seeds,
            damping=DAMPING,
            direction=direction,
            dangling=dangling,
            type_weights=TYPE_WEIGHTS if "typed" in kind else None,
            nodes=NODES,
        )
        for seeds in QUERIES
    )


def cases() -> list[tuple[Any, ...]]:
    """The whole product; of cuGraph, which scores one query after the other, what it has and one width."""
    every = product(BACKENDS, (1, 7, 64), KINDS, ("out", "in", "both"), ("seeds", "self", "uniform"))
    return [case for case in every if case[0] != "cugraph" or (case[1] == 7 and case[-1] != "uniform")]


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize(("backend", "block_size", "kind", "direction", "dangling"), cases())
def test_matrix(kind: str, direction: Any, dangling: Any, precision: Any, block_size: int, backend: str) -> None:
    results = kernel_personalized_pagerank(
        create_backend(backend),
        edges_of(kind),
        QUERIES,
        damping=DAMPING,
        direction=direction,
        dangling=dangling,
        type_weights=TYPE_WEIGHTS if "typed" in kind else None,
        nodes=NODES,
        tolerance=1e-14 if precision == "float64" else 1e-8,
        precision=precision,
        block_size=block_size,
    )
    close = 1e-14 if precision == "float64" else 1e-7
    for result, expected in zip(results, expected_of(kind, direction, dangling), strict=True):
        assert_scores_close(result.scores, expected, close)
        assert_same_ranking(result.ranking, reference_top_k(expected, len(NODES)), 2 * close)


@pytest.mark.parametrize("iterations", [1, 2, 10])
@pytest.mark.parametrize("dangling", ["seeds", "self", "uniform"])
def test_fixed_number_of_iterations_is_the_recurrence(dangling: Any, iterations: int) -> None:
    options: dict[str, Any] = {"damping": 0.85, "direction": "both", "dangling": dangling, "nodes": NODES}
    results = kernel_personalized_pagerank(
        create_backend("scipy"),
        edges_of("weighted"),
        QUERIES,
        tolerance=0,
        max_iterations=iterations,
        **options,
    )
    for result, seeds in zip(results, QUERIES, strict=True):
        expected = reference_personalized_pagerank(edges_of("weighted"), seeds, iterations=iterations, **options)
        assert_scores_close(result.scores, expected, 1e-15)
        assert result.converged
        assert result.iterations == (iterations if expected else 0)
