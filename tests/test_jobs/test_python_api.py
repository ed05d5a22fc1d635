"""The Python calls: keyword arguments against the option models, inputs of every kind, names, errors."""

from __future__ import annotations

import io
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

import pyarrow as pa
import pytest
from pydantic import BaseModel, ByteSize

import seedrank
from seedrank import errors
from seedrank.config import BuildOptions, ScoreOptions, make_options
from seedrank.errors import ConfigError, InputDataError, SeedrankError
from seedrank.keywords import BuildKeywords, ScoreKeywords

Write = Callable[..., Path]

CYCLE = {"src": [1, 2, 3], "dst": [2, 3, 1]}
HITS = {"query_id": ["q", "p"], "node_id": [1, 2]}
#: What a keyword argument accepts beyond the type of its field, because validation turns it into that type.
WIDER: dict[Any, Any] = {
    tuple[str, ...]: tuple[str, ...] | list[str],
    tuple[float, ...]: float | tuple[float, ...] | list[float],
    ByteSize | None: int | str | None,
    "workers": int | str | None,  # a number, or "gpu"
}


@pytest.mark.parametrize(
    ("keywords", "model"), [(BuildKeywords, BuildOptions), (ScoreKeywords, ScoreOptions)], ids=["build", "score"]
)
def test_keyword_arguments_agree_with_the_model(keywords: type, model: type[BaseModel]) -> None:
    arguments, fields = get_type_hints(keywords), get_type_hints(model)
    assert list(arguments) == list(model.model_fields)
    assert keywords.__required_keys__ == frozenset()  # type: ignore[attr-defined]
    for name, kind in arguments.items():
        assert kind == WIDER.get(name, WIDER.get(fields[name], fields[name])), name


@pytest.mark.parametrize("call", [seedrank.score, seedrank.plan, seedrank.check])
def test_unknown_option_names_the_nearest(tmp_path: Path, call: Callable[..., Any]) -> None:
    with pytest.raises(ConfigError, match=r"(?s)unknown option 'topk'.*did you mean 'top_k'") as caught:
        call(pa.table(CYCLE), queries=pa.table(HITS), out=tmp_path / "run", topk=3)
    assert caught.value.exit_code == 2
    with pytest.raises(ConfigError, match="did you mean 'duplicate_edges'"):
        seedrank.build(pa.table(CYCLE), out=tmp_path / "graph", duplicate_edge="max")  # type: ignore[call-arg]
    with pytest.raises(ConfigError, match="unknown option 'top_k'"):  # an option of score, not of build
        seedrank.build(pa.table(CYCLE), out=tmp_path / "graph", top_k=3)  # type: ignore[call-arg]
    assert list(tmp_path.iterdir()) == []


def test_restart_and_damping_are_one_setting() -> None:
    with pytest.raises(ConfigError, match="restart and damping are one setting"):
        seedrank.plan(pa.table(CYCLE), queries=pa.table(HITS), restart=0.5, damping=0.5)
    assert make_options(ScoreOptions, {"damping": 0.85}).restart_probability == pytest.approx(0.15)
    assert make_options(ScoreOptions, {"restart": 0.2}).restart_probability == 0.2
    assert make_options(ScoreOptions, {}).restart_probability == 0.5
    assert make_options(ScoreOptions, {"damping": 0}).restart_probability == 1
    assert make_options(ScoreOptions, {"restart": 0.2, "damping": None}).restart_probability == 0.2


@pytest.mark.parametrize(
    "options",
    [
        {"top_k": 0}, {"top_k": 2.5}, {"restart": 0}, {"restart": float("nan")}, {"damping": 1.0}, {"tolerance": -1},
        {"min_score": float("inf")}, {"direction": "up"}, {"dangling": "none"}, {"precision": "float16"},
        {"edge_type": "likes"}, {"type_weight": {"likes": -1}}, {"type_weight": {"likes": float("nan")}},
        {"memory_limit": "much"}, {"block_size": 0}, {"backend": "tpu"}, {"method": "push"},
        {"max_hops": -1}, {"max_visited_nodes": 0}, {"walk_steps": 0}, {"random_seed": 2**64}, {"hop_decay": 0},
        {"hop_decay": 1.5}, {"neighbors_per_seed": 0}, {"timeout_s": 0}, {"deadline_s": float("inf")},
    ],
    ids=str,
)  # fmt: skip
def test_values_out_of_range(tmp_path: Path, options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(ConfigError) as caught:
        seedrank.score(pa.table(CYCLE), queries=pa.table(HITS), out=tmp_path / "run", **options)
    assert name in caught.value.found
    assert caught.value.expected
    assert caught.value.fix
    assert not (tmp_path / "run").exists()


def test_options_are_frozen_and_recorded_with_their_origin(tmp_path: Path) -> None:
    options = make_options(ScoreOptions, {"edge_type": ["a"], "memory_limit": "2KiB"})
    assert options.edge_type == ("a",)
    assert options.memory_limit == 2048
    with pytest.raises(ValueError, match="frozen"):
        options.top_k = 3  # type: ignore[misc]
    run = seedrank.score(pa.table(CYCLE), queries=pa.table(HITS), out=tmp_path / "run", damping=0.75, top_k=1)
    recorded = run.manifest.options
    assert recorded["restart"].model_dump() == {"value": 0.25, "origin": "argument"}
    assert recorded["top_k"].model_dump() == {"value": 1, "origin": "argument"}
    assert recorded["direction"].model_dump() == {"value": "out", "origin": "default"}
    assert recorded.keys() == ScoreOptions.model_fields.keys() - {"damping"}


class PathOnly(os.PathLike[str]):
    """A path that is no `pathlib.Path`."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)

    def __fspath__(self) -> str:
        return self._path


def test_every_kind_of_input_gives_the_same_candidates(write: Write, tmp_path: Path) -> None:
    polars, pandas = pytest.importorskip("polars"), pytest.importorskip("pandas")
    edges, hits = pa.table(CYCLE), pa.table(HITS)
    edge_file, hit_file = write("in/edges.parquet", edges), write("hits.parquet", hits)
    store = seedrank.build(edge_file, out=tmp_path / "graph")
    kinds: dict[str, tuple[Any, Any]] = {
        "table": (edges, hits),
        "batch": (edges.to_batches()[0], hits.to_batches()[0]),
        "reader": (edges.to_reader(), hits.to_reader()),
        "polars": (polars.DataFrame(CYCLE), polars.DataFrame(HITS)),
        "pandas": (pandas.DataFrame(CYCLE), pandas.DataFrame(HITS)),
        "path": (edge_file, hit_file),
        "text": (str(edge_file), str(hit_file)),
        "pathlike": (PathOnly(edge_file), PathOnly(hit_file)),
        "folder and glob": (edge_file.parent, f"{tmp_path}/hit*.parquet"),
        "url": (f"file://{edge_file}", f"file://{hit_file}"),
        "list": ([edges.slice(0, 1), edges.slice(1)], [str(hit_file)]),
        "store": (store, hits),
        "store path": (store.path, hits),
        "store path as text": (str(store.path), hits),
        "store as path-like": (PathOnly(store.path), hits),
        "opened store": (seedrank.open_graph(str(store.path)), hits),
    }
    expected = seedrank.score(edges, queries=hits, out=tmp_path / "run").candidates.to_arrow()
    for name, (graph, queries) in kinds.items():
        run = seedrank.score(graph, queries=queries, out=tmp_path / f"run of {name}")
        # pandas and polars have string layouts of their own, which the ids keep or widen.
        found = run.candidates.to_arrow().cast(expected.schema)
        assert found.equals(expected), name
        assert run.manifest.graph is not None
        assert run.manifest.graph.built_in_this_run == ("store" not in name), name


def test_something_that_is_no_input(tmp_path: Path) -> None:
    graphs: list[Any] = [3, io.BytesIO(), {"src": [1]}, []]
    for graph in graphs:
        with pytest.raises(InputDataError):
            seedrank.score(graph, queries=pa.table(HITS), out=tmp_path / "run")


class Progress:
    """Notes what a reporter hears."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, int]] = []

    def start(self, queries: int) -> None:
        self.heard.append(("start", queries))

    def advance(self, queries: int, error_bound: float | None = None) -> None:
        self.heard.append(("advance", queries))

    def finish(self) -> None:
        self.heard.append(("finish", 0))


def test_reporter_hears_every_query_once(tmp_path: Path) -> None:
    progress = Progress()
    hits = pa.table({"query_id": list(range(10)), "node_id": [1, 99] * 5})
    seedrank.score(pa.table(CYCLE), queries=hits, out=tmp_path / "run", reporter=progress, block_size=2, part_size=4)
    assert progress.heard[0] == ("start", 10)
    assert progress.heard[-1] == ("finish", 0)
    assert sum(count for event, count in progress.heard if event == "advance") == 10


def test_open_run_is_what_score_returned(tmp_path: Path) -> None:
    run = seedrank.score(pa.table(CYCLE), queries=pa.table(HITS), out=tmp_path / "run")
    opened = seedrank.open_run(str(run.path))
    assert opened.manifest == run.manifest
    assert opened.candidates.to_arrow().equals(run.candidates.to_arrow())
    with pytest.raises(InputDataError, match="is not a run folder"):
        seedrank.open_run(tmp_path)
    (tmp_path / "run" / "run.json").write_text("{}")
    with pytest.raises(InputDataError, match="is not a run folder"):
        seedrank.open_run(run.path)


def test_every_public_name_resolves() -> None:
    assert seedrank.__all__ == sorted(seedrank.__all__, key=lambda name: (not name[0].isupper(), name))
    assert dir(seedrank) == sorted(seedrank.__all__)
    assert set(seedrank.__all__) == {*seedrank._HOME, "__version__"}
    for name in seedrank.__all__:
        value = getattr(seedrank, name)
        assert name == "__version__" or value.__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'rank'"):
        _ = seedrank.rank


KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, SeedrankError)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_errors_survive_pickling(kind: type[SeedrankError]) -> None:
    error = kind("found it", expected="something else", fix="do this")
    again = pickle.loads(pickle.dumps(error))  # noqa: S301  # our own bytes
    assert type(again) is kind
    assert (again.found, again.expected, again.fix) == (error.found, error.expected, error.fix)
    assert str(again) == str(error) == "found it\nexpected: something else\nfix: do this"
    assert again.exit_code == kind.exit_code


def test_errors_are_also_the_built_in_that_a_caller_expects() -> None:
    codes = {kind.__name__: kind.exit_code for kind in KINDS}
    assert codes == {
        "SeedrankError": 1, "KernelError": 1, "ConfigError": 2, "InputDataError": 3, "ResourceError": 4,
        "StorageError": 5, "IncompleteRunError": 6, "InterruptedRunError": 130,
    }  # fmt: skip
    for name, base in (("ConfigError", ValueError), ("InputDataError", ValueError), ("StorageError", OSError)):
        assert issubclass(getattr(errors, name), base)
