"""Counts of values from a footer equal those of PyArrow; damage of what lies around them ends no process."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seedrank.errors import InputDataError
from seedrank.io.arrow.value_counts import value_counts
from seedrank.testing.odd_tables import parquet_bytes

HITS = pa.table({"query_id": ["q0", "q1", "q2", "q3"], "seeds": [[0, 1], [], None, [2, None]]})


def footer_of(data: bytes) -> bytes:
    """The footer of a file."""
    return data[-8 - int.from_bytes(data[-8:-4], "little") : -8]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_counts_equal_those_of_pyarrow(seed: int) -> None:
    data = parquet_bytes(HITS, np.random.default_rng(seed))  # codecs, statistics, page indices: whatever is written
    metadata = pq.ParquetFile(io.BytesIO(data)).metadata
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    assert value_counts(footer_of(data), "x") == [
        [group.column(i).num_values for i in range(metadata.num_columns)] for group in groups
    ]


def test_counts_of_more_row_groups_and_columns_than_a_short_list_has() -> None:
    stream = io.BytesIO()
    table = pa.table({f"c{i}": [[1, 2]] * 20 for i in range(20)})
    pq.write_table(table, stream, row_group_size=1)
    assert value_counts(footer_of(stream.getvalue()), "x") == [[2] * 20] * 20


@given(st.binary(max_size=300))
def test_any_bytes_have_counts_or_are_refused(data: bytes) -> None:
    with contextlib.suppress(InputDataError):
        value_counts(data, "x")


@pytest.mark.parametrize(
    "data",
    [b"\x1c" * 5_000, b"\x19\xfc" * 5_000, b"\x19\xfc" + b"\xff" * 9 + b"\x01", b"\x16" + b"\xff" * 1_000_000, b""],
    ids=["structs in structs", "lists in lists", "an endless list", "an endless number", "nothing"],
)
def test_hostile_footers_are_refused_at_once(data: bytes) -> None:
    with pytest.raises(InputDataError, match="cut or damaged"):
        value_counts(data, "x")


def test_damaged_size_statistics_of_a_list_are_an_error_and_no_abort(tmp_path: Path) -> None:
    data = parquet_bytes(HITS, np.random.default_rng(0))
    footer = footer_of(data)
    # Histograms of definition levels 0 … 3 of the list: one entry less is what PyArrow's accessor dies of.
    name = tmp_path / "hits.parquet"
    refused = 0
    for place in range(len(footer)):
        if footer[place] >> 4 != 4 or footer[place] & 15 != 6:  # a list of four numbers of 64 bits
            continue
        changed = footer[:place] + bytes([0x36]) + footer[place + 1 : place + 4] + footer[place + 5 :]
        name.write_bytes(data[: -8 - len(footer)] + changed + len(changed).to_bytes(4, "little") + data[-4:])
        ended = subprocess.run(
            [sys.executable, "-c", f"from seedrank.io.queries import read_hits; read_hits({str(name)!r})"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert ended.returncode == 1, ended.stderr
        assert "hits.parquet cannot be read as Parquet" in ended.stderr
        refused += 1
    assert refused > 0
