"""Case 65: where compiled code is kept, and what happens where it cannot be kept."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import seedrank
from seedrank.kernels._cpu import compiled

Write = Callable[..., Path]

EDGES = {"src": [1, 2, 2, 3, 4, 4], "dst": [2, 3, 1, 4, 1, 5], "weight": [1.0, 0.3, 0.7, 2.0, 1.0, 1.0]}
HITS = {"query_id": ["q1", "q1", "q2"], "node_id": [1, 3, 5], "weight": [1.0, 0.2, 1.0]}


def largest(values: Any) -> Any:
    """What a kernel that is compiled at once may look like."""
    return values.max()


@pytest.fixture(scope="module")
def sealed_package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the package that cannot keep compiled code, by root either.

    Where the folder ``__pycache__`` would be is a file. Unlike permissions, that stops every user.
    """
    folder = tmp_path_factory.mktemp("sealed")
    shutil.copytree(
        Path(seedrank.__file__).parent, folder / "seedrank", ignore=shutil.ignore_patterns("__pycache__", "*.nb[ci]")
    )
    for package in [folder / "seedrank", *(folder / "seedrank").rglob("*")]:
        if package.is_dir():
            (package / "__pycache__").write_text("in the way of the folder of this name")
    return folder


def run_python(package: Path, home: Path, *arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Python on a copy of the package with another home; a file as `home` takes its cache folders away, too."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "SEEDRANK_"))}
    environment |= {"PYTHONPATH": str(package), "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")} | variables
    return subprocess.run(
        [sys.executable, *map(str, arguments)], env=environment, capture_output=True, text=True, check=False
    )


def test_case_65_without_a_cache_folder_there_is_a_warning_and_the_same_result(
    write: Write, tmp_path: Path, sealed_package: Path
) -> None:
    edges, hits = write("edges.parquet", EDGES), write("hits.parquet", HITS)
    # The method whose kernels compile in the least time: where they are kept does not depend on which they are.
    kept = seedrank.score(edges, queries=hits, out=tmp_path / "kept", method="neighbors", direction="both")
    assert kept.manifest.backend is not None
    assert kept.manifest.backend.name == "cpu"
    home = write("no-home", {"a": [1]})
    done = run_python(
        sealed_package, home, "-m", "seedrank", "score", edges, "--queries", hits, "--out", tmp_path / "sealed",
        "--method", "neighbors", "--direction", "both",
        NUMBA_CACHE_DIR=str(home / "numba"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "NUMBA_CACHE_DIR" in done.stderr
    assert "Traceback" not in done.stderr
    assert "status" in done.stdout
    assert "NUMBA_CACHE_DIR" not in done.stdout
    sealed = seedrank.open_run(tmp_path / "sealed")
    for ours, theirs in ((kept.candidates, sealed.candidates), (kept.queries, sealed.queries)):
        assert [file.read_bytes() for file in ours.files] == [file.read_bytes() for file in theirs.files]
    assert len(sealed.candidates) == 3
    assert not [path for path in tmp_path.rglob("*") if path.suffix in (".nbi", ".nbc")]
    assert not [path for path in sealed_package.rglob("*") if path.suffix in (".nbi", ".nbc")]


# One small function is compiled: where code is kept does not depend on which.
COMPILE_ONE = """
import numpy
from seedrank.kernels._cpu.product import add_chunks

add_chunks(numpy.ones((2, 16)), 0, 2, numpy.zeros(16))
print(sum(add_chunks.stats.cache_hits.values()), "hits")
"""


# What a read-only file system answers, to every user: permissions do not stop root.
READ_ONLY = """
import errno
import os
import sys

access = os.access
os.access = lambda path, mode: not mode & os.W_OK and access(path, mode)


def refuse(event, arguments):
    if event == "os.mkdir" or (event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR)):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(arguments[0]))


sys.addaudithook(refuse)
"""
COMPILE_ANOTHER = """
print("another", file=sys.stderr)
add_chunks(numpy.ones((2, 16), numpy.float32), 0, 2, numpy.zeros(16))
"""


@pytest.mark.parametrize("named", [True, False], ids=["NUMBA_CACHE_DIR", "user cache"])
def test_case_65_compiled_code_goes_where_it_can_be_written(tmp_path: Path, sealed_package: Path, named: bool) -> None:
    """NUMBA_CACHE_DIR first; a package that is read-only gives way to the cache folder of the user.

    In an image whose file system is read-only it is used from there, and nothing is said unless something is missing.
    """
    variables = {"NUMBA_CACHE_DIR": str(tmp_path / "named")} if named else {}
    home = tmp_path / "home"
    for expected in ("0 hits", "1 hits"):
        done = run_python(sealed_package, home, "-c", COMPILE_ONE, **variables)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.strip() == expected
    below = tmp_path / ("named" if named else "home/cache")
    kept = list(tmp_path.rglob("*.nbi"))
    assert [path.name.startswith("product.add_chunks-") for path in kept] == [True]
    assert kept[0].is_relative_to(below)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    done = run_python(sealed_package, home, "-c", READ_ONLY + COMPILE_ONE + COMPILE_ANOTHER, **variables)
    assert (done.returncode, done.stdout) == (0, "1 hits\n"), done.stderr
    assert done.stderr.startswith("another\n")
    assert done.stderr.count("could not be read or written (OSError: [Errno 30] Read-only file system") == 1
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


@pytest.mark.parametrize("damage", ["cut index", "cut code", "full disk"])
def test_case_65_a_cache_that_fails_later_costs_time_only(tmp_path: Path, sealed_package: Path, damage: str) -> None:
    """An interrupted copy of a cache folder, or a disk that is full when the code is to be kept."""
    variables = {"NUMBA_CACHE_DIR": str(tmp_path / "named")}
    code = COMPILE_ONE
    if damage == "full disk":
        # As a full disk does, a limit on the size of files lets an empty file be made and fails at its content.
        # Python would keep half of a module that it compiles: it does not look whether all was written.
        limit = "import resource, sys\nresource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))\n"
        code = limit + "sys.dont_write_bytecode = True\n" + COMPILE_ONE
    else:
        assert run_python(sealed_package, tmp_path, "-c", COMPILE_ONE, **variables).returncode == 0
        (file,) = tmp_path.rglob("*.nbi" if damage == "cut index" else "*.nbc")
        file.write_bytes(file.read_bytes()[:100])
    done = run_python(sealed_package, tmp_path, "-c", code, **variables)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "0 hits\n"
    assert done.stderr.count("could not be read or written") == 1
    if damage != "full disk":
        again = run_python(sealed_package, tmp_path, "-c", COMPILE_ONE, **variables)
        assert (again.returncode, again.stdout, again.stderr) == (0, "1 hits\n", "")


def test_case_65_code_beside_a_package_serves_who_cannot_write_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is missing there is kept in the user's cache folder."""
    beside = Path(compiled.__file__).parent / "__pycache__"
    monkeypatch.setattr("numba.config.CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
    (baked,) = compiled._cache_folders()
    assert baked.parent == beside
    may, folder = os.access, tmp_path / "empty" / "seedrank" / baked.name
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).parent != beside and may(path, mode))
    assert compiled._cache_folders() == [folder, baked]
    # The same, with another folder in the place of the one beside the package, which others may be filling.
    function, signatures = largest, [np.ones(3), np.ones(3, np.float32)]
    for folders, values, hits in (([tmp_path / "baked"], 1, 0), ([folder, tmp_path / "baked"], 2, 1)):
        monkeypatch.setattr(compiled, "_FOLDERS", folders)
        kernel: Any = compiled.compiled()(function)
        for array in signatures[:values]:
            kernel(array)
        assert sum(kernel.stats.cache_hits.values()) == hits
        assert len(list(folders[0].rglob("*.nbc"))) == 1
