"""Which hits are seeds and what they weigh: ``--seed-weighting``, ``--seed-node-type``, ``--fallback-node-column``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import seedrank
from seedrank.config import ScoreOptions, make_options
from seedrank.errors import ConfigError, InputDataError
from seedrank.jobs.inputs import JobInputs
from seedrank.jobs.queries.loading import load_query_set
from seedrank.jobs.queries.query_set import QuerySet

Job = Callable[..., Any]
Seeds = Callable[..., dict[Any, float]]

#: Passages p … s mention entities: a is in one, b in two, c in four of them; d only in a date. Two edges p → a.
EDGES = pa.table(
    {
        "src": ["p", "p", "p", "q", "p", "q", "r", "s", "t", "b"],
        "dst": ["a", "a", "b", "b", "c", "c", "c", "c", "d", "b"],
        "type": ["title", "mentions", *["mentions"] * 8],
    }
)
NODES = pa.table({"id": list("pqrsabcdt"), "type": ["passage"] * 4 + ["entity"] * 4 + ["date"]})


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> seedrank.GraphStore:
    """The passages and entities as a store."""
    return seedrank.build(EDGES, nodes=NODES, out=tmp_path_factory.mktemp("seeds") / "graph")


def query_set(store: seedrank.GraphStore, hits: pa.Table, **options: Any) -> QuerySet:
    """Read hits as a job does."""
    return load_query_set(store, JobInputs(graph=store, queries=hits), make_options(ScoreOptions, options))


@pytest.fixture
def seeds(store: seedrank.GraphStore) -> Seeds:
    """Personalization vector of the only query: tuples (node, weight[, source[, rank]])."""

    def seeds_of(hits: list[tuple[Any, ...]], **options: Any) -> dict[Any, float]:
        columns = dict(zip(("node_id", "weight", "source", "rank"), map(list, zip(*hits, strict=True)), strict=False))
        found = query_set(store, pa.table({"query_id": ["q"] * len(hits), **columns}), **options).seeds
        ids = store.ids.take(pa.array(store.order[found.nodes])).to_pylist()
        return dict(zip(ids, found.weights.tolist(), strict=True))

    return seeds_of


HITS = [("a", 5.0), ("b", 3.0), ("c", 2.0)]


def test_a_hit_weighs_its_weight_by_default(seeds: Seeds) -> None:
    assert seeds(HITS) == seeds(HITS, seed_weighting="weight") == pytest.approx({"a": 0.5, "b": 0.3, "c": 0.2})


def test_uniform_weights_heed_no_weight_but_sources(seeds: Seeds) -> None:
    assert seeds([("a", 5.0), ("b", 0.0), ("c", -2.0)], seed_weighting="uniform") == pytest.approx(
        {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3}
    )
    hits = [("a", 5.0, "x"), ("b", 1.0, "x"), ("c", 9.0, "y"), ("a", 2.0, "y")]
    assert seeds(hits, seed_weighting="uniform") == pytest.approx({"a": 1 / 2, "b": 1 / 4, "c": 1 / 4})
    assert seeds(hits, seed_weighting="uniform", seed_source_weight={"y": 3}) == pytest.approx(
        {"a": 4 / 8, "b": 1 / 8, "c": 3 / 8}
    )
    assert seeds([*hits, ("b", 1.0, "y")], seed_weighting="uniform", source_normalization="none") == pytest.approx(
        {"a": 2 / 5, "b": 2 / 5, "c": 1 / 5}
    )


def test_ranks_are_those_in_the_list_of_the_source(seeds: Seeds) -> None:
    """1/1, 1/2, …; what the graph does not have keeps its position, equal weights stand by id, null nodes nowhere."""
    hits = [("b", 0.2), ("zz", 0.9), ("a", 0.5), (None, 0.7), ("c", 0.2)]
    assert seeds(hits, seed_weighting="rank", source_normalization="none") == pytest.approx(
        {node: share / (1 / 2 + 1 / 3 + 1 / 4) for node, share in {"a": 1 / 2, "b": 1 / 3, "c": 1 / 4}.items()}
    )
    distances = [("a", 0.1, "d"), ("b", 0.9, "d"), ("c", -4.0, "s")]
    options: dict[str, Any] = {"seed_weighting": "rank", "lower_is_better": ("d",)}
    assert seeds(distances, **options) == pytest.approx({"a": 1 / 3, "b": 1 / 6, "c": 1 / 2})
    given_ranks = [("a", 0.1, "x", 4), ("b", 0.9, "x", 1)]
    assert seeds(given_ranks, seed_weighting="rank") == pytest.approx({"a": 0.2, "b": 0.8})


def test_specificity_divides_by_the_neighbors_that_could_be_returned(seeds: Seeds) -> None:
    options: dict[str, Any] = {"seed_weighting": "specificity", "direction": "both"}
    hits = [(node, 1.0) for node in "abcd"]
    # Distinct passages: 1, 2, 4; d has none, which counts as one. Parallel edges count once, the loop at b never.
    assert seeds(hits, node_type=("passage",), **options) == pytest.approx(
        {"a": 4 / 11, "b": 2 / 11, "c": 1 / 11, "d": 4 / 11}
    )
    assert seeds(hits[:2], **options) == pytest.approx({"a": 2 / 3, "b": 1 / 3})
    assert seeds([("a", 1.0), ("b", 4.0)], node_type=("passage",), **options) == pytest.approx({"a": 1 / 3, "b": 2 / 3})
    only_titles = options | {"edge_type": ("title",), "node_type": ("passage",)}
    assert seeds(hits[:2], **only_titles) == pytest.approx({"a": 0.5, "b": 0.5})
    along = {"seed_weighting": "specificity", "direction": "out"}
    assert seeds([("p", 1.0), ("q", 1.0)], **along) == pytest.approx({"p": 2 / 5, "q": 3 / 5})


@pytest.mark.parametrize("method", ["ppr", "bfs", "walk"])
def test_only_hits_on_some_types_are_seeds(recall: Job, store: seedrank.GraphStore, method: str) -> None:
    """Others are in the graph, so they are not missing, and they may be returned."""
    found = recall(store, ["p", "c", "zz"], method=method, seed_node_type=("entity",), direction="in")
    assert set(found.nodes) == {"p", "q", "r", "s"}
    assert (found.row["seeds_given"], found.row["seeds_missing"]) == (3, 1)
    none = recall(store, ["p"], method=method, seed_node_type=("date",))
    assert (none.row["status"], none.row["seeds_missing"], none.nodes) == ("no_valid_seeds", 0, [])


def test_names_and_methods_that_are_refused(recall: Job, fuse: Job, store: seedrank.GraphStore) -> None:
    with pytest.raises(InputDataError, match=r"--seed-node-type 'chunk': no node has this type"):
        recall(store, ["a"], seed_node_type=("chunk",))
    with pytest.raises(ConfigError, match="--seed-weighting is given, but --method bfs does not use it"):
        recall(store, ["a"], method="bfs", seed_weighting="uniform")
    with pytest.raises(ConfigError, match="--seed-node-type is given, but --method fuse does not use it"):
        fuse({"L": "ab"}, store, method="fuse", seed_node_type=("entity",))
    with pytest.raises(ConfigError, match="--fallback-node-column is given without a graph"):
        fuse({"L": "ab"}, fallback_node_column="document")
    with pytest.raises(ConfigError, match="--hit-rank-column is given, but nothing is fused"):
        recall(store, ["a"], hit_rank_column="rank")
    with pytest.raises(ConfigError, match="--fallback-node-column speaks of hits, but --all-nodes has none"):
        seedrank.check(store, all_nodes="entity", fallback_node_column="document")
    with pytest.raises(InputDataError, match="has no column 'document'"):
        recall(store, ["a"], fallback_node_column="document")


CHUNKS = {
    "query_id": ["q", "q", "q", "q", "q2"],
    "node_id": ["a", "chunk 7", "chunk 8", None, None],
    "document": ["b", "c", "zz", "a", None],
    "weight": [1.0, 2.0, 4.0, 8.0, None],
}


def nested_chunks() -> pa.Table:
    """The same hits, one row a query."""
    fields = [pa.field(name, pa.float64() if name == "weight" else pa.string()) for name in list(CHUNKS)[1:]]
    rows = [dict(zip(CHUNKS, row, strict=True)) for row in zip(*CHUNKS.values(), strict=True)]
    lists = [[row for row in rows if row["query_id"] == query] for query in ("q", "q2")]
    return pa.table({"query_id": ["q", "q2"], "seeds": pa.array(lists, pa.list_(pa.struct(fields)))})


@pytest.mark.parametrize("hits", [pa.table(CHUNKS), pa.table(CHUNKS).take([4, 2, 1, 3, 0]), nested_chunks()])
def test_the_fallback_column_stands_in_for_nodes_that_are_null_or_unknown(
    store: seedrank.GraphStore, hits: pa.Table
) -> None:
    """A stays a; chunk 7 becomes c, a null becomes a; neither chunk 8 nor zz is in the graph."""
    found = query_set(store, hits, fallback_node_column="document")
    ids = store.ids.take(pa.array(store.order[found.seeds.nodes])).to_pylist()
    assert dict(zip(ids, found.seeds.weights.tolist(), strict=True)) == pytest.approx({"a": 9 / 11, "c": 2 / 11})
    assert (found.seeds_given.tolist(), found.seeds_missing.tolist()) == ([4, 1], [1, 1])
    expected = query_set(store, pa.table(CHUNKS), fallback_node_column="document").records["queries"].fingerprint
    assert found.records["queries"].fingerprint == expected
    other = query_set(store, pa.table(CHUNKS).drop_columns("document")).records["queries"].fingerprint
    assert other != expected


def test_fused_lists_hold_the_nodes_that_stand_in(fuse: Job, store: seedrank.GraphStore) -> None:
    hits = pa.table(CHUNKS).slice(0, 4)
    found = fuse(hits, store, method="fuse", fallback_node_column="document")
    # By weight: a (for null), chunk 8, c (for chunk 7), a.
    assert found.column("score") == pytest.approx({"a": 1 / 61, "chunk 8": 1 / 62, "c": 1 / 63})


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_standing_in_is_renaming_the_hits(store: seedrank.GraphStore, data: st.DataObject) -> None:
    nodes = st.sampled_from([None, "a", "b", "p", "x", "y"])
    rows = data.draw(
        st.lists(st.tuples(nodes, nodes, st.integers(1, 3), st.sampled_from("st")), min_size=1, max_size=8)
    )
    known = set("abp")
    renamed = [
        instead if node is None or (node not in known and instead in known) else node for node, instead, *_ in rows
    ]

    def read(names: list[Any], **more: Any) -> QuerySet:
        columns = {"node_id": pa.array(names, pa.string()), "weight": [float(row[2]) for row in rows]}
        table = pa.table({"query_id": [1] * len(rows), **columns, "source": [row[3] for row in rows], **more})
        named = {"fallback_node_column": "other"} if more else {}
        return query_set(store, table, fusion="rrf", **named)

    found = read([row[0] for row in rows], other=pa.array([row[1] for row in rows], pa.string()))
    expected = read(renamed)
    for name in ("offsets", "nodes", "weights"):
        np.testing.assert_array_equal(getattr(found.seeds, name), getattr(expected.seeds, name))
    assert found.seeds_missing.tolist() == expected.seeds_missing.tolist()
    ids = [query.space.ids(query.hit_lists.entries.nodes).to_pylist() for query in (found, expected)]  # type: ignore[union-attr]
    assert ids[0] == ids[1]


def test_on_the_command_line(seedrank_command: Job, store: seedrank.GraphStore, write: Job, tmp_path: Path) -> None:
    hits = write("hits.parquet", pa.table(CHUNKS))
    options = ["--fallback-node-column", "document", "--seed-weighting", "uniform", "--seed-node-type", "entity"]
    arguments = ["score", store.path, "--queries", hits, *options, "--direction", "both", "--include-seeds"]
    done = seedrank_command(*arguments, "--out", tmp_path / "run", "--quiet")
    assert done.code == 0, done.err
    run = seedrank.open_run(tmp_path / "run")
    assert run.queries.to_arrow()["seeds_missing"].to_pylist() == [1, 1]
    explained = seedrank.explain(run.path, query="q", node="p")
    assert explained.contributions is not None
    assert {part.seed: part.weight for part in explained.contributions} == pytest.approx({"a": 2 / 3, "c": 1 / 3})


def test_2wiki_entity_strings_weigh_their_specificity(shared_data: Path, tmp_path: Path) -> None:
    """The weights in the file are 1 / number of passages: what specificity makes of hits without weights.

    41 of the 1,768 hits weigh something else there: of some entities the file counts the passages that mention them,
    and not those that have them as their title.
    """
    folder = shared_data / "graphrag_2wiki1000"
    table = pq.read_table(folder / "queries.parquet")
    table = table.filter(pc.equal(table["source"], "entity_string"))
    graph = seedrank.build(folder / "edges.parquet", nodes=folder / "nodes.parquet", out=tmp_path / "graph")
    weighted = query_set(graph, table, direction="both").seeds
    options: dict[str, Any] = {"seed_weighting": "specificity", "node_type": ("passage",), "direction": "both"}
    specific = query_set(graph, table.drop_columns("weight"), **options).seeds
    np.testing.assert_array_equal(specific.nodes, weighted.nodes)
    assert len(specific.weights) == 1768
    assert np.count_nonzero(np.isclose(specific.weights, weighted.weights, rtol=1e-12)) == 1768 - 39
