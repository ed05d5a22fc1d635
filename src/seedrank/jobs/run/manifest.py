"""What ``run.json`` says of a job: options with their origin, graph, queries, versions."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal
from uuid import uuid4

from seedrank._version import __version__
from seedrank.config import ScoreOptions
from seedrank.io.graph.no_graph import NoGraph
from seedrank.io.graphstore import GraphStore
from seedrank.io.records import GraphRecord, InputRecord, OptionRecord, PartRecord, QueryCounts, RunManifest
from seedrank.jobs.planning.rules import rules_fingerprint
from seedrank.jobs.queries.query_segments import QuerySegments
from seedrank.presets import preset_values

Origin = Literal["default", "preset", "file", "env", "flag", "argument"]
_LIBRARIES = ("numpy", "scipy", "numba", "pyarrow")


def new_manifest(options: ScoreOptions, origins: Mapping[str, Origin], *, run_id: str | None = None) -> RunManifest:
    """Return the manifest of a run that begins now, with what is known before anything is read.

    ``run_id`` is made up where the caller, who may have told the log, has none.
    """
    return RunManifest(
        seedrank_version=__version__,
        state="running",
        run_id=run_id or uuid4().hex,
        started_at=now(),
        planner_rules=rules_fingerprint() if options.method == "auto" else None,
        options=_option_records(options, origins),
        part_size=options.part_size,
        versions={"python": platform.python_version(), **_versions()},
    )


def record_inputs(
    manifest: RunManifest, store: GraphStore, queries: QuerySegments, wanted: int, *, place: Path, built: bool
) -> None:
    """Write down graph and inputs.

    Parameters
    ----------
    manifest, store, queries : what is written to, and what about.
    wanted : how many of the queries the manifest is about.
    place : where the store stands when the run has begun; a store of a URL is recorded by that.
    built : whether it was built in this run.
    """
    manifest.inputs = dict(queries.records)
    # What parts say of their seeds is added up as they are finished.
    manifest.queries = QueryCounts(total=wanted, by_status={}, seeds_given=0, seeds_missing=0)
    if queries.vectors is not None:
        manifest.vectors = queries.vectors.counts(len(queries), store)
    if isinstance(store, NoGraph):
        return
    facts = store.facts
    graph_files = [file for files in facts.inputs.values() for file in files]
    manifest.inputs = {"graph": InputRecord(files=graph_files, fingerprint=facts.fingerprint), **manifest.inputs}
    manifest.graph = GraphRecord(
        path=store.origin or str(place.resolve()),
        built_in_this_run=built,
        store_bytes=store.store_bytes,
        **{
            name: getattr(facts, name)
            for name in GraphRecord.model_fields
            if name not in ("path", "built_in_this_run", "store_bytes")
        },
    )


def count_by_status(parts: Iterable[PartRecord]) -> dict[str, int]:
    """Add up how the queries of parts ended, in the order of the names."""
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part.by_status)
    return dict(sorted(total.items()))


def now() -> str:
    """Return the time in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _option_records(options: ScoreOptions, origins: Mapping[str, Origin]) -> dict[str, OptionRecord]:
    """Return the value and origin of every option; restart and damping appear as the one setting that they are."""
    by_preset = preset_values({**dict.fromkeys(origins), "preset": options.preset})

    def origin_of(name: str) -> Origin:
        return origins.get(name, "preset" if name in by_preset else "default")

    records = {
        name: OptionRecord(value=value, origin=origin_of(name))
        for name, value in options.model_dump(mode="json").items()
        if name != "damping"
    }
    restart = options.restart_probabilities
    records["restart"] = OptionRecord(
        value=list(restart) if len(restart) > 1 else restart[0],
        origin=origin_of("damping" if options.damping else "restart"),
    )
    return records


def _versions() -> dict[str, str]:
    """Versions of the libraries that shape the numbers; one that is not installed had no part in them."""
    found = {}
    for name in _LIBRARIES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found
