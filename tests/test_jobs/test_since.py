"""``--since``: what did not change is taken over from an earlier run, with the bytes of a run that scores all."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import seedrank
from seedrank.errors import ConfigError, InputDataError, StorageError
from seedrank.jobs.run import taken_over as taken_over_module

GENERATOR = np.random.default_rng(7)
EDGES = pa.table({"src": GENERATOR.integers(0, 30, 150), "dst": GENERATOR.integers(0, 30, 150)})
NODES = pa.table({"id": range(30), "type": ["doc", "word", "doc"] * 10})
HITS = pa.table(
    {
        "query_id": [f"q{query:02d}" for query in range(20) for _ in range(3)],
        "node_id": GENERATOR.integers(0, 30, 60),
        "weight": GENERATOR.random(60).round(3),
        "source": ["dense", "sparse", "dense"] * 20,
    }
)
VECTORS: dict[str, Any] = {
    "node_vectors": (list(range(30)), GENERATOR.standard_normal((30, 4)).astype(np.float32)),
    "query_vectors": ([f"q{query:02d}" for query in range(20)], GENERATOR.standard_normal((20, 4)).astype(np.float32)),
}
OPTIONS: dict[str, Any] = {"backend": "scipy", "part_size": 6, "top_k": 8}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> seedrank.GraphStore:
    return seedrank.build(EDGES, nodes=NODES, out=tmp_path_factory.mktemp("since") / "graph")


def bytes_of(run: seedrank.Run) -> dict[str, bytes]:
    """Both tables, file by file."""
    return {
        f"{folder}/{file.name}": file.read_bytes()
        for folder in ("candidates", "queries")
        for file in sorted((run.path / folder).iterdir())
    }


@pytest.fixture(scope="module")
def monday(store: seedrank.GraphStore) -> Path:
    """A run over the hits as they are."""
    return seedrank.score(store, queries=HITS, out=store.path.with_name("monday"), **{**OPTIONS, "part_size": 5}).path


def taken_over(
    store: seedrank.GraphStore, folder: Path, before: dict[str, Any] | Path, after: dict[str, Any], **options: Any
) -> int:
    """Number of queries that are taken over when inputs change; the results are those of a run without ``since``."""
    both = {**OPTIONS, **options}
    if options.get("method", "ppr") not in ("ppr", "auto"):
        del both["backend"]
    if not isinstance(before, Path):
        before = seedrank.score(
            store, **before, out=folder / "earlier", overwrite=True, **{**both, "part_size": 5}
        ).path
    fresh = seedrank.score(store, **after, out=folder / "fresh", overwrite=True, **both)
    since = seedrank.score(store, **after, out=folder / "since", overwrite=True, since=str(before), **both)
    assert bytes_of(since) == bytes_of(fresh)
    assert since.manifest.run_key == fresh.manifest.run_key
    assert since.manifest.queries is not None
    assert since.manifest.queries.by_status == fresh.manifest.queries.by_status  # type: ignore[union-attr]
    for mine, theirs in zip(since.manifest.parts, fresh.manifest.parts, strict=True):
        assert (mine.iterations, mine.largest_error_bound) == (theirs.iterations, theirs.largest_error_bound)
    assert sum(part.taken_over for part in since.manifest.parts) == since.manifest.queries.taken_over
    assert seedrank.check(store, **after, since=str(before), **both).taken_over == since.manifest.queries.taken_over
    return since.manifest.queries.taken_over


def hits(**changes: Any) -> pa.Table:
    """The hits with other columns."""
    table = HITS
    for name, values in changes.items():
        table = table.set_column(table.schema.names.index(name), name, pa.array(values))
    return table


def with_value(name: str, row: int, value: Any) -> pa.Table:
    values = HITS[name].to_pylist()
    values[row] = value
    return hits(**{name: values})


def new_query(name: str, nodes: list[int]) -> pa.Table:
    return pa.table(
        {
            "query_id": [name] * len(nodes),
            "node_id": nodes,
            "weight": [1.0] * len(nodes),
            "source": ["dense"] * len(nodes),
        }
    )


METHODS: dict[str, dict[str, Any]] = {
    "ppr": {},
    "ppr fused": {"fusion": "rrf"},
    "several restarts": {"restart": (0.2, 0.5)},
    "paths": {"paths": True, "top_k": 3},
    "walk": {"method": "walk", "walk_steps": 50, "random_seed": 3},
    "bfs": {"method": "bfs", "max_hops": 2},
    "fuse": {"method": "fuse"},
    "semantic": {"method": "semantic"},
    "hybrid": {"method": "hybrid", "include_expanded": True},
    "auto": {"method": "auto"},
    "groups": {"group_by": "type"},
    "fused groups": {"method": "fuse", "group_by": "type"},
    "fallback": {"fallback": "rrf"},
}


@pytest.mark.parametrize("name", METHODS)
def test_one_query_changed_and_one_new_in_the_middle(store: seedrank.GraphStore, tmp_path: Path, name: str) -> None:
    changed = pa.concat_tables([with_value("weight", 10, 0.987), new_query("q07a", [4, 5])])
    assert taken_over(store, tmp_path, {"queries": HITS}, {"queries": changed}, **METHODS[name]) == 19


def test_everything_is_taken_over_when_nothing_changed(
    store: seedrank.GraphStore, monday: Path, tmp_path: Path
) -> None:
    shuffled = HITS.take(np.random.default_rng(1).permutation(60))
    assert taken_over(store, tmp_path, monday, {"queries": shuffled}) == 20


@pytest.mark.parametrize(
    ("after", "unchanged"),
    [
        (HITS.slice(3), 19),  # the first query went: every other one has another position
        (pa.concat_tables([new_query("a", [1]), HITS]), 20),
        (with_value("node_id", 30, 29 - HITS["node_id"][30].as_py()), 19),
        (with_value("source", 30, "sparse"), 19),
        (with_value("source", 30, None), 19),
        (with_value("node_id", 30, None), 19),
        (HITS.slice(0, 59), 19),
        (pa.concat_tables([HITS, HITS.slice(0, 1)]), 19),
        (HITS.drop_columns(["weight"]), 0),
        (HITS.slice(0, 0), 0),
        (pa.concat_tables([HITS, new_query("z", [1_000])]), 20),  # a node that the graph does not have
    ],
)
def test_changes_of_hits(
    store: seedrank.GraphStore, monday: Path, tmp_path: Path, after: pa.Table, unchanged: int
) -> None:
    assert taken_over(store, tmp_path, monday, {"queries": after}) == unchanged


@pytest.mark.parametrize("method", ["fuse", "auto"])
def test_nodes_that_the_graph_does_not_have(store: seedrank.GraphStore, tmp_path: Path, method: str) -> None:
    foreign = pa.concat_tables([HITS, new_query("q03", [900, 500]), new_query("q15", [700])])
    more = pa.concat_tables([foreign, new_query("q02", [100])])  # comes before all others in the order of ids
    assert taken_over(store, tmp_path, {"queries": foreign}, {"queries": more}, method=method) == 19


def test_a_new_source_changes_the_columns_of_fused_lists_alone(
    store: seedrank.GraphStore, monday: Path, tmp_path: Path
) -> None:
    third = with_value("source", 30, "third")
    assert taken_over(store, tmp_path, monday, {"queries": third}) == 19
    assert taken_over(store, tmp_path, {"queries": HITS}, {"queries": third}, fusion="rrf") == 0


def test_exclusions_of_one_query_and_of_all(store: seedrank.GraphStore, tmp_path: Path) -> None:
    one = pa.table({"query_id": ["q04", "q05"], "node_id": [1, 2]})
    other = pa.table({"query_id": ["q05", "q04"], "node_id": [2, 3]})
    everywhere = pa.table({"node_id": [1]})
    before = {"queries": HITS, "exclude": one}
    assert taken_over(store, tmp_path, before, {"queries": HITS, "exclude": other}) == 19
    assert taken_over(store, tmp_path, before, {"queries": HITS}) == 18
    told = pa.table({"query_id": ["q05", "q04", "q06"], "exclude": [[2], [1], []]})
    assert taken_over(store, tmp_path, before, {"queries": HITS, "query_info": told}) == 20
    assert taken_over(store, tmp_path, before, {"queries": HITS, "exclude": everywhere}) == 0


def test_attributes_of_one_query(store: seedrank.GraphStore, tmp_path: Path) -> None:
    def info(**changes: Any) -> pa.Table:
        columns = {
            "query_id": ["q01", "q02", "q03"],
            "text": ["who calls x", "a", None],
            "budget": ["fast", None, None],
        }
        return pa.table({**columns, "exclude": [[1], [], None], **changes})

    before = {"queries": HITS, "query_info": info()}
    for changes, unchanged in (
        ({}, 20),
        ({"text": ["a", "a", None]}, 19),
        ({"budget": ["fast", "thorough", None]}, 19),
        ({"exclude": [[1], [2, 3], []]}, 19),
        ({"query_id": ["q01", "q02", "q04"]}, 18),
    ):
        after = {"queries": HITS, "query_info": info(**changes)}
        assert taken_over(store, tmp_path, before, after, method="auto") == unchanged


def test_methods_that_begin_or_cease_to_run_change_columns_alone(store: seedrank.GraphStore, tmp_path: Path) -> None:
    def named(method: str) -> dict[str, Any]:
        return {"queries": HITS, "query_info": pa.table({"query_id": ["q01"], "method": [method]})}

    assert taken_over(store, tmp_path, named("ppr"), named("bfs"), method="auto") == 19  # bfs brings columns,
    assert taken_over(store, tmp_path, named("bfs"), named("ppr"), method="auto") == 19  # and takes them away


def test_a_run_that_is_replaced_while_it_is_read(
    store: seedrank.GraphStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier = seedrank.score(store, queries=HITS, out=tmp_path / "earlier", **OPTIONS)
    others = seedrank.score(store, queries=with_value("weight", 0, 0.5), out=tmp_path / "others", **OPTIONS)
    opened = taken_over_module.open_earlier

    def replaced(*arguments: Any, **keywords: Any) -> Any:
        found = opened(*arguments, **keywords)
        for table in ("candidates", "queries"):
            file = f"{table}/part-00000.parquet"
            (earlier.path / file).write_bytes((others.path / file).read_bytes())
        return found

    monkeypatch.setattr("seedrank.jobs.run.score_job.open_earlier", replaced)
    with pytest.raises(StorageError, match="replaced while it was read"):
        seedrank.score(store, queries=HITS, out=tmp_path / "run", since=str(earlier.path), **OPTIONS)


def test_vectors_of_one_query_and_of_nodes(store: seedrank.GraphStore, tmp_path: Path) -> None:
    ids, rows = VECTORS["query_vectors"]
    turned = rows.copy()
    turned[3] *= -1
    before = {"queries": HITS, **VECTORS}
    options = {"rerank": "vectors", "vector_depth": 0}
    after = {**before, "query_vectors": (ids, turned)}
    assert taken_over(store, tmp_path, before, after, **options) == 19
    fewer = {**before, "query_vectors": (ids[1:], rows[1:])}
    assert taken_over(store, tmp_path, before, fewer, **options) == 19
    nodes, their_rows = VECTORS["node_vectors"]
    others = {**before, "node_vectors": (nodes, their_rows + np.float32(1))}
    assert taken_over(store, tmp_path, before, others, **options) == 0


def test_every_node_as_a_query(store: seedrank.GraphStore, tmp_path: Path) -> None:
    exclude = pa.table({"query_id": [0, 2], "node_id": [5, 6]})
    assert taken_over(store, tmp_path, {}, {"exclude": exclude}, all_nodes="doc") == 18


def test_another_graph_other_options_or_another_backend_are_refused(store: seedrank.GraphStore, tmp_path: Path) -> None:
    seedrank.score(store, queries=HITS, out=tmp_path / "earlier", **OPTIONS)
    again = {"queries": HITS, "out": tmp_path / "run", "since": str(tmp_path / "earlier")}
    with pytest.raises(ConfigError, match=r"--top-k: 8 there, 9 here") as caught:
        seedrank.score(EDGES.slice(1), **again, **{**OPTIONS, "top_k": 9})
    assert "the graph: " in caught.value.found
    assert "the hits" not in caught.value.found
    with pytest.raises(ConfigError, match="--backend: scipy there, cpu here"):
        seedrank.score(store, **again, **{**OPTIONS, "backend": "cpu"})
    with pytest.raises(ConfigError, match="overlap"):
        seedrank.score(store, **{**again, "out": tmp_path / "earlier" / "run"}, **OPTIONS)
    with pytest.raises(InputDataError, match="nowhere"):
        seedrank.score(store, **{**again, "since": str(tmp_path / "nowhere")}, **OPTIONS)


def test_a_refusal_leaves_the_run_that_would_be_replaced(store: seedrank.GraphStore, tmp_path: Path) -> None:
    seedrank.score(store, queries=HITS, out=tmp_path / "earlier", **OPTIONS)
    there = seedrank.score(store, queries=HITS, out=tmp_path / "run", **{**OPTIONS, "top_k": 3})
    kept = bytes_of(there)
    with pytest.raises(ConfigError, match="--top-k"):
        seedrank.score(
            store,
            queries=HITS,
            out=there.path,
            overwrite=True,
            since=str(tmp_path / "earlier"),
            **{**OPTIONS, "top_k": 4},
        )
    assert bytes_of(there) == kept
    assert (there.path / "_SUCCESS").exists()


def test_only_intact_parts_serve(store: seedrank.GraphStore, tmp_path: Path) -> None:
    fresh = seedrank.score(store, queries=HITS, out=tmp_path / "earlier", **OPTIONS)
    expected = bytes_of(fresh)
    file = fresh.path / "candidates" / "part-00001.parquet"
    data = bytearray(file.read_bytes())
    data[20] ^= 1
    file.write_bytes(data)
    (fresh.path / "queries" / "part-00003.parquet").unlink()
    run = seedrank.score(store, queries=HITS, out=tmp_path / "run", since=str(fresh.path), **OPTIONS)
    assert bytes_of(run) == expected
    assert [part.taken_over for part in run.manifest.parts] == [6, 0, 6, 0]


def test_queries_that_are_held_in_segments(
    store: seedrank.GraphStore, monday: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(with_value("weight", 10, 0.987), tmp_path / "hits.parquet")
    whole = seedrank.score(store, queries=tmp_path / "hits.parquet", out=tmp_path / "whole", **OPTIONS)
    monkeypatch.setattr("seedrank.jobs.queries.segment_size.SEGMENT_QUERIES", 6)
    command = {"queries": tmp_path / "hits.parquet", "out": tmp_path / "run", "since": str(monday), **OPTIONS}
    run = seedrank.score(store, **command)
    assert bytes_of(run) == bytes_of(whole)
    assert [part.taken_over for part in run.manifest.parts] == [5, 6, 6, 2]


def test_queries_that_ran_out_of_time_are_scored_again(store: seedrank.GraphStore, tmp_path: Path) -> None:
    seedrank.score(store, queries=HITS, out=tmp_path / "earlier", deadline_s=1e-9, **OPTIONS)
    fresh = seedrank.score(store, queries=HITS, out=tmp_path / "fresh", **OPTIONS)
    run = seedrank.score(store, queries=HITS, out=tmp_path / "run", since=str(tmp_path / "earlier"), **OPTIONS)
    assert bytes_of(run) == bytes_of(fresh)
    assert run.manifest.queries is not None
    assert run.manifest.queries.taken_over == 0


def test_a_run_that_takes_over_goes_on_where_it_ended(store: seedrank.GraphStore, tmp_path: Path) -> None:
    command = {"queries": HITS, "out": tmp_path / "run", "since": str(tmp_path / "earlier"), **OPTIONS}
    expected = bytes_of(seedrank.score(store, queries=HITS, out=tmp_path / "earlier", **OPTIONS))
    run = seedrank.score(store, **command)
    (run.path / "queries" / "part-00002.parquet").unlink()
    again = seedrank.score(store, **command)
    assert bytes_of(again) == expected
    assert again.manifest.queries is not None
    assert again.manifest.queries.taken_over == 20
    assert seedrank.score(store, **command).already_done


def test_the_command(tmp_path: Path, seedrank_command: Any) -> None:
    pq.write_table(EDGES, tmp_path / "edges.parquet")
    pq.write_table(HITS, tmp_path / "monday.parquet")
    pq.write_table(with_value("weight", 5, 0.5), tmp_path / "tuesday.parquet")
    seedrank.build(EDGES, out=tmp_path / "graph")

    def score(day: str, *options: Any) -> Any:
        return seedrank_command(
            "score", tmp_path / "graph", "--queries", tmp_path / f"{day}.parquet", "--out", tmp_path / day,
            "--backend", "scipy", "--log-format", "json", *options,
        )  # fmt: skip

    assert score("monday").code == 0
    result = score("tuesday", "--since", tmp_path / "monday", "--metrics-file", tmp_path / "m.prom")
    assert result.code == 0, result.err
    events = [json.loads(line) for line in result.err.splitlines()]
    assert next(event for event in events if event["event"] == "earlier_run_opened")["queries"] == 20
    assert next(event for event in events if event["event"] == "part_done")["taken_over"] == 19
    assert "seedrank_queries_taken_over 19\n" in (tmp_path / "m.prom").read_text(encoding="utf-8")
    refused = score("tuesday", "--since", tmp_path / "monday", "--overwrite", "--top-k", "3")
    assert refused.code == 2
    assert "--since" in refused.err
    assert "--top-k: 100 there, 3 here" in refused.err
    missing = score("tuesday", "--since", tmp_path / "sunday", "--overwrite")
    assert missing.code == 3
    assert "sunday" in missing.err


@st.composite
def days(draw: st.DrawFn) -> tuple[pa.Table, pa.Table]:
    """Hits of two days, of which many are the same."""
    hit = st.tuples(st.sampled_from("abcdefg"), st.integers(0, 32), st.sampled_from([0.5, 1.0]), st.sampled_from("xy"))
    common = draw(st.lists(hit, min_size=1, max_size=12))

    def day() -> pa.Table:
        columns = zip(*[*common, *draw(st.lists(hit, max_size=3))], strict=True)
        return pa.table(dict(zip(HITS.schema.names, map(list, columns), strict=True)))

    return day(), day()


@settings(max_examples=6, deadline=None)
@given(days=days(), method=st.sampled_from(["ppr", "fuse", "bfs"]))
def test_any_two_days(store: seedrank.GraphStore, days: tuple[pa.Table, pa.Table], method: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        taken_over(store, Path(folder), {"queries": days[0]}, {"queries": days[1]}, method=method, part_size=2)
