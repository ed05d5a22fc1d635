"""What a process may use."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from seedrank.jobs import resources
from seedrank.jobs.resources import available_memory, limited_threads


def test_arrow_gets_no_more_threads_than_the_kernels_for_as_long_as_the_job_runs() -> None:
    before = pa.cpu_count(), pa.io_thread_count()
    with limited_threads(1):
        assert (pa.cpu_count(), pa.io_thread_count()) == (1, 1)
    assert (pa.cpu_count(), pa.io_thread_count()) == before
    with limited_threads(10**6):  # no more than Arrow has by itself
        assert (pa.cpu_count(), pa.io_thread_count()) == before
    with limited_threads(None):
        assert (pa.cpu_count(), pa.io_thread_count()) == before
    with pytest.raises(ValueError, match="in the job"), limited_threads(1):
        raise ValueError("in the job")
    assert (pa.cpu_count(), pa.io_thread_count()) == before


def test_cached_files_of_a_control_group_count_as_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "_CONTROL_GROUP", tmp_path)
    (tmp_path / "memory.max").write_text("30000000\n")
    (tmp_path / "memory.current").write_text("25000000\n")
    (tmp_path / "memory.stat").write_text("anon 1000000\nfile 20000000\ninactive_file 12000000\n")
    assert available_memory() == 17_000_000
    (tmp_path / "memory.max").write_text("max\n")
    assert available_memory() > 17_000_000
