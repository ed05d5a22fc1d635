"""The engine of many processes: Dask hands parts to workers, which score and write them; this process records them."""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Any
from uuid import uuid4

from distributed.scheduler import KilledWorker

from seedrank.config import ScoreOptions
from seedrank.errors import ResourceError
from seedrank.io.graph.no_graph import NoGraph
from seedrank.io.graphstore import GraphStore
from seedrank.io.records import BackendRecord, InputRecord
from seedrank.io.storage.files import storage_errors
from seedrank.jobs.inputs import DESCRIPTIONS
from seedrank.jobs.progress import Reporter
from seedrank.jobs.queries.query_segments import QuerySegments
from seedrank.jobs.run.engine import JobParts
from seedrank.jobs.run.part_scorer import FinishedPart, PartRange, without_unchanged
from seedrank.jobs.run.taken_over import EarlierResults
from seedrank.jobs.scaleout.cluster import Workers, answering, connected
from seedrank.jobs.scaleout.inputs import ship_inputs
from seedrank.jobs.scaleout.logs import replay
from seedrank.jobs.scaleout.split import PartSplitter
from seedrank.jobs.scaleout.tasks import Tasks
from seedrank.jobs.scaleout.versions import check_versions
from seedrank.jobs.scaleout.worker import JobOnWorkers, JobPlugin, PartReport, Prepared, prepare, score_part, unlike

log = logging.getLogger(__name__)


class DaskEngine:
    """Scores parts on the workers of a Dask scheduler, one at a time on each; see `seedrank.jobs.run.engine.Engine`.

    A part whose worker dies is done again by another one. One that no worker survives is looked at when all others are
    done: `seedrank.jobs.scaleout.split`.
    """

    def __init__(self) -> None:
        self._open = ExitStack()

    def __enter__(self) -> DaskEngine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._open.close()

    def start(self, job: JobParts, store: GraphStore, queries: Callable[[], QuerySegments]) -> BackendRecord:
        """Start or find the workers, and let each open graph and queries while this process reads the queries.

        Raises
        ------
        ConfigError
            Workers cannot reach an input or the output.
        ResourceError
            There is no worker; versions differ; a worker does not see what this process sees, or did not live to say.
        StorageError
            The scheduler does not answer.
        """
        options = job.options
        with job.stopwatch.stage("start_workers"):
            name = f"seedrank-{uuid4().hex}"
            writer = job.folder.writer_elsewhere()
            folder = job.folder.scratch / name
            with storage_errors(f"making {folder}"):
                folder.mkdir(parents=True)
            inputs = ship_inputs(job.inputs, folder)
            workers = self._open.enter_context(connected(options, folder))
            address = options.scheduler or "of --workers"
            with answering(address):
                hosts = workers.wait_for_first()
                if not workers.own:
                    check_versions(workers.client, address)
                told = JobOnWorkers(
                    name=name,
                    graph=_graph_of(store, options),
                    graph_fingerprint=None if isinstance(store, NoGraph) else store.facts.fingerprint,
                    inputs=inputs,
                    options=workers.options,
                    writer=writer,
                    processes=max(Counter(hosts.values()).values()),
                    own=workers.own,
                    log_level=logging.getLogger("seedrank").getEffectiveLevel(),
                )
                workers.tell(JobPlugin(told))
                self._open.callback(_leave, workers, name)
                tasks = Tasks(workers, job.clock, address, name)
                for worker in hosts:
                    tasks.submit(prepare, None, backend=None, on=worker)
        segments = queries()
        with job.stopwatch.stage("prepare_workers"):
            ready = [_prepared(tasks.next()[1]) for _ in hosts]
        backend = _agreed(ready, segments.records)
        log.info("workers_ready", extra={"workers": len(ready), "scheduler": options.scheduler})
        self._job, self._tasks, self._queries, self._backend = job, tasks, segments, backend
        self._width = backend.block_size
        return backend

    def score(
        self,
        ranges: Sequence[PartRange],
        *,
        earlier: EarlierResults | None,
        reporter: Reporter,
        record: Callable[[FinishedPart], None],
    ) -> None:
        """See `Engine.score`; parts are recorded by the calling thread."""

        def finished(part: FinishedPart) -> None:
            self._width = min(self._width, part.block_size)
            self._job.folder.adopt_part(part.record.part)
            record(part._replace(block_size=self._width))
            reporter.advance(part.record.queries, part.record.largest_error_bound)

        waiting, suspects, survived = deque(ranges), [], 0
        with self._job.stopwatch.stage("score"):
            while waiting or len(self._tasks):
                while waiting and self._tasks.room:
                    part = self._without_unchanged(waiting.popleft(), earlier)
                    self._tasks.submit(score_part, part, backend=self._backend.name)
                wanted, report = self._tasks.next()
                assert wanted is not None
                if isinstance(report, KilledWorker):
                    log.warning("part_killed_workers", extra={"part": wanted.part, "reason": str(report)})
                    suspects.append(wanted)
                    continue
                assert isinstance(report, PartReport)
                survived += 1
                replay(report.logs)
                finished(report.finished)
            splitter = PartSplitter(self._job, self._tasks, self._queries, self._backend.name, survived=survived)
            for wanted in sorted(suspects):
                finished(splitter.score(wanted))

    def _without_unchanged(self, wanted: PartRange, earlier: EarlierResults | None) -> PartRange:
        if earlier is None:
            return wanted
        query_set, first_query = self._queries.holding(wanted.first)
        part = without_unchanged(wanted, earlier, query_set=query_set, first_query=first_query)
        return part if part.taken is None else part._replace(taken=part.taken.absolute())


def _graph_of(store: GraphStore, options: ScoreOptions) -> str | None:
    """Name the graph for workers; those of another machine fetch the copy of a URL by themselves."""
    if isinstance(store, NoGraph):
        return None
    return store.origin if options.scheduler and store.origin else str(store.path.absolute())


def _prepared(answer: Any) -> Prepared:
    if isinstance(answer, KilledWorker):
        raise ResourceError(
            f"workers end while they open the graph and the queries ({answer})",
            expected="workers that live to score",
            fix="see in their logs what ended them; give them more memory, or take fewer --workers",
        )
    assert isinstance(answer, Prepared)
    replay(answer.logs)
    return answer


def _agreed(ready: Sequence[Prepared], records: Mapping[str, InputRecord]) -> BackendRecord:
    """Return the backend that all workers have chosen, after a look at what they have read."""
    here = {name: record.fingerprint for name, record in records.items()}
    backends: dict[str, Prepared] = {}
    for worker in ready:
        for name in {**here, **worker.fingerprints}:
            if worker.fingerprints.get(name) != here.get(name):
                raise unlike(worker.worker, f"{DESCRIPTIONS[name]} are others there: their fingerprint differs")
        backends.setdefault(worker.backend.name, worker)
    if len(backends) > 1:
        raise ResourceError(
            "workers choose different backends: "
            + ", ".join(f"{name} on {worker.worker} ({worker.backend.reason})" for name, worker in backends.items()),
            expected="one backend for a run",
            fix=f"pass --backend {' or '.join(backends)}, or take the others away",
        )
    return min((worker.backend for worker in ready), key=lambda backend: backend.block_size)


def _leave(workers: Workers, name: str) -> None:
    """Let workers forget a run; what they still do for it ends at its next step."""
    if not workers.own and workers.client.status == "running":
        # Whatever keeps the scheduler from hearing this, the run ends; idle workers forget it later.
        with suppress(Exception):
            workers.client.unregister_worker_plugin(name)
