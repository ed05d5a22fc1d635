"""Cases on recall that were met in the field, through the whole job; the numbers are those of the case list."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import seedrank
from seedrank.errors import ConfigError, InputDataError
from seedrank.testing.toys import K1, K2, K12

Recall = Callable[..., Any]
Command = Callable[..., Any]
Write = Callable[..., Path]

STAR = tuple(("A", leaf) for leaf in "bcdef")
CHAIN = ((0, 1), (1, 2), (2, 3))
DIAMOND = (("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"))
TRAVERSALS = ("bfs", "dfs")
METHODS = ("walk", *TRAVERSALS, "neighbors")


@pytest.mark.parametrize("method", ["bfs", "dfs", "neighbors"])
def test_case_29_budget_is_neither_overshot_nor_said_to_be_exhausted_too_soon(recall: Recall, method: Any) -> None:
    three = recall(STAR, ["A"], method=method, max_visited_nodes=3)
    assert three.nodes == ["b", "c", "d"]
    assert three.row["truncated"] is True
    five = recall(STAR, ["A"], method=method, max_visited_nodes=5)
    assert five.nodes == list("bcdef")
    assert five.row["truncated"] is False


@pytest.mark.parametrize("method", ["walk", "bfs", "dfs", "ppr"])
def test_case_29_depth(recall: Recall, method: Any) -> None:
    assert sorted(recall(CHAIN, [0], method=method, max_hops=2).nodes) == [1, 2]
    assert recall(CHAIN, [0], method=method, max_hops=0).nodes == []
    assert recall(CHAIN, [0], method=method, max_hops=0, include_seeds=True).nodes == [0]


@pytest.mark.parametrize("method", METHODS)
def test_case_30_truncation_does_not_change_from_run_to_run(recall: Recall, method: Any) -> None:
    edges = [("A", leaf) for leaf in "bcdef"] + [(leaf, leaf * 2) for leaf in "bcdef"]
    files = set()
    for seed in range(4):
        shuffled = random.Random(seed).sample(edges, len(edges))  # noqa: S311  # not for secrets
        half = len(shuffled) // 2
        table = pa.table({"src": [e[0] for e in shuffled], "dst": [e[1] for e in shuffled]})
        parts = pa.concat_tables([table.slice(half), table.slice(0, half)]) if seed % 2 else table
        found = recall(parts, ["A"], method=method, max_visited_nodes=4, paths=True)
        files.add(tuple(found.files))
        assert found.row["truncated"] is True
    assert len(files) == 1


@pytest.mark.parametrize("method", ["walk", *TRAVERSALS, "ppr"])
def test_case_32_path_goes_over_the_smallest_ids(recall: Recall, method: Any) -> None:
    found = recall(DIAMOND, ["a"], method=method, paths=True)
    assert sorted(found.nodes) == ["b", "c", "d"]
    assert found.column("hops")["d"] == 2
    assert [(edge["src"], edge["dst"]) for edge in found.column("path")["d"]] == [("a", "b"), ("b", "d")]


@pytest.mark.parametrize("method", ["walk", "dfs"])
def test_case_32_each_node_of_a_cycle_once(recall: Recall, method: Any) -> None:
    assert sorted(recall([(1, 2), (2, 3), (3, 1)], [1], method=method).nodes) == [2, 3]


@pytest.mark.parametrize("method", [*TRAVERSALS, "neighbors", "ppr"])
def test_case_32_recorded_seed_is_the_nearest_then_the_smallest(recall: Recall, method: Any) -> None:
    edges = [(1, 2), (3, 2), (1, 4), (4, 5), (3, 5)]
    found = recall(edges, [1, 3], method=method, paths=True)
    assert found.column("anchor_id") == {2: 1, 4: 1, 5: 3}
    assert {node: path[0]["src"] for node, path in found.column("path").items()} == {2: 1, 4: 1, 5: 3}


def test_case_34_walk_restarts_at_a_dead_end(recall: Recall) -> None:
    found = recall(K1.edges, [1], method="walk", restart=1e-9, walk_steps=1000, include_seeds=True)
    assert found.column("visit_count") == {1: 500, 2: 500}
    assert found.nodes == [1, 2]


@pytest.mark.parametrize("random_seed", [0, 1, 2**64 - 1])
def test_case_35_walk_chooses_by_weight(recall: Recall, random_seed: int) -> None:
    edges = [("A", "B", 9.0), ("A", "C", 1.0), ("B", "A", 1.0), ("C", "A", 1.0)]
    found = recall(edges, ["A"], method="walk", damping=0.85, walk_steps=200_000, random_seed=random_seed)
    visits = found.column("visit_count")
    draws = visits["B"] + visits["C"]
    # Every visit of B or C is one choice at A: binomial, five standard deviations.
    assert visits["B"] / draws == pytest.approx(0.9, abs=5 * (0.9 * 0.1 / draws) ** 0.5)
    assert found.column("score")["B"] == pytest.approx(153 / 370, abs=0.01)


@pytest.mark.parametrize("method", METHODS)
def test_case_36_edge_types_and_direction(recall: Recall, method: Any) -> None:
    assert set(recall(K12.edges, ["a"], method=method).nodes) == {"b", "c"}
    assert recall(K12.edges, ["a"], method=method, type_weight={"follows": 0}).nodes == ["c"]
    assert recall(K12.edges, ["a"], method=method, edge_type=["follows"]).nodes == ["b"]
    for option in ({"type_weight": {"hates": 1.0}}, {"edge_type": ["hates"]}):
        with pytest.raises(InputDataError, match="'hates': no edge has this type"):
            recall(K12.edges, ["a"], method=method, **option)
    chain = [("A", "B"), ("B", "C")]
    assert recall(chain, ["C"], method=method).nodes == []
    assert recall(chain, ["C"], method=method, direction="in").nodes[0] == "B"
    assert set(recall(chain, ["B"], method=method, direction="both").nodes) == {"A", "C"}


def test_case_36_type_weights_change_the_choice_of_a_walk(recall: Recall) -> None:
    found = recall(K12.edges, ["a"], method="walk", type_weight={"likes": 4}, walk_steps=50_000).column("visit_count")
    assert found["b"] / (found["b"] + found["c"]) == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("method", METHODS)
def test_case_46_filters_come_before_the_cut(recall: Recall, method: Any) -> None:
    some, everything = pa.table({"node_id": ["b", "c"]}), pa.table({"node_id": list("bcdef")})
    assert sorted(recall(STAR, ["A"], method=method, top_k=3, exclude=some).nodes) == ["d", "e", "f"]
    nothing = recall(STAR, ["A"], method=method, top_k=3, exclude=everything)
    assert nothing.nodes == []
    assert nothing.row["status"] == "ok"


@pytest.mark.parametrize("method", METHODS)
def test_case_46_excluded_nodes_are_walked_through(recall: Recall, method: Any) -> None:
    found = recall(CHAIN, [0], method=method, exclude=pa.table({"node_id": [1]}))
    assert sorted(found.nodes) == ([] if method == "neighbors" else [2, 3])


@pytest.mark.parametrize("method", METHODS)
def test_case_47_no_padding_when_k_is_larger(recall: Recall, method: Any) -> None:
    found = recall(K2.edges, ["A"], method=method, top_k=10, include_seeds=True)
    assert set(found.nodes) == ({"A", "B"} if method == "neighbors" else set("ABCD"))
    if method in TRAVERSALS:
        assert found.nodes == list("ABCD")  # C before D at equal score
    assert recall(K2.edges, ["A"], method=method, top_k=1).row["candidates"] == 1


@pytest.mark.parametrize("method", METHODS)
def test_case_50_empty_and_degenerate_inputs(recall: Recall, tmp_path: Path, method: Any) -> None:
    (loop,) = recall([(1, 1)], [1], method=method, include_seeds=True).candidates["q"]
    assert (loop["node_id"], loop["score"]) == (1, 1.0)
    none = pa.table({"query_id": pa.array([], pa.string()), "node_id": pa.array([], pa.int64())})
    run = seedrank.score(
        pa.table({"src": [1], "dst": [2]}), queries=none, out=tmp_path / "run", method=method, paths=True
    )
    table = run.candidates.to_arrow()
    assert table.num_rows == 0
    assert table.column_names == [
        "query_id", "rank", "node_id", "score", "hops", "anchor_id", "visit_count", "path",
    ]  # fmt: skip
    assert run.manifest.state == "finished"


@pytest.mark.parametrize("method", METHODS)
def test_case_04_seeds_that_are_not_in_the_graph(recall: Recall, method: Any) -> None:
    found = recall(CHAIN, {"q1": [0, 99], "q2": [99], "q3": [1]}, method=method)
    assert {query: (row["status"], row["seeds_missing"]) for query, row in found.rows.items()} == {
        "q1": ("ok", 1),
        "q2": ("no_valid_seeds", 1),
        "q3": ("ok", 0),
    }
    row = found.rows["q2"]
    assert [row[name] for name in ("visited_nodes", "visited_edges", "budget_hit", "truncated")] == [None] * 4


@pytest.mark.parametrize("method", METHODS)
def test_case_13_wide_ids_come_back(recall: Recall, method: Any) -> None:
    big = 2**53 + 1
    found = recall([(big, big + 1), (big + 1, big + 2)], [big], method=method, paths=True)
    assert found.nodes[0] == big + 1
    assert found.column("path")[big + 1][0]["src"] == big


def test_case_51_isolated_seed(recall: Recall, tmp_path: Path) -> None:
    graph = seedrank.build(
        pa.table({"src": [1, 2], "dst": [2, 1]}), nodes=pa.table({"id": [1, 2, 3]}), out=tmp_path / "graph"
    )
    for method in METHODS:
        alone = recall(graph, [3], method=method)
        assert (alone.nodes, alone.row["status"]) == ([], "ok")
        assert recall(graph, [3, 1], method=method).nodes == [2]


@pytest.mark.parametrize("method", METHODS)
def test_scenarios_through_the_command_line(
    seedrank_command: Command, write: Write, tmp_path: Path, method: Any
) -> None:
    edges = write("edges.parquet", {"src": [e[0] for e in STAR], "dst": [e[1] for e in STAR]})
    hits = write("hits.parquet", {"query_id": ["q"], "node_id": ["A"]})
    done = seedrank_command(
        "score", edges, "--queries", hits, "--out", tmp_path / "run", "--method", method,
        "--max-visited-nodes", "3", "--paths", "--json", "-q",
    )  # fmt: skip
    assert done.code == 0, done.err
    manifest = json.loads(done.out)
    assert manifest["options"]["method"] == {"value": method, "origin": "flag"}
    assert manifest["options"]["max_visited_nodes"] == {"value": 3, "origin": "flag"}
    assert manifest["backend"]["solver"] == method
    assert manifest["queries"]["by_status"] == {"budget_exhausted": 1}
    (row,) = seedrank.open_run(tmp_path / "run").queries.to_arrow().to_pylist()
    assert (row["method"], row["budget_hit"]) == (method, "max_visited_nodes")
    strict = seedrank_command(
        "score", edges, "--queries", hits, "--out", tmp_path / "strict", "--method", method,
        "--max-visited-nodes", "3", "--strict", "-q",
    )  # fmt: skip
    assert strict.code == 6
    assert not (tmp_path / "strict" / "_SUCCESS").exists()


@pytest.mark.parametrize(
    ("method", "option", "users"),
    [
        ("ppr", {"walk_steps": 10}, "walk or auto"),
        ("ppr", {"max_visited_nodes": 10}, "walk or bfs or dfs or neighbors or auto"),
        ("walk", {"hop_decay": 0.5}, "bfs or dfs or neighbors or auto"),
        ("walk", {"tolerance": 0.1}, "ppr or auto"),
        ("walk", {"source_normalization": "max"}, "ppr or auto"),
        ("bfs", {"restart": 0.5}, "ppr or walk or auto"),
        ("dfs", {"random_seed": 1}, "walk or auto"),
        ("neighbors", {"max_hops": 1}, "ppr or walk or bfs or dfs or auto"),
        ("bfs", {"neighbors_per_seed": 1}, "neighbors or auto"),
    ],
    ids=str,
)
def test_options_of_other_methods_are_refused(recall: Recall, method: Any, option: dict[str, Any], users: str) -> None:
    (name,) = option
    flag = f"--{name.replace('_', '-')}"
    with pytest.raises(ConfigError) as caught:
        recall(STAR, ["A"], method=method, **option)
    assert caught.value.found == f"{flag} is given, but --method {method} does not use it"
    assert caught.value.expected == f"{flag} together with --method {users}"
    # Not given is what None says.
    if name.startswith("max"):
        assert recall(STAR, ["A"], method=method, **{name: None}).row["status"] == "ok"


@pytest.mark.parametrize("method", METHODS)
def test_a_backend_that_the_method_does_not_have_is_refused(recall: Recall, method: Any) -> None:
    with pytest.raises(ConfigError, match=f"--backend scipy does not have --method {method}"):
        recall(STAR, ["A"], method=method, backend="scipy")
    assert recall(STAR, ["A"], method=method, backend="cpu").run.manifest.backend.name == "cpu"


def test_restart_of_a_walk_has_its_own_default(recall: Recall) -> None:
    value = {method: recall(STAR, ["A"], method=method).run.manifest.options["restart"] for method in ("walk", "ppr")}
    assert value["walk"].model_dump() == {"value": 0.2, "origin": "default"}
    assert value["ppr"].model_dump() == {"value": 0.5, "origin": "default"}
    given = recall(STAR, ["A"], method="walk", restart=0.5).run.manifest.options["restart"]
    assert given.model_dump() == {"value": 0.5, "origin": "argument"}
