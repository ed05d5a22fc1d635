"""Arrays that wait in memory or in files."""

from __future__ import annotations

import math
import os
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from seedrank.errors import StorageError
from seedrank.io.graph.record_files import RecordFile
from seedrank.io.storage.spill import Spill


@pytest.mark.parametrize("memory", [0, 40, math.inf])
def test_chunks_are_a_list_wherever_they_are(memory: float, tmp_path: Path) -> None:
    chunks, expected = Spill(tmp_path / "spill", memory=memory).chunks(np.int32), []
    for length in (3, 0, 5, 1, 7):
        array = np.arange(length, dtype=np.int32) * length
        chunks.append(array)
        expected.append(array)
    changes: dict[int, list[int]] = {0: [7, 7, 7], 1: [1, 2], 4: [], 2: [5, 4, 3, 2, 1]}
    for number, numbers in changes.items():
        chunks[number] = expected[number] = np.array(numbers, np.int32)
    assert [array.tolist() for array in chunks] == [array.tolist() for array in expected]
    assert chunks.lengths == [len(array) for array in expected]
    assert len(chunks) == 5
    assert (tmp_path / "spill").exists() == (memory < math.inf)
    chunks.clear()
    assert len(chunks) == 0
    assert not [file for file in tmp_path.rglob("*") if file.is_file()]


def test_memory_is_given_back(tmp_path: Path) -> None:
    spill = Spill(tmp_path / "spill", memory=80)
    for _ in range(3):
        chunks = spill.chunks(np.int64)
        chunks.append(np.arange(10))
        assert not (tmp_path / "spill").exists()
        chunks[0] = np.empty(0, np.int64)
        chunks[0] = np.arange(10)
        chunks.clear()


def test_writes_that_end_early_and_records(tmp_path: Path) -> None:
    written, pwrite = [], os.pwrite

    def some(descriptor: int, data: memoryview, position: int) -> int:
        written.append(pwrite(descriptor, data[:5], position))
        return written[-1]

    chunks = Spill(tmp_path, memory=0).chunks(np.int64)
    with mock.patch.object(os, "pwrite", some):
        chunks.append(np.arange(4))
    assert written == [5, 5, 5, 5, 5, 5, 2]
    assert chunks[0].tolist() == [0, 1, 2, 3]


def test_records_come_back_in_order(tmp_path: Path) -> None:
    file = RecordFile(tmp_path / "bucket", weighted=True)
    assert file.read()[0].tolist() == []
    for first in (0, 5):
        file.append(np.arange(first, first + 5), np.arange(first, first + 5) / 2)
    assert file.rows == 10
    batches = list(file.batches(4))
    assert [len(key) for key, _ in batches] == [4, 4, 2]
    assert np.concatenate([key for key, _ in batches]).tolist() == list(range(10))
    weights = file.read()[1]
    assert weights is not None
    assert weights.tolist() == [number / 2 for number in range(10)]
    file.remove()
    assert not list(tmp_path.iterdir())


def test_files_that_somebody_else_cut(tmp_path: Path) -> None:
    chunks = Spill(tmp_path, memory=0).chunks(np.int64)
    chunks.append(np.arange(4))
    record = RecordFile(tmp_path / "bucket", weighted=False)
    record.append(np.arange(4), None)
    for path in list(tmp_path.iterdir()):
        os.truncate(path, 8)
    with pytest.raises(StorageError, match="has become shorter"):
        chunks[0]
    with pytest.raises(StorageError, match="has become shorter"):
        record.read()
