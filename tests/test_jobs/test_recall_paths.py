"""Every path of every method against the edge list: valid edge by edge, shortest, the lowest ids first."""

from __future__ import annotations

import tempfile
from collections import defaultdict, deque
from collections.abc import Mapping
from typing import Any, Literal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import seedrank
from seedrank.testing.reference import reference_edges
from seedrank.testing.strategies import RandomGraph, graphs

Direction = Literal["out", "in", "both"]
METHODS = ("ppr", "walk", "bfs", "dfs", "neighbors")
Steps = Mapping[Any, Mapping[Any, float]]


def steps_of(edges: Mapping[tuple[Any, Any, Any], float], direction: Direction) -> Steps:
    """Node → node that one step leads to → largest weight of an edge between them."""
    steps: dict[Any, dict[Any, float]] = defaultdict(dict)
    for (source, target, _), weight in edges.items():
        if direction != "in":
            steps[source][target] = max(weight, steps[source].get(target, 0.0))
        if direction != "out":
            steps[target][source] = max(weight, steps[target].get(source, 0.0))
    return steps


def distances(steps: Steps, start: Any) -> dict[Any, int]:
    """Breadth-first distances from a node."""
    found = {start: 0}
    waiting = deque([start])
    while waiting:
        node = waiting.popleft()
        for following in steps.get(node, ()):
            if following not in found:
                found[following] = found[node] + 1
                waiting.append(following)
    return found


def lowest_path(steps: Steps, anchor: Any, target: Any) -> list[Any]:
    """Of the shortest paths, the one whose nodes are lowest, compared from the anchor on."""
    length = distances(steps, anchor)[target]
    nodes = [anchor]
    while len(nodes) <= length:
        left = length - len(nodes)
        nodes.append(min(node for node in steps[nodes[-1]] if distances(steps, node).get(target, length + 1) == left))
    return nodes


@st.composite
def jobs(draw: st.DrawFn) -> tuple[RandomGraph, Direction, list[Any]]:
    graph = draw(graphs())
    direction: Direction = draw(st.sampled_from(("out", "in", "both")))
    return graph, direction, draw(st.lists(st.sampled_from(graph.nodes), min_size=1, max_size=3, unique=True))


def run_job(graph: RandomGraph, seeds: list[Any], folder: str, **options: Any) -> list[dict[str, Any]]:
    kind = (
        pa.array(graph.nodes).type if not any(isinstance(i, int) and i >= 2**63 for i in graph.nodes) else pa.uint64()
    )
    columns: dict[str, Any] = {
        "src": pa.array([edge[0] for edge in graph.edges], kind),
        "dst": pa.array([edge[1] for edge in graph.edges], kind),
    }
    for place, name in ((2, "weight"), (3, "type")):
        if graph.edges and len(graph.edges[0]) > place:
            columns[name] = [edge[place] for edge in graph.edges]
    run = seedrank.score(
        pa.table(columns),
        nodes=pa.table({"id": pa.array(graph.nodes, kind)}),
        queries=pa.table({"query_id": [7] * len(seeds), "node_id": pa.array(seeds, kind)}),
        out=f"{folder}/run",
        overwrite=True,
        **options,
    )
    rows: list[dict[str, Any]] = run.candidates.to_arrow().to_pylist()
    return rows


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=60, deadline=None)
@given(job=jobs(), include_seeds=st.booleans())
def test_paths_are_shortest_and_valid_edge_by_edge(
    method: Any, job: tuple[RandomGraph, Direction, list[Any]], include_seeds: bool
) -> None:
    graph, direction, seeds = job
    edges = reference_edges(graph.edges)
    steps = steps_of(edges, direction)
    with tempfile.TemporaryDirectory() as folder:
        rows = run_job(
            graph, seeds, folder, method=method, direction=direction, paths=True, include_seeds=include_seeds
        )
    for row in rows:
        nodes = [row["anchor_id"]]
        for edge in row["path"]:
            assert edges[edge["src"], edge["dst"], edge["type"]] == edge["weight"]
            assert not edge["reversed"] or direction != "out"
            assert edge["reversed"] or direction != "in"
            before, after = (edge["dst"], edge["src"]) if edge["reversed"] else (edge["src"], edge["dst"])
            assert before == nodes[-1]
            assert edge["weight"] == steps[before][after]
            nodes.append(after)
        assert nodes == lowest_path(steps, row["anchor_id"], row["node_id"])
        assert row["anchor_id"] in seeds
        if method == "walk":
            assert row["hops"] >= len(row["path"])
            continue
        nearest = min((distances(steps, seed).get(row["node_id"], 99), seed) for seed in seeds)
        assert (row["hops"], row["anchor_id"]) == (len(row["path"]), nearest[1])
        assert row["hops"] == nearest[0]


@settings(max_examples=60, deadline=None)
@given(job=jobs(), max_hops=st.integers(0, 4), backend=st.sampled_from(("cpu", "scipy")))
def test_max_hops_of_ppr_keeps_what_is_near(
    job: tuple[RandomGraph, Direction, list[Any]], max_hops: int, backend: str
) -> None:
    graph, direction, seeds = job
    steps = steps_of(reference_edges(graph.edges), direction)
    options = {"direction": direction, "include_seeds": True, "backend": backend}
    with tempfile.TemporaryDirectory() as folder:
        everything = run_job(graph, seeds, folder, **options)
        near = run_job(graph, seeds, folder, max_hops=max_hops, **options)
    reached = {node for seed in seeds for node, hops in distances(steps, seed).items() if hops <= max_hops}
    # Scores are those of the whole graph; only the others go.
    assert [(row["node_id"], row["score"]) for row in near] == [
        (row["node_id"], row["score"]) for row in everything if row["node_id"] in reached
    ]


def test_a_node_that_only_uniform_dangling_mass_reaches_has_no_path(tmp_path: Any) -> None:
    run = seedrank.score(
        pa.table({"src": ["a", "x"], "dst": ["b", "y"]}),
        queries=pa.table({"query_id": [1], "node_id": ["a"]}),
        out=tmp_path / "run",
        dangling="uniform",
        paths=True,
    )
    rows = {row["node_id"]: row for row in run.candidates.to_arrow().to_pylist()}
    assert set(rows) == {"b", "x", "y"}
    assert (rows["b"]["hops"], rows["b"]["anchor_id"], len(rows["b"]["path"])) == (1, "a", 1)
    for node in "xy":
        assert (rows[node]["hops"], rows[node]["anchor_id"], rows[node]["path"]) == (None, None, None)
