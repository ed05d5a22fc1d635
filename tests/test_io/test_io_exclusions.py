"""Exclusion lists, of one query or of all."""

from __future__ import annotations

import pyarrow as pa
import pytest

from seedrank.errors import InputDataError
from seedrank.io.exclusions import read_exclusions


def test_by_query_distinct_and_sorted() -> None:
    table = read_exclusions(pa.table({"query_id": ["q2", "q1", "q2", "q2"], "node_id": [5, 9, 5, 2**40]}))
    assert table.query_ids is not None
    assert table.query is not None
    assert table.query_ids.to_pylist() == ["q1", "q2"]
    assert table.node_ids.to_pylist() == [5, 9, 2**40]
    assert (table.query.tolist(), table.node.tolist()) == ([0, 1, 1], [1, 0, 2])
    assert table.query.dtype == table.node.dtype == "int32"
    assert table.records[0].rows == 4


def test_case_46_for_every_query() -> None:
    table = read_exclusions(pa.table({"node": ["c", "b", "c"], "other": [1, 2, 3]}), node_id_column="node")
    assert (table.query_ids, table.query) == (None, None)
    assert (table.node_ids.to_pylist(), table.node.tolist()) == (["b", "c"], [0, 1])


def test_no_rows() -> None:
    table = read_exclusions(pa.table({"query_id": pa.array([], pa.int64()), "node_id": pa.array([], pa.string())}))
    assert table.query is not None
    assert (len(table.query), len(table.node), table.node_ids.type) == (0, 0, pa.string())


def test_what_is_refused() -> None:
    with pytest.raises(InputDataError, match=r"column 'query_id' is null: row 1 \(query_id=None, node_id=2\)"):
        read_exclusions(pa.table({"query_id": ["q", None], "node_id": [1, 2]}))
    with pytest.raises(InputDataError, match="column 'node_id' is null: row 0"):
        read_exclusions(pa.table({"node_id": pa.nulls(1, pa.int64())}))
    with pytest.raises(InputDataError, match="no column 'node_id'"):
        read_exclusions(pa.table({"id": [1]}))
    with pytest.raises(InputDataError, match="has no column 'qid'"):
        read_exclusions(pa.table({"node_id": [1]}), query_id_column="qid")
    with pytest.raises(InputDataError, match="1 of 2 files with rows have no column 'query_id'"):
        read_exclusions([pa.table({"query_id": [1], "node_id": [1]}), pa.table({"node_id": [1]})])
