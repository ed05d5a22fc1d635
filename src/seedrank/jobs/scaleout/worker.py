"""What a worker does for a run: it opens graph and queries by their paths, once, then scores part after part.

A plugin tells every worker of the run, also one that comes later or takes the place of a dead one. It only remembers:
the graph is opened by the first task, so that what goes wrong there is an error of that task, and not a worker that
dies without a word. Tasks are told by the number of a part, and return what ``run.json`` says of it.
"""

from __future__ import annotations

import logging
import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from distributed import get_client, get_worker
from distributed.diagnostics.plugin import WorkerPlugin

from seedrank.config import ScoreOptions
from seedrank.errors import ResourceError, SeedrankError
from seedrank.io.graph.no_graph import NoGraph
from seedrank.io.records import BackendRecord
from seedrank.io.run.part_writers import SharedWriter
from seedrank.io.storage.files import remove_tree, storage_errors
from seedrank.jobs.clock import Clock
from seedrank.jobs.graphs.stores import store_of
from seedrank.jobs.methods import start_method
from seedrank.jobs.operators.blocks import BlockWidth, ScoredBlock
from seedrank.jobs.progress import Silent, Stopwatch
from seedrank.jobs.queries.query_segments import QuerySegments, open_queries
from seedrank.jobs.resources import limited_threads, shared_memory
from seedrank.jobs.run.part_scorer import FinishedPart, PartRange, PartScorer
from seedrank.jobs.scaleout.inputs import ShippedInputs
from seedrank.jobs.scaleout.logs import collected_logs

#: One part at a time in a process, whoever asks: threads and memory are planned for one.
_TURN = threading.Lock()
#: A run that has asked for nothing for so many seconds, because its owner was killed perhaps, gives its memory back.
IDLE_S = 600.0


@dataclass(frozen=True)
class JobOnWorkers:
    """A run, as workers are told of it; small, whatever the size of its graph and its inputs.

    Attributes
    ----------
    name : of this attempt, and of no other.
    graph : folder or URL of the graph store; None without a graph.
    graph_fingerprint : of its content.
    inputs : what makes the query set.
    options : of the run; without threads, a worker uses as many as it was started with.
    writer : where parts go.
    processes : how many workers share a machine.
    own : whether the workers were started for this run, and end with it.
    log_level : from which on records are sent home.
    """

    name: str
    graph: str | None
    graph_fingerprint: str | None
    inputs: ShippedInputs
    options: ScoreOptions
    writer: SharedWriter
    processes: int
    own: bool
    log_level: int


class Prepared(NamedTuple):
    """What a worker says when it is ready: who computes there, and which inputs it found, by their fingerprints."""

    worker: str
    backend: BackendRecord
    fingerprints: dict[str, str]
    logs: list[logging.LogRecord]


class Task(NamedTuple):
    """What every task is told besides its queries.

    Attributes
    ----------
    job : name of the run.
    backend : the one that the run is computed with; None where that is still to be found out.
    left_s : seconds that are left to the run; None for no limit.
    noted : topic of the scheduler's events under which every block is noted before it is scored; None: none is.
    """

    job: str
    backend: str | None
    left_s: float | None
    noted: str | None = None


class PartReport(NamedTuple):
    """What a task returns of a part that it wrote."""

    finished: FinishedPart
    logs: list[logging.LogRecord]


class PieceReport(NamedTuple):
    """What a task returns of queries whose part is put together elsewhere."""

    blocks: list[ScoredBlock]
    logs: list[logging.LogRecord]


class JobPlugin(WorkerPlugin):  # type: ignore[misc]  # distributed is not typed
    """Remembers a run on a worker, and holds what the tasks of the run have opened."""

    #: Told once more, a worker begins anew: the first time it may have missed it.
    idempotent = False
    state: JobState

    def __init__(self, job: JobOnWorkers) -> None:
        self.name = job.name
        self.job = job

    def setup(self, worker: Any) -> None:
        """Remember the run; others that have been left alone give back what they hold."""
        for other in worker.plugins.values():
            if isinstance(other, JobPlugin) and other is not self:
                other.state.give_back_if_idle()
        if self.job.own:
            # The keyboard interrupts the owner of the run, who then ends its workers.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.state = JobState(self.job, f"{worker.address} ({socket.gethostname()})", worker)

    def teardown(self, worker: Any) -> None:
        """End what still runs; the run is over, or was cancelled."""
        self.state.end()


class _Opened(NamedTuple):
    queries: QuerySegments
    scorer: PartScorer


class JobState:
    """A run on one worker: what was opened, and whether the run was cancelled."""

    def __init__(self, job: JobOnWorkers, name: str, worker: Any) -> None:
        self.worker = name
        self.cancel = threading.Event()
        self._job = job
        self._threads = job.options.threads or worker.state.nthreads
        self._clock = Clock(timeout_s=job.options.timeout_s, cancel=self.cancel)
        self._opened: _Opened | None = None
        self._scratch = Path(worker.local_directory) / job.name
        self._used = time.monotonic()

    def collected_logs(self) -> Any:
        """See `seedrank.jobs.scaleout.logs.collected_logs`."""
        return collected_logs(self.worker, self._job.log_level)

    def limited_threads(self) -> Any:
        """See `seedrank.jobs.resources.limited_threads`."""
        return limited_threads(self._threads)

    @property
    def writer(self) -> SharedWriter:
        """Where parts go."""
        return self._job.writer

    def end(self) -> None:
        """End what still runs, and remove what was put down."""
        self.cancel.set()
        with suppress(OSError):
            remove_tree(self._scratch)

    def give_back_if_idle(self) -> None:
        """Forget what was opened if nothing has been asked for long; it would be opened again."""
        if time.monotonic() - self._used > IDLE_S and _TURN.acquire(blocking=False):
            self._opened = None
            _TURN.release()

    def opened(self, task: Task) -> _Opened:
        """Return the queries and what scores them, opened once."""
        self._used = time.monotonic()
        self._clock.restart(task.left_s)
        self._clock.check_cancelled()
        if self._opened is None:
            self._opened = self._open(task.backend)
        return self._opened

    def scorer(self, task: Task, wanted: PartRange) -> PartScorer:
        """Return what scores a part: that of the segment of queries which it is in."""
        queries, scorer = self.opened(task)
        scorer = scorer.on(*queries.holding(wanted.first))
        self._opened = _Opened(queries, scorer)
        return scorer

    def _open(self, backend: str | None) -> _Opened:
        job = self._job
        given = {"threads": self._threads, **({} if backend is None else {"backend": backend})}
        options = job.options.model_copy(update=given)
        with storage_errors(f"making {self._scratch}"):
            self._scratch.mkdir(parents=True, exist_ok=True)
        try:
            if absent := job.writer.missing():
                raise ResourceError(f"there is no {absent}")
            store = NoGraph() if job.graph is None else store_of(job.graph, work_dir=options.work_dir)
            if store is None:
                raise ResourceError(f"there is no graph store {job.graph}")
            if job.graph is not None and store.facts.fingerprint != job.graph_fingerprint:
                raise ResourceError(f"{job.graph} is another graph: its fingerprint differs")
            queries = open_queries(store, job.inputs.opened(), options, self._scratch)
        except SeedrankError as error:
            raise unlike(self.worker, error.found) from error

        with shared_memory(job.processes):
            runner = start_method(store, queries.at_hand, options, Stopwatch(), self._clock)
        width = BlockWidth(runner.backend.block_size)
        scorer = PartScorer(queries.at_hand(), runner, width, options, self._clock, Stopwatch())
        return _Opened(queries, scorer)


def unlike(worker: str, reason: str) -> ResourceError:
    """Return the error for a worker that does not see what the owner of the run sees."""
    return ResourceError(
        f"worker {worker} does not see what this process sees: {reason}",
        expected="the graph, all inputs and --out under the same names on every machine, with the same content",
        fix="mount them on that machine, or use URLs of an object store; or take the worker away",
    )


def prepare(task: Task) -> Prepared:
    """Open everything on this worker.

    Raises
    ------
    ResourceError
        It does not see what the owner of the run sees, or has no memory for a single query.
    """
    state = _state(task)
    with _TURN, state.collected_logs() as logs, state.limited_threads():
        queries, scorer = state.opened(task)
        fingerprints = {name: record.fingerprint for name, record in queries.records.items()}
        return Prepared(state.worker, scorer.runner.backend, fingerprints, logs)


def score_part(task: Task, wanted: PartRange) -> PartReport:
    """Score a part and write it."""
    state = _state(task)
    with _TURN, state.collected_logs() as logs, state.limited_threads():
        scorer = state.scorer(task, wanted)
        return PartReport(scorer.write(scorer.score(wanted, Silent(), begin=_note(task)), state.writer), logs)


def score_piece(task: Task, wanted: PartRange, width: int | None) -> PieceReport:
    """Score some queries of a part that workers do not survive as a whole; at most ``width`` of them together."""
    state = _state(task)
    with _TURN, state.collected_logs() as logs, state.limited_threads():
        scorer = state.scorer(task, wanted)
        if width is not None:
            scorer = replace(scorer, width=BlockWidth(min(width, scorer.width.queries)))
        return PieceReport(scorer.score(wanted, Silent(), begin=_note(task)).blocks, logs)


def _note(task: Task) -> Callable[[int, int], None] | None:
    """Return what tells the scheduler which block comes next: if this worker does not live to return it, that stays."""
    if task.noted is None:
        return None
    topic = task.noted

    def note(first: int, last: int) -> None:
        # Answered before the block begins. Without it a range is halved.
        with suppress(Exception):
            get_client().log_event(topic, (first, last))

    return note


def _state(task: Task) -> JobState:
    state: JobState = get_worker().plugins[task.job].state
    return state
