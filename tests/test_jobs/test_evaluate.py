"""``evaluate`` through runs: counts of queries, repeats, several restart probabilities, what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seedrank
from seedrank.errors import ConfigError, InputDataError

#: One list a query, so that the ranking is the list.
RANKINGS = {"q1": "acb", "q2": "xyz", "q3": "ab", "q4": ""}


@pytest.fixture
def run(tmp_path: Path) -> seedrank.Run:
    """A run that returns `RANKINGS`; the fourth query has no hit."""
    rows: list[tuple[str, str | None, float]] = [
        (query, node, 9.0 - place) for query, nodes in RANKINGS.items() for place, node in enumerate(nodes)
    ]
    rows.append(("q4", None, 1.0))
    columns = dict(zip(("query_id", "node_id", "weight"), map(list, zip(*rows, strict=True)), strict=True))
    return seedrank.score(method="fuse", queries=pa.table(columns), out=tmp_path / "run", part_size=2)


def gold_of(**nodes: str | list[str | None]) -> pa.Table:
    rows = [(query, node) for query, found in nodes.items() for node in found]
    return pa.table({"query_id": [row[0] for row in rows], "node_id": [row[1] for row in rows]})


def test_case_67_empty_gold_is_left_out_and_counted(run: seedrank.Run) -> None:
    found = seedrank.evaluate(
        run.path, gold=gold_of(q1="abb", q2=[None], q4="a", q9="a"), metrics=["recall@2", "recall@3", "mrr", "all@3"]
    )
    assert (found.queries, found.queries_without_gold, found.gold_queries_not_in_run, found.gold) == (2, 2, 1, 3)
    assert found.metrics == {"recall@2": 0.25, "recall@3": 0.5, "mrr": 0.5, "all@3": 0.5}
    assert found.per_query.to_pylist() == [
        {"query_id": "q1", "gold": 2, "found": 2, "recall@2": 0.5, "recall@3": 1.0, "mrr": 1.0, "all@3": 1.0},
        {"query_id": "q4", "gold": 1, "found": 0, "recall@2": 0.0, "recall@3": 0.0, "mrr": 0.0, "all@3": 0.0},
    ]


def test_order_of_the_gold_does_not_matter_and_repeats_count_once(run: seedrank.Run) -> None:
    gold = gold_of(q1="abab", q3="bz", q2="y")
    one, two = (seedrank.evaluate(run.path, gold=table) for table in (gold, gold.take(list(range(len(gold)))[::-1])))
    assert one.metrics == two.metrics
    assert one.per_query.equals(two.per_query)


def test_relevance(run: seedrank.Run) -> None:
    gold = pa.table({"q": ["q1", "q1", "q1"], "n": ["a", "b", "c"], "grade": [1, 3, 0]})
    columns: dict[str, Any] = {"query_column": "q", "node_column": "n", "relevance_column": "grade"}
    found = seedrank.evaluate(run.path, gold=gold, metrics=["ndcg", "recall@1"], **columns)
    assert found.metrics == pytest.approx({"ndcg": (1 + 3 / 2) / (3 + 1 / 1.584962500721156), "recall@1": 0.5})
    with pytest.raises(InputDataError, match="has no column 'level'"):
        seedrank.evaluate(run.path, gold=gold, query_column="q", node_column="n", relevance_column="level")


def test_several_restart_probabilities(tmp_path: Path) -> None:
    edges = pa.table({"src": ["a", "b", "a"], "dst": ["b", "c", "d"], "weight": [1.0, 1.0, 0.6]})
    hits = pa.table({"query_id": ["q"], "node_id": ["a"]})
    run = seedrank.score(edges, queries=hits, out=tmp_path / "run", damping=[0.5, 0.95])
    found = seedrank.evaluate(run.path, gold=gold_of(q="c"), metrics=["mrr"])
    # The end of the chain overtakes only where the walk goes far.
    assert [(one.restart, one.metrics["mrr"]) for one in found.results] == [(pytest.approx(0.05), 0.5), (0.5, 1 / 3)]
    assert found.per_query.column_names == ["query_id", "restart", "gold", "found", "mrr"]
    assert len(found.per_query) == 2


def test_integer_ids(tmp_path: Path) -> None:
    hits = pa.table({"query_id": pa.array([7, 7], pa.int16()), "node_id": pa.array([2**63, 5], pa.uint64())})
    run = seedrank.score(method="fuse", queries=hits, out=tmp_path / "run")
    gold = pa.table({"query_id": [7], "node_id": pa.array([2**63], pa.uint64())})
    assert seedrank.evaluate(run.path, gold=gold, metrics=["recall@2"]).metrics == {"recall@2": 1.0}
    with pytest.raises(InputDataError, match="query_id of the gold"):
        seedrank.evaluate(run.path, gold=pa.table({"query_id": ["7"], "node_id": [1]}))


def test_what_is_refused(run: seedrank.Run, tmp_path: Path) -> None:
    gold = gold_of(q1="a")
    for metric in ("recall", "recall@0", "precision@x", "auc@5", ""):
        with pytest.raises(ConfigError, match="is not a metric"):
            seedrank.evaluate(run.path, gold=gold, metrics=[metric])
    with pytest.raises(InputDataError, match=r"no query of .* has gold"):
        seedrank.evaluate(run.path, gold=gold_of(q8="a"))
    with pytest.raises(InputDataError, match=r"gold: .* has no column 'query_id'"):
        seedrank.evaluate(run.path, gold=pa.table({"node_id": ["a"]}))
    (tmp_path / "values.parquet").write_bytes(b"mine")
    with pytest.raises(ConfigError, match="exists already"):
        seedrank.evaluate(run.path, gold=gold, per_query=tmp_path / "values.parquet")
    with pytest.raises(ConfigError, match="overlap"):
        seedrank.evaluate(run.path, gold=gold, per_query=run.path / "values.parquet")


def test_command(run: seedrank.Run, tmp_path: Path, write: Callable[..., Path], seedrank_command: Any) -> None:
    gold = write("gold.parquet", gold_of(q1="ab", q3="b"))
    shown = seedrank_command("evaluate", run.path, "--gold", gold, "--metrics", "recall@1, mrr")
    assert shown.code == 0
    assert shown.out.splitlines()[1:] == [
        "  queries                  2",
        "  queries without gold     2",
        "  gold queries not in run  0",
        "  gold                     3",
        "  recall@1                 0.2500",
        "  mrr                      0.7500",
    ]
    values = tmp_path / "values.parquet"
    for more in ([], ["--overwrite"]):
        shown = seedrank_command("evaluate", run.path, "--gold", gold, "--per-query", values, "--json", *more)
        assert shown.code == 0
        assert json.loads(shown.out)["results"][0]["metrics"]["mrr"] == 0.75
    assert pq.read_table(values).column("query_id").to_pylist() == ["q1", "q3"]
    assert seedrank_command("evaluate", run.path, "--gold", gold, "--per-query", values).code == 2
    assert seedrank_command("evaluate", run.path, "--gold", tmp_path / "no.parquet").code == 3
    assert seedrank_command("evaluate", run.path).code == 2
    assert (
        "fewer than recall@1000 looks at"
        in seedrank_command("evaluate", run.path, "--gold", gold, "--metrics", "recall@1000").err
    )
