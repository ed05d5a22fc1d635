"""Streaming: only the columns asked for, in bounded batches, with places for messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import fsspec
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seedrank.errors import InputDataError, StorageError
from seedrank.io import tables
from seedrank.io.arrow import parquet
from seedrank.io.tables import Batch, TableInput


def read(source: Any, columns: list[str], **options: Any) -> list[Batch]:
    return list(TableInput.open(source, what="edges").batches(columns, **options))


def joined(batches: list[Batch], column: str) -> list[Any]:
    return [value for batch in batches for value in batch.table.column(column).to_pylist()]


def test_row_groups_and_row_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"src": range(25)}), path, row_group_size=10)
    table = TableInput.open(path, what="edges")
    assert table.parts[0].rows == 25
    assert table.parts[0].group_ends.tolist() == [10, 20, 25]
    batches = list(table.batches(["src"]))
    assert joined(batches, "src") == list(range(25))
    for batch in batches:
        assert batch.table.column("src")[0].as_py() == batch.first_row
        assert batch.row_group == batch.first_row // 10
    assert (batches[0].row_group_of(9), batches[0].row_group_of(10)) == (0, 1)


def test_only_the_named_columns_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    rows = 50_000
    text = pa.array(np.random.default_rng(0).integers(0, 2**62, rows)).cast(pa.string())
    pq.write_table(pa.table({"junk": text, "src": range(rows), "src.more": range(rows)}), path)
    content = bytearray(path.read_bytes())
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(0)
    start, size = chunk.dictionary_page_offset or chunk.data_page_offset, chunk.total_compressed_size
    content[start : start + size] = b"\xff" * size  # reading any of it would fail
    path.write_bytes(bytes(content))
    batches = read(path, ["src"])
    assert batches[0].table.schema.names == ["src"]
    assert joined(batches, "src") == list(range(rows))
    with pytest.raises(InputDataError, match=r"a\.parquet cannot be read as Parquet"):
        read(path, ["junk"])


def test_case_57_one_big_row_group_comes_in_bounded_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "BATCH_ROWS", 1000)
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"src": range(10_500)}), path, row_group_size=20_000)
    batches = read(path, ["src"])
    assert max(batch.table.num_rows for batch in batches) <= 1000
    assert joined(batches, "src") == list(range(10_500))
    memory = read(pa.table({"src": range(10_500)}), ["src"])
    assert max(batch.table.num_rows for batch in memory) <= 1000
    stream = read(pl.DataFrame({"src": range(10_500)}), ["src"])
    assert max(batch.table.num_rows for batch in stream) <= 1000
    assert joined(stream, "src") == list(range(10_500))


def test_long_lists_make_batches_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "BATCH_BYTES", 8 * 1000)
    path = tmp_path / "a.parquet"
    # Two distinct values encode to almost nothing; the budget is that of the decoded lists.
    pq.write_table(pa.table({"seeds": [[1, 2] * 50] * 200}), path)
    batches = read(path, ["seeds"])
    assert max(batch.table.num_rows for batch in batches) <= 10
    assert sum(batch.table.num_rows for batch in batches) == 200


def test_case_57_a_thousand_row_groups(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"src": range(5_000)}), path, row_group_size=5)
    batches = read(path, ["src"])
    assert joined(batches, "src") == list(range(5_000))
    last = batches[-1]
    assert last.row_group_of(last.table.num_rows - 1) == 999


def test_truncated_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "good.parquet"
    pq.write_table(pa.table({"src": range(1000)}), path)
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputDataError, match=r"broken\.parquet cannot be read as Parquet") as caught:
        TableInput.open(tmp_path, what="edges")
    assert caught.value.exit_code == 3
    broken.write_text("src,dst\n1,2\n")
    with pytest.raises(InputDataError, match=r"broken\.parquet cannot be read as Parquet"):
        TableInput.open(broken, what="edges")


def test_file_that_vanishes_is_a_storage_error(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"src": [1]}), path)
    table = TableInput.open(path, what="edges")
    path.unlink()
    with pytest.raises(StorageError, match=r"a\.parquet cannot be read"):
        list(table.batches(["src"]))


def test_absent_columns_and_columns_of_folder_names(tmp_path: Path) -> None:
    for folder, rows in (("type=x", 2), ("type=__HIVE_DEFAULT_PARTITION__", 1)):
        (tmp_path / folder).mkdir()
        pq.write_table(pa.table({"src": range(rows)}), tmp_path / folder / "p.parquet")
    table = TableInput.open(tmp_path, what="edges")
    batches = list(table.batches(["src", "type", "weight"]))
    assert joined(batches, "type") == [None, "x", "x"]
    assert all(batch.column("weight") is None for batch in batches)
    assert table.parts[1].column_names == ["src", "type"]
    assert joined(list(table.batches(["type"])), "type") == [None, "x", "x"]


def test_column_of_the_file_wins_over_the_folder_name(tmp_path: Path) -> None:
    (tmp_path / "src=9").mkdir()
    pq.write_table(pa.table({"src": [1]}), tmp_path / "src=9" / "p.parquet")
    assert joined(read(tmp_path, ["src"]), "src") == [1]


def test_unneeded_struct_fields_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"seeds": [[{"node_id": 1, "text": "long", "weight": 2.0}]]}), path)
    (batch,) = read(path, ["seeds"], fields={"seeds": frozenset({"node_id", "weight"})})
    assert batch.table.column("seeds").to_pylist() == [[{"node_id": 1, "weight": 2.0}]]


def test_memory_url(tmp_path: Path) -> None:
    pq.write_table(pa.table({"src": [1, 2]}), tmp_path / "a.parquet")
    memory = fsspec.filesystem("memory")
    memory.pipe("/tables-test/k=v/a.parquet", (tmp_path / "a.parquet").read_bytes())
    try:
        table = TableInput.open("memory://tables-test", what="edges")
        batches = list(table.batches(["src", "k"]))
        assert (joined(batches, "src"), joined(batches, "k")) == ([1, 2], ["v", "v"])
        assert table.records[0].uri == "memory:///tables-test/k=v/a.parquet"
    finally:
        memory.rm("/tables-test", recursive=True)


FRAMES: dict[str, Any] = {
    "arrow": lambda: pa.table({"src": [3, 1], "name": ["x", "y"]}),
    "batch": lambda: pa.record_batch({"src": [3, 1], "name": ["x", "y"]}),
    "reader": lambda: pa.table({"src": [3, 1], "name": ["x", "y"]}).to_reader(),
    "pandas": lambda: pd.DataFrame({"src": [3, 1], "name": ["x", "y"]}),
    "polars": lambda: pl.DataFrame({"src": [3, 1], "name": ["x", "y"]}),
    "duckdb": lambda: duckdb.sql("select * from (values (3, 'x'), (1, 'y')) t(src, name)"),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_objects_in_memory(kind: str) -> None:
    table = TableInput.open(FRAMES[kind](), what="hits")
    batches = list(table.batches(["name", "src"]))
    assert (joined(batches, "src"), joined(batches, "name")) == ([3, 1], ["x", "y"])
    assert [(record.uri, record.rows) for record in table.records] == [("hits (table in memory)", 2)]
    assert batches[0].row_group is None


def test_list_of_tables_and_records(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"src": [1]}), path)
    table = TableInput.open([pa.table({"src": [2]}), path, pa.table({"src": [3]})], what="edges")
    assert joined(list(table.batches(["src"])), "src") == [1, 2, 3]
    assert table.records[0].uri == str(path)
    assert table.records[0].bytes == path.stat().st_size


def test_empty_parts_have_no_say() -> None:
    table = TableInput.open([pa.table({"other": pa.nulls(0)}), pa.table({"src": [1]})], what="edges")
    assert [part.schema.names for part in table.filled_parts] == [["src"]]
    only_empty = TableInput.open(pa.table({"src": pa.nulls(0)}), what="edges")
    assert len(only_empty.filled_parts) == 1


@pytest.mark.parametrize("wrong", [{"src": [1]}, 7, None, object()], ids=["dict", "int", "none", "object"])
def test_what_is_no_table(wrong: Any) -> None:
    with pytest.raises(InputDataError, match="is not a table"):
        TableInput.open(wrong, what="edges")


def test_repeated_column_name() -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["src", "src"])
    with pytest.raises(InputDataError, match="'src' is there 2 times"):
        TableInput.open(table, what="edges")
