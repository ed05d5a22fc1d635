"""The graph as one list of a fusion, with every method, and hits where the graph brings nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

Fuse = Callable[..., Any]
#: a → b → c → d, and x, which nothing leads to; the graph brings a, b, c, d from the seed a.
CHAIN = pa.table({"src": ["a", "b", "c", "x"], "dst": ["b", "c", "d", "a"]})


def test_the_graph_is_a_list_of_its_own(fuse: Fuse) -> None:
    hits = {"dense": ["new", "a"], "sparse": ["x"]}
    found = fuse(
        hits, CHAIN, fusion="rrf", tolerance=1e-12, max_iterations=1000, damping=0.5, seed_source_weight={"sparse": 0}
    )
    # From the seed a alone: a, b, c, d fall by halves; the mass of d goes back to a.
    assert found.column("score_graph") == {"a": 1 / 61, "new": None, "x": None, "b": 1 / 62, "c": 1 / 63, "d": 1 / 64}
    assert found.column("score_dense") == {"new": 1 / 61, "a": 1 / 62, "x": None, "b": None, "c": None, "d": None}
    assert found.column("score") == {
        "a": 1 / 61 + 1 / 62, "new": 1 / 61, "x": 1 / 61, "b": 1 / 62, "c": 1 / 63, "d": 1 / 64,
    }  # fmt: skip
    assert found.nodes() == ["a", "new", "x", "b", "c", "d"]
    assert found.status() == "ok"
    shallow = fuse(hits, CHAIN, fusion="rrf", fusion_depth=2, seed_source_weight={"sparse": 0})
    assert sorted(shallow.nodes()) == ["a", "b", "new", "x"]
    silenced = fuse(hits, CHAIN, fusion="rrf", source_weight={"graph": 0})
    assert sorted(silenced.nodes()) == ["a", "new", "x"]


def test_weighted_fusion_with_the_graph(fuse: Fuse) -> None:
    hits = [("a", "dense", 4.0), ("b", "dense", 3.0), ("x", "dense", 0.0)]
    alone = fuse(hits, CHAIN, include_seeds=True).column("score")
    found = fuse(hits, CHAIN, fusion="weighted", source_weight={"graph": 0.5})
    low, high = min(alone.values()), max(alone.values())
    parts = found.column("score_graph")
    assert parts == pytest.approx(
        {node: 0.5 * (score - low) / (high - low) for node, score in alone.items()} | {"x": None}
    )
    assert found.column("score_dense") == {"a": 1.0, "b": 0.75, "x": 0.0, "c": None, "d": None}


@pytest.mark.parametrize("method", ["walk", "bfs", "dfs", "neighbors"])
def test_fusion_with_recall_and_paths(fuse: Fuse, method: Any) -> None:
    found = fuse({"dense": ["new", "a"]}, CHAIN, method=method, fusion="rrf", paths=True)
    assert {"new", "a", "b"} <= set(found.nodes())
    assert found.column("hops")["new"] is found.column("path")["new"] is found.column("visit_count")["new"] is None
    assert found.column("hops")["b"] == 1
    assert [(edge["src"], edge["dst"]) for edge in found.column("path")["b"]] == [("a", "b")]
    assert found.column("score_graph")["new"] is None


def test_fallback_returns_the_hits_of_queries_for_which_the_graph_brings_nothing(fuse: Fuse) -> None:
    hits = pa.table(
        {
            "query_id": ["found", "lost", "lost", "nobody"],
            "node_id": ["a", "new", "old", None],
            "weight": [1.0, 1.0, 2.0, 1.0],
        }
    )
    plain = fuse(hits, CHAIN)
    found = fuse(hits, CHAIN, fallback="rrf")
    assert {query: found.status(query) for query in found.rows} == {
        "found": "ok", "lost": "fallback_rrf", "nobody": "no_valid_seeds",
    }  # fmt: skip
    assert found.candidates["found"] == plain.candidates["found"]
    assert [(row["node_id"], row["score"]) for row in found.candidates["lost"]] == [("old", 1 / 61), ("new", 1 / 62)]
    assert found.rows["lost"]["iterations"] is None
    fused = fuse(hits, CHAIN, fusion="weighted")
    assert [(row["node_id"], row["score"]) for row in fused.candidates["lost"]] == [("old", 1 / 61), ("new", 1 / 62)]
    assert fused.status("lost") == "fallback_rrf"


def test_fallback_where_everything_that_the_graph_found_was_filtered(fuse: Fuse) -> None:
    hits = {"dense": "d"}
    assert fuse(hits, CHAIN).nodes() == []
    found = fuse(hits, CHAIN, fallback="rrf")
    assert (found.nodes(), found.status()) == (["d"], "fallback_rrf")
    # The threshold speaks of probabilities, not of reciprocal ranks.
    assert fuse(hits, CHAIN, fallback="rrf", min_score=0.5).nodes() == ["d"]


def test_distances_as_seeds(fuse: Fuse) -> None:
    hits = [("a", "d", 0.0), ("c", "d", 4.0), ("b", "d", 1.0)]
    options: dict[str, Any] = {"lower_is_better": ["d"], "source_normalization": "minmax", "include_seeds": True}
    found = fuse(hits, CHAIN, restart=1.0, **options)
    assert found.column("score") == pytest.approx({"a": 4 / 7, "b": 3 / 7})
    alone = [("a", "d", 0.0)]
    assert fuse(alone, CHAIN, restart=1.0, **options).column("score") == {"a": 1.0}
    walked = fuse(hits, CHAIN, method="bfs", lower_is_better=["d"], max_hops=1)
    assert walked.column("anchor_id") == {"d": "c"}


def test_ties_between_nodes_of_the_graph_and_other_hits_go_by_id(fuse: Fuse) -> None:
    edges = pa.table({"src": ["m", "m", "m"], "dst": ["b", "n", "f"]})
    found = fuse({"dense": ["m"], "words": ["c"], "third": ["a"]}, edges, fusion="rrf", seed_source_weight={"words": 0})
    assert found.nodes() == ["m", "a", "c", "b", "f", "n"]
    hits = [("m", "dense", 1.0, 9), ("z", "dense", 1.0, 2), ("a", "words", 1.0, 2), ("g", "words", 1.0, 2)]
    tied = fuse(hits, edges, columns=("source", "weight", "rank"), fusion="rrf")
    assert tied.nodes() == ["m", "a", "b", "g", "z", "f", "n"]


def test_hits_of_another_width_widen_the_column_of_ids(fuse: Fuse) -> None:
    edges = pa.table({"src": pa.array([1, 2], pa.int32()), "dst": pa.array([2, 3], pa.int32())})
    hits = pa.table({"query_id": ["q", "q"], "node_id": pa.array([1, 2**40], pa.int64()), "weight": [2.0, 1.0]})
    found = fuse(hits, edges, fusion="rrf")
    assert found.run.candidates.schema.field("node_id").type == pa.int64()
    assert set(found.nodes()) == {1, 2, 3, 2**40}
