"""Shares of a walk's visits converge to personalized PageRank, at the rate of independent draws but for a factor."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow.parquet as pq
import pytest

from seedrank.kernels.backends.resolver import create_backend
from seedrank.kernels.recall.forms import RecallLimits
from seedrank.kernels.recall.walk import random_walk
from seedrank.kernels.recall.walk_graph import build_walk_graph
from seedrank.testing.harness import kernel_graph, kernel_personalized_pagerank
from seedrank.testing.recall_harness import recall_graph, recall_queries, recalled
from seedrank.testing.toys import Edge

#: Undirected ones list every edge twice; p2p-Gnutella08 has many dead ends.
GRAPHS: dict[str, Literal["out", "in", "both"]] = {
    "karate": "out",
    "netscience": "out",
    "email-Eu-core": "in",
    "p2p-Gnutella08": "out",
    "ca-GrQc": "both",
}
RESTART = 0.2


def read_edges(path: Path, *, weighted: bool) -> list[Edge]:
    """Edges of a graph; weights between 0.1 and 10, drawn once for all."""
    table = pq.read_table(path, columns=["src", "dst"])
    pairs = list(zip(table["src"].to_pylist(), table["dst"].to_pylist(), strict=True))
    if not weighted:
        return list(pairs)
    weights = 10.0 ** np.random.default_rng(17).uniform(-1, 1, len(pairs))
    return [(source, target, float(weight)) for (source, target), weight in zip(pairs, weights, strict=True)]


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("name", GRAPHS)
def test_visit_shares_converge_to_personalized_pagerank(shared_data: Path, name: str, weighted: bool) -> None:
    """Total variation at N steps is at most 1.5 · Σ√π / √(2πN); duplicates count double for both."""
    edges = read_edges(shared_data / "graphs" / f"{name}_edges.parquet", weighted=weighted)
    graph = kernel_graph(edges)
    # The node of highest degree: around it there is enough to visit.
    anchor: Any = graph.ids[graph.adjacency.order[0]]
    (exact,) = kernel_personalized_pagerank(
        create_backend("cpu"), edges, [{anchor: 1.0}], damping=1 - RESTART, direction=GRAPHS[name], tolerance=1e-12
    )
    spread = sum(np.sqrt(score) for score in exact.scores.values())
    walk_graph = build_walk_graph(recall_graph(graph, direction=GRAPHS[name]))
    for steps in (10**4, 10**5, 10**6):
        result = random_walk(
            walk_graph, recall_queries(graph, [[anchor]]), restart=RESTART, steps=steps, random_seed=1,
            limits=RecallLimits(), k=len(graph.ids), eligible=None, min_score=0.0, precision="float64", threads=1,
        )  # fmt: skip
        (walked,) = recalled(graph, result)
        shares = {candidate.node: candidate.score for candidate in walked.candidates}
        assert shares.keys() <= exact.scores.keys()
        assert sum(shares.values()) == pytest.approx(1, abs=1e-12)
        variation = sum(abs(score - shares.get(node, 0.0)) for node, score in exact.scores.items()) / 2
        assert variation <= 1.5 * spread / np.sqrt(2 * np.pi * steps)
