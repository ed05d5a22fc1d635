"""A run folder as it lies, and a run as an object, in the tools that read Parquet and Arrow."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import seedrank

TYPES = {"query_id": "string", "rank": "int32", "node_id": "uint64", "score": "float"}
QUERIES = 9


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> seedrank.Run:
    """Nine queries in parts of two, one of the parts without a candidate; ids above 2^63."""
    first = 2**63
    ids = pa.array([first + i for i in range(QUERIES + 1)], pa.uint64())
    edges = pa.table({"src": ids.slice(0, QUERIES), "dst": ids.slice(1, QUERIES)})
    unknown = pa.array([5, 6], pa.uint64())
    nodes = pa.concat_arrays([ids.slice(0, 2), unknown, ids.slice(4, QUERIES - 4)])
    hits = pa.table({"query_id": [f"q{i}" for i in range(QUERIES)], "node_id": nodes})
    out = tmp_path_factory.mktemp("readers") / "run"
    return seedrank.score(edges, queries=hits, out=out, part_size=2, top_k=4)


@pytest.fixture(scope="module")
def expected(run: seedrank.Run) -> pa.Table:
    table = pa.concat_tables([pq.ParquetFile(file).read() for file in run.candidates.files])
    assert [table.num_rows, *(pq.read_metadata(file).num_rows for file in run.candidates.files)] == [22, 8, 0, 8, 5, 1]
    assert {field.name: str(field.type) for field in table.schema} == TYPES
    return table


def folder(run: seedrank.Run) -> str:
    return str(run.candidates.folder)


def same(found: pa.Table, expected: pa.Table) -> None:
    """Equal rows and types; string layouts and field metadata are the reader's own."""
    names = {field.name: str(field.type).removeprefix("large_") for field in found.schema}
    assert {name: kind.removesuffix("_view") for name, kind in names.items()} == TYPES
    plain = pa.schema([field.remove_metadata().with_nullable(True) for field in expected.schema])
    assert found.cast(plain).equals(expected.cast(plain))


def needs(name: str) -> Any:
    pytest.importorskip(name)
    return importlib.import_module(name)


def test_arrow_dataset(run: seedrank.Run, expected: pa.Table) -> None:
    dataset = ds.dataset(folder(run), format="parquet")
    assert dataset.count_rows() == expected.num_rows
    same(dataset.to_table(), expected)
    assert dataset.count_rows(filter=ds.field("query_id") == "q4") == 4


def test_duckdb(run: seedrank.Run, expected: pa.Table) -> None:
    duckdb = needs("duckdb")
    with duckdb.connect() as connection:
        relation = connection.read_parquet(f"{folder(run)}/*.parquet")
        assert [str(kind) for kind in relation.types] == ["VARCHAR", "INTEGER", "UBIGINT", "FLOAT"]
        same(relation.to_arrow_table(), expected)


@pytest.mark.parametrize("pattern", ["", "/*.parquet"], ids=["folder", "glob"])
def test_polars(run: seedrank.Run, expected: pa.Table, pattern: str) -> None:
    polars = needs("polars")
    frame = polars.scan_parquet(folder(run) + pattern).collect()
    assert frame.height == expected.num_rows
    assert list(frame.schema.values()) == [polars.String, polars.Int32, polars.UInt64, polars.Float32]
    same(frame.to_arrow(), expected)
    assert polars.read_parquet(folder(run) + pattern).equals(frame)


def test_pandas(run: seedrank.Run, expected: pa.Table) -> None:
    pandas = needs("pandas")
    frame = pandas.read_parquet(folder(run))
    assert frame.dtypes.drop("query_id").to_dict() == {"rank": np.int32, "node_id": np.uint64, "score": np.float32}
    same(pa.Table.from_pandas(frame, preserve_index=False), expected)


# Dask calls pandas in a way that pandas announces the end of.
@pytest.mark.filterwarnings("ignore:The inplace keyword")
def test_dask(run: seedrank.Run, expected: pa.Table) -> None:
    dataframe = needs("dask.dataframe")
    frame = dataframe.read_parquet(folder(run))
    assert frame.npartitions >= 1
    computed = frame.compute(scheduler="synchronous")
    assert computed.dtypes.drop("query_id").to_dict() == {"rank": np.int32, "node_id": np.uint64, "score": np.float32}
    same(pa.Table.from_pandas(computed, preserve_index=False), expected)


def test_query_rows_as_they_lie(run: seedrank.Run) -> None:
    found = needs("polars").read_parquet(str(run.queries.folder))
    assert found["status"].to_list() == ["ok", "ok", "no_valid_seeds", "no_valid_seeds"] + ["ok"] * 5
    assert found["candidates"].sum() == 22
    table = needs("pandas").read_parquet(run.queries.folder)
    assert len(table) == QUERIES


def test_the_object_in_arrow(run: seedrank.Run, expected: pa.Table) -> None:
    same(pa.table(run.candidates), expected)
    reader = pa.RecordBatchReader.from_stream(run.candidates)
    assert reader.schema.equals(run.candidates.schema, check_metadata=True)
    same(reader.read_all(), expected)
    same(run.candidates.to_arrow(), expected)
    assert len(run.candidates) == expected.num_rows


def test_the_object_in_duckdb(run: seedrank.Run, expected: pa.Table) -> None:
    duckdb = needs("duckdb")
    with duckdb.connect() as connection:
        connection.register("candidates", run.candidates)
        same(connection.sql("SELECT * FROM candidates").to_arrow_table(), expected)


def test_the_object_in_polars(run: seedrank.Run, expected: pa.Table) -> None:
    polars = needs("polars")
    same(polars.DataFrame(run.candidates).to_arrow(), expected)
    same(run.candidates.to_polars().to_arrow(), expected)


def test_the_object_in_pandas(run: seedrank.Run, expected: pa.Table) -> None:
    pandas = needs("pandas")
    same(pa.Table.from_pandas(run.candidates.to_pandas(), preserve_index=False), expected)
    if hasattr(pandas.DataFrame, "from_arrow"):  # pandas 3
        same(pa.Table.from_pandas(pandas.DataFrame.from_arrow(run.candidates), preserve_index=False), expected)


def test_the_object_as_an_input(run: seedrank.Run, tmp_path: Path) -> None:
    """The candidates of one run are the hits of the next."""
    edges = pa.table({"src": pa.array([2**63 + 1], pa.uint64()), "dst": pa.array([7], pa.uint64())})
    second = seedrank.score(edges, queries=run.candidates, out=tmp_path / "run", hit_weight_column="score")
    found = {row["query_id"]: row["node_id"] for row in second.candidates.to_arrow().to_pylist()}
    assert found == {"q0": 7}
