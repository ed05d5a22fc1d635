"""The engine of one process, and which engine a run asks for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import TracebackType

from seedrank.config import ScoreOptions
from seedrank.io.graphstore import GraphStore
from seedrank.io.records import BackendRecord
from seedrank.jobs.methods import start_method
from seedrank.jobs.operators.blocks import BlockWidth
from seedrank.jobs.progress import Reporter
from seedrank.jobs.queries.query_segments import QuerySegments
from seedrank.jobs.run.engine import Engine, JobParts
from seedrank.jobs.run.part_scorer import FinishedPart, PartRange, PartScorer, ScoredPart, without_unchanged
from seedrank.jobs.run.pipeline import Background
from seedrank.jobs.run.taken_over import EarlierResults
from seedrank.jobs.scaleout.logs import load_quietly


class InProcess:
    """The engine of one process: parts one after the other, each written while the next is scored."""

    def __enter__(self) -> InProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        pass

    def start(self, job: JobParts, store: GraphStore, queries: Callable[[], QuerySegments]) -> BackendRecord:
        """See `Engine.start`."""
        runner = start_method(store, lambda: queries().at_hand(), job.options, job.stopwatch, job.clock)
        width = BlockWidth(runner.backend.block_size)
        self._writer = job.folder
        self._queries = queries()
        query_set = self._queries.at_hand()
        self._scorer = PartScorer(query_set, runner, width, job.options, job.clock, job.stopwatch)
        return runner.backend

    def score(
        self,
        ranges: Sequence[PartRange],
        *,
        earlier: EarlierResults | None,
        reporter: Reporter,
        record: Callable[[FinishedPart], None],
    ) -> None:
        """See `Engine.score`; parts are recorded by the thread in the background."""

        def write(scorer: PartScorer, scored: ScoredPart) -> None:
            record(scorer.write(scored, self._writer))

        with Background() as background:
            for wanted in ranges:
                scorer = self._scorer = self._scorer.on(*self._queries.holding(wanted.first))
                part = without_unchanged(wanted, earlier, query_set=scorer.query_set, first_query=scorer.first_query)
                background.start(partial(write, scorer, scorer.score(part, reporter)))


def make_engine(options: ScoreOptions) -> Engine:
    """Return the engine that the options ask for; Dask is loaded where it is needed."""
    if not options.scales_out:
        return InProcess()
    load_quietly()
    from seedrank.jobs.scaleout.dask_engine import DaskEngine  # noqa: PLC0415  # heavy

    return DaskEngine()
