"""What killed processes leave in the work folder is removed by the next command that uses it; what lives stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import seedrank
from seedrank.errors import InputDataError
from seedrank.io.run import lock, owned
from seedrank.io.run.owned import Ownership, folders_below
from seedrank.jobs import work_dir
from seedrank.jobs.work_dir import work_folder

EDGES = pa.table({"src": [1, 2, 3, 4], "dst": [2, 3, 1, 1]})
HITS = pa.table({"query_id": [1], "node_id": [1]})

# A process that owns folders of every kind, and ends by SIGKILL when it is told to.
OWNER = """
import sys
from pathlib import Path
from seedrank.io.run import lock, owned
from seedrank.io.run.owned import Ownership

held = [Ownership(Path(name)) for name in sys.argv[1:]]
for name in sys.argv[1:]:
    (Path(name) / "staged").mkdir(parents=True)
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def empty_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryFileSystem, "store", {})


def left_in(work: Path) -> list[str]:
    """Everything below the work folder but folders that hold others, by name."""
    return sorted(str(path.relative_to(work)) for path in work.rglob("*") if path.is_file() or not any(path.iterdir()))


def test_what_a_killed_process_left_goes_and_what_lives_stays(tmp_path: Path) -> None:
    work = work_folder(str(tmp_path / "work"))
    places = [work / name for name in (f"builds/{'a1' * 16}", f"copies/{'b2' * 16}", f"runs/{'c3' * 8}/{'d4' * 8}")]
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, *map(str, places)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"ready\n"
        before = left_in(work)
        assert len(before) == 6
        work_folder(str(work))
        assert left_in(work) == before
    finally:
        os.kill(owner.pid, signal.SIGKILL)
        owner.communicate()
    assert left_in(work) == before
    work_folder(str(work))
    assert left_in(work) == ["builds", "copies", "runs"]


def test_commands_leave_nothing_and_tidy_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A build, a copy and a run that die without anything being tidied up; then a command that does not."""
    work, url = tmp_path / "work", "memory://bucket/graph"
    options: dict[str, Any] = {"work_dir": str(work)}

    class Killed(BaseException):
        pass

    def killed(*_: object, **__: object) -> None:
        raise Killed

    def dies(target: str, call: Any) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(target, killed)
            for module in ("jobs.build", "io.graph.remote_graph", "io.run.run_objects"):
                patch.setattr(f"seedrank.{module}.remove_tree", lambda _: None)
            with pytest.raises(Killed):
                call()

    dies("seedrank.jobs.build.put_graph_store", lambda: seedrank.build(EDGES, out=url, **options))
    assert len(folders_below(work / "builds")) == 1
    seedrank.build(EDGES, out=url, work_dir=str(tmp_path / "other"))
    assert not (work / "graphs").exists()
    dies("seedrank.io.graph.remote_graph.publish", lambda: seedrank.open_graph(url, **options))
    assert folders_below(work / "builds") == []
    assert len(folders_below(work / "copies")) == 1
    dies(
        "seedrank.jobs.score.ScoreJob.score_missing",
        lambda: seedrank.score(EDGES, queries=HITS, out="memory://bucket/run", backend="scipy", **options),
    )
    assert folders_below(work / "copies") == []
    assert [path.name for path in (work / "runs").rglob("staged")] == ["staged"]
    seedrank.open_graph(url, **options)
    assert not list((work / "runs").iterdir())
    (graph,) = (path for path in (work / "graphs").iterdir() if path.is_dir())
    assert (graph / "graph.json").exists()


def test_graphs_of_the_last_runs_stay_for_explain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_dir, "KEPT_GRAPHS", 2)
    work = tmp_path / "work"
    runs = [f"memory://bucket/day={day}" for day in range(4)]
    for number, out in enumerate(runs):
        run = seedrank.score(EDGES, queries=HITS, out=out, backend="scipy", work_dir=str(work))
        assert run.manifest.graph is not None
        os.utime(Path(run.manifest.graph.path).parent, (number, number))
    work_folder(str(work))
    assert len(list((work / "runs").rglob("graph.json"))) == 2
    assert all(seedrank.explain(out, query=1, node=2, queries=HITS).candidate for out in runs[2:])
    with pytest.raises(InputDataError, match="is not a graph store"):
        seedrank.explain(runs[0], query=1, node=2, queries=HITS)


def test_a_lock_file_without_its_folder_goes_too(tmp_path: Path) -> None:
    """Killed before the folder was made; and a folder may be owned again once it was given back."""
    place = tmp_path / "builds" / ("a1" * 16)
    ownership = Ownership(place)
    assert folders_below(place.parent) == [place]
    work_folder(str(tmp_path))
    assert folders_below(place.parent) == [place]
    ownership.give_back()
    assert folders_below(place.parent) == []
    place.with_name(f".{place.name}.lock").touch()
    work_folder(str(tmp_path))
    assert folders_below(place.parent) == []


def test_what_others_keep_beside_it_is_left_alone(tmp_path: Path) -> None:
    """A work folder that is also where runs are written, under names like those of the work folder."""
    run = seedrank.score(EDGES, queries=HITS, out=tmp_path / "runs" / "tonight", backend="scipy")
    (tmp_path / "builds" / "graph").mkdir(parents=True)
    (tmp_path / "copies").mkdir()
    (tmp_path / "copies" / ("a1" * 16)).symlink_to(run.path)
    before = sorted(tmp_path.rglob("*"))
    work_folder(str(tmp_path))
    assert sorted(tmp_path.rglob("*")) == before
    assert len(run.candidates) == 2


def test_a_folder_that_somebody_tidies_away_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, taken = tmp_path / ("c3" * 8) / ("d4" * 8), [1]
    original = lock.acquired

    def acquired(file: Path, *rest: Any) -> int:
        if taken.pop():
            file.parent.rmdir()
            taken.append(0)
        return original(file, *rest)

    monkeypatch.setattr(owned, "acquired", acquired)
    ownership = Ownership(place)
    assert folders_below(place.parent) == [place]
    ownership.give_back()
