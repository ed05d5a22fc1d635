"""Hits, long and nested: the same hits give the same arrays, bad ones are named by query and node."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seedrank.errors import InputDataError
from seedrank.io.hits import order as hit_order
from seedrank.io.queries import HitColumns, HitTable, read_hits


def hits_of(table: HitTable) -> list[tuple[Any, ...]]:
    """Hits as (query, node, weight[, source]) with the ids put back, in the order of the table."""
    queries, nodes = table.query_ids.to_pylist(), [*table.node_ids.to_pylist(), None]
    columns = [[queries[i] for i in table.query], [nodes[i] for i in table.node], table.weight.tolist()]
    if table.source is not None:
        columns.append([table.source_names[i] for i in table.source])
    return list(zip(*columns, strict=True))


def assert_same(first: HitTable, second: HitTable) -> None:
    assert first.query_ids.equals(second.query_ids)
    assert first.node_ids.equals(second.node_ids)
    assert first.source_names == second.source_names
    for name in ("query", "node", "weight", "null_list"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    assert (first.source is None) == (second.source is None)
    if first.source is not None and second.source is not None:
        np.testing.assert_array_equal(first.source, second.source)


def test_case_4_long_hits() -> None:
    table = read_hits(pa.table({"query_id": ["q3", "q1", "q2", "q1"], "node_id": [2, 99, 99, 1]}))
    assert table.query_ids.to_pylist() == ["q1", "q2", "q3"]
    assert hits_of(table) == [("q1", 1, 1.0), ("q1", 99, 1.0), ("q2", 99, 1.0), ("q3", 2, 1.0)]
    assert table.null_list.tolist() == [False] * 3
    assert (table.source, table.source_names) == (None, ())
    assert [str(array.dtype) for array in (table.query, table.node, table.weight)] == ["int32", "int32", "float64"]


def test_sorted_by_query_source_node_weight() -> None:
    table = read_hits(
        pa.table(
            {
                "query_id": [2, 1, 1, 1, 1],
                "node_id": ["a", "b", "b", "c", "a"],
                "weight": [1, 9, 3, 2, 4],
                "source": ["sparse", "dense", "dense", None, "sparse"],
            }
        )
    )
    assert table.source_names == ("dense", "sparse", None)
    assert hits_of(table) == [
        (1, "b", 3.0, "dense"),
        (1, "b", 9.0, "dense"),
        (1, "a", 4.0, "sparse"),
        (1, "c", 2.0, None),
        (2, "a", 1.0, "sparse"),
    ]


@pytest.mark.parametrize("limit", [2**63 - 1, 1], ids=["packed-key", "separate-keys"])
def test_both_ways_of_sorting_agree(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(7)
    query, source, node = (random.integers(low, 4, 500).astype(np.int32) for low in (0, 0, -1))
    weight, rank = random.integers(0, 3, 500) / 4, random.integers(1, 4, 500)
    monkeypatch.setattr(hit_order, "_LARGEST_KEY", limit)
    order = hit_order.hit_order(query, source, node, (weight, rank))
    rows = list(zip(*(column.tolist() for column in (query, source, node, weight, rank)), strict=True))
    assert [rows[i] for i in order] == sorted(rows)
    assert sorted(order.tolist()) == list(range(500))


LISTS = [[1, 2], [], None, [1, None]]
QUERIES = ["q1", "q2", "q3", "q4"]
LIST_TYPES = [pa.list_(pa.int64()), pa.large_list(pa.int32()), pa.list_(pa.dictionary(pa.int8(), pa.uint16()))]


@pytest.mark.parametrize("list_type", LIST_TYPES, ids=str)
@pytest.mark.parametrize("form", ["memory", "file"])
def test_case_18_null_empty_and_null_inside(tmp_path: Path, list_type: pa.DataType, form: str) -> None:
    source: Any = pa.table({"query_id": QUERIES, "seeds": pa.array(LISTS, list_type)})
    if form == "file":
        pq.write_table(source, tmp_path / "q.parquet", row_group_size=2)
        source = tmp_path / "q.parquet"
    table = read_hits(source)
    assert table.query_ids.to_pylist() == QUERIES
    assert hits_of(table) == [("q1", 1, 1.0), ("q1", 2, 1.0), ("q4", None, 1.0), ("q4", 1, 1.0)]
    assert table.node[2] == -1
    assert table.null_list.tolist() == [False, False, True, False]
    assert table.node_ids.type == (pa.uint16() if "dictionary" in str(list_type) else list_type.value_type)


@pytest.mark.parametrize("list_type", [*LIST_TYPES, pa.list_(pa.int64(), 2)], ids=str)
@pytest.mark.parametrize("start", [0, 1, 2])
def test_case_18_sliced_lists(list_type: pa.DataType, start: int) -> None:
    lists = [[5, 6], None, [7, None], [8, 9]]
    whole = pa.table({"query_id": [0, 1, 2, 3], "seeds": pa.array(lists, list_type)})
    fresh = pa.table({"query_id": list(range(start, 4)), "seeds": pa.array(lists[start:], list_type)})
    sliced = read_hits(whole.slice(start))
    assert_same(sliced, read_hits(fresh))
    expected = [(q, node) for q, entry in enumerate(lists) if q >= start for node in entry or ()]
    assert sorted(hits_of(sliced), key=repr) == sorted(((q, node, 1.0) for q, node in expected), key=repr)


def test_content_hidden_below_a_null_list_is_no_hit() -> None:
    hidden = pa.ListArray.from_arrays(pa.array([0, 2, 3]), pa.array([1, 2, 3]), mask=pa.array([True, False]))
    table = read_hits(pa.table({"query_id": ["a", "b"], "seeds": hidden}))
    assert hits_of(table) == [("b", 3, 1.0)]
    assert table.null_list.tolist() == [True, False]


STRUCTS = [
    [
        {"node_id": "a", "weight": 2.0, "source": "s", "text": "x"},
        {"node_id": "b", "weight": 1.0, "source": "t", "text": ""},
    ],
    None,
    [None, {"node_id": None, "weight": None, "source": "s", "text": None}],
]
STRUCT = pa.struct([("text", pa.string()), ("source", pa.string()), ("node_id", pa.string()), ("weight", pa.float32())])


VIEWS = pa.struct([("source", pa.string_view()), ("node_id", pa.string_view()), ("weight", pa.int8())])
STRUCT_LISTS = {
    "list": pa.list_(STRUCT),
    "large": pa.large_list(STRUCT),
    "fixed": pa.list_(STRUCT, 2),
    "views": pa.large_list(VIEWS),
    "fixed-views": pa.list_(VIEWS, 2),
}


@pytest.mark.parametrize("name", STRUCT_LISTS)
@pytest.mark.parametrize("form", ["memory", "file", "sliced"])
def test_lists_of_structs(tmp_path: Path, name: str, form: str) -> None:
    list_type = STRUCT_LISTS[name]
    source: Any = pa.table({"query_id": [1, 2, 3], "seeds": pa.array(STRUCTS, list_type)})
    if form == "file":
        path = tmp_path / "q.parquet"
        if "views" in name:  # Arrow cannot write views inside lists, polars can
            pl.DataFrame(pl.from_arrow(source)).write_parquet(path)
        else:
            pq.write_table(source, path)
        source = path
    elif form == "sliced":
        lists = pa.array([*STRUCTS[:1], *STRUCTS], list_type)
        source = pa.table({"query_id": [0, 1, 2, 3], "seeds": lists}).slice(1)
    table = read_hits(source)
    assert hits_of(table) == [
        (1, "a", 2.0, "s"),
        (1, "b", 1.0, "t"),
        (3, None, 0.0, "s"),
        (3, None, 0.0, None),
    ]
    assert table.null_list.tolist() == [False, True, False]


def test_long_and_nested_are_the_same_hits() -> None:
    long = pa.table(
        {"query_id": [1, 1, 2], "node_id": ["a", "b", "a"], "weight": [2.0, 1.0, 3.0], "source": ["s", "t", "s"]}
    )
    nested = pa.table(
        {
            "query_id": [2, 1],
            "seeds": [
                [{"node_id": "a", "weight": 3.0, "source": "s"}],
                [{"node_id": "b", "weight": 1.0, "source": "t"}, {"node_id": "a", "weight": 2.0, "source": "s"}],
            ],
        }
    )
    assert_same(read_hits(long), read_hits(nested))
    # A list per source: what holds for the whole list stands in the row.
    per_row = pa.table(
        {"query_id": [1, 1, 2], "source": ["s", "t", "s"], "weight": [2, 1, 3], "seeds": [["a"], ["b"], ["a"]]}
    )
    assert_same(read_hits(long), read_hits(per_row))


def test_query_with_one_null_list_and_one_empty_list() -> None:
    table = read_hits(pa.table({"query_id": ["a", "a", "b"], "seeds": pa.array([None, [], None], pa.list_(pa.int8()))}))
    assert table.null_list.tolist() == [False, True]


def test_parts_without_any_element_follow_the_others() -> None:
    parts = [
        pa.table({"query_id": [1], "seeds": pa.nulls(1)}),
        pa.table({"query_id": [2], "seeds": pa.array([[{"node_id": 7, "weight": 2.0}]])}),
        pa.table({"query_id": [3, 4], "seeds": pa.array([[], [None]], pa.list_(pa.null()))}),
    ]
    table = read_hits(parts)
    assert hits_of(table) == [(2, 7, 2.0), (4, None, 0.0)]
    assert table.null_list.tolist() == [True, False, False, False]
    alone = read_hits(parts[0])
    assert (alone.query_ids.to_pylist(), alone.null_list.tolist(), len(alone.node)) == ([1], [True], 0)


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view", "dictionary", "int8", "uint64"])
def test_ids_of_queries_and_nodes_in_every_type(kind: str) -> None:
    values = ["7", "007"] if "string" in kind or kind == "dictionary" else [7, 5]
    array = pa.array(values).dictionary_encode() if kind == "dictionary" else pa.array(values, getattr(pa, kind)())
    table = read_hits(pa.table({"query_id": array, "node_id": array}))
    assert table.query_ids.to_pylist() == table.node_ids.to_pylist() == sorted(values)
    plain = {"string_view": pa.string(), "dictionary": pa.string()}.get(kind, array.type)
    assert table.query_ids.type == table.node_ids.type == plain


def test_case_10_no_detour_through_float() -> None:
    big = [2**53 + 1, 2**53, 2**64 - 1]
    table = read_hits(pa.table({"query_id": [1, 1, 1], "node_id": pa.array(big, pa.uint64())}))
    assert table.node_ids.to_pylist() == sorted(big)
    parts = [pa.table({"query_id": [1], "node_id": [1]}), pa.table({"query_id": [1], "node_id": ["1"]})]
    with pytest.raises(InputDataError, match=r"table 0 in memory.*int64 ids.*table 1 in memory.*string ids"):
        read_hits(parts)


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_frames(library: str) -> None:
    columns = {"query_id": ["a", "a"], "node_id": [2, 1], "weight": [1.0, 0.5]}
    frame = pl.DataFrame(columns) if library == "polars" else pd.DataFrame(columns)
    assert hits_of(read_hits(frame)) == [("a", 1, 0.5), ("a", 2, 1.0)]
    nested = pl.DataFrame({"query_id": ["a", "b"], "seeds": [[2, 1], None]})
    assert hits_of(read_hits(nested)) == [("a", 1, 1.0), ("a", 2, 1.0)]


@pytest.mark.parametrize("weight", [-1.0, math.nan, math.inf, None], ids=str)
@pytest.mark.parametrize("form", ["long", "nested"])
def test_case_6_bad_weights_name_query_and_node(tmp_path: Path, weight: float | None, form: str) -> None:
    path = tmp_path / "q.parquet"
    if form == "long":
        table = pa.table({"query_id": ["q1", "q2", "q2"], "node_id": [1, 1, 2], "weight": [0.0, weight, 2.0]})
    else:
        hits = [{"node_id": 1, "weight": weight}, {"node_id": 2, "weight": 2.0}]
        table = pa.table({"query_id": ["q1", "q2"], "seeds": [[{"node_id": 1, "weight": 0.0}], hits]})
    pq.write_table(table, path, row_group_size=1)
    with pytest.raises(InputDataError) as caught:
        read_hits(path)
    column = "weight" if form == "long" else "seeds"
    assert str(caught.value).startswith(f"{path}, row group 1, column '{column}' has a weight that is null, negative")
    assert f"row 1 (query_id='q2', node_id=1, weight={weight})" in str(caught.value)
    assert caught.value.exit_code == 3


def test_case_6_zero_weights_are_data() -> None:
    assert hits_of(read_hits(pa.table({"query_id": [1, 1], "node_id": [1, 2], "weight": [0, 0]}))) == [
        (1, 1, 0.0),
        (1, 2, 0.0),
    ]


def test_row_of_an_outer_join_is_a_query_without_hit() -> None:
    table = read_hits(pa.table({"query_id": ["a", "b"], "node_id": [1, None], "weight": [2.0, None]}))
    assert hits_of(table) == [("a", 1, 2.0), ("b", None, 0.0)]


def test_null_query_id_is_named() -> None:
    with pytest.raises(InputDataError, match=r"column 'query_id' is null: row 1 \(query_id=None, node_id=6\)"):
        read_hits(pa.table({"query_id": ["a", None], "node_id": [5, 6]}))


def test_sources_keep_their_hits_and_all_queries() -> None:
    table = pa.table(
        {
            "query_id": ["a", "a", "b", "c"],
            "node_id": [1, 2, 3, 4],
            "weight": [1.0, 2.0, math.nan, 4.0],
            "source": ["dense", "sparse", "junk", None],
        }
    )
    kept = read_hits(table, sources=["dense", "sparse"])  # the NaN belongs to a source that was not asked for
    assert kept.query_ids.to_pylist() == ["a", "b", "c"]
    assert kept.node_ids.to_pylist() == [1, 2]
    assert hits_of(kept) == [("a", 1, 1.0, "dense"), ("a", 2, 2.0, "sparse")]
    with pytest.raises(InputDataError, match="query_id='b', node_id=3, weight=nan"):
        read_hits(table)
    with pytest.raises(InputDataError, match="no hit has the source 'dens'") as caught:
        read_hits(table, sources=["dens", "dense"])
    assert "'dense', 'junk', 'sparse'" in caught.value.expected
    with pytest.raises(InputDataError, match="there is no column 'source'"):
        read_hits(table.drop_columns(["source"]), sources=["dense"])


def test_integer_sources_are_named_by_their_decimal_text() -> None:
    table = read_hits(pa.table({"query_id": [1, 1], "node_id": [1, 2], "source": [10, 9]}), sources=["9"])
    assert hits_of(table) == [(1, 2, 1.0, "9")]
    with pytest.raises(InputDataError, match="cannot be the source"):
        read_hits(pa.table({"query_id": [1], "node_id": [1], "source": [1.5]}))


def test_case_50_no_rows() -> None:
    empty = pa.array([], pa.string())
    table = read_hits(pa.table({"query_id": empty, "node_id": pa.array([], pa.int32())}))
    assert (table.query_ids.type, table.node_ids.type) == (pa.string(), pa.int32())
    assert (len(table.query), len(table.null_list)) == (0, 0)
    nested = read_hits(pa.table({"query_id": empty, "seeds": pa.array([], pa.list_(STRUCT))}))
    assert (nested.node_ids.type, nested.source_names) == (pa.string(), ())


def test_columns_can_be_renamed() -> None:
    names = HitColumns(query_id="q", node_id="n", weight="w", source="s", explicit=frozenset({"weight", "source"}))
    table = pa.table({"q": [1], "n": [2], "w": [3], "s": ["x"]})
    assert hits_of(read_hits(table, names)) == [(1, 2, 3.0, "x")]
    nested = pa.table({"q": [1], "list": [[{"n": 2, "w": 3.0, "s": "x"}]]})
    renamed = HitColumns(query_id="q", seeds="list", node_id="n", weight="w", source="s")
    assert hits_of(read_hits(nested, renamed)) == [(1, 2, 3.0, "x")]
    # A plain column that happens to have the default name of the list.
    assert hits_of(read_hits(pa.table({"query_id": [1], "node_id": [2], "seeds": [5]}))) == [(1, 2, 1.0)]


hit = st.tuples(
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from([1, 2, 30, None]),
    st.sampled_from([0.0, 1.0, 2.5]),
    st.sampled_from(["s", "t", None]),
)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), hits=st.lists(hit, min_size=1, max_size=12))
def test_order_of_rows_parts_and_form_does_not_matter(data: st.DataObject, hits: list[tuple[Any, ...]]) -> None:
    def long(part: list[tuple[Any, ...]]) -> pa.Table:
        query, node, weight, source = (list(column) for column in zip(*part, strict=True))
        node_array, source_array = pa.array(node, pa.int64()), pa.array(source, pa.string())
        return pa.table({"query_id": query, "node_id": node_array, "weight": weight, "source": source_array})

    def nested(part: list[tuple[Any, ...]]) -> pa.Table:
        element = pa.struct([("node_id", pa.int64()), ("weight", pa.float64()), ("source", pa.string())])
        lists: dict[str, list[tuple[Any, ...]]] = {}
        for query, *rest in part:
            lists.setdefault(query, []).append(tuple(rest))
        entries = [
            [dict(zip(("node_id", "weight", "source"), e, strict=True)) for e in entry] for entry in lists.values()
        ]
        return pa.table({"query_id": list(lists), "seeds": pa.array(entries, pa.list_(element))})

    shuffled = data.draw(st.permutations(hits))
    cut = data.draw(st.integers(0, len(hits)))
    form = data.draw(st.sampled_from([long, nested]))
    parts = [form(part) for part in (shuffled[:cut], shuffled[cut:]) if part]
    assert_same(read_hits(parts), read_hits(long(hits)))


def test_ranks_are_read_when_they_are_asked_for() -> None:
    table = pa.table({"query_id": [1, 1, 1], "node_id": ["b", "a", None], "rank": pa.array([2, 1, None], pa.int8())})
    assert read_hits(table).rank is None
    ranked = read_hits(table, HitColumns(rank="rank"))
    assert ranked.rank is not None
    assert ranked.rank.tolist() == [1, 1, 2]  # the hit without a node first
    assert read_hits(table, HitColumns(rank="place")).rank is None
    nested = pa.table({"query_id": [1], "rank": [3], "seeds": [["a", "b"]]})
    of_row = read_hits(nested, HitColumns(rank="rank"))
    assert of_row.rank is not None
    assert of_row.rank.tolist() == [3, 3]


def test_repeats_are_sorted_by_rank_too() -> None:
    columns = {"query_id": [1, 1, 1], "node_id": ["a"] * 3, "weight": [1.0] * 3}
    tables = [pa.table({**columns, "rank": ranks}) for ranks in ([3, 1, 2], [2, 3, 1])]
    first, second = (read_hits(table, HitColumns(rank="rank")).rank for table in tables)
    assert first is not None
    assert second is not None
    assert first.tolist() == second.tolist() == [1, 2, 3]


def test_negative_weights_where_they_are_allowed() -> None:
    table = pa.table({"query_id": [1], "node_id": ["a"], "weight": [-2.5]})
    assert read_hits(table, signed=True).weight.tolist() == [-2.5]
    with pytest.raises(InputDataError, match="negative"):
        read_hits(table)
    with pytest.raises(InputDataError, match="null, NaN or infinite: row 0"):
        read_hits(pa.table({"query_id": [1], "node_id": ["a"], "weight": [math.inf]}), signed=True)
