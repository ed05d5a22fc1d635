"""The column ``vector`` of the attributes of queries: what ``--query-vectors`` would do with it, byte for byte."""

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

#: a → b → c
CHAIN = pa.table({"src": ["a", "b"], "dst": ["b", "c"]})
NODES = pa.table({"id": list("abcz"), "vector": [[1.0, 0.0], [3.0, 4.0], [0.0, 2.0], [-1.0, -1.0]]})
HITS = pa.table({"query_id": ["q", "r", "r"], "node_id": ["a", "a", "b"]})
VECTORS = pa.table({"query_id": ["q", "s"], "vector": pa.array([[0.0, 1.0], [1.0, 0.0]], pa.list_(pa.float32()))})
#: r is there without a vector; what nothing asks for is not looked at.
INFO = pa.table(
    {
        "query_id": ["s", "q", "r"],
        "exclude": [None, ["c"], None],
        "vector": pa.array([[1.0, 0.0], [0.0, 1.0], None], pa.list_(pa.float32())),
        "text": [1, 2, 3],
    }
)


def parts_of(run: seedrank.Run) -> dict[str, bytes]:
    return {str(file.relative_to(run.path)): file.read_bytes() for file in run.path.rglob("part-*.parquet")}


@pytest.mark.parametrize(
    "options",
    [{}, {"method": "semantic"}, {"rerank": "vectors"}, {"method": "fuse", "queries": HITS}, {"method": "auto"}],
    ids=str,
)
def test_the_bytes_of_query_vectors(options: dict[str, Any], tmp_path: Path) -> None:
    keywords: dict[str, Any] = {"node_vectors": NODES, "queries": HITS, **options}
    if options.get("method") == "auto":
        keywords["source_role"] = {"vectors": "dense", "hits": "sparse"}
    else:
        keywords |= {"backend": "scipy"} if options.get("method") is None else {}
    info = INFO.drop_columns("text")
    expected = seedrank.score(
        CHAIN, out=tmp_path / "a", query_vectors=VECTORS, query_info=info.drop_columns("vector"), **keywords
    )
    found = seedrank.score(CHAIN, out=tmp_path / "b", query_info=info, **keywords)
    assert parts_of(found) == parts_of(expected)
    assert found.manifest.vectors == expected.manifest.vectors
    assert found.manifest.vectors is not None
    assert (found.manifest.vectors.query_vectors, found.manifest.vectors.queries_without_vector) == (2, 1)
    assert sorted(found.manifest.inputs) == ["graph", "node_vectors", "queries", "query_info"]
    other = info.set_column(2, "vector", pa.array([[1.0, 0.0], [0.5, 1.0], None], pa.list_(pa.float32())))
    again = seedrank.score(CHAIN, out=tmp_path / "c", query_info=other, since=str(found.path), **keywords)
    assert again.manifest.run_key != found.manifest.run_key
    assert again.manifest.queries is not None
    assert again.manifest.queries.taken_over == 2
    assert list(found.queries.to_arrow()["query_id"].to_pylist()) == ["q", "r", "s"]


def test_on_the_command_line(seedrank_command: Callable[..., Any], tmp_path: Path) -> None:
    renamed = {"nodes": NODES.rename_columns(["id", "embedding"]), "edges": CHAIN}
    renamed["info"] = INFO.rename_columns(["query_id", "exclude", "embedding", "text"])
    for name, table in renamed.items():
        pq.write_table(table, tmp_path / f"{name}.parquet")
    inputs = [tmp_path / "edges.parquet", "--query-info", tmp_path / "info.parquet", "--vector-column", "embedding"]
    inputs += ["--node-vectors", tmp_path / "nodes.parquet", "--method", "semantic"]
    assert seedrank_command("score", *inputs, "--out", tmp_path / "run").code == 0
    planned = json.loads(seedrank_command("plan", *inputs, "--json").out)
    assert (planned["queries"], planned["hits"]) == (3, 300)
    checked = json.loads(seedrank_command("check", *inputs, "--json").out)
    assert (checked["queries"], checked["vectors"]["query_vectors"]) == (3, 2)
    explained = seedrank_command("explain", tmp_path / "run", "--query", "q", "--node", "b")
    assert explained.code == 0, explained.err
    rows = seedrank.open_run(tmp_path / "run").candidates.to_arrow().to_pylist()
    assert [row["node_id"] for row in rows if row["query_id"] == "q"] == ["b", "a"]


def test_vectors_twice_or_nowhere_are_refused(seedrank_command: Callable[..., Any], tmp_path: Path) -> None:
    for name, table in {"nodes": NODES, "info": INFO, "vectors": VECTORS, "edges": CHAIN, "hits": HITS}.items():
        pq.write_table(table, tmp_path / f"{name}.parquet")
    pq.write_table(INFO.drop_columns("vector"), tmp_path / "bare.parquet")
    common = [tmp_path / "edges.parquet", "--node-vectors", tmp_path / "nodes.parquet"]
    common += ["--queries", tmp_path / "hits.parquet"]
    twice = [*common, "--query-info", tmp_path / "info.parquet", "--query-vectors", tmp_path / "vectors.parquet"]
    nowhere = [*common, "--query-info", tmp_path / "bare.parquet"]
    for command in (["score", "--out", tmp_path / "run"], ["plan"], ["check"]):
        result = seedrank_command(command[0], *twice, *command[1:])
        assert (result.code, "has a column 'vector', too" in result.err) == (2, True), result.err
        assert "fix: drop --query-vectors, or leave the column out" in result.err
        result = seedrank_command(command[0], *nowhere, *command[1:])
        assert (result.code, "has no column 'vector'" in result.err) == (2, True), result.err


def test_bad_vectors_are_refused_and_unused_ones_are_not_read(tmp_path: Path) -> None:
    bad = INFO.set_column(2, "vector", pa.array([[1.0, 0.0], [0.0], None], pa.list_(pa.float32())))
    with pytest.raises(InputDataError, match="expected: 2 numbers in every vector"):
        seedrank.check(CHAIN, queries=HITS, query_info=bad, node_vectors=NODES)
    texts = INFO.set_column(2, "vector", pa.array(["x", "y", "z"]))
    with pytest.raises(InputDataError, match="which is no vector"):
        seedrank.check(CHAIN, queries=HITS, query_info=texts, node_vectors=NODES)
    assert seedrank.check(CHAIN, queries=HITS, query_info=texts).queries == 3
    with pytest.raises(ConfigError, match="--rerank vectors is given without --node-vectors and --query-vectors"):
        seedrank.score(CHAIN, queries=HITS, query_info=INFO, out=tmp_path / "run", rerank="vectors")
    with pytest.raises(ConfigError, match="--all-nodes makes its own"):
        seedrank.check(CHAIN, query_info=INFO, node_vectors=NODES, all_nodes="page")
