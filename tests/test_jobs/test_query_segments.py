"""Queries without limit: one segment of them in memory at a time, and the bytes of a run that has them all."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import seedrank
from seedrank.errors import ConfigError, InputDataError, KernelError
from seedrank.io.hits import staged_hits
from seedrank.io.hits.fingerprints import fingerprint_of
from seedrank.io.hits.query_ids import read_query_ids
from seedrank.io.hits.staged_hits import stage_hits
from seedrank.io.queries import HitColumns, read_hits
from seedrank.io.run.runfolder import RunFolder
from seedrank.jobs.queries import segment_size
from seedrank.jobs.queries.loading import load_query_set
from seedrank.jobs.queries.query_set import QuerySet

NODES = 40
EDGES = pa.table({"src": list(range(NODES)) * 2, "dst": [(n * k + 1) % NODES for k in (7, 11) for n in range(NODES)]})
KINDS = pa.table(
    {
        "id": [f"n{n:02d}" for n in range(NODES)],
        "type": ["odd" if n % 2 else "even" for n in range(NODES)],
        "document": [f"d{n // 4}" for n in range(NODES)],
    }
)


def named(numbers: pa.ChunkedArray) -> pa.Array:
    return pa.array([f"n{n:02d}" for n in numbers.to_pylist()])


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> seedrank.GraphStore:
    edges = pa.table({name: named(EDGES[name]) for name in ("src", "dst")})
    return seedrank.build(edges, nodes=KINDS, out=tmp_path_factory.mktemp("store") / "graph")


def hits(queries: int = 37) -> pa.Table:
    """Hits of three sources, of which one is in one segment only; unknown and null nodes; ids that sort as text."""
    random = np.random.default_rng(5)
    sources = np.array(["dense", "sparse", None], dtype=object)
    rows = [
        (f"q{query}", f"n{node:02d}" if node < NODES else None if node % 2 else "zoe", float(weight) / 8, source)
        for query in range(queries)
        for node, weight, source in zip(
            random.integers(0, NODES + 4, 3), random.integers(1, 9, 3), random.permutation(sources), strict=True
        )
    ]
    rows.append(("q11", "n03", 0.5, "only here"))
    order = random.permutation(len(rows))
    names = ("query_id", "node_id", "weight", "source")
    return pa.table({name: [rows[i][place] for i in order] for place, name in enumerate(names)})


def with_dictionaries(table: pa.Table) -> pa.Table:
    """The same table, its text as dictionaries."""
    columns = {name: table[name].combine_chunks() for name in table.column_names}
    return pa.table({name: c.dictionary_encode() if pa.types.is_string(c.type) else c for name, c in columns.items()})


@pytest.fixture
def segments(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], list[int]]:
    """Cut queries into segments of so many; returns the sizes of the query sets that are loaded from then on."""

    def cut(size: int) -> list[int]:
        monkeypatch.setattr(segment_size, "SEGMENT_QUERIES", size)
        loaded: list[int] = []

        def noted(*arguments: Any, **keywords: Any) -> QuerySet:
            query_set = load_query_set(*arguments, **keywords)
            loaded.append(len(query_set))
            return query_set

        for module in ("by_node", "in_files"):
            monkeypatch.setattr(f"seedrank.jobs.queries.{module}.load_query_set", noted)
        return loaded

    return cut


def parts_of(run: seedrank.Run) -> dict[str, bytes]:
    return {str(file.relative_to(run.path)): file.read_bytes() for file in run.path.rglob("part-*.parquet")}


NESTED = pa.table(
    {
        "query_id": [5, 1, 9, 3, 7, 2, 5],
        "seeds": [
            [{"node_id": "n01", "weight": 2.0}, {"node_id": "n05", "weight": 1.0}],
            None, [], [{"node_id": "n07", "weight": 1.0}, None], [{"node_id": "zoe", "weight": 1.0}], None, None,
        ],
    }
)  # fmt: skip
FORMS = {
    "long": hits(),
    "dictionaries": with_dictionaries(hits()),
    "nested": NESTED,
    "bare": pa.table({"query_id": pa.array(range(20), pa.uint8()), "node_id": [f"n{n:02d}" for n in range(20)]}),
}


WALK: dict[str, Any] = {"method": "walk", "walk_steps": 50, "random_seed": 3}
NEIGHBORS: dict[str, Any] = {"method": "neighbors", "paths": True, "exclude_neighbors": True}


@pytest.mark.parametrize(
    ("form", "options"),
    [*((form, {}) for form in FORMS), ("long", WALK), ("nested", WALK), ("long", NEIGHBORS)],
    ids=lambda value: value if isinstance(value, str) else value.get("method", "ppr"),
)
def test_segments_give_the_bytes_of_all_queries_together(
    store: seedrank.GraphStore, segments: Callable[[int], list[int]], tmp_path: Path, form: str, options: dict[str, Any]
) -> None:
    pq.write_table(FORMS[form], tmp_path / "hits.parquet", row_group_size=7)
    keywords: dict[str, Any] = {"queries": tmp_path / "hits.parquet", "part_size": 2, "top_k": 5, **options}
    whole = seedrank.score(store, out=tmp_path / "whole", **keywords)
    loaded = segments(5)
    cut = seedrank.score(store, out=tmp_path / "cut", **keywords)
    assert parts_of(cut) == parts_of(whole)
    assert cut.manifest.inputs == whole.manifest.inputs
    assert cut.manifest.queries == whole.manifest.queries
    assert cut.manifest.run_key == whole.manifest.run_key
    count = whole.manifest.queries.total  # type: ignore[union-attr]
    assert loaded == [0, *[4] * (count // 4), *([count % 4] if count % 4 else [])]
    assert {file.name for file in cut.path.iterdir()} == {"run.json", "_SUCCESS", "candidates", "queries"}


def test_options_of_sources_speak_of_all_hits(
    store: seedrank.GraphStore, segments: Callable[[int], list[int]], tmp_path: Path
) -> None:
    pq.write_table(hits(), tmp_path / "hits.parquet")
    exclude = pa.table({"query_id": ["q3", "q20", "q36"], "node_id": ["n01", "n02", "n03"]})
    keywords: dict[str, Any] = {
        "queries": tmp_path / "hits.parquet", "exclude": exclude, "part_size": 3, "top_k": 5,
        "seed_source_weight": {"only here": 3.0, "dense": 0.5}, "lower_is_better": ("sparse",),
        "source_normalization": "minmax", "seed_weighting": "rank", "where": ("type=odd",),
    }  # fmt: skip
    whole = seedrank.score(store, out=tmp_path / "whole", **keywords)
    segments(6)
    cut = seedrank.score(store, out=tmp_path / "cut", **keywords)
    assert parts_of(cut) == parts_of(whole)
    assert cut.manifest.inputs == whole.manifest.inputs
    with pytest.raises(InputDataError, match="no hit has this source"):
        seedrank.score(store, out=tmp_path / "none", **keywords | {"seed_source_weight": {"nope": 1.0}})
    some = keywords | {"source": ("sparse", "only here"), "seed_source_weight": {}}
    assert parts_of(seedrank.score(store, out=tmp_path / "some", **some)).keys() == parts_of(whole).keys()
    # Opened again for an explanation, the content is found to be the same.
    first = cut.candidates.to_arrow().slice(0, 1).to_pylist()[0]
    told_again = seedrank.explain(cut.path, query=first["query_id"], node=first["node_id"], exclude=exclude)
    assert told_again.rank == 1


def test_nodes_that_stand_in_for_others(
    store: seedrank.GraphStore, segments: Callable[[int], list[int]], tmp_path: Path
) -> None:
    rows = hits().drop_columns("source")
    instead = [f"n{n % NODES:02d}" if n % 3 else None for n in range(rows.num_rows)]
    pq.write_table(rows.append_column("chunk", pa.array(instead)), tmp_path / "hits.parquet")
    keywords: dict[str, Any] = {"queries": tmp_path / "hits.parquet", "fallback_node_column": "chunk", "part_size": 4}
    whole = seedrank.score(store, out=tmp_path / "whole", **keywords)
    segments(4)
    cut = seedrank.score(store, out=tmp_path / "cut", **keywords)
    assert parts_of(cut) == parts_of(whole)
    assert cut.manifest.inputs == whole.manifest.inputs


def test_case_68_every_node_of_a_type_in_segments(
    store: seedrank.GraphStore, segments: Callable[[int], list[int]], tmp_path: Path
) -> None:
    keywords: dict[str, Any] = {"all_nodes": "odd", "part_size": 3, "top_k": 4}
    whole = seedrank.score(store, out=tmp_path / "whole", **keywords)
    loaded = segments(7)
    cut = seedrank.score(store, out=tmp_path / "cut", **keywords)
    assert parts_of(cut) == parts_of(whole)
    assert loaded == [0, 6, 6, 6, 2]
    loaded.clear()
    for parts in ("4:", "0:4"):
        seedrank.score(store, out=tmp_path / "ranges", parts=parts, **keywords)
    assert parts_of(seedrank.score(store, out=tmp_path / "ranges", **keywords)) == parts_of(whole)
    assert seedrank.plan(store, **keywords).query_segments == 4


def test_a_run_in_segments_goes_on_and_fails_as_any_other(
    store: seedrank.GraphStore,
    segments: Callable[[int], list[int]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pq.write_table(hits(), tmp_path / "hits.parquet")
    keywords: dict[str, Any] = {"queries": tmp_path / "hits.parquet", "part_size": 3, "top_k": 5}
    whole = seedrank.score(store, out=tmp_path / "whole", **keywords)
    segments(6)
    with monkeypatch.context() as patched:
        original = RunFolder.write_part

        def breaks(self: RunFolder, part: int, **tables: pa.Table) -> Any:
            if part == 5:
                raise KernelError("no further", expected="more", fix="none")
            return original(self, part, **tables)

        patched.setattr(RunFolder, "write_part", breaks)
        with pytest.raises(KernelError):
            seedrank.score(store, out=tmp_path / "cut", **keywords)
    assert not (tmp_path / "cut" / "_tmp").exists()
    cut = seedrank.score(store, out=tmp_path / "cut", **keywords)
    assert parts_of(cut) == parts_of(whole)
    assert cut.manifest.queries == whole.manifest.queries
    assert seedrank.score(store, out=tmp_path / "cut", **keywords).already_done
    # Whether queries are cut is no part of the run: it goes on without, too.
    shutil.rmtree(tmp_path / "cut" / "queries")
    segments(10**6)
    assert parts_of(seedrank.score(store, out=tmp_path / "cut", overwrite=True, **keywords)) == parts_of(whole)


def test_bad_rows_are_found_before_anything_is_scored(
    store: seedrank.GraphStore, segments: Callable[[int], list[int]], tmp_path: Path
) -> None:
    rows = hits().sort_by("query_id")
    weights = rows["weight"].to_pylist()
    weights[-1] = -1.0
    pq.write_table(rows.set_column(2, "weight", pa.array(weights)), tmp_path / "hits.parquet")
    segments(4)
    with pytest.raises(InputDataError, match=r"weight that is null, negative.*\n.*\n*") as caught:
        seedrank.score(store, queries=tmp_path / "hits.parquet", out=tmp_path / "run", part_size=2)
    assert "hits.parquet" in str(caught.value)
    assert not list((tmp_path / "run").glob("candidates/*"))


def test_what_needs_all_queries_is_one_segment(
    store: seedrank.GraphStore, segments: Callable[[int], list[int]], tmp_path: Path
) -> None:
    pq.write_table(hits(), tmp_path / "hits.parquet")
    segments(4)
    keywords: dict[str, Any] = {"queries": tmp_path / "hits.parquet", "part_size": 2}
    assert seedrank.plan(store, **keywords).query_segments == 10
    together: list[dict[str, Any]] = [{"fusion": "rrf"}, {"fallback": "rrf"}, {"queries": hits()}]
    for further in [*together, {"part_size": 50}]:
        assert seedrank.plan(store, **keywords | further).query_segments == 1


@given(
    st.lists(
        st.tuples(
            st.integers(-3, 5),
            st.none() | st.integers(-2, 3),
            st.sampled_from([0.0, 0.5, 1.0]),
            st.none() | st.sampled_from("ab"),
        ),
        min_size=1,
        max_size=40,
    ),
    st.integers(1, 4),
    st.randoms(use_true_random=False),
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_staged_hits_are_the_hits_of_their_queries(
    tmp_path: Path, rows: list[tuple[int, int | None, float, str | None]], size: int, random: Any
) -> None:
    """Whatever the order of the rows: the segments together are the table, with the same fingerprint."""
    columns = dict(zip(("query_id", "node_id", "weight", "source"), map(list, zip(*rows, strict=True)), strict=True))
    types = (pa.int16(), pa.int64(), pa.float64(), pa.string())
    table = pa.table({name: pa.array(columns[name], kind) for name, kind in zip(columns, types, strict=True)})
    whole = read_hits(table)
    order = list(range(len(rows)))
    random.shuffle(order)
    shuffled = table.take(order)
    query_ids = read_query_ids(shuffled, column="query_id").query_ids
    staged = stage_hits(shuffled, HitColumns(), tmp_path, query_ids=query_ids, size=size, wanted=range(100))
    assert staged.record.fingerprint == fingerprint_of(whole)
    assert query_ids.equals(whole.query_ids)
    found: list[tuple[Any, ...]] = []
    for first in range(0, len(query_ids), size):
        part = staged.load(first, min(first + size, len(query_ids)))
        assert part.source_names == whole.source_names
        assert part.node_ids.type == whole.node_ids.type
        found += told(part)
    assert found == told(whole)


def told(table: Any) -> list[tuple[Any, ...]]:
    """Every hit by its values, in the order of the table."""
    nodes = [*table.node_ids.to_pylist(), None]
    queries, names = table.query_ids.to_pylist(), table.source_names
    columns = zip(table.query, table.node, table.weight, table.source, strict=True)
    return [(queries[query], nodes[node], weight, names[source]) for query, node, weight, source in columns]


def test_fingerprints_tell_hits_apart() -> None:
    rows: dict[str, list[Any]] = {"query_id": [1, 1, 2], "node_id": [5, 6, 5], "weight": [1.0, 2.0, 1.0]}
    others: list[dict[str, Any]] = [
        rows | {"query_id": [1, 2, 2]}, rows | {"node_id": [5, 6, 6]}, rows | {"weight": [2.0, 1.0, 1.0]},
        rows | {"weight": [1.0, 2.0, 0.0]}, rows | {"source": ["a", "a", "a"]}, rows | {"source": ["a", "a", None]},
        rows | {"source": ["a", "a", "None"]}, {name: values + values[-1:] for name, values in rows.items()},
        rows | {"query_id": ["1", "1", "2"]}, rows | {"node_id": [5, 6, None]}, rows | {"query_id": [6, 1, 2]},
        {"query_id": [1, 1, 2], "node_id": [5, 6, 5]},
        {"query_id": [1, 2], "seeds": [[5, 6], [5]]}, {"query_id": [1, 2, 3], "seeds": [[5, 6], [5], []]},
        {"query_id": [1, 2, 3], "seeds": [[5, 6], [5], None]},
    ]  # fmt: skip
    found = [fingerprint_of(read_hits(pa.table(table))) for table in [rows, *others]]
    # A list is another way to write its hits.
    assert found.pop(13) == found[12]
    assert len(set(found)) == len(found)
    again = pa.table(rows).take([2, 0, 1])
    assert fingerprint_of(read_hits([again.slice(0, 1), again.slice(1)])) == found[0]


def test_there_are_never_too_many_files(
    monkeypatch: pytest.MonkeyPatch, store: seedrank.GraphStore, tmp_path: Path
) -> None:
    pq.write_table(hits(), tmp_path / "hits.parquet")
    monkeypatch.setattr(segment_size, "SEGMENT_QUERIES", 2)
    monkeypatch.setattr("seedrank.jobs.queries.in_files.MOST_SEGMENTS", 3)
    assert staged_hits.MOST_SEGMENTS > 3
    run = seedrank.score(store, queries=tmp_path / "hits.parquet", out=tmp_path / "run", part_size=2)
    assert len(run.manifest.parts) == 19


def test_a_segment_has_fewer_queries_where_they_have_many_hits(
    monkeypatch: pytest.MonkeyPatch, store: seedrank.GraphStore, tmp_path: Path
) -> None:
    pq.write_table(hits(), tmp_path / "hits.parquet")  # 37 queries, 112 rows
    keywords: dict[str, Any] = {"queries": tmp_path / "hits.parquet", "part_size": 2}
    whole = seedrank.score(store, out=tmp_path / "whole", **keywords)
    monkeypatch.setattr(segment_size, "SEGMENT_QUERIES", 100)
    assert seedrank.plan(store, **keywords).query_segments == 1
    monkeypatch.setattr(segment_size, "SEGMENT_QUERIES", 20)
    assert seedrank.plan(store, **keywords).query_segments == 2
    monkeypatch.setattr(segment_size, "SEGMENT_HITS", 24)
    assert seedrank.plan(store, **keywords).query_segments == 7  # of 6 queries
    assert parts_of(seedrank.score(store, out=tmp_path / "cut", **keywords)) == parts_of(whole)


def test_a_range_puts_aside_only_what_it_needs(
    store: seedrank.GraphStore, segments: Callable[[int], list[int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(hits(), tmp_path / "hits.parquet")
    keywords: dict[str, Any] = {"queries": tmp_path / "hits.parquet", "part_size": 2}
    whole = seedrank.score(store, out=tmp_path / "whole", **keywords)
    loaded = segments(6)
    files: set[str] = set()
    original = RunFolder.write_part

    def noted(self: RunFolder, part: int, **tables: pa.Table) -> Any:
        files.update(file.name for file in self.scratch.glob("hits-*"))
        return original(self, part, **tables)

    monkeypatch.setattr(RunFolder, "write_part", noted)
    seedrank.score(store, out=tmp_path / "run", parts="7:10", **keywords)
    assert files == {"hits-00002.arrow", "hits-00003.arrow"}
    assert loaded == [0, 6, 6]  # the segments of queries 12 to 23
    with pytest.raises(ConfigError, match="19 parts, 0 to 18"):
        seedrank.score(store, out=tmp_path / "run", parts="19:", **keywords)
    run = seedrank.score(store, out=tmp_path / "run", **keywords)
    assert parts_of(run) == parts_of(whole)
    assert run.manifest.inputs == whole.manifest.inputs


def test_rows_that_appear_while_hits_are_read_are_refused(tmp_path: Path) -> None:
    known = pa.array([1, 2])
    for more in ([1, 2, 3], [0, 1, 2]):
        table = pa.table({"query_id": more, "node_id": more})
        with pytest.raises(InputDataError, match="rows have been added while they were read"):
            stage_hits(table, HitColumns(), tmp_path, query_ids=known, size=1, wanted=range(2))


def test_what_an_earlier_run_has_scored_is_taken_over_by_segment(
    store: seedrank.GraphStore, segments: Callable[[int], list[int]], tmp_path: Path
) -> None:
    rows = hits()
    pq.write_table(rows, tmp_path / "earlier.parquet")
    changed = [
        node if query != "q20" else "n07" for query, node in zip(*rows.select([0, 1]).to_pydict().values(), strict=True)
    ]
    pq.write_table(rows.set_column(1, "node_id", pa.array(changed)), tmp_path / "hits.parquet")
    keywords: dict[str, Any] = {"queries": tmp_path / "hits.parquet", "part_size": 2, "top_k": 5}
    whole = seedrank.score(store, out=tmp_path / "whole", **keywords)
    earlier = seedrank.score(store, out=tmp_path / "earlier", **keywords | {"queries": tmp_path / "earlier.parquet"})
    segments(6)
    cut = seedrank.score(store, out=tmp_path / "cut", since=str(earlier.path), **keywords)
    assert parts_of(cut) == parts_of(whole)
