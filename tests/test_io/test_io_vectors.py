"""Vectors from Parquet, ``.npy`` and memory: one table whatever the form, and every refusal with its place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seedrank.errors import InputDataError
from seedrank.io import matrix
from seedrank.io.vectors import VectorTable, read_vector_ids, read_vectors

ROWS = np.array([[1.0, 2.0], [3.0, 4.0], [-5.0, 0.5]])
IDS = ["c", "a", "b"]


def lists(rows: Any, kind: pa.DataType | None = None) -> pa.Array:
    return pa.array(list(rows), kind or pa.list_(pa.float64()))


def read(source: Any) -> VectorTable:
    return read_vectors(source, what="node vectors", id_column="id", vector_column="vector")


def by_id(table: VectorTable) -> dict[Any, list[float]]:
    ids = table.ids.to_pylist()
    assert ids == sorted(ids)
    return {node: table.rows[place].tolist() for node, place in zip(ids, table.places, strict=True)}


EXPECTED = {node: row.tolist() for node, row in zip(IDS, ROWS, strict=True)}


@pytest.mark.parametrize("element", [pa.float16(), pa.float32(), pa.float64()], ids=str)
@pytest.mark.parametrize("form", ["list", "large_list", "fixed_size_list"])
def test_lists_of_every_kind(tmp_path: Path, form: str, element: pa.DataType) -> None:
    kind = {"list": pa.list_(element), "large_list": pa.large_list(element), "fixed_size_list": pa.list_(element, 2)}
    values = lists([row.astype(element.to_pandas_dtype()) for row in ROWS], kind[form])
    table = pa.table({"vector": values, "id": IDS, "title": ["x", "y", "z"]})
    pq.write_table(table, tmp_path / "v.parquet", row_group_size=2)
    for source in (str(tmp_path / "v.parquet"), table, [table.slice(0, 1), table.slice(1)]):
        found = read(source)
        assert by_id(found) == EXPECTED
        assert (found.rows.dtype, found.width, found.without_vector) == (element.to_pandas_dtype(), 2, 0)


def test_npy_with_ids_beside_it_or_named(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", ROWS.astype(np.float32))
    pq.write_table(pa.table({"id": IDS}), tmp_path / "elsewhere.parquet")
    named = read([tmp_path / "v.npy", tmp_path / "elsewhere.parquet"])
    assert by_id(named) == EXPECTED
    assert isinstance(named.rows, np.memmap)
    with pytest.raises(InputDataError, match="the ids of its rows are nowhere"):
        read(str(tmp_path / "v.npy"))
    np.save(tmp_path / "v.ids.npy", np.array(IDS))
    beside = read(str(tmp_path / "v.npy"))
    assert (by_id(beside), beside.fingerprint) == (EXPECTED, named.fingerprint)
    assert [Path(record.uri).name for record in beside.records] == ["v.npy", "v.ids.npy"]
    pq.write_table(pa.table({"id": IDS}), tmp_path / "v.ids.parquet")
    with pytest.raises(InputDataError, match="in two files"):
        read(str(tmp_path / "v.npy"))


def test_pairs_of_arrays_and_integer_ids() -> None:
    found = read((np.array([7, 2**53 + 1, 5]), ROWS))
    assert by_id(found) == dict(zip([7, 2**53 + 1, 5], ROWS.tolist(), strict=True))
    assert by_id(read((pa.chunked_array([IDS]), ROWS))) == EXPECTED


def test_fingerprints_do_not_depend_on_order_and_form_but_on_content() -> None:
    first = read((IDS, ROWS)).fingerprint
    assert read((IDS[::-1], ROWS[::-1])).fingerprint == first
    assert read(pa.table({"id": IDS, "vector": lists(ROWS)})).fingerprint == first
    assert read((IDS, ROWS + 1e-9)).fingerprint != first
    assert read((["c", "a", "d"], ROWS)).fingerprint != first


def test_null_vectors_are_counted_and_left_out() -> None:
    found = read(pa.table({"id": ["a", "b", "c"], "vector": lists([None, ROWS[0], None])}))
    assert (by_id(found), found.without_vector) == ({"b": [1.0, 2.0]}, 2)
    none = read(pa.table({"id": ["a"], "vector": pa.nulls(1)}))
    assert (len(none.ids), none.width, none.without_vector) == (0, None, 1)
    fixed = pa.table({"id": ["a", "b"], "vector": lists([None, ROWS[0]], pa.list_(pa.float32(), 2))})
    assert by_id(read(fixed)) == {"b": [1.0, 2.0]}


def test_many_vectors_are_mapped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix, "MEMORY_BYTES", 100)
    rows = np.random.default_rng(0).standard_normal((50, 3)).astype(np.float32)
    table = pa.table({"id": range(50), "vector": lists(rows, pa.list_(pa.float32(), 3))})
    found = read(table.to_batches(max_chunksize=7))
    assert isinstance(found.rows, np.memmap)
    assert np.array_equal(found.rows[found.places], rows)
    assert found.fingerprint == read((pa.array(range(50)), rows)).fingerprint


def test_ids_alone(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", ROWS)
    np.save(tmp_path / "v.ids.npy", np.array(IDS))
    for source in (pa.table({"id": IDS, "vector": lists(ROWS)}), str(tmp_path / "v.npy"), (IDS, ROWS)):
        assert read_vector_ids(source, what="node vectors", id_column="id").to_pylist() == IDS


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"id": IDS}, "no column 'vector'"),
        ({"vector": lists(ROWS)}, r"no column 'id'.*"),
        ({"id": IDS, "vector": [1.0, 2.0, 3.0]}, "has type double, which is no vector"),
        ({"id": IDS, "vector": [[1], [2], [3]]}, "which is no vector"),
        ({"id": IDS, "vector": lists([[1.0], [1.0, 2.0], [1.0]])}, r"group 0, column 'vector' has 2 numbers: row 1 \("),
        ({"id": IDS, "vector": lists([[], [], []])}, "has 0 numbers"),
        ({"id": IDS, "vector": lists([[1.0], [float("nan")], [float("inf")]])}, r"infinite: row 1 \(id='a'\), row 2"),
        ({"id": IDS, "vector": lists([[1.0], [None], [2.0]])}, r"has a number that is null, .*: row 1 \(id='a'\)"),
        ({"id": ["a", None, "b"], "vector": lists(ROWS)}, "column 'id' is null: row 1"),
        ({"id": ["a", "b", "a"], "vector": lists(ROWS)}, "1 ids of the node vectors occur more than once: 'a'"),
        ({"id": [1.0, 2.0, 3.0], "vector": lists(ROWS)}, "cannot be an id"),
    ],
)  # fmt: skip
def test_tables_that_are_refused(write: Callable[..., Path], columns: dict[str, Any], message: str) -> None:
    with pytest.raises(InputDataError, match=message):
        read(str(write("v.parquet", columns)))


def test_widths_must_agree_between_files(write: Callable[..., Path]) -> None:
    files = [str(write(f"{i}.parquet", {"id": [i], "vector": lists([[1.0] * (2 + i)])})) for i in range(2)]
    with pytest.raises(InputDataError, match=r"1\.parquet, row group 0, column 'vector' has 3 numbers"):
        read(files)


@pytest.mark.parametrize(
    ("ids", "rows", "message"),
    [
        (IDS, ROWS.astype(int), "has shape"),
        (IDS[:2], ROWS, "has 3 rows, but there are 2 ids"),
        (["a", "b", "b"], ROWS, "occur more than once: 'b'"),
        (IDS, np.array([[1.0], [np.nan], [np.inf]]), "in the rows 1, 2"),
        (["a", None, "b"], ROWS, "1 ids are null, the first in row 1"),
        ([{}, {}, {}], ROWS, "cannot be an id"),
        (IDS, ROWS[:, :0], "has shape"),
    ],
)
def test_pairs_that_are_refused(ids: Any, rows: Any, message: str) -> None:
    with pytest.raises(InputDataError, match=message):
        read((ids, rows))


def test_npy_files_that_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "v.ids.npy", np.array(IDS))
    for content, message in ((b"no array", "is no .npy file of numbers"), (b"", "is no .npy file of numbers")):
        (tmp_path / "v.npy").write_bytes(content)
        with pytest.raises(InputDataError, match=message):
            read(str(tmp_path / "v.npy"))
    np.save(tmp_path / "v.npy", np.zeros(3))
    with pytest.raises(InputDataError, match=r"has shape \(3,\)"):
        read(str(tmp_path / "v.npy"))
    np.save(tmp_path / "v.npy", np.array(IDS, dtype=object), allow_pickle=True)
    with pytest.raises(InputDataError, match=r"is no \.npy file of numbers"):
        read(str(tmp_path / "v.npy"))
    with pytest.raises(InputDataError, match=r"cannot be read \(No such file"):
        read(str(tmp_path / "none.npy"))
    with pytest.raises(InputDataError, match="is a URL"):
        read("s3://bucket/v.npy")
    with pytest.raises(InputDataError, match="3 paths are given"):
        read([str(tmp_path / "v.npy")] * 3)


def test_no_vector_at_all(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.zeros((0, 4), np.float32))
    np.save(tmp_path / "v.ids.npy", np.zeros(0, np.int64))
    found = read(str(tmp_path / "v.npy"))
    assert (len(found.ids), found.width) == (0, None)
