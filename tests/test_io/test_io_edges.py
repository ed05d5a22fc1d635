"""Edge lists: one table out of whatever the parts look like, every bad row refused by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fsspec
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seedrank.errors import InputDataError
from seedrank.io import ids
from seedrank.io.edge_list.edge_rows import EdgeColumns
from seedrank.io.edges import EdgeList, read_edges
from seedrank.io.nodes import read_nodes

Rows = list[tuple[Any, ...]]


def write(path: Path, row_group_size: int | None = None, **columns: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path, row_group_size=row_group_size)
    return path


def rows_of(edges: EdgeList) -> Rows:
    """Edges as (src, dst[, weight][, type]) with the ids put back."""
    names = edges.ids.to_pylist()
    columns: list[Sequence[Any]] = [[names[i] for i in edges.source], [names[i] for i in edges.target]]
    if edges.weight is not None:
        columns.append(edges.weight.tolist())
    if edges.edge_type is not None:
        columns.append([edges.type_names[i] for i in edges.edge_type])
    return sorted(zip(*columns, strict=True), key=repr)


def test_ranks_are_positions_among_sorted_ids() -> None:
    edges = read_edges(pa.table({"src": [10, 9], "dst": [2, 10]}))
    assert edges.ids.to_pylist() == [2, 9, 10]  # numerically, not as text
    assert (edges.source.tolist(), edges.target.tolist()) == ([2, 1], [0, 2])
    assert edges.source.dtype == edges.target.dtype == "int32"
    assert (edges.weight, edges.edge_type, edges.type_names) == (None, None, ())
    assert (edges.rows, edges.dropped_rows, edges.zero_weight_rows) == (2, 0, 0)


def test_case_13_gaps_do_not_become_nodes() -> None:
    far = 10**15
    edges = read_edges(pa.table({"src": [far + 9001, far + 9002], "dst": [far + 9002, far * 9]}))
    assert edges.ids.to_pylist() == [far + 9001, far + 9002, far * 9]


def test_case_14_spark_folder(tmp_path: Path) -> None:
    parts = [
        write(tmp_path / "e" / "part-0.parquet", src=[1], dst=[2]),
        write(tmp_path / "e" / "part-1.parquet", src=[2], dst=[3]),
    ]
    alone = read_edges(parts)
    for junk in ("_SUCCESS", "_metadata", ".part-0.parquet.crc", ".DS_Store", "_temporary/x.parquet"):
        path = tmp_path / "e" / junk
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"")
    (tmp_path / "e" / "empty").mkdir()
    folder = read_edges(tmp_path / "e")
    assert rows_of(folder) == rows_of(alone) == [(1, 2), (2, 3)]
    assert folder.records == alone.records
    (tmp_path / "e" / "part-2.parquet").write_bytes(b"")
    with pytest.raises(InputDataError, match=r"part-2\.parquet has zero bytes"):
        read_edges(tmp_path / "e")


@dataclass(frozen=True)
class IdCase:
    name: str
    src: pa.Array
    id_type: pa.DataType


ID_CASES = [
    *(
        IdCase(
            f"{sign}int{bits}", pa.array([1, 2], getattr(pa, f"{sign}int{bits}")()), getattr(pa, f"{sign}int{bits}")()
        )
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    ),
    IdCase("string", pa.array(["007", "7"]), pa.string()),
    IdCase("large_string", pa.array(["007", "7"], pa.large_string()), pa.large_string()),
    IdCase("string_view", pa.array(["007", "7"], pa.string_view()), pa.string()),
    IdCase("dictionary", pa.array(["007", "7"]).dictionary_encode(), pa.string()),
    IdCase("uint64-max", pa.array([2**64 - 1, 2**53 + 1], pa.uint64()), pa.uint64()),
    IdCase("beyond-float", pa.array([2**53 + 1, 2**53]), pa.int64()),
]


@pytest.mark.parametrize("case", ID_CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("form", ["file", "memory"])
def test_ids_come_back_in_the_type_of_the_input(tmp_path: Path, case: IdCase, form: str) -> None:
    columns = {"src": case.src, "dst": pa.concat_arrays([case.src.slice(1), case.src.slice(0, 1)])}
    edges = read_edges(pa.table(columns) if form == "memory" else write(tmp_path / "e.parquet", **columns))
    first, second = case.src.to_pylist()
    assert edges.ids.type == case.id_type
    assert rows_of(edges) == sorted([(first, second), (second, first)], key=repr)


def test_parts_that_differ_are_one_table(tmp_path: Path) -> None:
    """Reordered and extra columns, narrower integers, other float widths, an all-null weight, a dictionary."""
    write(tmp_path / "a.parquet", src=pa.array([1], pa.int64()), dst=[2], weight=[0.5], type=["x"])
    write(
        tmp_path / "b.parquet",
        extra=["junk"],
        type=pa.array(["y"]).dictionary_encode(),
        weight=pa.array([3], pa.int8()),
        dst=pa.array([1], pa.uint8()),
        src=pa.array([2], pa.int16()),
    )
    write(
        tmp_path / "c.parquet",
        dst=pa.array([4], pa.uint32()),
        src=[3],
        type=pa.array([None], pa.null()),
        weight=pa.array([1.5], pa.float32()),
    )
    write(tmp_path / "d.parquet", src=[7], dst=[8], type=["x"], weight=pa.nulls(1))
    edges = read_edges(tmp_path, null_weight="one")
    assert edges.ids.type == pa.int64()
    assert edges.type_names == ("x", "y", None)
    assert rows_of(edges) == [(1, 2, 0.5, "x"), (2, 1, 3.0, "y"), (3, 4, 1.5, None), (7, 8, 1.0, "x")]


def test_different_dictionaries_across_parts_and_row_groups(tmp_path: Path) -> None:
    for number, words in enumerate((["m", "a", "z"], ["z", "k", "m"])):
        values = pa.array(words * 2).dictionary_encode()
        write(tmp_path / f"{number}.parquet", row_group_size=2, src=values, dst=pa.array(words[::-1] * 2))
    expected = sorted(
        pair for words in (["m", "a", "z"], ["z", "k", "m"]) for pair in zip(words, words[::-1], strict=True)
    )
    edges = read_edges(tmp_path)
    assert edges.ids.to_pylist() == ["a", "k", "m", "z"]
    assert rows_of(edges) == sorted(expected * 2)


def test_dictionary_entries_without_rows_are_no_nodes() -> None:
    values = pa.DictionaryArray.from_arrays(pa.array([0, 2]), pa.array(["a", "ghost", "b"]))
    assert read_edges(pa.table({"src": values, "dst": ["a", "a"]})).ids.to_pylist() == ["a", "b"]


def test_weight_missing_in_some_parts(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", src=[1], dst=[2], weight=[1.0])
    write(tmp_path / "b.parquet", src=[2], dst=[3])
    with pytest.raises(InputDataError, match=r"1 of 2 files with rows have no column 'weight'.*b\.parquet"):
        read_edges(tmp_path)
    write(tmp_path / "b.parquet", src=pa.array([], pa.int64()), dst=pa.array([], pa.int64()))
    assert rows_of(read_edges(tmp_path)) == [(1, 2, 1.0)]  # a part without rows has no say


def test_types_of_empty_parts_have_no_say(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", src=[1], dst=[2], weight=[1])
    write(tmp_path / "b.parquet", src=pa.nulls(0), dst=pa.array([], pa.float64()), weight=pa.array([], pa.string()))
    assert rows_of(read_edges(tmp_path)) == [(1, 2, 1.0)]


def test_case_10_hive_folders_with_string_keys(tmp_path: Path) -> None:
    write(tmp_path / "src=007" / "p.parquet", dst=["a"])
    write(tmp_path / "src=7" / "p.parquet", dst=["b"])
    assert rows_of(read_edges(tmp_path)) == [("007", "a"), ("7", "b")]
    write(tmp_path / "src=7" / "p.parquet", dst=[5])
    write(tmp_path / "src=007" / "p.parquet", dst=[6])
    with pytest.raises(InputDataError, match=r"int64 ids, .* has string ids"):
        read_edges(tmp_path)


def test_hive_types_and_encoded_values(tmp_path: Path) -> None:
    write(tmp_path / "_region=eu" / "type=part%20of" / "p.parquet", src=[1], dst=[2])
    write(tmp_path / "_region=eu" / "type=__HIVE_DEFAULT_PARTITION__" / "p.parquet", src=[1], dst=[3])
    assert rows_of(read_edges(tmp_path)) == [(1, 2, "part of"), (1, 3, None)]
    by_region = read_edges(tmp_path, EdgeColumns(type="_region"))
    assert rows_of(by_region) == [(1, 2, "eu"), (1, 3, "eu")]


def test_string_views_pass_through_every_policy() -> None:
    """The layout of polars, for which Arrow has no kernels that select rows."""
    texts = pa.string_view()
    table = pa.table(
        {
            "src": pa.array(["a", "b", None, "c"], texts),
            "dst": pa.array(["b", "c", "x", "a"], texts),
            "weight": [0.0, 1.0, 1.0, 2.0],
            "type": pa.array(["t", None, "t", "u"], texts),
        }
    )
    edges = read_edges(table, on_bad_rows="drop")
    assert rows_of(edges) == [("b", "c", 1.0, None), ("c", "a", 2.0, "u")]
    assert edges.ids == pa.array(["a", "b", "c"])


def test_globs_lists_urls_and_objects_are_the_same_edges(tmp_path: Path) -> None:
    table = pa.table({"src": ["a", "b"], "dst": ["b", "c"], "weight": [1.0, 2.0]})
    path = write(tmp_path / "p.parquet", src=table["src"], dst=table["dst"], weight=table["weight"])
    memory = fsspec.filesystem("memory")
    memory.pipe("/edges-test/p.parquet", path.read_bytes())
    try:
        sources = [
            path,
            f"{tmp_path}/*.parquet",
            [path],
            f"file://{path}",
            "memory://edges-test",
            table,
            table.to_reader(),
            pl.from_arrow(table),
            pd.DataFrame({"src": ["a", "b"], "dst": ["b", "c"], "weight": [1.0, 2.0]}),
            pl.from_arrow(table).with_columns(pl.col("src").cast(pl.Categorical)),  # type: ignore[union-attr]
        ]
        for source in sources:
            edges = read_edges(source)
            assert rows_of(edges) == [("a", "b", 1.0), ("b", "c", 2.0)]
            assert edges.rows == edges.records[0].rows == 2
    finally:
        memory.rm("/edges-test", recursive=True)


def test_edge_types_as_integers_and_dictionaries(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", src=[1, 2], dst=[2, 3], type=pa.array([10, 9], pa.int8()))
    write(tmp_path / "b.parquet", src=[3], dst=[1], type=["10"])
    edges = read_edges(tmp_path)
    assert edges.type_names == ("10", "9")  # by code point: names are text
    assert rows_of(edges) == [(1, 2, "10"), (2, 3, "9"), (3, 1, "10")]
    with pytest.raises(InputDataError, match="column 'type' has type double, which cannot be the edge type"):
        read_edges(pa.table({"src": [1], "dst": [2], "type": [1.5]}))


def test_named_columns_must_exist() -> None:
    table = pa.table({"source": [1], "target": [2], "wieght": [2.0]})
    renamed = EdgeColumns(src="source", dst="target")
    assert rows_of(read_edges(table, renamed)) == [(1, 2)]
    with pytest.raises(InputDataError, match=r"no column 'src'.*") as caught:
        read_edges(table)
    assert "found 'source', 'target', 'wieght'" in caught.value.expected
    for role in ("weight", "type"):
        explicit = EdgeColumns(src="source", dst="target", explicit=frozenset({role}))
        with pytest.raises(InputDataError, match=f"has no column '{role}'"):
            read_edges(table, explicit)
    with pytest.raises(InputDataError, match="did you mean 'wieght'"):
        read_edges(table, EdgeColumns(src="source", dst="target", explicit=frozenset({"weight"})))


def test_case_10_integer_against_string_within_the_edges(tmp_path: Path) -> None:
    with pytest.raises(InputDataError, match=r"column 'src' has int64 ids, .*column 'dst' has string ids"):
        read_edges(pa.table({"src": [1], "dst": ["2"]}))
    write(tmp_path / "a.parquet", src=[1], dst=[2])
    write(tmp_path / "b.parquet", src=["1"], dst=["2"])
    with pytest.raises(InputDataError, match=r"a\.parquet, column 'src' .*b\.parquet, column 'src'"):
        read_edges(tmp_path)


def test_float_ids_are_refused() -> None:
    with pytest.raises(InputDataError, match=r"column 'dst' has type double, which cannot be an id"):
        read_edges(pd.DataFrame({"src": [1, 2], "dst": [2, None]}))


def test_case_50_no_rows(tmp_path: Path) -> None:
    empty = pa.array([], pa.string())
    path = write(tmp_path / "e.parquet", src=empty, dst=empty, weight=pa.array([], pa.float32()), type=empty)
    edges = read_edges(path)
    assert edges.ids.type == pa.string()
    assert (len(edges.ids), len(edges.source), edges.rows, edges.type_names) == (0, 0, 0, ())
    assert edges.weight is not None
    assert edges.weight.dtype == "float64"
    loop = read_edges(pa.table({"src": [1], "dst": [1]}))
    assert (loop.ids.to_pylist(), loop.source.tolist(), loop.target.tolist()) == ([1], [0], [0])


def test_case_51_node_table_brings_isolated_nodes() -> None:
    nodes = read_nodes(pa.table({"id": pa.array([3, 1, 70_000], pa.uint32())}))
    edges = read_edges(pa.table({"src": pa.array([1], pa.int16()), "dst": pa.array([2], pa.int16())}), nodes=nodes)
    assert edges.ids == pa.array([1, 2, 3, 70_000], pa.int64())
    assert rows_of(edges) == [(1, 2)]
    with pytest.raises(InputDataError, match=r"edges .*column 'src' has int64 ids, nodes .*column 'id' has string"):
        read_edges(pa.table({"src": [1], "dst": [2]}), nodes=read_nodes(pa.table({"id": ["1"]})))


def test_case_54_more_nodes_than_int32_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ids, "MAX_IDS", 2)
    with pytest.raises(InputDataError, match="node ids: 3 distinct values"):
        read_edges(pa.table({"src": ["a", "b"], "dst": ["b", "c"]}))


edge = st.tuples(
    st.sampled_from([1, 2, 3, 10, 2**40]),
    st.sampled_from([1, 2, 9, 2**53 + 1]),
    st.sampled_from([0.0, 0.5, 1.0, 3.0]),
    st.sampled_from(["x", "y", None]),
)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), rows=st.lists(edge, min_size=1, max_size=12), as_text=st.booleans())
def test_order_of_rows_and_parts_does_not_matter(
    data: st.DataObject, rows: list[tuple[Any, ...]], as_text: bool
) -> None:
    def table(part: list[tuple[Any, ...]]) -> pa.Table:
        src, dst, weight, kind = (list(column) for column in zip(*part, strict=True))
        convert = (lambda values: pa.array(map(str, values))) if as_text else pa.array
        return pa.table(
            {"src": convert(src), "dst": convert(dst), "weight": weight, "type": pa.array(kind, pa.string())}
        )

    shuffled = data.draw(st.permutations(rows))
    cut = data.draw(st.integers(0, len(rows)))
    parts = [table(part) for part in (shuffled[:cut], shuffled[cut:]) if part]
    expected, actual = read_edges(table(rows)), read_edges(parts)
    assert actual.ids.equals(expected.ids)
    assert actual.type_names == expected.type_names
    assert rows_of(actual) == rows_of(expected)
    assert actual.zero_weight_rows == expected.zero_weight_rows == sum(row[2] == 0 for row in rows)
