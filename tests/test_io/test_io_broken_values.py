"""Text that is not UTF-8 and dictionaries that lack entries are refused by file and column, wherever they stand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seedrank
from seedrank.errors import InputDataError
from seedrank.io.arrow.value_checks import refuse_broken_values
from seedrank.io.edges import read_edges
from seedrank.io.exclusions import read_exclusions
from seedrank.io.nodes import read_nodes
from seedrank.io.queries import read_hits
from seedrank.io.query_info import read_query_info


def not_utf8(kind: pa.DataType) -> pa.Array:
    """Two texts, the second one not UTF-8."""
    width = np.int64 if pa.types.is_large_string(kind) else np.int32
    offsets = pa.py_buffer(np.array([0, 1, 2], dtype=width).tobytes())
    return pa.Array.from_buffers(kind, 2, [None, offsets, pa.py_buffer(b"a\xff")])


def lacking() -> pa.Array:
    """Two rows, of which the second one points at an entry that is not there."""
    index = pa.array([0, 7], pa.int32())
    return pa.DictionaryArray.from_arrays(index, pa.array(["x", "y"]), safe=False)


BROKEN: dict[str, Callable[[], pa.Array]] = {
    "text": lambda: not_utf8(pa.string()),
    "long text": lambda: not_utf8(pa.large_string()),
    "dictionary": lacking,
    "text of a dictionary": lambda: pa.DictionaryArray.from_arrays(pa.array([0, 1]), not_utf8(pa.string())),
    "text in lists": lambda: pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), not_utf8(pa.string())),
    "backward lists": lambda: pa.ListArray.from_arrays(pa.array([0, 2, 1], pa.int32()), pa.array([1, 2])),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_values_are_refused(name: str) -> None:
    with pytest.raises(InputDataError, match=r"file.parquet, column 'c' .* holds values that this type does not allow"):
        refuse_broken_values(BROKEN[name](), "file.parquet, column 'c'")


@pytest.mark.parametrize("array", [pa.array(["é", None]), pa.array([[1.0]]), pa.array([True]), pa.nulls(3)])
def test_sound_values_pass(array: pa.Array) -> None:
    refuse_broken_values(array, "x")


@pytest.mark.parametrize(
    ("read", "table"),
    [
        (read_edges, {"src": not_utf8(pa.string()), "dst": ["x", "y"]}),
        (read_edges, {"src": ["x", "y"], "dst": ["x", "y"], "type": lacking()}),
        (read_nodes, {"id": [1, 2], "type": not_utf8(pa.string())}),
        (read_nodes, {"id": [1, 2], "path": not_utf8(pa.string())}),
        (read_hits, {"query_id": ["a", "b"], "node_id": [1, 2], "source": lacking()}),
        (read_hits, {"query_id": ["a", "b"], "seeds": BROKEN["text in lists"]()}),
        (read_exclusions, {"query_id": not_utf8(pa.string()), "node_id": [1, 2]}),
        (read_query_info, {"query_id": not_utf8(pa.string())}),
    ],
)
def test_every_reader_refuses_them(read: Callable[[Any], Any], table: dict[str, Any]) -> None:
    with pytest.raises(InputDataError, match="holds values that this type does not allow"):
        read(pa.table(table))


def test_a_file_with_a_type_that_is_not_utf8_is_exit_3(tmp_path: Path, seedrank_command: Any) -> None:
    pq.write_table(pa.table({"src": [0], "dst": [1]}), tmp_path / "edges.parquet")
    pq.write_table(pa.table({"id": [0, 1], "type": not_utf8(pa.string())}), tmp_path / "nodes.parquet")
    result = seedrank_command(
        "build", tmp_path / "edges.parquet", "--nodes", tmp_path / "nodes.parquet", "--out", tmp_path / "graph"
    )
    assert result.code == 3, result.err
    assert "nodes.parquet, column 'type' of type string holds values" in result.err
    assert "Invalid UTF8" in result.err


def test_a_node_table_without_rows_may_have_columns_of_any_text(tmp_path: Path) -> None:
    empty = pa.table({"id": pa.array([], pa.int64()), "path": pa.array([], pa.string_view())})
    pq.write_table(empty, tmp_path / "nodes.parquet")
    edges = pa.table({"src": [0], "dst": [1]})
    store = seedrank.build(edges, nodes=tmp_path / "nodes.parquet", out=tmp_path / "graph")
    assert store.facts.nodes == 2


@pytest.mark.parametrize(
    "header",
    [
        b"{'descr': '<f4', 'shape': (4,'",
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999999, 2), }",
        b"[",
        b"1",
    ],
)
def test_a_damaged_header_of_an_array_is_exit_3(tmp_path: Path, seedrank_command: Any, header: bytes) -> None:
    padded = header.ljust(117) + b"\n"
    (tmp_path / "v.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded + bytes(16))
    np.save(tmp_path / "v.ids.npy", np.arange(2))
    pq.write_table(pa.table({"query_id": ["a"], "vector": [[1.0, 2.0]]}), tmp_path / "q.parquet")
    result = seedrank_command(
        "score", "--method", "fuse", "--node-vectors", tmp_path / "v.npy", "--query-vectors", tmp_path / "q.parquet",
        "--out", tmp_path / "run",
    )  # fmt: skip
    assert result.code == 3, result.err
    assert "v.npy is no .npy file of numbers" in result.err


def test_an_array_without_dimensions_is_exit_3(tmp_path: Path, seedrank_command: Any) -> None:
    np.save(tmp_path / "v.npy", np.float32(1))
    np.save(tmp_path / "v.ids.npy", np.arange(2))
    pq.write_table(pa.table({"query_id": ["a"], "vector": [[1.0, 2.0]]}), tmp_path / "q.parquet")
    result = seedrank_command(
        "score", "--method", "fuse", "--node-vectors", tmp_path / "v.npy", "--query-vectors", tmp_path / "q.parquet",
        "--out", tmp_path / "run",
    )  # fmt: skip
    assert result.code == 3, result.err
    assert "v.npy has shape ()" in result.err


def test_messages_about_names_in_options_name_the_file(tmp_path: Path, seedrank_command: Any) -> None:
    pq.write_table(pa.table({"src": [0], "dst": [1]}), tmp_path / "edges.parquet")
    hits = pa.table({"query_id": ["a"], "node_id": [0], "source": ["dense"]})
    pq.write_table(hits, tmp_path / "hits.parquet")
    pq.write_table(pa.table({"query_id": ["a", "a"]}), tmp_path / "info.parquet")
    common = ("score", tmp_path / "edges.parquet", "--queries", tmp_path / "hits.parquet", "--out", tmp_path / "run")
    for options, file in {
        ("--source", "sparse"): "hits.parquet",
        ("--lower-is-better", "sparse", "--source-normalization", "minmax"): "hits.parquet",
        ("--seed-source-weight", "sparse=2"): "hits.parquet",
        ("--fusion", "rrf", "--source-weight", "sparse=2"): "hits.parquet",
        ("--method", "auto", "--source-role", "sparse=sparse"): "hits.parquet",
        ("--query-info", tmp_path / "info.parquet"): "info.parquet",
    }.items():
        result = seedrank_command(*common, *options)
        assert result.code == 3, result.err
        assert f"{tmp_path}/{file}" in result.err, result.err
