"""``score``: the job. Graph and hits in, candidate tables out."""

from __future__ import annotations

import logging
import os
import platform
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from threading import Event
from typing import Any, Literal, Unpack

from seedrank._version import __version__
from seedrank.config import ScoreOptions, make_options
from seedrank.errors import IncompleteRunError, InterruptedRunError, SeedrankError, StorageError, Terminated
from seedrank.io.graphstore import GraphStore
from seedrank.io.no_graph import NoGraph
from seedrank.io.records import (
    GraphRecord,
    InputRecord,
    OptionRecord,
    PartRecord,
    QueryCounts,
    RunManifest,
)
from seedrank.io.runfolder import RunFolder, create_run_folder
from seedrank.jobs.clock import Clock
from seedrank.jobs.locations import local_output
from seedrank.jobs.methods import check_method_options, start_method
from seedrank.jobs.outcome import Runner
from seedrank.jobs.parts import ScoredBlock, assemble_part, score_blocks
from seedrank.jobs.pipeline import Background
from seedrank.jobs.prepare import check_run_output, open_graph, store_of
from seedrank.jobs.progress import Reporter, Silent, Stopwatch
from seedrank.jobs.query_set import QuerySet, check_query_options, load_query_set
from seedrank.jobs.resources import peak_memory
from seedrank.jobs.results import Run
from seedrank.keywords import ScoreKeywords
from seedrank.presets import preset_values

log = logging.getLogger(__name__)

Origin = Literal["default", "preset", "file", "env", "flag", "argument"]
_LIBRARIES = ("numpy", "scipy", "numba", "pyarrow")


def score(
    graph: Any = None,
    *,
    out: str | os.PathLike[str],
    queries: Any = None,
    nodes: Any = None,
    exclude: Any = None,
    reporter: Reporter | None = None,
    cancel: Event | None = None,
    **options: Unpack[ScoreKeywords],
) -> Run:
    """Score many seed sets by personalized PageRank, or another method, and write one top-k candidate table.

    Parameters
    ----------
    graph : GraphStore, path of a graph store, or an edge list (path, glob, URL, list, Arrow stream)
        An edge list is built into ``out/graph`` first. ``method="fuse"`` needs none.
    out : path
        The run folder. It must not hold the parts of a run, unless ``overwrite=True``.
    queries : path, glob, URL, list of these, or any object with ``__arrow_c_stream__``
        Hits: rows (query_id, node_id[, weight][, source][, rank]) or (query_id, seeds: list). Or pass
        ``all_nodes=TYPE``.
    nodes : like ``queries``, optional
        Node table, for an edge list.
    exclude : like ``queries``, optional
        Rows ([query_id, ]node_id) that a query (every query, without query_id) must not return.
    reporter : Reporter, optional
        Receives progress.
    cancel : threading.Event, optional
        Set it from another thread to end the run: the part in work is dropped, finished parts stay.
    **options
        See `seedrank.config.ScoreOptions`.

    Returns
    -------
    Run
        ``.candidates`` and ``.queries`` are tables for pyarrow, polars, pandas and DuckDB; ``.manifest`` is run.json.

    Raises
    ------
    ConfigError, InputDataError, ResourceError, StorageError
        Exit codes 2, 3, 4 and 5 of the command.
    IncompleteRunError
        The run is written, but queries failed, or ``strict`` was set and a query did not end ``ok`` (exit code 6).
    InterruptedRunError
        ``cancel`` was set (exit code 130).
    """
    parsed = make_options(ScoreOptions, options)
    origins: dict[str, Origin] = dict.fromkeys(options, "argument")
    return run_score(
        graph,
        out=out,
        queries=queries,
        nodes=nodes,
        exclude=exclude,
        options=parsed,
        origins=origins,
        reporter=reporter,
        cancel=cancel,
    )


def run_score(
    graph: Any,
    *,
    out: str | os.PathLike[str],
    queries: Any,
    nodes: Any,
    exclude: Any,
    options: ScoreOptions,
    origins: Mapping[str, Origin],
    reporter: Reporter | None = None,
    cancel: Event | None = None,
) -> Run:
    """`score` with validated options and the origin of each."""
    check_method_options(options, graph)
    check_query_options(queries, options)
    check_run_output(out, graph=graph, queries=queries, nodes=nodes, exclude=exclude, overwrite=options.overwrite)
    store_of(graph)  # a damaged store is refused before an earlier run is replaced
    folder = create_run_folder(local_output(out), overwrite=options.overwrite)
    clock = Clock(timeout_s=options.timeout_s, deadline_s=options.deadline_s, cancel=cancel)
    job = _Job(folder, options, origins, reporter or Silent(), clock)
    try:
        job.prepare(graph, queries=queries, nodes=nodes, exclude=exclude)
        folder.discard_replaced()
        job.score_all()
    except BaseException as error:
        if folder.restore_replaced():
            raise
        # The original error is what counts: a manifest that cannot be written any more must not hide it.
        interrupted = isinstance(error, (KeyboardInterrupt, Terminated, InterruptedRunError))
        with suppress(StorageError):
            folder.remove_unfinished()
            job.close(
                "interrupted" if interrupted else "failed",
                error=str(error) if isinstance(error, SeedrankError) else repr(error),
            )
        raise
    return job.finish()


class _Job:
    """One run, from an empty folder to the success marker; owns the manifest."""

    def __init__(
        self,
        folder: RunFolder,
        options: ScoreOptions,
        origins: Mapping[str, Origin],
        reporter: Reporter,
        clock: Clock,
    ) -> None:
        self.folder = folder
        self.options = options
        self.reporter = reporter
        self.clock = clock
        self.stopwatch = Stopwatch()
        self.by_status: Counter[str] = Counter()
        self.manifest = RunManifest(
            seedrank_version=__version__,
            state="running",
            started_at=_now(),
            options=_option_records(options, origins),
            part_size=options.part_size,
            versions={"python": platform.python_version(), **_versions()},
        )
        folder.write_manifest(self.manifest)

    store: GraphStore
    query_set: QuerySet
    runner: Runner

    def prepare(self, graph: Any, *, queries: Any, nodes: Any, exclude: Any) -> None:
        """Everything before the first block."""
        watch = self.stopwatch
        self.store, built = open_graph(
            graph, nodes=nodes, options=self.options, build_in=self.folder.graph, stopwatch=watch
        )

        def read_queries() -> QuerySet:
            with watch.stage("read_queries"):
                return load_query_set(self.store, queries=queries, exclude=exclude, options=self.options)

        watch.expect("read_queries")  # in another thread: without a fixed place run.json would differ from run to run
        with Background() as background:
            reading = background.start(read_queries)
            self.runner = start_method(self.store, reading, self.options, watch, self.clock)
            self.query_set = reading()
        log.info(
            "backend_chosen",
            extra={"backend": self.runner.backend.name, "reason": self.runner.backend.reason},
        )
        self._record_inputs(built=built)

    def score_all(self) -> None:
        """Score and write part after part; one empty part when there is no query, so that the schema is there."""
        count, size = len(self.query_set), self.options.part_size
        self.manifest.parts_planned = max(1, -(-count // size))
        self.folder.write_manifest(self.manifest)
        self.reporter.start(count)
        try:
            with Background() as background:
                for part in range(self.manifest.parts_planned):
                    begin, first, last = time.perf_counter(), part * size, min((part + 1) * size, count)
                    with self.stopwatch.stage("score"):
                        blocks = score_blocks(
                            first,
                            last,
                            query_set=self.query_set,
                            runner=self.runner,
                            options=self.options,
                            reporter=self.reporter,
                            clock=self.clock,
                        )
                    background.start(partial(self._write_part, part, first, last, blocks, begin))
        finally:
            self.reporter.finish()

    def finish(self) -> Run:
        """Close the manifest, then mark success, or say what is incomplete."""
        counts = self.manifest.queries
        assert counts is not None
        counts.by_status = dict(sorted(self.by_status.items()))
        failed = self.by_status["failed"]
        not_ok = sum(self.by_status.values()) - self.by_status["ok"]
        incomplete = failed > 0 or (self.options.strict and not_ok > 0)
        self.folder.remove_staging()
        self.close("incomplete" if incomplete else "finished")
        run = Run(self.folder.path)
        if not incomplete:
            self.folder.mark_success()
            return run
        blocks = [
            f"part {record.part}: {record.failed_queries}" for record in self.manifest.parts if record.failed_queries
        ]
        raise IncompleteRunError(
            f"{failed or not_ok} of {sum(self.by_status.values())} queries ended with a status other than ok: "
            f"{counts.by_status}" + (f"; failed queries by part: {', '.join(blocks[:10])}" if failed else ""),
            expected="every query to end "
            + ("with status ok (--strict)" if self.options.strict else "without failure"),
            fix=f"read the status column of {self.folder.queries} and the log; the finished parts are kept, "
            "_SUCCESS is not written",
        )

    def close(
        self, state: Literal["finished", "incomplete", "failed", "interrupted"], *, error: str | None = None
    ) -> None:
        """Write the last version of the manifest."""
        self.manifest.state = state
        self.manifest.error = error
        self.manifest.finished_at = _now()
        self.manifest.timings_s = self.stopwatch.total()
        self.manifest.peak_memory_bytes = peak_memory()
        self.folder.write_manifest(self.manifest)
        log.info("run_closed", extra={"state": state, "seconds": self.manifest.timings_s["total"]})

    def _write_part(self, part: int, first: int, last: int, blocks: list[ScoredBlock], begin: float) -> None:
        """Write both tables of a part and record it; on the thread in the background, which owns the manifest then."""
        with self.stopwatch.stage("write"):
            tables = assemble_part(first, last, blocks, query_set=self.query_set, options=self.options)
            sizes = self.folder.write_part(part, candidates=tables.candidates, queries=tables.queries)
        self.by_status += tables.by_status
        record = PartRecord(
            part=part,
            first_query=first,
            queries=last - first,
            candidates=tables.candidates.num_rows,
            failed_queries=tables.by_status["failed"],
            candidates_bytes=sizes[0],
            queries_bytes=sizes[1],
            iterations=tables.iterations,
            largest_error_bound=tables.largest_error_bound,
            errors=tables.errors,
            seconds=round(time.perf_counter() - begin, 4),
        )
        self.manifest.parts.append(record)
        self.manifest.timings_s = self.stopwatch.total()
        self.folder.write_manifest(self.manifest)
        log.info("part_done", extra=record.model_dump())

    def _record_inputs(self, *, built: bool) -> None:
        facts, query_set = self.store.facts, self.query_set
        graph_files = [file for files in facts.inputs.values() for file in files]
        self.manifest.inputs = dict(query_set.records)
        self.manifest.backend = self.runner.backend
        self.manifest.queries = QueryCounts(
            total=len(query_set),
            by_status={},
            seeds_given=int(query_set.seeds_given.clip(min=0).sum()),
            seeds_missing=int(query_set.seeds_missing.sum()),
        )
        if isinstance(self.store, NoGraph):
            return
        self.manifest.inputs["graph"] = InputRecord(files=graph_files, fingerprint=facts.fingerprint)
        self.manifest.graph = GraphRecord(
            path=str(self.store.path.resolve()),
            built_in_this_run=built,
            store_bytes=self.store.store_bytes,
            **{
                name: getattr(facts, name)
                for name in GraphRecord.model_fields
                if name not in ("path", "built_in_this_run", "store_bytes")
            },
        )


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


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
