"""Who scores the parts of a job: this process, or workers beside it. The job plans and records, an engine computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import NamedTuple, Protocol

from seedrank.config import ScoreOptions
from seedrank.io.graphstore import GraphStore
from seedrank.io.records import BackendRecord
from seedrank.io.run.run_store import RunStore
from seedrank.jobs.clock import Clock
from seedrank.jobs.inputs import JobInputs
from seedrank.jobs.progress import Reporter, Stopwatch
from seedrank.jobs.queries.query_segments import QuerySegments
from seedrank.jobs.run.part_scorer import FinishedPart, PartRange
from seedrank.jobs.run.taken_over import EarlierResults


class JobParts(NamedTuple):
    """What an engine needs of a job, besides its graph and its queries.

    Attributes
    ----------
    folder : where parts are written.
    inputs : what the queries are read from.
    options : those of the run; a run that goes on has the backend that it began with.
    stopwatch, clock : of the job.
    """

    folder: RunStore
    inputs: JobInputs
    options: ScoreOptions
    stopwatch: Stopwatch
    clock: Clock


class Engine(Protocol):
    """Scores parts; what it holds ends with its ``with`` block."""

    def __enter__(self) -> Engine:
        """Begin."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Give back all that was taken."""

    def start(self, job: JobParts, store: GraphStore, queries: Callable[[], QuerySegments]) -> BackendRecord:
        """Make the method ready; ``queries`` waits for the queries, which may be read meanwhile."""

    def score(
        self,
        ranges: Sequence[PartRange],
        *,
        earlier: EarlierResults | None,
        reporter: Reporter,
        record: Callable[[FinishedPart], None],
    ) -> None:
        """Score and write these parts, and tell of each, in any order, one call at a time, as soon as it is written.

        What ``earlier`` has is taken over.
        """
