"""Which runs are the same one: what is in the run key, what is not, and what a refusal says."""

# ruff: noqa: F811  # fixtures are imported, and asked for by their names

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import seedrank
from finished_run import EDGES, HITS, OPTIONS, again, content, files_of_part, finished, parts_of, run, store  # noqa: F401  # fixtures
from seedrank.config import ScoreOptions
from seedrank.errors import ConfigError
from seedrank.jobs.run.run_key import NOT_IN_KEY


def test_an_edge_list_and_its_store_are_the_same_input(
    run: seedrank.Run, finished: seedrank.Run, store: seedrank.GraphStore
) -> None:
    files_of_part(run, 1)[1].unlink()
    done = seedrank.score(EDGES, queries=HITS, out=run.path, **OPTIONS)
    assert parts_of(done) == parts_of(finished)
    assert done.manifest.graph is not None
    assert done.manifest.graph.built_in_this_run
    assert Path(done.manifest.graph.path) == run.path / "graph"
    assert again(done, store).manifest == done.manifest


OTHER: list[tuple[dict[str, Any], str]] = [
    ({"top_k": 7}, "--top-k: 5 there, 7 here"),
    ({"part_size": 5}, "--part-size: 6 there, 5 here"),
    ({"damping": 0.75}, "--restart: 0.5 there, 0.25 here"),
    ({"restart": (0.25, 0.5)}, "--restart: 0.5 there, 0.25 0.5 here"),
    ({"backend": "scipy"}, "--backend: cpu there, scipy here"),
    ({"precision": "float64"}, "--precision: float32 there, float64 here"),
    ({"paths": True}, "--paths: False there, True here"),
    ({"method": "bfs"}, "--method: ppr there, bfs here"),
    ({"timeout_s": 100}, "--timeout-s: none there, 100.0 here"),
    ({"exclude": pa.table({"node_id": [1]})}, "the exclusions: none there, "),
    ({"queries": HITS.slice(1)}, "the hits: "),
]


@pytest.mark.parametrize(("change", "message"), OTHER, ids=lambda value: value if isinstance(value, str) else "")
def test_another_run_is_refused_and_says_what_differs(
    run: seedrank.Run, store: seedrank.GraphStore, change: dict[str, Any], message: str
) -> None:
    before = content(run.path)
    with pytest.raises(ConfigError) as caught:
        seedrank.score(store, out=run.path, **{"queries": HITS, **OPTIONS, **change})
    assert caught.value.found.startswith(f"--out {run.path} holds the parts of another run: ")
    assert message in caught.value.found
    assert caught.value.found.count(" there, ") == 1
    assert content(run.path) == before


def test_another_graph_and_several_differences(run: seedrank.Run) -> None:
    with pytest.raises(ConfigError) as caught:
        seedrank.score(EDGES.slice(1), queries=HITS, out=run.path, part_size=6, top_k=7, direction="both")
    found = caught.value.found
    for name in ("the graph: ", "--top-k: 5 there, 7 here", "--direction: out there, both here"):
        assert name in found
    assert "the hits" not in found
    assert {child.name for child in run.path.iterdir()} == {"run.json", "candidates", "queries", "_SUCCESS"}


def test_the_options_that_are_not_in_the_key() -> None:
    """A new option is in the key unless somebody decides otherwise: here, too."""
    columns = {name for name in ScoreOptions.model_fields if name.endswith("_column")}
    graph = {"duplicate_edges", "null_weight", "on_bad_rows"}
    how = {"backend", "preset", "block_size", "threads", "memory_limit", "deadline_s", "strict", "resume", "overwrite"}
    how |= {"metrics_file", "work_dir", "workers", "scheduler", "parts", "since", "lineage_file", "lineage_job"}
    how |= {"graph_memory"}
    assert columns | graph | how == NOT_IN_KEY


@pytest.mark.parametrize(
    "options", [{"threads": 1}, {"block_size": 3}, {"memory_limit": "1GB"}, {"deadline_s": 1000}, {"backend": "cpu"}]
)
def test_how_a_run_is_computed_may_change(
    run: seedrank.Run, finished: seedrank.Run, store: seedrank.GraphStore, options: dict[str, Any]
) -> None:
    assert again(run, store, **options).manifest == run.manifest  # already done
    files_of_part(run, 0)[0].unlink()
    done = again(run, store, **options)
    assert parts_of(done) == parts_of(finished)
    assert done.manifest.run_key == finished.manifest.run_key


def test_auto_goes_on_with_the_backend_that_the_run_began_with(store: seedrank.GraphStore, tmp_path: Path) -> None:
    plain = seedrank.score(store, queries=HITS, out=tmp_path / "run", backend="scipy", **OPTIONS)
    expected = parts_of(plain)
    files_of_part(plain, 1)[0].unlink()
    done = again(plain, store)
    assert parts_of(done) == expected
    assert done.manifest.backend is not None
    assert (done.manifest.backend.name, done.manifest.backend.requested) == ("scipy", "auto")
    assert done.manifest.backend.reason == "the run began with it"


def test_the_key_is_that_of_the_content(store: seedrank.GraphStore, finished: seedrank.Run, tmp_path: Path) -> None:
    shuffled = HITS.take(list(reversed(range(len(HITS)))))
    same = seedrank.score(EDGES, queries=shuffled, out=tmp_path / "same", threads=1, **OPTIONS)
    other = seedrank.score(store, queries=HITS, out=tmp_path / "other", **{**OPTIONS, "top_k": 6})
    assert same.manifest.run_key == finished.manifest.run_key != other.manifest.run_key
    assert same.manifest.run_key is not None
    assert len(same.manifest.run_key) == 32
