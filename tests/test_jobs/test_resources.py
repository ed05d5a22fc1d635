"""What a process may use."""

from __future__ import annotations

import resource
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import seedrank
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


@dataclass(frozen=True)
class Groups:
    """Control groups of a machine that is made of files."""

    root: Path
    own: Path

    def add(self, folder: str, *, limit: object, used: int, cached: str = "", version: int = 2) -> None:
        """A group with its limit, what is used of it, and further lines of its statistics."""
        place = self.root / folder
        place.mkdir(parents=True, exist_ok=True)
        files = ("memory.max", "memory.current") if version == 2 else ("memory.limit_in_bytes", "memory.usage_in_bytes")
        for file, value in zip(files, (limit, used), strict=True):
            (place / file).write_text(f"{value}\n")
        (place / "memory.stat").write_text(f"anon 1000000\n{cached}")


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Groups:
    made = Groups(tmp_path / "groups", tmp_path / "own")
    made.own.write_text("0::/\n")
    monkeypatch.setattr(resources, "_CONTROL_GROUPS", made.root)
    monkeypatch.setattr(resources, "_OWN_GROUPS", made.own)
    return made


def test_cached_files_of_a_control_group_count_as_free(groups: Groups) -> None:
    cached = "file 20000000\ninactive_file 12000000\nactive_file 3000000\nshmem 5000000\n"
    groups.add(".", limit=30_000_000, used=25_000_000, cached=cached)
    assert available_memory() == 20_000_000
    groups.add(".", limit="max", used=25_000_000)
    assert available_memory() > 20_000_000


def test_the_tightest_of_the_control_groups_around_a_process_counts(groups: Groups) -> None:
    groups.own.write_text("0::/jobs/night.scope\n")
    groups.add("jobs/night.scope", limit=50_000_000, used=10_000_000)
    groups.add("jobs", limit=90_000_000, used=70_000_000)
    groups.add("other", limit=2_000_000, used=1_000_000)
    assert available_memory() == 20_000_000
    groups.own.write_text("0::/moved\n")  # as in a container, whose groups have other names outside
    groups.add(".", limit=40_000_000, used=10_000_000)
    assert available_memory() == 30_000_000
    groups.own.write_text("0::/../outside\n")
    assert available_memory() == 30_000_000


def test_control_groups_of_version_1(groups: Groups) -> None:
    groups.own.write_text("9:name=systemd:/\n4:memory:/job\n3:cpuset:/\n0::/\n")
    cached = "total_inactive_file 4000000\ntotal_active_file 1000000\ninactive_file 9\n"
    groups.add("memory/job", limit=30_000_000, used=25_000_000, cached=cached, version=1)
    groups.add("memory", limit=2**63 - 4096, used=500, version=1)
    assert available_memory() == 10_000_000


@pytest.mark.parametrize("damage", ["limit", "used", "cached"])
def test_a_control_group_that_cannot_be_understood_sets_no_limit(groups: Groups, damage: str) -> None:
    facts: dict[str, Any] = {"limit": 30_000_000, "used": 25_000_000, "cached": ""}
    groups.add(".", **{**facts, damage: "much\n"})
    assert available_memory() > 30_000_000


def test_what_is_left_of_the_address_space_is_a_limit(groups: Groups, monkeypatch: pytest.MonkeyPatch) -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    monkeypatch.setattr(resource, "getrlimit", lambda _: (used + 50_000_000, used + 60_000_000))
    assert available_memory() == pytest.approx(50_000_000, abs=20_000_000)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (used // 2, used))
    assert available_memory() == 0


def resident_bytes(folder: Path) -> dict[str, int]:
    """Memory that mapped files of a folder take, by name."""
    found: dict[str, int] = {}
    name = None
    for line in Path("/proc/self/smaps").read_text(encoding="utf-8", errors="replace").splitlines():
        words = line.split()
        if not words[0].endswith(":"):
            path = Path(line.split(maxsplit=5)[-1])
            name = path.name if path.parent == folder else None
        elif words[0] == "Rss:" and name is not None:
            found[name] = found.get(name, 0) + int(words[1]) * 1024
    return found


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="only Linux tells what is resident")
def test_rows_of_the_store_take_no_memory_beside_those_of_the_backend(tmp_path: Path) -> None:
    nodes = np.arange(5_000)
    edges = pa.table({"src": nodes, "dst": nodes * 7 % 5_000, "weight": nodes + 1.0})
    store = seedrank.build(edges, out=tmp_path / "graph")
    entered = "by_destination_neighbors.npy"
    before = np.array(store.by_destination.neighbors)
    assert resident_bytes(store.path)[entered] >= before.nbytes
    ranker = seedrank.Ranker(store)
    assert resident_bytes(store.path)[entered] == 0
    # The backend has them, and what follows edges out of seeds needs these no more.
    assert ranker.rank({3: 1.0})["node_id"].to_pylist()[:2] == [21, 147]
    assert resident_bytes(store.path)[entered] == 0
    np.testing.assert_array_equal(store.by_destination.neighbors, before)
