"""Attributes of queries: what is read, what is refused, and that order and layout do not matter."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seedrank.errors import InputDataError
from seedrank.io.query_info import QueryInfoTable, read_query_info

CHOICES = {"budget": ("fast", "thorough"), "method": ("ppr", "fuse")}
FULL = pa.table(
    {
        "query_id": ["q3", "q1", "q2"],
        "text": ["third", None, "second"],
        "structural": [True, None, False],
        "budget": pa.array([None, "fast", "thorough"]).dictionary_encode(),
        "method": pa.array(["ppr", None, None], pa.large_string()),
        "exclude": [["b", "a", "b", None], None, []],
        "something": [1.5, 2.5, 3.5],
    }
)


def read(table: object) -> QueryInfoTable:
    return read_query_info(table, flags=("structural", "lexical"), text=True, choices=CHOICES)


def test_columns_come_sorted_by_query() -> None:
    found = read(FULL)
    assert found.query_ids.to_pylist() == ["q1", "q2", "q3"]
    assert {name: values.tolist() for name, values in found.flags.items()} == {"structural": [-1, 0, 1]}
    assert found.text is not None
    assert found.text.to_pylist() == [None, "second", "third"]
    assert {name: values.to_pylist() for name, values in found.choices.items()} == {
        "budget": ["fast", "thorough", None],
        "method": [None, None, "ppr"],
    }
    assert found.exclude_node_ids.to_pylist() == ["a", "b"]
    assert (found.exclude_query.tolist(), found.exclude_node.tolist()) == ([2, 2], [0, 1])
    assert found.records[0].rows == 3


def test_order_parts_and_layout_of_the_rows_do_not_matter(tmp_path: Path) -> None:
    (tmp_path / "info").mkdir()
    pq.write_table(FULL.slice(2), tmp_path / "info" / "a.parquet")
    pq.write_table(FULL.slice(0, 2).select(FULL.column_names[::-1]), tmp_path / "info" / "b.parquet")
    found, whole = read(tmp_path / "info"), read(FULL)
    assert found.query_ids.equals(whole.query_ids)
    assert found.flags["structural"].tolist() == whole.flags["structural"].tolist()
    assert all(found.choices[name].equals(whole.choices[name]) for name in CHOICES)
    assert found.exclude_query.tolist() == whole.exclude_query.tolist()


def test_what_is_not_asked_for_is_not_looked_at() -> None:
    bad = FULL.set_column(3, "budget", pa.array(["cheap", "fast", "fast"]))
    found = read_query_info(bad)
    assert (found.text, found.flags, found.choices) == (None, {}, {})
    assert len(found.exclude_node) == 2


def test_columns_of_nulls_and_no_rows() -> None:
    found = read(pa.table({"query_id": [1, 2], "structural": pa.nulls(2), "exclude": pa.nulls(2), "text": pa.nulls(2)}))
    assert found.flags["structural"].tolist() == [-1, -1]
    assert len(found.exclude_node) == 0
    empty = read(FULL.slice(0, 0))
    assert (len(empty.query_ids), empty.query_ids.type) == (0, pa.string())


def test_what_is_refused() -> None:
    with pytest.raises(InputDataError, match="has no column 'query_id'"):
        read(pa.table({"id": [1]}))
    with pytest.raises(InputDataError, match=r"column 'query_id' is null: row 1"):
        read(pa.table({"query_id": ["q", None]}))
    with pytest.raises(InputDataError, match=r"2 rows repeat a query id in .*; the first is 'a': row 1 and row 2"):
        read(pa.table({"query_id": ["b", "a", "a", "b"]}))
    with pytest.raises(InputDataError, match=r"column 'budget' is not known: row 0 \(query_id=1, budget='cheap'\)"):
        read(pa.table({"query_id": [1, 2], "budget": ["cheap", None]}))
    with pytest.raises(InputDataError, match=r"null, or one of ppr, fuse"):
        read(pa.table({"query_id": [1], "method": ["hybrid_fusion"]}))
    with pytest.raises(InputDataError, match="'structural' has type int64\nexpected: booleans"):
        read(pa.table({"query_id": [1], "structural": [1]}))
    with pytest.raises(InputDataError, match="'text' has type list"):
        read(pa.table({"query_id": [1], "text": [["a"]]}))
    with pytest.raises(InputDataError, match="'exclude' has type string\nexpected: a list of node ids"):
        read(pa.table({"query_id": [1], "exclude": ["a"]}))
    with pytest.raises(InputDataError, match="1 of 2 files with rows have no column 'budget'"):
        read([pa.table({"query_id": [1], "budget": ["fast"]}), pa.table({"query_id": [2]})])
    with pytest.raises(InputDataError, match=r"which cannot be an id"):
        read(pa.table({"query_id": [1], "exclude": [[1.5]]}))
