"""Where Numba cannot be imported, ``auto`` computes with scipy and says so; what needs it by name is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import seedrank

Write = Callable[..., Path]

EDGES = {"src": [1, 2, 2, 3, 4, 4], "dst": [2, 3, 1, 4, 1, 5]}
HITS = {"query_id": ["q1", "q1", "q2"], "node_id": [1, 3, 5]}

#: Found before the real one, as a broken installation is.
BROKEN = 'raise ImportError("Numba needs NumPy 1.0 or less")\n'


@pytest.fixture
def without_numba(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    (tmp_path / "broken" / "numba").mkdir(parents=True)
    (tmp_path / "broken" / "numba" / "__init__.py").write_text(BROKEN)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SEEDRANK_")}
    environment["PYTHONPATH"] = str(tmp_path / "broken")

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "seedrank", *map(str, arguments)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    return run


def test_auto_takes_scipy_and_says_so(
    without_numba: Callable[..., subprocess.CompletedProcess[str]], write: Write, tmp_path: Path
) -> None:
    edges, hits = write("edges.parquet", EDGES), write("hits.parquet", HITS)
    done = without_numba("score", edges, "--queries", hits, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert "numba cannot be imported: Numba needs NumPy 1.0 or less" in done.stderr
    run = seedrank.open_run(tmp_path / "run")
    assert run.manifest.backend is not None
    assert (run.manifest.backend.name, run.manifest.backend.requested) == ("scipy", "auto")
    ours = seedrank.score(edges, queries=hits, out=tmp_path / "ours", backend="scipy").candidates.to_arrow()
    assert run.candidates.to_arrow().equals(ours)
    told = json.loads(without_numba("info", "--json").stdout)
    assert told["backend"]["name"] == "scipy"


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("--backend", "cpu"), "--backend cpu"),
        (("--method", "walk"), "--method walk"),
        (("--method", "bfs"), "--method bfs"),
        (("--paths",), "--paths"),
        (("--max-hops", "2"), "--max-hops"),
    ],
)
def test_what_needs_it_is_refused(
    without_numba: Callable[..., subprocess.CompletedProcess[str]],
    write: Write,
    tmp_path: Path,
    arguments: tuple[str, ...],
    what: str,
) -> None:
    edges, hits = write("edges.parquet", EDGES), write("hits.parquet", HITS)
    done = without_numba("score", edges, "--queries", hits, "--out", tmp_path / "run", *arguments)
    assert done.returncode == 4
    assert f"{what} needs compiled kernels, and numba cannot be imported" in done.stderr
    assert "Traceback" not in done.stderr
