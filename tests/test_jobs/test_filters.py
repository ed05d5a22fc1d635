"""Filters and known neighbours through the whole job: before the cut, for every method, on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import seedrank
from seedrank.errors import ConfigError, InputDataError
from seedrank.testing.strategies import RandomGraph, graphs

Job = Callable[..., Any]

#: A star: A leads to b … f.
STAR = pa.table({"src": ["A"] * 5, "dst": list("bcdef")})
PATHS = pa.table({"id": list("Abcdef"), "path": ["x", "t/b", "t/c", "s/d", "s/e", None], "size": [0, 1, 2, 3, 4, 5]})
METHODS = ["ppr", "walk", "bfs", "dfs", "neighbors"]


@pytest.fixture(scope="module")
def star(tmp_path_factory: pytest.TempPathFactory) -> seedrank.GraphStore:
    """The star as a store, with attributes."""
    return seedrank.build(STAR, nodes=PATHS, out=tmp_path_factory.mktemp("star") / "graph")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"where": ("size=4", "size=2")}, {"c", "e"}),
        ({"require": ("path",)}, set("bcde")),
        ({"include_glob": ("path=s/*",)}, {"d", "e"}),
        ({"exclude_glob": ("path=t/**",)}, {"d", "e", "f"}),
        ({"include_glob": ("path=*/*",), "where": ("size=5",)}, set()),
    ],
)
def test_every_method_filters(
    recall: Job, star: seedrank.GraphStore, method: str, filters: dict[str, Any], expected: set[str]
) -> None:
    found = recall(star, ["A"], method=method, **filters)
    assert (set(found.nodes), found.row["status"]) == (expected, "ok")


def test_case_46_filters_leave_the_best_that_pass(recall: Job, star: seedrank.GraphStore) -> None:
    found = recall(star, ["A"], top_k=3, damping=0.5, exclude_glob=("path=t/*",))
    assert found.column("score") == pytest.approx({"d": 1 / 15, "e": 1 / 15, "f": 1 / 15})


@pytest.mark.parametrize("options", [{"fusion": "rrf"}, {"method": "fuse"}, {"fallback": "rrf"}])
def test_a_hit_that_the_graph_does_not_have_passes_no_filter(
    fuse: Job, star: seedrank.GraphStore, options: dict[str, Any]
) -> None:
    found = fuse({"L": ["x", "d", "b"]}, star, where=("size=3", "size=2"), **options)
    assert found.nodes() == ["d"]
    assert fuse({"L": ["x"]}, star, where=("size=3",), **options).nodes() == []


def test_known_neighbors_of_the_seeds_case_46(recall: Job) -> None:
    """What the query has seen, its one-hop successors, is filtered first; the cut comes afterwards."""
    edges = pa.table(
        {
            "src": ["q", "q", "A", "A", "A", "A", "A", "b", "c"],
            "dst": ["b", "c", "b", "c", "d", "e", "f", "A", "A"],
        }
    )
    found = recall(edges, ["q"], top_k=3, damping=0.5, exclude_neighbors=True)
    assert found.nodes == ["A", "d", "e"]
    assert recall(edges, ["q"], top_k=3, damping=0.5).nodes == ["A", "b", "c"]
    assert recall(STAR, ["A"], top_k=3, exclude_neighbors=True).nodes == []
    assert recall(STAR, ["A"], top_k=3, exclude_neighbors=True).row["status"] == "ok"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"direction": "out"}, set()),
        ({"direction": "in"}, set()),
        ({"direction": "both"}, {"p"}),
        ({"direction": "both", "edge_type": ("likes",)}, {"p"}),
        ({"direction": "both", "type_weight": {"follows": 0.5}}, {"p"}),
    ],
)
def test_what_neighbors_are(recall: Job, method: str, options: dict[str, Any], expected: set[str]) -> None:
    """Targets of the edges that are followed, with --direction in their sources."""
    edges = [("a", "b", 1.0, "likes"), ("a", "c", 1.0, "follows"), ("p", "a", 1.0, "likes"), ("a", "a", 1.0, "likes")]
    found = recall(edges, ["a"], method=method, exclude_neighbors=True, **options)
    assert set(found.nodes) == expected
    every = set(recall(edges, ["a"], method=method, **options).nodes)
    assert every - expected == ({"p"} if options["direction"] == "in" else every & {"b", "c"})


def test_a_removed_type_makes_no_neighbors(recall: Job) -> None:
    edges = [("a", "b", 1.0, "saw"), ("a", "c", 1.0, "likes"), ("c", "b", 1.0, "likes")]
    only_likes = recall(edges, ["a"], exclude_neighbors=True, edge_type=("likes",))
    assert only_likes.nodes == ["b"]
    assert recall(edges, ["a"], exclude_neighbors=True, type_weight={"saw": 0}).nodes == ["b"]


@pytest.mark.parametrize("options", [{"fusion": "rrf"}, {"method": "fuse"}, {"fallback": "rrf"}])
def test_fused_hits_are_not_among_the_neighbors_of_the_seeds(fuse: Job, options: dict[str, Any]) -> None:
    edges = pa.table({"src": ["a", "b"], "dst": ["b", "c"]})
    found = fuse({"L": ["a", "b", "x", "c"]}, edges, exclude_neighbors=True, **options)
    # a leads to b, b leads to c: all three are hits, and what the first two lead to is known.
    assert set(found.nodes()) == {"a", "x"}


def test_filters_without_attributes_or_graph(recall: Job, fuse: Job) -> None:
    with pytest.raises(InputDataError, match="pass --nodes NODES"):
        recall(STAR, ["A"], where=("path=x",))
    with pytest.raises(InputDataError, match="no node attributes"):
        fuse({"L": "ab"}, where=("path=x",))
    with pytest.raises(ConfigError, match="--exclude-neighbors is given without a graph"):
        fuse({"L": "ab"}, exclude_neighbors=True)
    with pytest.raises(ConfigError, match=r"'where' has the value .*\nexpected: a column and a value, joined by ="):
        recall(STAR, ["A"], where=("path",))


@settings(max_examples=15, deadline=None)
@given(graph=graphs(ids="string", weighted=False, typed=False), data=st.data())
def test_a_filter_is_the_unfiltered_ranking_without_the_rest(
    tmp_path_factory: pytest.TempPathFactory, graph: RandomGraph, data: st.DataObject
) -> None:
    ids = list(graph.nodes)
    sizes = data.draw(st.lists(st.integers(0, 2), min_size=len(ids), max_size=len(ids)))
    folder = tmp_path_factory.mktemp("filtered")
    columns = zip(("src", "dst"), (0, 1), strict=True)
    edges = pa.table({name: pa.array([edge[end] for edge in graph.edges], pa.string()) for name, end in columns})
    nodes = pa.table({"id": pa.array(ids, pa.string()), "size": sizes})
    store = seedrank.build(edges, nodes=nodes, out=folder / "graph")
    hits = pa.table({"query_id": ids, "node_id": ids})
    rows = {}
    settings_of: dict[str, dict[str, Any]] = {"all": {}, "some": {"where": ("size=1",), "top_k": 2}}
    for name, options in settings_of.items():
        run = seedrank.score(store, queries=hits, out=folder / name, include_seeds=True, **options)
        rows[name] = run.candidates.to_arrow().to_pylist()
    wanted = {node for node, size in zip(ids, sizes, strict=True) if size == 1}
    for query in ids:
        passing = [row for row in rows["all"] if row["query_id"] == query and row["node_id"] in wanted]
        found = [(row["node_id"], row["score"]) for row in rows["some"] if row["query_id"] == query]
        assert found == [(row["node_id"], row["score"]) for row in passing[:2]]


def test_on_the_command_line(seedrank_command: Job, star: seedrank.GraphStore, write: Job, tmp_path: Path) -> None:
    hits = write("hits.parquet", {"query_id": ["q"], "node_id": ["A"]})
    arguments = [star.path, "--queries", hits, "--where", "size=3", "--where", "size=2", "--no-tests", "path"]
    config = tmp_path / "run.toml"
    config.write_text('[score]\nexclude-glob = "path=t/*"\nrequire = ["path"]\n')
    done = seedrank_command("score", *arguments, "--config", config, "--out", tmp_path / "run", "--quiet")
    assert done.code == 0, done.err
    assert seedrank.open_run(tmp_path / "run").candidates.to_arrow()["node_id"].to_pylist() == ["d"]
    planned = json.loads(seedrank_command("plan", *arguments, "--json").out)
    assert (planned["eligible_nodes"], planned["largest_output_rows"]) == (2, 2)
    checked = json.loads(seedrank_command("check", *arguments, "--json").out)
    assert (checked["eligible_nodes"], checked["warnings"]) == (2, [])
    nothing = json.loads(seedrank_command("check", *arguments[:3], "--where", "size=77", "--json").out)
    assert nothing["warnings"] == ["filters and exclusions leave none of the graph's 6 nodes to return"]
    for pair, code in (("sizes=1", 3), ("size=1.5", 3), ("size", 2)):
        assert seedrank_command("plan", *arguments[:3], "--where", pair).code == code
