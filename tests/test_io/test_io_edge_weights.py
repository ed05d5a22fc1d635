"""Weights and endpoints of an edge list: what is an edge, what is refused, what a policy drops."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seedrank.errors import InputDataError
from seedrank.io.edges import EdgeList, read_edges

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


def test_case_19_zero_weight_is_no_edge_but_its_endpoints_exist() -> None:
    edges = read_edges(pa.table({"src": ["a", "a", "z"], "dst": ["b", "c", "a"], "weight": [0.0, 1.0, -0.0]}))
    assert edges.ids.to_pylist() == ["a", "b", "c", "z"]
    assert rows_of(edges) == [("a", "c", 1.0)]
    assert (edges.rows, edges.zero_weight_rows, edges.dropped_rows) == (3, 2, 0)


def test_case_19_null_weight_and_its_policies() -> None:
    table = pa.table({"src": ["a", "a"], "dst": ["b", "c"], "weight": [1.0, None], "type": ["x", "y"]})
    with pytest.raises(InputDataError, match=r"column 'weight' is null: row 1 \(.*src='a', dst='c'") as caught:
        read_edges(table)
    assert "--null-weight drop" in caught.value.fix
    with pytest.raises(InputDataError, match="is null"):
        read_edges(table, on_bad_rows="drop")  # null has a policy of its own
    dropped = read_edges(table, null_weight="drop")
    assert rows_of(dropped) == [("a", "b", 1.0, "x")]
    assert dropped.ids.to_pylist() == ["a", "b"]
    assert (dropped.rows, dropped.dropped_rows) == (2, 1)
    assert rows_of(read_edges(table, null_weight="one")) == [("a", "b", 1.0, "x"), ("a", "c", 1.0, "y")]


@pytest.mark.parametrize("weight", [pa.nulls(2), pa.nulls(2, pa.float64())], ids=["null-type", "typed"])
def test_weight_column_of_nothing_but_nulls(weight: pa.Array) -> None:
    table = pa.table({"src": [1, 2], "dst": [2, 3], "weight": weight})
    with pytest.raises(InputDataError, match="column 'weight' is null: row 0"):
        read_edges(table)
    assert rows_of(read_edges(table, null_weight="one")) == [(1, 2, 1.0), (2, 3, 1.0)]
    assert rows_of(read_edges(table, null_weight="drop")) == []


@pytest.mark.parametrize("weight", [-1.0, math.nan, math.inf, -math.inf], ids=str)
def test_case_19_impossible_weights(tmp_path: Path, weight: float) -> None:
    path = write(
        tmp_path / "bad.parquet",
        row_group_size=2,
        src=[1, 2, 3, 2],
        dst=[2, 3, 1, 9],
        weight=[1.0, 2.0, 3.0, weight],
    )
    with pytest.raises(InputDataError) as caught:
        read_edges(path)
    message = str(caught.value)
    assert message.startswith(f"{path}, row group 1, column 'weight' is negative, NaN or infinite: row 3 (src=2, dst=9")
    assert f"weight={weight}" in message
    assert caught.value.exit_code == 3
    dropped = read_edges(path, on_bad_rows="drop")
    assert rows_of(dropped) == [(1, 2, 1.0), (2, 3, 2.0), (3, 1, 3.0)]
    assert dropped.ids.to_pylist() == [1, 2, 3]  # 9 was in the dropped row only
    assert dropped.dropped_rows == 1


def test_only_the_first_bad_rows_are_quoted() -> None:
    with pytest.raises(InputDataError) as caught:
        read_edges(pa.table({"src": range(100), "dst": range(100), "weight": [-1] * 100}))
    message = str(caught.value)
    assert "row 4 (" in message
    assert "row 5 (" not in message
    assert "and 95 more" in message


@pytest.mark.parametrize("column", ["src", "dst"])
@pytest.mark.parametrize("kind", ["plain", "dictionary", "null-in-dictionary"])
def test_null_endpoints(column: str, kind: str) -> None:
    bad: pa.Array = pa.array(["x", None])
    if kind == "dictionary":
        bad = bad.dictionary_encode()
    elif kind == "null-in-dictionary":
        bad = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["x", None]))
    table = pa.table({"src": ["a", "b"], "dst": ["c", "d"]})
    table = table.set_column(table.schema.get_field_index(column), column, bad)
    with pytest.raises(InputDataError, match=rf"column '{column}' is null: row 1 \(.*{column}=None"):
        read_edges(table)
    dropped = read_edges(table, on_bad_rows="drop")
    assert rows_of(dropped) == [("x", "c") if column == "src" else ("a", "x")]
    assert (dropped.dropped_rows, len(dropped.ids)) == (1, 2)


@pytest.mark.parametrize(
    "weight",
    [
        pa.array([True]),
        pa.array(["1"]),
        pa.array([1]).cast(pa.decimal128(19, 0)),
        pa.array([1]).cast(pa.timestamp("s")),
    ],
    ids=lambda array: str(array.type),
)
def test_what_is_no_weight(weight: pa.Array) -> None:
    with pytest.raises(InputDataError, match=r"column 'weight' has type .*, which is not a weight"):
        read_edges(pa.table({"src": [1], "dst": [2], "weight": weight}))


@pytest.mark.parametrize(
    "data_type",
    [
        *(getattr(pa, f"{s}int{b}")() for s in ("", "u") for b in (8, 16, 32, 64)),
        pa.float16(),
        pa.float32(),
        pa.float64(),
    ],
    ids=str,
)
def test_weights_of_every_width(data_type: pa.DataType) -> None:
    weight = pa.array([3.0]).cast(data_type)
    for array in (weight, weight.dictionary_encode() if data_type != pa.float16() else weight):
        edges = read_edges(pa.table({"src": [1], "dst": [2], "weight": array}))
        assert rows_of(edges) == [(1, 2, 3.0)]


def test_extreme_weights_pass_and_their_sum_must_be_finite() -> None:
    table = pa.table({"src": [1, 1], "dst": [2, 3], "weight": [1e39, 1e-310]})
    assert rows_of(read_edges(table)) == [(1, 2, 1e39), (1, 3, 1e-310)]
    with pytest.raises(InputDataError, match="sum of all weights in column 'weight' is not a finite number"):
        read_edges(pa.table({"src": [1, 1], "dst": [2, 3], "weight": [1e308, 1e308]}))
    wide = read_edges(pa.table({"src": [1], "dst": [2], "weight": [2**53 + 1]}))
    assert wide.weight is not None
    assert wide.weight.tolist() == [float(2**53 + 1)]
