"""Case 27 and its kin: outputs that overlap an input, that are URLs, or whose names look like something else."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seedrank
from seedrank.errors import ConfigError

Command = Callable[..., Any]

CYCLE = {"src": [1, 2, 3], "dst": [2, 3, 1]}


def snapshot(folder: Path) -> dict[str, bytes | str | None]:
    """Every path below a folder with its content; what must not change."""
    found: dict[str, bytes | str | None] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = str(path.readlink())
        else:
            found[name] = path.read_bytes() if path.is_file() else None
    return found


@pytest.fixture(scope="module")
def original_workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Inputs of every kind, a link, a graph store and a finished run."""
    root = tmp_path_factory.mktemp("original")
    tables = {
        "edges/part-0.parquet": CYCLE,
        "hits.parquet": {"query_id": ["q"], "node_id": [1]},
        "nodes.parquet": {"id": [1, 2, 3]},
        "seen/deep/seen.parquet": {"node_id": [3]},
        "odd[1]/part-0.parquet": CYCLE,
    }
    for name, columns in tables.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(columns), root / name)
    (root / "link").symlink_to("edges")
    seedrank.build(root / "edges", out=root / "graph")
    seedrank.score(root / "edges", queries=root / "hits.parquet", out=root / "run")
    return root


@pytest.fixture
def workspace(original_workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh copy of the original workspace, as the current folder."""
    root = tmp_path / "workspace"
    shutil.copytree(original_workspace, root, symlinks=True)
    monkeypatch.chdir(root)
    return root


@pytest.mark.parametrize(
    ("graph", "out"),
    [
        ("edges", "edges"),
        ("edges", "./edges/../edges/"),
        ("edges", "link"),
        ("link", "edges"),
        ("link", "link/run"),
        ("edges", "edges/run"),
        ("edges/*.parquet", "edges/part-0.parquet"),
        ("edges/**", "edges/run"),
        ("edges", "."),
        ("graph", "graph"),
        ("graph", "graph/run"),
        ("run/graph", "run"),
        ("graph", "hits.parquet"),
        ("graph", "seen"),
        ("graph", "seen/deep/more"),
        ("odd[1]", "odd[1]/run"),
    ],
)
def test_case_27_output_that_overlaps_an_input(
    seedrank_command: Command, workspace: Path, graph: str, out: str
) -> None:
    before = snapshot(workspace)
    inputs = ("--queries", "hits.parquet", "--exclude", "seen")
    for command in ("score", "plan", "check"):
        result = seedrank_command(command, graph, *inputs, "--out", out, "--overwrite")
        assert result.code == 2, (command, result.err)
        assert "overlap" in result.err
    absolute = seedrank_command("score", graph, *inputs, "--out", workspace / out, "--overwrite")
    assert absolute.code == 2
    assert snapshot(workspace) == before


@pytest.mark.parametrize("out", ["edges", "link", "edges/graph", ".", "nodes.parquet"])
def test_case_27_graph_store_that_overlaps_its_edge_list(seedrank_command: Command, workspace: Path, out: str) -> None:
    before = snapshot(workspace)
    result = seedrank_command("build", "edges", "--nodes", "nodes.parquet", "--out", out, "--overwrite")
    assert result.code == 2
    assert "overlap" in result.err
    assert snapshot(workspace) == before


@pytest.mark.parametrize("scheme", ["file://", "local://"])
def test_case_27_inputs_and_outputs_named_by_url(seedrank_command: Command, workspace: Path, scheme: str) -> None:
    before = snapshot(workspace)
    queries = f"{scheme}{workspace}/run/candidates"
    for arguments in (
        ("graph", "--queries", queries, "--out", "run"),
        (f"{scheme}{workspace}/graph", "--queries", "hits.parquet", "--out", "graph"),
        ("graph", "--queries", "hits.parquet", "--out", f"{scheme}{workspace}/graph/run"),
    ):
        result = seedrank_command("score", *arguments, "--overwrite")
        assert (result.code, "overlap" in result.err) == (2, True), result.err
    assert snapshot(workspace) == before


def test_storage_that_cannot_be_written_or_is_unknown(
    seedrank_command: Command, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(workspace.parent / "cache"))
    before = snapshot(workspace)
    for out, code, word in (("nosuch://bucket/run", 4, "nosuch"), ("memory://", 2, "no bucket")):
        score = seedrank_command("score", "graph", "--queries", "hits.parquet", "--out", out)
        build = seedrank_command("build", "edges", "--out", out)
        for result in (score, build):
            assert (result.code, word in result.err) == (code, True), result.err
    assert snapshot(workspace) == before


@pytest.mark.parametrize("name", ["run:2024-01-01", "gs:run", "run 1%20", "odd[2]*?", "läuf"])
def test_output_names_that_look_like_something_else(seedrank_command: Command, workspace: Path, name: str) -> None:
    result = seedrank_command("score", "graph", "--queries", "hits.parquet", "--out", name)
    assert result.code == 0, result.err
    assert (workspace / name / "_SUCCESS").exists()
    run = seedrank.open_run(name)
    assert len(run.candidates) == run.candidates.to_arrow().num_rows == 2


def test_url_of_a_graph_store(seedrank_command: Command, workspace: Path) -> None:
    arguments = ("--queries", "hits.parquet", "--out", f"file://{workspace}/by-url")
    result = seedrank_command("score", f"file://{workspace}/graph", *arguments)
    assert result.code == 0, result.err
    manifest = seedrank.open_run("by-url").manifest
    assert manifest.graph is not None
    assert not manifest.graph.built_in_this_run


def test_case_27_output_beside_an_input_is_fine(workspace: Path) -> None:
    run = seedrank.score("edges/*.parquet", queries="hits.parquet", out="edges-run")
    assert len(run.candidates) == 2
    store = seedrank.open_graph("graph")
    with pytest.raises(ConfigError, match="overlap"):
        seedrank.score(store, queries="hits.parquet", out="graph/run")
