"""Independent implementations on random graphs: igraph PRPACK, networkx, scikit-network."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from scipy import sparse

import seedrank

Float64Array = npt.NDArray[np.float64]

NODES = 80
QUERIES = 6
EDGES = 260


@dataclass(frozen=True)
class Case:
    """A random graph with seed sets, and what the package makes of them.

    Attributes
    ----------
    source, target : int64 (m)
        Nodes 0 … NODES - 1; loops and parallel rows among them; a fifth of the nodes is never a source.
    weight : float64 (m)
    directed : bool
    damping : float
    seeds : float64 (QUERIES, NODES)
        Not normalised.
    scores : float64 (QUERIES, NODES)
        From the package, through its public interface.
    """

    source: npt.NDArray[np.int64]
    target: npt.NDArray[np.int64]
    weight: Float64Array
    directed: bool
    damping: float
    seeds: Float64Array
    scores: Float64Array

    @property
    def rows(self) -> list[tuple[int, int, float]]:
        """Edges as listed."""
        return list(zip(self.source.tolist(), self.target.tolist(), self.weight.tolist(), strict=True))

    @property
    def arcs(self) -> list[tuple[int, int, float]]:
        """Directed edges: those listed, and unless the graph is directed their mirror images, loops once."""
        back = [] if self.directed else [(v, u, w) for u, v, w in self.rows if u != v]
        return self.rows + back


SETTINGS = [
    pytest.param((directed, weighted, damping), id=f"{kind}-{weights}-{damping}")
    for directed, kind in ((True, "directed"), (False, "undirected"))
    for weighted, weights in ((True, "weighted"), (False, "unweighted"))
    for damping in (0.85, 0.5)
]


@pytest.fixture(scope="module", params=SETTINGS)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    directed, weighted, damping = request.param
    generator = np.random.default_rng([20, directed, weighted, int(damping * 100)])
    source = generator.integers(0, NODES * 4 // 5, EDGES)
    target = generator.integers(0, NODES - 2, EDGES)  # the last two nodes are isolated
    target[:10] = source[:10]
    source[10:30], target[10:30] = source[30:50], target[30:50]
    weight = generator.uniform(0.1, 5.0, EDGES) if weighted else np.ones(EDGES)
    seeds = np.where(generator.random((QUERIES, NODES)) < 0.08, generator.uniform(0.5, 4.0, (QUERIES, NODES)), 0.0)
    seeds[0] = 0.0
    seeds[0, NODES - 3] = 1.0  # a single seed that no edge leaves
    seeds[1] = 1.0  # every node: PageRank without personalization
    scores = seedrank_scores(
        tmp_path_factory.mktemp("case"), source, target, weight, seeds, directed=directed, damping=damping
    )
    return Case(source, target, weight, directed, damping, seeds, scores)


def seedrank_scores(
    folder: Path,
    source: npt.NDArray[np.int64],
    target: npt.NDArray[np.int64],
    weight: Float64Array,
    seeds: Float64Array,
    *,
    directed: bool,
    damping: float,
) -> Float64Array:
    query, node = np.nonzero(seeds)
    direction: Literal["out", "both"] = "out" if directed else "both"
    run = seedrank.score(
        pa.table({"src": source, "dst": target, "weight": weight}),
        nodes=pa.table({"id": np.arange(NODES)}),
        queries=pa.table({"query_id": query, "node_id": node, "weight": seeds[query, node]}),
        out=folder / "run",
        damping=damping,
        direction=direction,
        precision="float64",
        tolerance=1e-13,
        max_iterations=1000,
        top_k=NODES,
        include_seeds=True,
    )
    found = run.candidates.to_arrow()
    scores = np.zeros_like(seeds)
    scores[found["query_id"].to_numpy(), found["node_id"].to_numpy()] = found["score"].to_numpy()
    return scores


def test_the_cases_hold_what_they_promise(case: Case) -> None:
    sources = {u for u, _, _ in case.arcs}
    pairs = [(u, v) for u, v, _ in case.rows]
    assert NODES - len(sources) >= (10 if case.directed else 2), "dangling nodes"
    assert any(u == v for u, v in pairs), "self loops"
    assert len(set(pairs)) < len(pairs), "parallel edges"
    assert np.count_nonzero(case.scores[1]) == NODES


def test_igraph_prpack(case: Case) -> None:
    igraph = pytest.importorskip("igraph")
    # Mirrored by hand: igraph counts a loop of an undirected graph twice, here it counts once.
    graph = igraph.Graph(n=NODES, edges=[(u, v) for u, v, _ in case.arcs], directed=True)
    for seeds, scores in zip(case.seeds, case.scores, strict=True):
        expected = graph.personalized_pagerank(
            damping=case.damping,
            reset=seeds.tolist(),
            weights=[w for _, _, w in case.arcs],
            implementation="prpack",
        )
        np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-9)


def test_networkx(case: Case) -> None:
    networkx = pytest.importorskip("networkx")
    graph = networkx.MultiDiGraph() if case.directed else networkx.MultiGraph()
    graph.add_nodes_from(range(NODES))
    graph.add_weighted_edges_from(case.rows)
    for seeds, scores in zip(case.seeds, case.scores, strict=True):
        personalization = {node: float(seeds[node]) for node in np.flatnonzero(seeds).tolist()}
        expected = networkx.pagerank(
            graph,
            alpha=case.damping,
            personalization=personalization,
            dangling=personalization,
            tol=1e-14,
            max_iter=1000,
        )
        np.testing.assert_allclose(scores, [expected[node] for node in range(NODES)], rtol=0, atol=1e-9)


def test_scikit_network(case: Case) -> None:
    ranking = pytest.importorskip("sknetwork.ranking")
    rows, columns, weights = zip(*case.arcs, strict=True)
    adjacency = sparse.csr_matrix((weights, (rows, columns)), shape=(NODES, NODES))  # parallel edges add up
    # Ruffini-Horner sums (damping · Pᵀ)^k s and normalises, which is the limit p / Z of the documentation without
    # any dangling rule. Its other solvers treat seeds that are dangling by a rule of their own.
    judge = ranking.PageRank(case.damping, solver="RH", n_iter=300)
    for seeds, scores in zip(case.seeds, case.scores, strict=True):
        np.testing.assert_allclose(scores, judge.fit_predict(adjacency, seeds), rtol=0, atol=1e-12)
