"""One query in process with a vector, exclusions and attributes: the rows of a job that has them for all queries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import seedrank
from seedrank import Ranker
from seedrank.errors import ConfigError, InputDataError

QUERIES = [f"q{number}" for number in range(5)]
RANDOM = np.random.default_rng(6)
NODES = [f"n{number:02d}" for number in range(60)]
HITS = pa.table(
    {
        "query_id": [query for query in QUERIES for _ in range(4)],
        "node_id": [NODES[place] for place in RANDOM.integers(0, 60, 20)],
        "weight": RANDOM.random(20),
        "source": ["dense", "sparse"] * 10,
    }
)
#: Of most nodes, of two that the graph does not have, and of the queries but the last one.
VECTORS = (pa.array([*NODES[5:], "new1", "new2"]), RANDOM.standard_normal((57, 4)).astype(np.float32))
QUERY_VECTORS = RANDOM.standard_normal((4, 4)).astype(np.float32)
EXCLUDE = {query: [NODES[place] for place in RANDOM.integers(0, 60, 10)] for query in QUERIES[:3]}
INFO: dict[str, dict[str, Any]] = {
    "q0": {"text": "which module imports os", "budget": "fast"},
    "q1": {"structural": True, "exclude": ["n01", "n02"]},
    "q2": {"lexical": True, "semantic": False, "budget": "thorough"},
    "q4": {"text": None, "semantic": True, "lexical": False},
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> seedrank.GraphStore:
    ends = {name: [NODES[place] for place in RANDOM.integers(0, 60, 300)] for name in ("src", "dst")}
    return seedrank.build(pa.table(ends), out=tmp_path_factory.mktemp("ranker") / "graph")


CASES: dict[str, dict[str, Any]] = {
    "seeds": {"direction": "both"},
    "again": {"rerank": "vectors", "rerank_depth": 10, "exclude_neighbors": True},
    "fuse": {"method": "fuse", "source_weight": {"vectors": 2.0}},
    "semantic": {"method": "semantic"},
    "walk": {"method": "walk", "walk_steps": 100},
    "auto": {"method": "auto", "source_role": {"vectors": "dense"}},
    "one source": {"source": ["vectors"], "fusion": "rrf"},
}


@pytest.mark.parametrize("case", CASES)
def test_equals_the_job_bit_for_bit(case: str, store: seedrank.GraphStore, tmp_path: Path) -> None:
    options = {"top_k": 12, "backend": "scipy", **CASES[case]}
    if options.get("method", "ppr") not in ("ppr", "auto"):
        del options["backend"]
    names = sorted({name for values in INFO.values() for name in values})
    info = pa.table(
        {"query_id": list(INFO), **{name: [values.get(name) for values in INFO.values()] for name in names}}
    )
    pairs = [(query, node) for query, nodes in EXCLUDE.items() for node in nodes]
    job = seedrank.score(
        store,
        queries=HITS,
        out=tmp_path / "run",
        query_info=info,
        exclude=pa.table({"query_id": [query for query, _ in pairs], "node_id": [node for _, node in pairs]}),
        node_vectors=VECTORS,
        query_vectors=(QUERIES[:4], QUERY_VECTORS),
        **options,
    ).candidates.to_arrow()
    ranker = Ranker(
        store, sources=() if options.get("source") else ("dense", "sparse"), node_vectors=VECTORS, **options
    )
    rows = 0
    for place, query in enumerate(QUERIES):
        found = ranker.rank(
            HITS.filter(pc.equal(HITS["query_id"], query)),
            query_info=INFO.get(query),
            exclude=EXCLUDE.get(query),
            query_vectors=QUERY_VECTORS[place] if place < 4 else None,
        )
        expected = job.filter(pc.equal(job["query_id"], query)).combine_chunks()
        assert found.schema.equals(expected.schema, check_metadata=True)
        assert found.combine_chunks().equals(expected), query
        rows += found.num_rows
    assert rows == len(job) > 10


def test_forms_of_what_a_query_brings(store: seedrank.GraphStore) -> None:
    ranker = Ranker(store, method="semantic", node_vectors=VECTORS, top_k=5)
    vector, leave = [1, 0, 0.5, -1], ["n07", "n08", "n09"]
    expected = ranker.rank(None, query_id="a", query_vectors=vector, exclude=leave)
    assert expected.num_rows == 5
    assert not set(leave) & set(expected["node_id"].to_pylist())
    table = pa.table({"query_id": ["a", "b"], "node_id": ["n07", "n01"]})
    for given in (
        {"query_vectors": np.array(vector), "exclude": pa.array(leave)},
        {"query_vectors": pa.table({"query_id": ["a"], "vector": [vector]}), "exclude": pa.chunked_array([leave])},
        {"query_vectors": (["a"], np.array([vector])), "exclude": pa.table({"node_id": leave})},
        {"query_info": {"vector": vector, "exclude": leave}},
        {"query_info": {"vector": vector}, "exclude": tuple(leave)},
        {"query_info": pa.table({"vector": [[float(number) for number in vector]], "exclude": [leave]})},
        {
            "query_info": pa.table({"query_id": ["a"], "vector": [[float(number) for number in vector]]}),
            "exclude": pa.concat_tables([table, pa.table({"query_id": ["a"] * 2, "node_id": leave[1:]})]),
        },
    ):
        assert ranker.rank(None, query_id="a", **given).equals(expected), given
    found = seedrank.rerank(
        [], store, query_id="a", query_vectors=vector, exclude=leave, node_vectors=VECTORS, method="semantic", top_k=5
    )
    assert found.equals(expected)
    assert ranker.rank([], query_id="a").num_rows == 0


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"query_vectors": [1.0, 2.0]}, InputDataError, "the query vectors of .* 2"),
        ({"query_vectors": [float("nan")] * 4}, InputDataError, "NaN"),
        ({"query_vectors": [1.0] * 4, "query_info": {"vector": [1.0] * 4}}, ConfigError, "a column 'vector', too"),
        ({"query_vectors": (["a", "b"], np.ones((2, 4)))}, InputDataError, "rows of 2 queries"),
        ({"query_info": {"vector": ["x"]}}, InputDataError, "which is no vector"),
        ({"query_info": {"text": 3 + 4j}}, InputDataError, "'text' has the value"),
        ({"query_info": {"exclude": [1]}}, InputDataError, "nothing is converted silently"),
        ({"query_info": {"vector": [[1.0] * 4]}}, InputDataError, "which is no vector"),
        ({"query_info": "info.parquet"}, InputDataError, "query_info is 'info.parquet'"),
        ({"exclude": ["n01", None]}, InputDataError, "is null"),
        ({"exclude": "n01"}, InputDataError, "exclude is 'n01'"),
        ({"exclude": 5}, InputDataError, "expected: ids of nodes"),
        ({"exclude": ["n01", 5]}, InputDataError, "node ids are no column of ids"),
    ],
)
def test_what_is_refused(store: seedrank.GraphStore, given: dict[str, Any], error: Any, message: str) -> None:
    ranker = Ranker(store, method="semantic", node_vectors=VECTORS)
    with pytest.raises(error, match=message):
        ranker.rank({"n01": 1.0}, query_id="a", **given)


def test_vectors_of_one_side_are_refused(store: seedrank.GraphStore) -> None:
    with pytest.raises(ConfigError, match="--query-vectors is given without --node-vectors"):
        seedrank.rerank({"n01": 1.0}, store, query_vectors=[1.0])
    with pytest.raises(ConfigError, match="a Ranker: node_vectors"):
        seedrank.rerank({"n01": 1.0}, Ranker(store), node_vectors=VECTORS)
    with pytest.raises(InputDataError, match="a source is called 'vectors'"):
        Ranker(store, node_vectors=VECTORS).rank([("n01", 1.0, "vectors")])
