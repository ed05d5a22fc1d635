"""``--method semantic`` and ``hybrid`` through the whole job: known answers, no graph, options that are refused."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import seedrank
from seedrank.errors import ConfigError, InputDataError

Fuse = Callable[..., Any]
#: a → b (2, cites), a → c (1, likes), c → d (1, cites), x → a (1, likes).
EDGES = pa.table(
    {
        "src": ["a", "a", "c", "x"],
        "dst": ["b", "c", "d", "a"],
        "weight": [2.0, 1.0, 1.0, 1.0],
        "type": ["cites", "likes", "cites", "likes"],
    }
)
HITS = [("a", "dense", 0.8, 0.5), ("new", "dense", 0.3, None), ("b", "dense", -0.5, -1.0), ("b", "words", -0.1, 2.0)]
COLUMNS = ("source", "weight", "retriever_weight")


def test_semantic_needs_no_graph(fuse: Fuse) -> None:
    found = fuse(HITS, method="semantic", columns=COLUMNS)
    # b: the larger of -0.5 · max(-1, 0) and -0.1 · 2.
    assert found.column("score") == {"a": 0.4, "new": 0.3, "b": 0.0}
    assert found.nodes() == ["a", "new", "b"]
    assert found.run.candidates.to_arrow().column_names == ["query_id", "rank", "node_id", "score"]
    beside = fuse(HITS, EDGES, method="semantic", columns=COLUMNS)
    assert beside.candidates == found.candidates
    assert (found.rows["q"]["seeds_missing"], beside.rows["q"]["seeds_missing"]) == (0, 1)
    assert fuse(HITS, method="semantic", columns=COLUMNS, source=["dense"]).nodes() == ["a", "new", "b"]
    assert fuse(HITS, method="semantic", columns=COLUMNS, min_score=0.35).nodes() == ["a"]


def test_hybrid_at_depth_0_is_semantic_and_needs_no_graph(fuse: Fuse) -> None:
    semantic = fuse(HITS, method="semantic", columns=COLUMNS)
    hybrid = fuse(HITS, method="hybrid", columns=COLUMNS, expand_depth=0)
    assert hybrid.column("score") == semantic.column("score") == hybrid.column("score_semantic")
    assert {*hybrid.column("score_edge").values(), *hybrid.column("score_centrality").values()} == {0.0}
    with pytest.raises(ConfigError, match="no graph is given, but --method hybrid needs one"):
        fuse(HITS, method="hybrid", columns=COLUMNS)


def test_hybrid_worked_out_by_hand(fuse: Fuse) -> None:
    found = fuse(HITS, EDGES, method="hybrid", columns=COLUMNS)
    # Subgraph: a, b, new and c; edges a → b (2) and a → c (1).
    assert found.column("score_semantic") == {"a": 0.4, "new": 0.3, "b": 0.0}
    assert found.column("score_edge") == pytest.approx({"a": 0.3, "new": 0.0, "b": 0.2})
    assert found.column("score_centrality") == pytest.approx({"a": 0.1 * 2 / 3, "new": 0.0, "b": 0.1 / 3})
    assert found.column("score") == pytest.approx({"a": 0.7 + 0.2 / 3, "new": 0.3, "b": 0.2 + 0.1 / 3})
    assert found.nodes() == ["a", "new", "b"]


def test_options_of_hybrid(fuse: Fuse) -> None:
    hits = [("a", "dense", 0.0)]
    wider = fuse(hits, EDGES, method="hybrid", expand_depth=2, include_expanded=True, edge_bonus=1, centrality_bonus=0)
    assert wider.column("score") == {"a": 3.0, "b": 2.0, "c": 2.0, "d": 1.0}
    assert wider.nodes() == ["a", "b", "c", "d"]
    back = fuse(hits, EDGES, method="hybrid", direction="in", include_expanded=True)
    assert back.nodes() == ["a", "x"]
    typed = fuse(hits, EDGES, method="hybrid", edge_type=["likes"], include_expanded=True, direction="both")
    assert typed.nodes() == ["a", "c", "x"]
    weighted = fuse(hits, EDGES, method="hybrid", type_weight={"cites": 10.0}, centrality_bonus=0)
    assert weighted.column("score") == pytest.approx({"a": 0.1 * 21})
    with pytest.raises(InputDataError, match="no edge has this type"):
        fuse(hits, EDGES, method="hybrid", edge_type=["hates"])


def test_case_46_what_was_seen_is_filtered_before_the_cut(fuse: Fuse) -> None:
    star = pa.table({"src": list("AAAAA"), "dst": list("bcdef")})
    nodes = pa.table({"id": list("Abcdef"), "type": ["hub", *["leaf"] * 5]})
    seen = pa.table({"query_id": ["q", "q"], "node_id": ["b", "c"]})
    options: dict[str, Any] = {"method": "hybrid", "include_expanded": True, "top_k": 3, "exclude": seen}
    assert fuse([("A", "s", 0.0)], star, node_type=["leaf"], nodes=nodes, **options).nodes() == ["d", "e", "f"]
    hits = [(node, "s", 1.0) for node in "bcdef"]
    assert fuse(hits, method="semantic", top_k=3, exclude=seen).nodes() == ["d", "e", "f"]
    # Hits that may not be returned are part of the subgraph all the same.
    found = fuse([("A", "s", 0.0), ("b", "s", 0.0)], star, method="hybrid", exclude=seen, expand_depth=1)
    assert found.column("score_edge") == {"A": 0.5}


def test_semantic_sources_are_those_that_are_said_to_be_dense(fuse: Fuse) -> None:
    hits = [("a", "pages", 0.5), ("b", "words", 9.0), ("c", "dense", 0.1)]
    assert fuse(hits, method="semantic").nodes() == ["b", "a", "c"]
    assert fuse(hits, method="semantic", source_role={"words": "sparse"}).nodes() == ["b", "a", "c"]
    assert fuse(hits, method="semantic", source_role={"pages": "dense"}).nodes() == ["a", "c"]
    assert fuse(hits, EDGES, method="hybrid", source_role={"pages": "dense"}).nodes() == ["a", "c"]
    with pytest.raises(InputDataError, match="--source-role 'others': no hit has this source"):
        fuse(hits, method="semantic", source_role={"others": "dense"})


def test_queries_without_hits_have_no_valid_seeds(fuse: Fuse) -> None:
    hits = pa.table({"query_id": ["full", "empty"], "node_id": ["a", None], "weight": [1.0, None]})
    found = fuse(hits, method="semantic")
    assert (found.status("full"), found.status("empty")) == ("ok", "no_valid_seeds")


def test_order_of_rows_blocks_and_files_changes_no_byte(fuse: Fuse, write: Callable[..., Path]) -> None:
    draw = random.Random(5)  # noqa: S311
    rows = [
        (f"q{draw.randrange(6)}", draw.choice("abcdxyz"), draw.choice("st"), draw.randrange(-3, 4) / 3,
         draw.choice([None, 0.5, 1.0, -2.0]))
        for _ in range(100)
    ]  # fmt: skip
    names = ("query_id", "node_id", "source", "weight", "retriever_weight")

    def table(some: list[Any]) -> pa.Table:
        return pa.table({name: [row[i] for row in some] for i, name in enumerate(names)})

    options: dict[str, Any] = {
        "method": "hybrid", "include_expanded": True, "expand_depth": 2, "precision": "float32"
    }  # fmt: skip
    first = fuse(table(rows), EDGES, **options).files
    draw.shuffle(rows)
    assert fuse(table(rows), EDGES, block_size=1, **options).files == first
    halves = [str(write(f"{half}.parquet", table(part))) for half, part in (("b", rows[:50]), ("a", rows[50:]))]
    assert fuse(halves, EDGES, block_size=4, **options).files == first


def test_retriever_weights_of_nested_hits_and_of_another_column(fuse: Fuse) -> None:
    hit = pa.struct({"node_id": pa.string(), "weight": pa.float64(), "retriever_weight": pa.float32()})
    seeds = pa.array([[{"node_id": "a", "weight": 2.0, "retriever_weight": 0.25}]], pa.list_(hit))
    nested = pa.table({"query_id": ["q"], "seeds": seeds})
    assert fuse(nested, method="semantic").column("score") == {"a": 0.5}
    renamed = [("a", 2.0, 0.25), ("b", 1.0, None)]
    assert fuse(renamed, method="semantic", columns=("weight", "trust")).column("score") == {"a": 2.0, "b": 1.0}
    named = fuse(renamed, method="semantic", columns=("weight", "trust"), hit_retriever_weight_column="trust")
    assert named.column("score") == {"b": 1.0, "a": 0.5}
    with pytest.raises(InputDataError, match="retriever weight that is NaN or infinite"):
        fuse([("a", 1.0, float("inf"))], method="semantic", columns=("weight", "retriever_weight"))
    with pytest.raises(InputDataError, match="no column 'nowhere'"):
        fuse(renamed, method="semantic", columns=("weight", "x"), hit_retriever_weight_column="nowhere")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fusion": "rrf"}, "--fusion is given with --method hybrid"),
        ({"fallback": "rrf"}, "--fallback is given with --method hybrid"),
        ({"lower_is_better": ["dense"]}, "--lower-is-better is given with --method hybrid"),
        ({"include_seeds": False}, "--exclude-seeds is given with --method hybrid"),
        ({"damping": 0.5}, "--damping is given, but --method hybrid does not use it"),
        ({"method": "semantic", "expand_depth": 2}, "--expand-depth is given, but --method semantic does not use it"),
        ({"method": "ppr", "edge_bonus": 2}, "--edge-bonus is given, but --method ppr does not use it"),
        ({"method": "ppr", "hit_retriever_weight_column": "x"}, "--hit-retriever-weight-column is given"),
        ({"edge_bonus": -1.0}, "edge_bonus"),
    ],
)
def test_options_that_are_refused(fuse: Fuse, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        fuse(HITS, EDGES, **{"method": "hybrid", "columns": COLUMNS, **options})


def test_plan_check_and_resume(fuse: Fuse, hit_table: Callable[..., Any], tmp_path: Path) -> None:
    hits = hit_table(HITS, columns=COLUMNS)
    planned = seedrank.plan(EDGES, queries=hits, method="hybrid", include_expanded=True, out=tmp_path / "run")
    assert (planned.backend, planned.queries, planned.largest_output_rows) == ("numpy", 1, 12)
    checked = seedrank.check(queries=hits, method="semantic", out=tmp_path / "run")
    assert (checked.queries, checked.seeds_given, checked.warnings) == (1, 4, [])
    first = seedrank.score(EDGES, queries=hits, method="hybrid", out=tmp_path / "run")
    again = seedrank.score(EDGES, queries=hits, method="hybrid", out=tmp_path / "run")
    assert again.manifest.run_key == first.manifest.run_key
    with pytest.raises(ConfigError, match=r"--edge-bonus: 0\.1 there, 0\.2 here"):
        seedrank.score(EDGES, queries=hits, method="hybrid", edge_bonus=0.2, out=tmp_path / "run")
    other = hit_table([*HITS[:3], ("b", "words", -0.1, 3.0)], columns=COLUMNS)
    with pytest.raises(ConfigError, match="holds the parts of another run: the hits"):
        seedrank.score(EDGES, queries=other, method="hybrid", out=tmp_path / "run")


def test_the_command(
    seedrank_command: Callable[..., Any], write: Callable[..., Path], hit_table: Callable[..., Any], tmp_path: Path
) -> None:
    hits, edges = write("hits.parquet", hit_table(HITS, columns=COLUMNS)), write("edges.parquet", EDGES)
    arguments = ["--queries", hits, "--method", "hybrid", "--expand-depth", "1", "--include-expanded"]
    result = seedrank_command("score", edges, *arguments, "--edge-bonus", "0", "--out", tmp_path / "run")
    assert result.code == 0, result.err
    assert seedrank.open_run(tmp_path / "run").candidates.to_arrow()["node_id"].to_pylist() == ["a", "new", "b", "c"]
    assert seedrank_command("score", *arguments, "--out", tmp_path / "no").code == 2
