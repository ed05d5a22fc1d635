"""Groups through the whole job: every method, fusion, fallback, nodes without a key, types of keys, explain."""

from __future__ import annotations

import datetime as dt
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
from seedrank.testing.reference_groups import reference_collapse
from seedrank.testing.strategies import RandomGraph, graphs

Job = Callable[..., Any]
METHODS = ["ppr", "walk", "bfs", "dfs", "neighbors"]

#: s leads to a (twice as much), b, c and d; a and c are in the file x, b in y, d in none.
EDGES = [("s", "a", 4.0), ("s", "b", 3.0), ("s", "c", 2.0), ("s", "d", 1.0)]
FILES = pa.table(
    {
        "id": list("sabcd"),
        "file": ["z", "x", "y", "x", None],
        "day": pa.array([None, dt.date(2024, 1, 1), dt.date(2024, 1, 2), dt.date(2024, 1, 1), None]),
        "lines": pa.array([None, 7, 7, 7, 1], pa.int16()),
        "span": [[1], [1], [2], [1], None],
    }
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> seedrank.GraphStore:
    """The graph with its files."""
    columns = dict(zip(("src", "dst", "weight"), map(list, zip(*EDGES, strict=True)), strict=True))
    return seedrank.build(pa.table(columns), nodes=FILES, out=tmp_path_factory.mktemp("groups") / "graph")


def shown(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """(group, best member, all members) of some candidates; the first member has the score of the group."""
    for row in rows:
        assert row["members"][0] == {"node_id": row["node_id"], "score": row["score"]}
    return [(row["group_id"], row["node_id"], [member["node_id"] for member in row["members"]]) for row in rows]


GROUPS = [("x", "a", ["a", "c"]), ("y", "b", ["b"]), (None, "d", ["d"])]


def test_a_group_has_the_rank_and_score_of_its_best_member(recall: Job, store: seedrank.GraphStore) -> None:
    nodes = recall(store, ["s"], precision="float64")
    found = recall(store, ["s"], precision="float64", group_by="file")
    assert shown(found.candidates["q"]) == GROUPS
    scores = nodes.column("score")
    assert [row["score"] for row in found.candidates["q"]] == [scores["a"], scores["b"], scores["d"]]
    assert found.candidates["q"][0]["members"][1] == {"node_id": "c", "score": scores["c"]}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("k", [1, 2, 3, 9])
def test_k_counts_groups(recall: Job, store: seedrank.GraphStore, method: str, k: int) -> None:
    """Members are listed wherever they rank: c is the third node, and in the first group."""
    found = recall(store, ["s"], method=method, group_by="file", top_k=k)
    assert [(group, sorted(members)) for group, _, members in shown(found.candidates["q"])] == [
        (group, members) for group, _, members in GROUPS[:k]
    ]


def test_columns_of_the_best_member_and_paths(recall: Job, store: seedrank.GraphStore) -> None:
    found = recall(store, ["s"], method="bfs", group_by="file", paths=True)
    assert [(row["hops"], row["anchor_id"], row["path"][0]["dst"]) for row in found.candidates["q"]] == [
        (1, "s", "a"),
        (1, "s", "b"),
        (1, "s", "d"),
    ]


def test_filters_apply_to_nodes_and_the_threshold_to_groups_by_their_best(
    recall: Job, store: seedrank.GraphStore
) -> None:
    assert shown(recall(store, ["s"], group_by="file", where=("id=c", "id=b")).candidates["q"]) == [
        ("y", "b", ["b"]),
        ("x", "c", ["c"]),
    ]
    assert shown(recall(store, ["s"], group_by="file", require=("file",)).candidates["q"]) == GROUPS[:2]
    scores = recall(store, ["s"]).column("score")
    above = recall(store, ["s"], group_by="file", min_score=float(scores["b"])).candidates["q"]
    assert shown(above) == [("x", "a", ["a"]), ("y", "b", ["b"])]


@pytest.mark.parametrize(
    ("column", "kind", "keys"),
    [
        ("file", pa.string(), ["x", "y", None]),
        ("day", pa.date32(), [dt.date(2024, 1, 1), dt.date(2024, 1, 2), None]),
        ("lines", pa.int16(), [7, 1]),
        ("id", pa.string(), ["a", "b", "c", "d"]),
    ],
)
def test_keys_come_back_in_the_type_of_their_column(
    recall: Job, store: seedrank.GraphStore, column: str, kind: pa.DataType, keys: list[Any]
) -> None:
    found = recall(store, ["s"], group_by=column)
    assert found.run.candidates.schema.field("group_id").type == kind
    assert [row["group_id"] for row in found.candidates["q"]] == keys


def test_columns_that_cannot_be_keys(recall: Job, fuse: Job, store: seedrank.GraphStore) -> None:
    with pytest.raises(InputDataError, match=r"--group-by 'path': the nodes have no such column"):
        recall(store, ["s"], group_by="path")
    with pytest.raises(InputDataError, match=r"--group-by 'span': the column has type list"):
        recall(store, ["s"], group_by="span")
    with pytest.raises(InputDataError, match="the graph has no node attributes"):
        fuse({"L": "ab"}, group_by="file")
    with pytest.raises(ConfigError, match="--stop top-k is given with --group-by"):
        recall(store, ["s"], group_by="file", stop="top-k")


def test_several_restarts(recall: Job, store: seedrank.GraphStore, tmp_path: Path) -> None:
    hits = pa.table({"query_id": ["q", "r"], "node_id": ["s", "a"]})
    run = seedrank.score(
        store, queries=hits, out=tmp_path / "run", restart=(0.2, 0.5), group_by="file", direction="both"
    )
    rows = run.candidates.to_arrow().to_pylist()
    for restart in (0.2, 0.5):
        of_q = [row for row in rows if (row["query_id"], row["restart"]) == ("q", restart)]
        assert shown(of_q) == GROUPS


def test_no_candidates(recall: Job, store: seedrank.GraphStore) -> None:
    found = recall(store, {"q": ["zz"], "r": ["d"]}, group_by="file")
    assert found.candidates == {"q": [], "r": []}
    assert found.run.candidates.schema.names[-2:] == ["group_id", "members"]


def test_fused_groups(fuse: Job, store: seedrank.GraphStore) -> None:
    """Positions count groups: c makes x the first of L1, new is in no file and no graph."""
    found = fuse({"L1": ["c", "a", "new", "b"], "L2": ["b", "c"]}, store, method="fuse", group_by="file")
    rows = {row["group_id"]: row for row in found.candidates["q"]}
    assert [row["group_id"] for row in found.candidates["q"]] == ["x", "y", None]
    assert [row["score"] for row in found.candidates["q"]] == pytest.approx([1 / 61 + 1 / 62, 1 / 63 + 1 / 61, 1 / 62])
    assert (rows["x"]["score_L1"], rows["x"]["score_L2"]) == pytest.approx((1 / 61, 1 / 62))
    assert [member["node_id"] for member in rows["x"]["members"]] == ["c", "a"]
    assert [member["score"] for member in rows["x"]["members"]] == pytest.approx([1 / 61 + 1 / 62, 1 / 62])
    assert fuse({"L1": ["c", "a", "b"]}, store, method="fuse", group_by="file", top_k=1).nodes() == ["c"]


def test_groups_of_hits_and_graph(fuse: Job, store: seedrank.GraphStore) -> None:
    """The graph's list from s is s, a, b, c, d: groups z, x, y, none."""
    found = fuse({"L": ["s", "d"]}, store, fusion="rrf", group_by="file", source_weight={"L": 2.0})
    assert [(row["group_id"], row["score_graph"], row["score_L"]) for row in found.candidates["q"]][:3] == [
        ("z", pytest.approx(1 / 61), pytest.approx(2 / 61)),
        (None, pytest.approx(1 / 62), pytest.approx(2 / 62)),
        ("x", pytest.approx(1 / 63), None),
    ]


def test_groups_of_a_fallback(fuse: Job, store: seedrank.GraphStore) -> None:
    hits = pa.table({"query_id": ["q", "q", "r", "r"], "node_id": ["new", "other", "s", "new"], "weight": [2, 1, 1, 1]})
    found = fuse(hits, store, fallback="rrf", group_by="file", top_k=2)
    assert (found.status("q"), found.status("r")) == ("fallback_rrf", "ok")
    assert [(row["group_id"], row["node_id"]) for row in found.candidates["q"]] == [(None, "new"), (None, "other")]
    assert shown(found.candidates["r"]) == GROUPS[:2]


@pytest.mark.parametrize("method", ["semantic", "hybrid"])
def test_groups_of_hits_by_their_own_scores(fuse: Job, store: seedrank.GraphStore, method: str) -> None:
    hits = [("b", "L", 0.9), ("c", "L", 0.8), ("a", "L", 0.3), ("new", "L", 0.1)]
    found = fuse(hits, store, method=method, group_by="file", top_k=2)
    assert shown(found.candidates["q"]) == [("y", "b", ["b"]), ("x", "c", ["c", "a"])]


def test_every_plan_of_auto_ranks_groups(fuse: Job, store: seedrank.GraphStore, tmp_path: Path) -> None:
    """As the method of the plan does alone."""
    plans: dict[str, tuple[str, dict[str, Any]]] = {
        "l": ("lexical", {"method": "fuse", "source": ("words",)}),
        "m": ("semantic", {"method": "semantic", "source": ("vectors",)}),
        "s": ("structural", {"method": "ppr", "source": ("words",), "include_seeds": True}),
    }
    words, vectors = [("s", 2.0), ("c", 1.0)], [("b", 0.9), ("c", 0.6), ("a", 0.5)]
    per_query = [(node, "words", weight) for node, weight in words]
    per_query += [(node, "vectors", weight) for node, weight in vectors]
    rows = [(query, *hit) for query in plans for hit in per_query]
    columns = zip(("query_id", "node_id", "source", "weight"), map(list, zip(*rows, strict=True)), strict=True)
    hits = pa.table(dict(columns))
    signals = {name: [name == signal for signal, _ in plans.values()] for name in ("lexical", "semantic", "structural")}
    info = pa.table({"query_id": list(plans), **signals})
    roles: dict[str, Any] = {"words": "sparse", "vectors": "dense"}
    run = seedrank.score(
        store, queries=hits, query_info=info, out=tmp_path / "auto", method="auto", source_role=roles, group_by="file"
    )
    found = run.candidates.to_arrow().to_pylist()
    for query, (_, options) in plans.items():
        alone = seedrank.score(store, queries=hits, out=tmp_path / query, group_by="file", **options)
        expected = shown([row for row in alone.candidates.to_arrow().to_pylist() if row["query_id"] == query])
        assert len(expected) > 1
        assert shown([row for row in found if row["query_id"] == query]) == expected


def test_explain_says_whether_the_group_is_returned(recall: Job, store: seedrank.GraphStore) -> None:
    hits = pa.table({"query_id": ["q"], "node_id": ["s"]})
    run = recall(store, ["s"], group_by="file", top_k=2).run
    explained = {node: seedrank.explain(run.path, query="q", node=node, queries=hits) for node in "abcd"}
    assert {node: (found.rank, found.candidate) for node, found in explained.items()} == {
        "a": (1, True), "b": (2, True), "c": (3, True), "d": (4, False),
    }  # fmt: skip


@settings(max_examples=15, deadline=None)
@given(graph=graphs(ids="string", weighted=False, typed=False), data=st.data())
def test_groups_are_the_collapsed_ranking_of_nodes(
    tmp_path_factory: pytest.TempPathFactory, graph: RandomGraph, data: st.DataObject
) -> None:
    ids = list(graph.nodes)
    keys = data.draw(st.lists(st.one_of(st.none(), st.integers(0, 2)), min_size=len(ids), max_size=len(ids)))
    k = data.draw(st.integers(1, 4))
    columns = zip(("src", "dst"), (0, 1), strict=True)
    edges = pa.table({name: pa.array([edge[end] for edge in graph.edges], pa.string()) for name, end in columns})
    folder = tmp_path_factory.mktemp("grouped")
    nodes = pa.table({"id": pa.array(ids, pa.string()), "key": pa.array(keys, pa.int64())})
    store = seedrank.build(edges, nodes=nodes, out=folder / "graph")
    hits = pa.table({"query_id": pa.array(ids, pa.string()), "node_id": pa.array(ids, pa.string())})
    rows = {}
    options: dict[str, dict[str, Any]] = {"nodes": {"top_k": 1000}, "groups": {"top_k": k, "group_by": "key"}}
    for name, more in options.items():
        run = seedrank.score(store, queries=hits, out=folder / name, include_seeds=True, direction="both", **more)
        rows[name] = run.candidates.to_arrow().to_pylist()
    for query in ids:
        ranking = [(row["node_id"], row["score"]) for row in rows["nodes"] if row["query_id"] == query]
        found = [row for row in rows["groups"] if row["query_id"] == query]
        expected = reference_collapse(ranking, dict(zip(ids, keys, strict=True)), k=k)
        assert [(row["node_id"], row["score"]) for row in found] == [(best, score) for best, score, _ in expected]
        assert [[(member["node_id"], member["score"]) for member in row["members"]] for row in found] == [
            members for *_, members in expected
        ]


def test_the_block_does_not_change_groups(store: seedrank.GraphStore, tmp_path: Path) -> None:
    hits = pa.table({"query_id": list("wxyz"), "node_id": ["s", "a", "d", "s"]})
    files = [
        seedrank.score(
            store, queries=hits, out=tmp_path / str(size), direction="both", group_by="file", block_size=size
        ).candidates.files[0]
        for size in (1, 3)
    ]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_on_the_command_line(seedrank_command: Job, store: seedrank.GraphStore, write: Job, tmp_path: Path) -> None:
    hits = write("hits.parquet", {"query_id": ["q"], "node_id": ["s"]})
    arguments = [store.path, "--queries", hits, "--group-by", "file", "--top-k", "1"]
    done = seedrank_command("score", *arguments, "--out", tmp_path / "run", "--json", "--quiet")
    assert done.code == 0, done.err
    assert json.loads(done.out)["options"]["group_by"]["value"] == "file"
    assert shown(seedrank.open_run(tmp_path / "run").candidates.to_arrow().to_pylist()) == GROUPS[:1]
    assert seedrank_command("plan", *arguments).code == 0
    assert seedrank_command("check", *arguments[:3], "--group-by", "nothing").code == 3
