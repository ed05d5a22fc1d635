"""``demo``: the whole job on a real graph that every machine has, the running Python's standard library."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from seedrank.errors import ConfigError
from seedrank.io.records import GraphFacts
from seedrank.io.storage.files import storage_errors
from seedrank.jobs.build import build
from seedrank.jobs.results import Run
from seedrank.jobs.score import score
from seedrank.jobs.stdlib_graph import DEMO_QUESTIONS, DemoQuestion, demo_hits, stdlib_graph

_OWN = frozenset({"edges.parquet", "nodes.parquet", "hits.parquet", "graph", "run"})


@dataclass(frozen=True)
class Answer:
    """A question and its candidates, best first: (module, score)."""

    question: DemoQuestion
    candidates: list[tuple[str, float]]


@dataclass(frozen=True)
class Demo:
    """What a demo run did; every file that it names is there to be looked at.

    Attributes
    ----------
    folder : where ``edges.parquet``, ``nodes.parquet``, ``hits.parquet``, ``graph/`` and ``run/`` lie.
    facts : counts of the graph.
    run : the finished run.
    answers : one per question, in the order of the questions.
    timings_s : seconds by step.
    """

    folder: Path
    python_version: str
    facts: GraphFacts
    run: Run
    answers: list[Answer]
    timings_s: dict[str, float]


def demo(folder: str | os.PathLike[str] = "seedrank-demo", *, top_k: int = 5) -> Demo:
    """Read the standard library, write it as Parquet, build a graph store, score ten questions.

    Nothing is downloaded. An earlier demo in ``folder`` is replaced.

    Parameters
    ----------
    folder : path
        Made when missing. A folder with anything else in it is refused.
    top_k : int
        Candidates per question, >= 1.

    Raises
    ------
    ConfigError
        ``folder`` holds files that no demo wrote.
    """
    path = Path(folder)
    foreign = sorted(child.name for child in path.iterdir() if child.name not in _OWN) if path.is_dir() else []
    if path.is_file() or foreign:
        raise ConfigError(
            f"{path} " + (f"holds {foreign[0]!r}, which no demo wrote" if foreign else "is a file"),
            expected="a folder that does not exist, is empty, or holds an earlier demo",
            fix="choose another folder: seedrank demo DIR",
        )
    begin = time.perf_counter()
    library = stdlib_graph()
    parsed = time.perf_counter()
    with storage_errors(f"writing the demo's inputs to {path}"):
        path.mkdir(parents=True, exist_ok=True)
        for name, table in (("edges", library.edges), ("nodes", library.nodes), ("hits", demo_hits())):
            pq.write_table(table, path / f"{name}.parquet")
    written = time.perf_counter()
    store = build(path / "edges.parquet", nodes=path / "nodes.parquet", out=path / "graph", overwrite=True)
    built = time.perf_counter()
    run = score(
        path / "graph",
        queries=path / "hits.parquet",
        out=path / "run",
        direction="both",
        restart=0.5,
        top_k=top_k,
        overwrite=True,
    )
    scored = time.perf_counter()
    return Demo(
        folder=path,
        python_version=library.python_version,
        facts=store.facts,
        run=run,
        answers=_answers(run),
        timings_s={
            "parse": parsed - begin,
            "write_inputs": written - parsed,
            "build": built - written,
            "score": scored - built,
        },
    )


def _answers(run: Run) -> list[Answer]:
    found: dict[str, list[tuple[str, float]]] = {}
    for row in run.candidates.to_arrow().to_pylist():
        found.setdefault(row["query_id"], []).append((row["node_id"], row["score"]))
    return [Answer(question, found.get(question.query_id, [])) for question in DEMO_QUESTIONS]
