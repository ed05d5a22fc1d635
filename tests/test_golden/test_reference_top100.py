"""The reference top 100 on nine real graphs, single and weighted seed sets, damping .85 and .5."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import seedrank
from seedrank.testing.parity import assert_same_ranking, assert_scores_close

GRAPHS = (
    "karate",
    "netscience",
    "email-Eu-core",
    "wiki-Vote",
    "p2p-Gnutella08",
    "ca-GrQc",
    "pubmed",
    "cit-HepTh",
    "soc-Slashdot0902",
)
DAMPINGS = (0.85, 0.5)

#: Reference scores closer than this are ties: igraph PRPACK and SciPy agree to half of it.
TIE = 1e-11

Ranking = list[tuple[Any, float]]


@dataclass(frozen=True)
class ReferenceRuns:
    """One graph at one damping: what is expected, and all scores that a float64 run finds."""

    store: Any
    hits: pa.Table
    mirrored: bool
    damping: float
    expected: dict[str, Ranking]
    scores: dict[str, Ranking]


def run(
    store: Any,
    hits: pa.Table,
    out: Path,
    *,
    mirrored: bool,
    damping: float,
    precision: Literal["float32", "float64"],
    tolerance: float,
    top_k: int,
    backend: Literal["auto", "scipy"] = "auto",
) -> seedrank.Run:
    """Score the reference's seed sets; all of them end ok."""
    result = seedrank.score(
        store,
        queries=hits,
        out=out,
        damping=damping,
        direction="both" if mirrored else "out",
        precision=precision,
        tolerance=tolerance,
        max_iterations=1000,
        top_k=top_k,
        include_seeds=True,
        backend=backend,
    )
    assert result.manifest.backend is not None
    assert result.manifest.backend.name == ("scipy" if backend == "scipy" else "cpu")
    assert result.manifest.queries is not None
    assert result.manifest.queries.by_status == {"ok": result.manifest.queries.total}
    return result


def rankings(rows: pa.Table) -> dict[str, Ranking]:
    """Query id → (node id as text, score), best first."""
    rows = rows.select(["query_id", "rank", "node_id", "score"]).sort_by(
        [("query_id", "ascending"), ("rank", "ascending")]
    )
    found: dict[str, Ranking] = defaultdict(list)
    columns = (rows["query_id"], rows["node_id"].cast(pa.string()), rows["score"])
    for query, node, score in zip(*(column.to_pylist() for column in columns), strict=True):
        found[query].append((node, score))
    return dict(found)


@pytest.fixture(scope="module")
def stores() -> dict[str, Any]:
    """Graph stores that the two dampings share."""
    return {}


@pytest.fixture(
    scope="module",
    params=[(graph, damping) for graph in GRAPHS for damping in DAMPINGS],
    ids=lambda param: f"{param[0]}-{param[1]}",
)
def reference(
    request: pytest.FixtureRequest,
    shared_data: Path,
    tmp_path_factory: pytest.TempPathFactory,
    stores: dict[str, Any],
) -> ReferenceRuns:
    graph, damping = request.param
    index = pq.read_table(shared_data / "graphs" / "index.parquet", filters=[("graph", "=", graph)]).to_pylist()[0]
    folder = tmp_path_factory.mktemp("reference")
    if graph not in stores:
        stores[graph] = seedrank.build(shared_data / "graphs" / f"{graph}_edges.parquet", out=folder / "graph")
    store = stores[graph]
    seeds = pq.read_table(shared_data / "golden" / "ref_ppr_queries.parquet", filters=[("graph", "=", graph)])
    # The reference files write every id as text.
    hits = seeds.drop_columns("graph").set_column(
        1, "node_id", seeds["node_id"].cast(pa.int64() if index["id_type"] == "int64" else pa.string())
    )
    expected = pq.read_table(
        shared_data / "golden" / "ref_ppr_top100.parquet", filters=[("graph", "=", graph), ("alpha", "=", damping)]
    )
    assert set(expected["query_id"].to_pylist()) == set(hits["query_id"].to_pylist())
    mirrored = not index["directed"] and index["each_undirected_edge_listed"] == "once"
    result = run(
        store,
        hits,
        folder / "float64",
        mirrored=mirrored,
        damping=damping,
        precision="float64",
        tolerance=1e-12,
        top_k=store.facts.nodes,
    )
    scores = rankings(result.candidates.to_arrow())
    return ReferenceRuns(store, hits, mirrored, damping, rankings(expected), scores)


def test_float64_is_the_reference(reference: ReferenceRuns) -> None:
    assert reference.scores.keys() == reference.expected.keys()
    for query, expected in reference.expected.items():
        ranking = reference.scores[query][:100]
        assert_same_ranking(ranking, expected, TIE)
        wanted = dict(expected)
        assert max(abs(score - wanted[node]) for node, score in ranking if node in wanted) <= 1e-9


@pytest.mark.parametrize(
    "reference", [("netscience", 0.85), ("email-Eu-core", 0.5), ("wiki-Vote", 0.85)], indirect=True
)
def test_reference_backend_is_the_reference_too(reference: ReferenceRuns, tmp_path: Path) -> None:
    """Undirected with weights, directed and dense, directed with many dangling nodes."""
    result = run(
        reference.store,
        reference.hits,
        tmp_path / "scipy",
        mirrored=reference.mirrored,
        damping=reference.damping,
        precision="float64",
        tolerance=1e-12,
        top_k=reference.store.facts.nodes,
        backend="scipy",
    )
    found = rankings(result.candidates.to_arrow())
    assert found.keys() == reference.expected.keys()
    for query, expected in reference.expected.items():
        assert_same_ranking(found[query][:100], expected, TIE)
        # Two backends, all nodes: equal within 1e-12, and the same nodes have a score.
        assert_scores_close(dict(found[query]), dict(reference.scores[query]), 1e-12)
        assert {node for node, _ in found[query]} == {node for node, _ in reference.scores[query]}


def test_float32_keeps_the_top_100(reference: ReferenceRuns, tmp_path: Path) -> None:
    result = run(
        reference.store,
        reference.hits,
        tmp_path / "float32",
        mirrored=reference.mirrored,
        damping=reference.damping,
        precision="float32",
        tolerance=1e-6,
        top_k=100,
    )
    found = rankings(result.candidates.to_arrow())
    overlaps = []
    for query, expected in reference.expected.items():
        exact = dict(reference.scores[query])
        ranking = found[query]
        assert len(ranking) == len(expected)
        # A node that ties with the last of the reference is as good as that one.
        hits = [node for node, _ in ranking if exact[node] >= expected[-1][1] - TIE]
        overlaps.append(len(hits) / len(expected))
        assert max(abs(score - exact[node]) for node, score in ranking) <= 1e-6
    assert sum(overlaps) / len(overlaps) >= 0.999


@pytest.mark.parametrize(
    "reference", [("wiki-Vote", 0.85), ("netscience", 0.85), ("p2p-Gnutella08", 0.5)], indirect=True
)
def test_float32_error_stays_within_its_bound(reference: ReferenceRuns, tmp_path: Path) -> None:
    """Over all nodes of a real graph, where rounding has thousands of places to add up."""
    result = run(
        reference.store,
        reference.hits,
        tmp_path / "float32",
        mirrored=reference.mirrored,
        damping=reference.damping,
        precision="float32",
        tolerance=1e-6,
        top_k=reference.store.facts.nodes,
    )
    bounds = {row["query_id"]: row["error_bound"] for row in result.queries.to_arrow().to_pylist()}
    for query, ranking in rankings(result.candidates.to_arrow()).items():
        found, exact = dict(ranking), dict(reference.scores[query])
        error = sum(abs(found.get(node, 0.0) - score) for node, score in exact.items())
        assert error <= bounds[query] + 1e-11  # the float64 scores have their own


def test_wiki_vote_top_node_of_plain_pagerank(shared_data: Path, tmp_path: Path) -> None:
    edges = pq.read_table(shared_data / "graphs" / "wiki-Vote_edges.parquet")
    nodes = pc.unique(pa.chunked_array([*edges["src"].chunks, *edges["dst"].chunks]))
    everyone = pa.table({"query_id": pa.repeat("all", len(nodes)), "node_id": nodes})
    result = seedrank.score(
        edges, queries=everyone, out=tmp_path / "run", damping=0.85, precision="float64", top_k=1, include_seeds=True
    )
    (best,) = result.candidates.to_arrow().to_pylist()
    assert best["node_id"] == 4037
    assert best["score"] == pytest.approx(0.004607, abs=5e-6)
