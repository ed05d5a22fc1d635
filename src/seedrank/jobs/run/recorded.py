"""A recorded run, opened again: its options, its graph and its queries, each checked to be what it was."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from seedrank.config import ScoreOptions, make_options
from seedrank.errors import InputDataError
from seedrank.io.graph.no_graph import NoGraph
from seedrank.io.graphstore import GraphStore
from seedrank.io.records import InputRecord, RunManifest
from seedrank.jobs.graphs.stores import open_graph
from seedrank.jobs.inputs import QUERY_INPUTS, JobInputs
from seedrank.jobs.queries.one_query import OneQuery, load_one_query
from seedrank.jobs.results import Run
from seedrank.redaction import HIDDEN

#: Options that change no result; a run that is opened again has others.
_NOT_OF_THE_RESULT = frozenset(
    {
        "overwrite",
        "resume",
        "strict",
        "block_size",
        "memory_limit",
        "metrics_file",
        "lineage_file",
        "lineage_job",
        "parts",
        "since",
        "threads",
        "workers",
        "scheduler",
        "timeout_s",
        "deadline_s",
        "part_size",
        "work_dir",
    }
)


def recorded_options(manifest: RunManifest) -> ScoreOptions:
    """Return the options of a run that make its numbers; those left at their default stay so."""
    return make_options(
        ScoreOptions,
        {
            name: record.value
            for name, record in manifest.options.items()
            if record.origin != "default" and name not in _NOT_OF_THE_RESULT
        },
    )


def recorded_store(run: Run, *, work_dir: str | None = None) -> GraphStore:
    """Open the graph store of a run; `NoGraph` for one that had none.

    Raises
    ------
    InputDataError
        The run never got that far, or its store is gone or another one.
    """
    record = run.manifest.graph
    if record is None and run.manifest.queries is not None:
        return NoGraph()
    if record is None:
        raise InputDataError(
            f"{run.name} names no graph: the run ended before it had one",
            expected="a run that delivered at least one part",
            fix="see state and error in run.json, then run score again",
        )
    if HIDDEN in record.path:
        raise InputDataError(
            f"the graph store {record.path} was given with credentials, which run.json does not keep",
            expected="a URL without credentials, and these in the environment",
            fix="run score again with such a URL",
        )
    store = open_graph(record.path, work_dir=work_dir)
    if store.facts.fingerprint != record.fingerprint:
        raise InputDataError(
            f"the graph store {record.path} is not the one that {run.name} used: its fingerprint differs",
            expected=f"fingerprint {record.fingerprint}",
            fix="restore the store, or run score again",
        )
    return store


def recorded_query(run: Run, store: GraphStore, options: ScoreOptions, query: Any, moved: JobInputs) -> OneQuery:
    """Read the hits and exclusions of a run again, for the sake of one of its queries.

    Parameters
    ----------
    run, store, options : the run, its store and its options.
    query : id of the query.
    moved : the inputs that are elsewhere now, or were tables in memory; None: the recorded files.

    Raises
    ------
    InputDataError
        A recorded input cannot be found or was a table in memory, or its content is another one now; the run has no
        such query.
    StorageError
        There is no room for the hits of the query in the folder for temporary files.
    """
    inputs = run.manifest.inputs

    def found(name: str) -> Any:
        given = getattr(moved, name)
        return _files(inputs.get(name), name, run) if given is None else given

    given = JobInputs(**{name: found(name) for name in QUERY_INPUTS})
    with tempfile.TemporaryDirectory(prefix="seedrank-explain-") as scratch:
        asked = load_one_query(store, given, options, query, place=f"the hits of {run.name}", scratch=Path(scratch))
    for name, record in asked.query_set.records.items():
        if name not in inputs or record.fingerprint != inputs[name].fingerprint:
            raise InputDataError(
                f"{name}: the content is not the one that {run.name} used: its fingerprint differs",
                expected=f"fingerprint {inputs[name].fingerprint}" if name in inputs else f"a run with {name}",
                fix="restore the files, or run score again",
            )
    return asked


def _files(record: InputRecord | None, name: str, run: Run) -> list[str] | None:
    if record is None:
        return None
    uris = [file.uri for file in record.files]
    if any(uri.endswith(" in memory)") for uri in uris):
        raise InputDataError(
            f"{name} was a table in memory, which {run.name} cannot read again",
            expected=f"the same {name} once more",
            fix=f"pass {name}=TABLE to seedrank.explain",
        )
    if any(HIDDEN in uri for uri in uris):
        raise InputDataError(
            f"{name} were read from a URL with credentials, which run.json does not keep",
            expected=f"the same {name} once more",
            fix=f"pass {name}=URL to seedrank.explain (--{name} URL)",
        )
    return uris
