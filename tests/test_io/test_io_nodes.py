"""Node tables: unique ids, types as text, attributes row by row."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seedrank.errors import InputDataError
from seedrank.io.nodes import read_nodes


def test_ids_in_file_order_with_attributes_beside_them(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": ["b", "a"], "path": ["x.py", None], "type": ["t", "u"]}), tmp_path / "1.parquet")
    pq.write_table(
        pa.table(
            {"type": pa.array(["t"]).dictionary_encode(), "prior": [0.5], "id": pa.array(["c"], pa.large_string())}
        ),
        tmp_path / "2.parquet",
    )
    nodes = read_nodes(tmp_path)
    assert nodes.ids == pa.array(["b", "a", "c"], pa.large_string())
    assert nodes.attributes.to_pydict() == {
        "type": ["t", "u", "t"],
        "path": ["x.py", None, None],
        "prior": [None, None, 0.5],
    }
    assert nodes.type_column == "type"
    assert [record.rows for record in nodes.records] == [2, 1]


@pytest.mark.parametrize(
    "kind",
    [pa.array([3, None], pa.int8()), pa.array(["3", None]), pa.array(["3", None]).dictionary_encode()],
    ids=["integer", "string", "dictionary"],
)
def test_type_is_text_under_the_name_type(kind: pa.Array) -> None:
    nodes = read_nodes(pa.table({"node": [1, 2], "label": kind}), id_column="node", type_column="label")
    assert nodes.attributes.schema == pa.schema([("type", pa.string())])
    assert nodes.attributes.to_pydict() == {"type": ["3", None]}
    assert nodes.type_column == "label"


def test_attributes_keep_their_types_and_lose_their_dictionaries() -> None:
    table = pa.table(
        {
            "id": [2**53 + 1],
            "group": pa.array(["g"]).dictionary_encode(),
            "size": pa.array([1], pa.uint8()),
            "tags": [["a", "b"]],
        }
    )
    nodes = read_nodes(table)
    assert nodes.ids.to_pylist() == [2**53 + 1]
    assert nodes.type_column is None
    assert dict(zip(nodes.attributes.schema.names, nodes.attributes.schema.types, strict=True)) == {
        "group": pa.string(),
        "size": pa.uint8(),
        "tags": pa.list_(pa.string()),
    }
    assert read_nodes(table, attributes=["size"]).attributes.schema.names == ["size"]
    with pytest.raises(InputDataError, match=r"has no column 'sizes' .did you mean 'size'"):
        read_nodes(table, attributes=["sizes"])


def test_null_and_repeated_ids_are_named(tmp_path: Path) -> None:
    path = tmp_path / "nodes.parquet"
    pq.write_table(pa.table({"id": [1, 2, None]}), path, row_group_size=2)
    with pytest.raises(InputDataError, match=r"nodes\.parquet, row group 1, column 'id' is null: row 2"):
        read_nodes(path)
    pq.write_table(pa.table({"id": [1, 2, 3, 2]}), path, row_group_size=2)
    with pytest.raises(InputDataError, match=r"row group 1, column 'id' repeats an id .*: row 3 \(id=2\)"):
        read_nodes(path)
    pq.write_table(pa.table({"id": [1]}), path)
    pq.write_table(pa.table({"id": [0, 1]}), tmp_path / "other.parquet")
    with pytest.raises(InputDataError, match=r"other\.parquet, row group 0, .*row 1 \(id=1\)"):
        read_nodes(tmp_path)


def test_columns_that_do_not_fit() -> None:
    with pytest.raises(InputDataError, match="no column 'id'"):
        read_nodes(pa.table({"ID": [1]}))
    with pytest.raises(InputDataError, match="has no column 'label'"):
        read_nodes(pa.table({"id": [1]}), type_column="label")
    with pytest.raises(InputDataError, match="also a column 'type'"):
        read_nodes(pa.table({"id": [1], "label": ["x"], "type": ["y"]}), type_column="label")
    with pytest.raises(InputDataError, match="cannot be the node type"):
        read_nodes(pa.table({"id": [1], "type": [1.5]}))
    with pytest.raises(InputDataError, match="different types in different files"):
        read_nodes([pa.table({"id": [1], "a": ["x"]}), pa.table({"id": [2], "a": [True]})])


def test_no_rows_and_no_attributes() -> None:
    empty = read_nodes(pa.table({"id": pa.array([], pa.string()), "type": pa.nulls(0), "n": pa.array([], pa.int8())}))
    assert empty.ids == pa.array([], pa.string())
    assert empty.attributes.schema == pa.schema([("type", pa.string()), ("n", pa.int8())])
    bare = read_nodes(pa.table({"id": [2, 1]}))
    assert bare.attributes.schema.names == []
