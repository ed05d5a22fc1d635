"""The life of one ``score`` run: from an empty folder, or what an earlier attempt left, to the success marker."""

from __future__ import annotations

import logging
import time
from bisect import insort
from collections.abc import Callable, Mapping
from typing import Literal
from uuid import uuid4

from seedrank.config import ScoreOptions
from seedrank.errors import IncompleteRunError
from seedrank.io.graphstore import GraphStore
from seedrank.io.run.run_store import RunStore
from seedrank.jobs.clock import Clock
from seedrank.jobs.inputs import JobInputs
from seedrank.jobs.prepare import open_graph
from seedrank.jobs.progress import Reporter, Stopwatch
from seedrank.jobs.queries.query_segments import QuerySegments, open_queries
from seedrank.jobs.resources import peak_memory
from seedrank.jobs.results import Run
from seedrank.jobs.run.earlier import Earlier
from seedrank.jobs.run.engine import Engine, JobParts
from seedrank.jobs.run.manifest import Origin, count_by_status, new_manifest, now, record_inputs
from seedrank.jobs.run.metrics import MeteredReporter, MetricsFile
from seedrank.jobs.run.part_ranges import wanted_parts
from seedrank.jobs.run.part_scorer import FinishedPart, PartRange
from seedrank.jobs.run.pipeline import Background
from seedrank.jobs.run.resume import intact_parts
from seedrank.jobs.run.run_key import check_same_run, run_key
from seedrank.jobs.run.taken_over import EarlierResults, open_earlier

log = logging.getLogger(__name__)

#: Up to so many parts, ``run.json`` is written whenever one is finished. It lists them all: written 10,000 times for
#: 10,000 parts it would take an hour. So beyond, writing it may take this share of the time.
MOST_SAVED_AT_ONCE = 256
SAVING_SHARE = 0.05


class ScoreJob:
    """One run: plans its parts, lets an engine score and write them, records them; owns the manifest."""

    def __init__(
        self,
        folder: RunStore,
        earlier: Earlier,
        options: ScoreOptions,
        origins: Mapping[str, Origin],
        reporter: Reporter,
        clock: Clock,
        engine: Engine,
        run_id: str | None = None,
    ) -> None:
        self.folder = folder
        self.earlier = earlier
        self.options = options
        self.clock = clock
        self.engine = engine
        self.stopwatch = Stopwatch()
        self.run_id = run_id or uuid4().hex
        self.manifest = new_manifest(options, origins, run_id=self.run_id)
        self.metrics = MetricsFile(options.metrics_file)
        self.reporter = MeteredReporter(reporter, self.metrics, self.manifest)
        #: Whether the folder is this run's. One that goes on leaves it alone until it is known to be the same run.
        self.begun = not earlier
        #: Whether finished parts are not in ``run.json`` yet, and when it will be written again (of `time.monotonic`).
        self._unsaved, self._save_from = False, 0.0
        #: Whether nothing was left to do, and nothing was touched.
        self.already_done = False
        if self.begun:
            folder.write_manifest(self.manifest)

    inputs: JobInputs
    store: GraphStore
    queries: QuerySegments
    #: The numbers of the parts that this run is about, in order, and of those that are not there yet.
    parts: range
    missing: list[int]
    #: Queries whose results an earlier run has (``since``).
    unchanged: EarlierResults | None

    def prepare(self, inputs: JobInputs) -> None:
        """Everything before the first block."""
        watch, self.inputs = self.stopwatch, inputs
        self.metrics.write(self.manifest)
        self.store, built = open_graph(
            inputs,
            options=self.options,
            build_in=self.folder.graph_place(resuming=bool(self.earlier)),
            stopwatch=watch,
        )

        def read_queries() -> QuerySegments:
            with watch.stage("read_queries"):
                return open_queries(self.store, inputs, self.options, self.folder.scratch)

        watch.expect("read_queries")  # in another thread: without a fixed place run.json would differ from run to run
        if not self.earlier:
            with Background() as background:
                reading = background.start(read_queries)
                self._start(reading)
                self.queries = reading()
            self._begin(built=built)
        else:
            self.queries = read_queries()
            self._go_on(self.earlier, built=built)

    def _begin(self, *, built: bool) -> None:
        """Plan all parts of a run that begins."""
        self._record_inputs(built=built)
        self.unchanged = self._open_earlier()
        self._plan_parts()
        self._save()
        self._check_others()

    def _go_on(self, earlier: Earlier, *, built: bool) -> None:
        """Take over the intact parts of what was written there, if it is of the same run, and plan the others."""
        manifest, own = self.manifest, earlier.own
        if own is not None:
            manifest.started_at, manifest.resumed_at = own.started_at, [*own.resumed_at, now()]
        manifest.backend = earlier.manifests[0].backend
        self._record_inputs(built=built)
        if self.options.backend == "auto" and manifest.backend is not None:
            self.options = self.options.model_copy(update={"backend": manifest.backend.name})
        for other in earlier.manifests:
            check_same_run(other, manifest, backend=self.options.backend, name=self.folder.name)
        with self.stopwatch.stage("verify_parts"):
            recorded = (record for other in earlier.manifests for record in other.parts)
            manifest.parts = intact_parts(self.folder, [record for record in recorded if record.part in self.parts])
        self._plan_parts()
        ended_well = self.folder.successful
        if own is not None:
            ended_well = own.state == "finished" and (ended_well or own.range is not None)
        self.already_done = ended_well and not self.missing and self._not_as_wanted() == 0
        if self.already_done:
            return
        if built:
            self.store = self.folder.adopt_graph(self.store)
            self.queries.on(self.store)
        if self.missing:
            self._start(lambda: self.queries)
            self.unchanged = self._open_earlier()
        log.info("resumed", extra={"parts_kept": len(manifest.parts), "parts_missing": len(self.missing)})
        self.begun = True
        self.folder.unmark_success()
        self._save()
        self._check_others()
        self.folder.keep_parts(record.part for record in manifest.parts)

    def _check_others(self) -> None:
        """Refuse to write beside a range of another run that had written no part yet when this one looked.

        Everybody writes the own manifest first: of two that begin in the same moment at least one sees the other.
        """
        assert self.manifest.run_key is not None
        assert self.manifest.backend is not None
        for other in self.folder.other_runs_at_work(self.manifest.run_key):
            check_same_run(other, self.manifest, backend=self.manifest.backend.name, name=self.folder.name)

    def _start(self, queries: Callable[[], QuerySegments]) -> None:
        """Make the method ready; a run that goes on keeps the backend that ``auto`` chose when it began."""
        job = JobParts(self.folder, self.inputs, self.options, self.stopwatch, self.clock)
        backend = self.engine.start(job, self.store, queries)
        if self.earlier and self.manifest.options["backend"].value == "auto":
            backend = backend.model_copy(update={"requested": "auto", "reason": "the run began with it"})
        self.manifest.backend = backend
        log.info("backend_chosen", extra={"backend": backend.name, "reason": backend.reason})

    def _record_inputs(self, *, built: bool) -> None:
        """Cut the queries into parts, and write down what those that are wanted are made of."""
        self.parts, self.manifest.range = wanted_parts(len(self.queries), self.options)
        place = self.folder.graph if built else self.store.path
        size, count = self.options.part_size, len(self.queries)
        wanted = min(self.parts.stop * size, count) - self.parts.start * size
        record_inputs(self.manifest, self.store, self.queries, wanted, place=place, built=built)

    def _plan_parts(self) -> None:
        """Find the parts that are missing."""
        assert self.manifest.backend is not None
        there = {record.part for record in self.manifest.parts}
        self.missing = [part for part in self.parts if part not in there]
        self.manifest.parts_planned = len(self.parts)
        self.manifest.run_key = run_key(self.manifest)

    def score_missing(self) -> None:
        """Score and write part after part, but those that are there already."""
        if not self.missing:
            return
        count, size = len(self.queries), self.options.part_size
        ranges = [PartRange(part, part * size, min((part + 1) * size, count)) for part in self.missing]
        self.reporter.start(sum(wanted.last - wanted.first for wanted in ranges))
        try:
            self.engine.score(ranges, earlier=self.unchanged, reporter=self.reporter, record=self._record_part)
        finally:
            self.reporter.finish()

    def _open_earlier(self) -> EarlierResults | None:
        """Open the run that unchanged queries are taken over from, if there is one."""
        if self.options.since is None:
            return None
        with self.stopwatch.stage("open_earlier"):
            return open_earlier(self.options.since, self.manifest, several=len(self.options.restart_probabilities))

    def finish(self) -> Run:
        """Close the manifest, then mark success, or say what is incomplete."""
        run = Run(self.folder.path, url=self.folder.url, already_done=self.already_done, span=self.options.part_span)
        self.folder.remove_staging()
        if self.already_done:
            # Only the metrics are told: run.json is as it was.
            self.manifest.state = "finished"
            self._count()
            self.metrics.write(self.manifest)
            log.info("already_done", extra={"path": self.folder.name, "parts": len(self.manifest.parts)})
            return run
        wrong = self._not_as_wanted()
        self.close("incomplete" if wrong else "finished")
        self.folder.remove_ranges()
        if not wrong:
            self.folder.mark_success()
            return run
        counts = count_by_status(self.manifest.parts)
        blocks = [
            f"part {record.part}: {record.failed_queries}" for record in self.manifest.parts if record.failed_queries
        ]
        raise IncompleteRunError(
            f"{wrong} of {sum(counts.values())} queries ended with a status other than ok: {counts}"
            + (f"; failed queries by part: {', '.join(blocks[:10])}" if blocks else ""),
            expected="every query to end "
            + ("with status ok (--strict)" if self.options.strict else "without failure"),
            fix=f"read the status column of {self.folder.name}/queries and the log; the finished parts are kept, "
            "_SUCCESS is not written" + ("; the same command computes failed parts again" if blocks else ""),
        )

    def give_up(self, state: Literal["failed", "interrupted"], *, error: str) -> None:
        """Leave what is whole: the earlier run, where this one has not taken its place yet, or the finished parts."""
        if self.manifest.parts_planned is None and self.folder.restore_replaced():
            return
        self.folder.remove_staging()
        if self.begun:
            self.folder.discard_replaced()
            try:
                if self._unsaved:  # what is not recorded counts as unfinished
                    self._save()
                self.folder.remove_unfinished()
            finally:
                self.close(state, error=error)

    def close(
        self, state: Literal["finished", "incomplete", "failed", "interrupted"], *, error: str | None = None
    ) -> None:
        """Write the last version of the manifest."""
        self.manifest.state = state
        self.manifest.error = error
        self.manifest.finished_at = now()
        self.manifest.peak_memory_bytes = peak_memory()
        self._save()
        log.info("run_closed", extra={"state": state, "seconds": self.manifest.timings_s["total"]})

    def _record_part(self, finished: FinishedPart) -> None:
        """Record a part that was written; while parts are scored, whoever calls this owns the manifest.

        A part that is finished, but not in ``run.json`` yet when the process is killed, is computed again.
        """
        insort(self.manifest.parts, finished.record, key=lambda other: other.part)
        assert self.manifest.backend is not None
        self.manifest.backend.final_block_size = finished.block_size
        self._unsaved = True
        if len(self.manifest.parts) <= MOST_SAVED_AT_ONCE or time.monotonic() >= self._save_from:
            self._save()
        log.info("part_done", extra=finished.record.model_dump())

    def _save(self) -> None:
        """Write ``run.json`` and the metrics as they stand now."""
        begun = time.monotonic()
        self._count()
        self.folder.write_manifest(self.manifest)
        self.metrics.write(self.manifest)
        now = time.monotonic()
        self._unsaved, self._save_from = False, now + (now - begun) / SAVING_SHARE

    def _count(self) -> None:
        """Bring what the manifest adds up to its present state."""
        if self.manifest.queries is not None:
            counts = self.manifest.queries
            counts.by_status = count_by_status(self.manifest.parts)
            counts.seeds_given = sum(record.seeds_given for record in self.manifest.parts)
            counts.seeds_missing = sum(record.seeds_missing for record in self.manifest.parts)
            counts.taken_over = sum(record.taken_over for record in self.manifest.parts)
        self.manifest.timings_s = self.stopwatch.total()

    def _not_as_wanted(self) -> int:
        """Count the queries that keep the run from being a success: failed ones, or under ``strict`` all but ``ok``."""
        counts = count_by_status(self.manifest.parts)
        return counts.get("failed", 0) or (sum(counts.values()) - counts.get("ok", 0) if self.options.strict else 0)
