"""``--method fuse`` through the whole job: cases met in the field, random lists, order, ids, ranks."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import seedrank
from seedrank.errors import ConfigError, InputDataError
from seedrank.testing.reference_fusion import ReferenceHit, reference_fusion

Fuse = Callable[..., Any]
Hit = tuple[Any, ...]
Table = Callable[..., Any]
#: a → b → c → d, and x, which nothing leads to; the graph brings a, b, c, d from the seed a.
CHAIN = pa.table({"src": ["a", "b", "c", "x"], "dst": ["b", "c", "d", "a"]})


def test_case_37_a_repeat_counts_once_at_its_best_position(fuse: Fuse) -> None:
    found = fuse({"L1": "AAB", "L2": "B"})
    assert found.column("score") == {"B": 1 / 63 + 1 / 61, "A": 1 / 61}
    assert found.nodes() == ["B", "A"]


def test_case_38_rank_base_absent_nodes_and_k(fuse: Fuse) -> None:
    found = fuse({"L1": "XaY", "L2": "bcY"})
    assert list(found.column("score").items()) == [
        ("Y", 2 / 63), ("X", 1 / 61), ("b", 1 / 61), ("a", 1 / 62), ("c", 1 / 62),
    ]  # fmt: skip
    for k, first, second in ((60, 0.0322665, 0.0322581), (2, 1 / 3 + 1 / 5, 2 / 4)):
        scores = fuse({"L1": ["d13", "d22", "y"], "L2": ["z", "d22", "d13"]}, rrf_k=k).column("score")
        assert (scores["d13"], scores["d22"]) == pytest.approx((first, second), abs=5e-8)


def test_case_39_sums(fuse: Fuse) -> None:
    ranks = [("n12", 1, 2), ("n11", 1, 1), ("n22", 2, 2), ("n13", 1, 3)]
    hits = [(node, f"L{i}", 0.0, rank) for node, *pair in ranks for i, rank in enumerate(pair)]
    found = fuse(hits, columns=("source", "weight", "rank"))
    expected = {"n12": 0.0325225, "n11": 0.0327869, "n22": 0.0322581, "n13": 0.0322665}
    assert found.column("score") == pytest.approx(expected, abs=5e-8)
    assert found.nodes() == ["n11", "n12", "n13", "n22"]


@pytest.mark.parametrize("weights", [{"L1": 0, "L2": 0}, {"L1": -1, "L2": 2}, {"L1": float("nan"), "L2": 1}])
def test_case_41_weights_that_are_refused(fuse: Fuse, weights: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=r"source.weight"):
        fuse({"L1": "A", "L2": "B"}, source_weight=weights)


def test_case_43_distances_and_scores_in_any_order(fuse: Fuse) -> None:
    distances = [("B", "d", 0.4), ("A", "d", 0.1)]
    assert fuse(distances, lower_is_better=["d"]).nodes() == ["A", "B"]
    assert fuse(distances, lower_is_better=["d"], fusion="weighted").column("score") == {"A": 1.0, "B": 0.0}
    assert fuse([("A", "s", 0.2), ("B", "s", 0.9)]).nodes() == ["B", "A"]


def test_case_44_a_threshold_that_nothing_can_reach(fuse: Fuse) -> None:
    with pytest.raises(ConfigError, match=r"--min-score 0\.1 is above 0\.0327869"):
        fuse({"L1": "A", "L2": "A"}, min_score=0.1)
    assert fuse({"L1": "AB", "L2": "A"}, min_score=2 / 61).nodes() == ["A"]
    with pytest.raises(ConfigError, match=r"--min-score 2\.5 is above 2"):
        fuse({"L1": "A", "L2": "A"}, min_score=2.5, fusion="weighted")
    with pytest.raises(ConfigError, match="gives none above 1"):
        fuse({"L1": "A"}, CHAIN, min_score=1.5)


def test_case_46_what_was_seen_is_filtered_before_the_cut(hit_table: Table, tmp_path: Path) -> None:
    seen = pa.table({"query_id": ["q", "q"], "node_id": ["b", "c"]})
    hits = hit_table({"L1": "bcdef"})
    run = seedrank.score(queries=hits, exclude=seen, out=tmp_path / "run", method="fuse", top_k=3)
    assert run.candidates.to_arrow()["node_id"].to_pylist() == ["d", "e", "f"]
    assert run.candidates.to_arrow()["score"].to_pylist() == pytest.approx([1 / 63, 1 / 64, 1 / 65])
    everything = pa.table({"node_id": list("bcdef")})
    none = seedrank.score(queries=hits, exclude=everything, out=tmp_path / "none", method="fuse")
    assert none.queries.to_arrow().select(["status", "candidates"]).to_pylist() == [{"status": "ok", "candidates": 0}]


def random_hits(seed: int) -> list[Hit]:
    """Rows (query, node, source, weight, rank) with ties and repeats."""
    draw = random.Random(seed)  # noqa: S311
    return [
        (
            f"q{draw.randrange(6)}",
            draw.randrange(15),
            draw.choice("xyz"),
            draw.randrange(-3, 4) / 2,
            draw.randrange(1, 9),
        )
        for _ in range(120)
    ]


@pytest.mark.parametrize("ranked", [False, True])
@pytest.mark.parametrize("rule", ["rrf", "weighted"])
def test_agrees_with_the_reference_on_random_lists(fuse: Fuse, rule: Any, ranked: bool) -> None:
    rows = random_hits(4)
    names = ("query_id", "node_id", "source", "weight", *(["rank"] if ranked else []))
    table = pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)})
    settings: dict[str, Any] = {"rrf_k": 3} if rule == "rrf" else {}
    found = fuse(table, fusion=rule, source_weight={"x": 2.0, "z": 0.5}, lower_is_better=["y"], **settings)
    for query in {row[0] for row in rows}:
        per_list: dict[str, list[ReferenceHit]] = {}
        for _, node, source, weight, rank in (row for row in rows if row[0] == query):
            per_list.setdefault(source, []).append(ReferenceHit(node, weight, rank if ranked else None))
        expected = reference_fusion(
            per_list, rule=rule, weights={"x": 2.0, "z": 0.5}, lower_is_better=["y"], **settings
        )
        assert found.nodes(query) == [node for node, _, _ in expected]
        assert found.column("score", query) == pytest.approx({node: float(score) for node, score, _ in expected})
        for name in "xyz":
            contributions = {node: parts.get(name) for node, _, parts in expected}
            shown = found.column(f"score_{name}", query)
            assert {node for node, value in shown.items() if value is None} == {
                node for node, value in contributions.items() if value is None
            }
            assert {node: value for node, value in shown.items() if value is not None} == pytest.approx(
                {node: float(value) for node, value in contributions.items() if value is not None}
            )


@pytest.mark.parametrize("graph", [None, CHAIN], ids=["alone", "with-graph"])
def test_order_of_rows_blocks_and_files_changes_no_byte(
    fuse: Fuse, write: Callable[..., Path], graph: pa.Table | None
) -> None:
    names = ("query_id", "node_id", "source", "weight")
    rows = [(query, "abcdxyz"[node % 7], source, abs(weight), 0) for query, node, source, weight, _ in random_hits(1)]
    settings: dict[str, Any] = {} if graph is None else {"fusion": "rrf", "precision": "float32"}

    def table(rows: Sequence[Hit]) -> pa.Table:
        return pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)})

    first = fuse(table(rows), graph, **settings).files
    random.Random(2).shuffle(rows)  # noqa: S311
    assert fuse(table(rows), graph, block_size=1, **settings).files == first
    halves = [str(write(f"{half}.parquet", table(part))) for half, part in (("b", rows[:50]), ("a", rows[50:]))]
    assert fuse(halves, graph, block_size=4, **settings).files == first


def test_a_graph_changes_nothing_of_fuse_but_the_count_of_what_it_lacks(fuse: Fuse) -> None:
    hits = {"L1": ["b", "new", "a"], "L2": ["zzz", "b"]}
    alone, beside = fuse(hits), fuse(hits, CHAIN, method="fuse")
    assert alone.candidates == beside.candidates
    assert alone.nodes() == ["b", "zzz", "new", "a"]
    assert (alone.rows["q"]["seeds_missing"], beside.rows["q"]["seeds_missing"]) == (0, 2)
    assert alone.run.manifest.graph is None
    assert "graph" not in alone.run.manifest.inputs


def test_node_types_of_the_graph_filter_hits(fuse: Fuse) -> None:
    nodes = pa.table({"id": ["a", "b", "c"], "type": ["page", "person", "page"]})
    hits = {"L1": ["new", "b", "a", "c"]}
    found = fuse(hits, CHAIN, method="fuse", nodes=nodes, node_type=["page"])
    assert found.column("score") == {"a": 1 / 63, "c": 1 / 64}
    with pytest.raises(InputDataError, match="the graph has no node types"):
        fuse(hits, node_type=["page"])


def test_ids_come_back_in_their_type(fuse: Fuse) -> None:
    hits = pa.table({"query_id": [1, 1], "node_id": pa.array([2**64 - 1, 5], pa.uint64()), "weight": [1.0, 2.0]})
    table = fuse(hits).run.candidates.to_arrow()
    assert table["node_id"].type == pa.uint64()
    assert table["node_id"].to_pylist() == [5, 2**64 - 1]
    assert table.column_names == ["query_id", "rank", "node_id", "score", "score_hits"]


def test_negative_weights_are_scores_to_fuse_and_no_seeds(fuse: Fuse) -> None:
    hits = [("a", "logs", -2.0), ("b", "logs", -1.0)]
    assert fuse(hits).nodes() == ["b", "a"]
    with pytest.raises(InputDataError, match="negative"):
        fuse(hits, CHAIN, fusion="rrf")
    with pytest.raises(InputDataError, match="null, NaN or infinite"):
        fuse([("a", "logs", float("nan"))])


def test_ranks_of_a_column_win_over_weights(fuse: Fuse) -> None:
    hits = [("a", 9.0, 2), ("b", 1.0, 1)]
    assert fuse(hits, columns=("weight", "rank")).nodes() == ["b", "a"]
    assert fuse(hits, columns=("weight", "place")).nodes() == ["a", "b"]
    assert fuse(hits, columns=("weight", "place"), hit_rank_column="place").nodes() == ["b", "a"]
    with pytest.raises(InputDataError, match="no column 'nowhere'"):
        fuse(hits, columns=("weight", "rank"), hit_rank_column="nowhere")


def test_nested_hits_have_ranks_too(fuse: Fuse) -> None:
    hit = pa.struct({"node_id": pa.string(), "rank": pa.int32()})
    seeds = pa.array([[{"node_id": "a", "rank": 2}, {"node_id": "b", "rank": 1}]], pa.list_(hit))
    assert fuse(pa.table({"query_id": ["q"], "seeds": seeds})).nodes() == ["b", "a"]


def test_plan_and_check_without_a_graph(hit_table: Table, tmp_path: Path) -> None:
    hits = hit_table({"L1": "ab"})
    planned = seedrank.plan(queries=hits, method="fuse", out=tmp_path / "run")
    assert (planned.graph, planned.nodes, planned.queries, planned.largest_output_rows) == ("none", 0, 1, 2)
    checked = seedrank.check(queries=hits, method="fuse", out=tmp_path / "run")
    assert (checked.nodes, checked.queries, checked.seeds_given, checked.warnings) == (0, 1, 2, [])


def test_the_command(
    seedrank_command: Callable[..., Any], write: Callable[..., Path], hit_table: Table, tmp_path: Path
) -> None:
    hits, out = write("hits.parquet", hit_table({"dense": ["a", "b"], "far": ["c", "b"]})), tmp_path / "run"
    arguments = ["--method", "fuse", "--rrf-k", "2", "--source-weight", "dense=2", "--lower-is-better", "far"]
    result = seedrank_command("score", "--queries", hits, "--out", out, *arguments)
    assert result.code == 0, result.err
    found = seedrank.open_run(out).candidates.to_arrow()
    assert found["node_id"].to_pylist() == ["b", "a", "c"]
    assert found["score"].to_pylist() == pytest.approx([2 / 4 + 1 / 3, 2 / 3, 1 / 4])
    for wrong in (["--source-weight", "dense=-1"], ["--source-weight", "dense=nan"], ["--rrf-k", "-1"]):
        result = seedrank_command("score", "--queries", hits, "--out", tmp_path / "no", "--method", "fuse", *wrong)
        assert (result.code, (tmp_path / "no").exists()) == (2, False)
    assert seedrank_command("score", "--queries", hits, "--out", tmp_path / "no").code == 2
