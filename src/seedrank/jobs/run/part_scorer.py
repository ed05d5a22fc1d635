"""One part from its first query to its two files; which parts there are, and who records them, is not known here."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from seedrank.config import ScoreOptions
from seedrank.io.records import PartRecord
from seedrank.io.run.part_writers import PartWriter
from seedrank.jobs.clock import Clock
from seedrank.jobs.operators.blocks import BlockWidth, ScoredBlock, score_blocks
from seedrank.jobs.operators.outcome import Runner
from seedrank.jobs.progress import Reporter, Stopwatch
from seedrank.jobs.queries.query_set import QuerySet
from seedrank.jobs.run.parts import assemble_part
from seedrank.jobs.run.taken_over import EarlierResults, TakenPlaces, TakenRows


class PartRange(NamedTuple):
    """A part and its queries ``first`` … ``last - 1``, and where the rows of those are that are taken over."""

    part: int
    first: int
    last: int
    taken: TakenPlaces | None = None


class ScoredPart(NamedTuple):
    """The blocks of a part, when it was begun (of `time.perf_counter`), and what is taken over from an earlier run."""

    range: PartRange
    blocks: list[ScoredBlock]
    begun: float
    taken: TakenRows | None


class FinishedPart(NamedTuple):
    """What is told of a part that was written, and the queries that were scored together in the end."""

    record: PartRecord
    block_size: int


def without_unchanged(
    wanted: PartRange, earlier: EarlierResults | None, *, query_set: QuerySet, first_query: int
) -> PartRange:
    """Return a part with the places of those queries that an earlier run has, if there is one.

    Parameters
    ----------
    wanted, earlier : the part, and the earlier run.
    query_set, first_query : see `write_part`.
    """
    if earlier is None:
        return wanted
    hashes = query_set.input_hashes[wanted.first - first_query : wanted.last - first_query]
    return wanted._replace(taken=earlier.places(hashes))


@dataclass(frozen=True)
class PartScorer:
    """Everything that scores parts and writes them: a method that is ready, its queries, and their limits.

    Scoring and writing are two steps, so that a part may be written while the next one is scored.

    Attributes
    ----------
    query_set : the queries; ``first_query`` is the position of its first one among all queries of the job.
    """

    query_set: QuerySet
    runner: Runner
    width: BlockWidth
    options: ScoreOptions
    clock: Clock
    stopwatch: Stopwatch
    first_query: int = 0

    def on(self, query_set: QuerySet, first_query: int) -> PartScorer:
        """Return the same for other queries of the job."""
        if query_set is self.query_set and first_query == self.first_query:
            return self
        return replace(self, query_set=query_set, runner=self.runner.on(query_set), first_query=first_query)

    def score(
        self, wanted: PartRange, reporter: Reporter, *, begin: Callable[[int, int], None] | None = None
    ) -> ScoredPart:
        """Score the queries of a part; ``begin`` is told the first and the last one + 1 of every block before.

        Raises
        ------
        InterruptedRunError
            The job was cancelled.
        ResourceError
            Memory does not hold a single query.
        """
        begun = time.perf_counter()
        taken = None
        if wanted.taken is not None:
            with self.stopwatch.stage("take_over"):
                taken = wanted.taken.read()
        with self.stopwatch.stage("score"):
            blocks = score_blocks(
                wanted.first - self.first_query,
                wanted.last - self.first_query,
                query_set=self.query_set,
                runner=self.runner,
                width=self.width,
                options=self.options,
                reporter=reporter,
                clock=self.clock,
                known=None if taken is None else taken.queries,
                begin=None if begin is None else self._told(begin),
            )
        return ScoredPart(wanted, blocks, begun, taken)

    def _told(self, begin: Callable[[int, int], None]) -> Callable[[npt.NDArray[np.int64]], None]:
        """Count queries as the job does."""
        return lambda queries: begin(int(queries[0]) + self.first_query, int(queries[-1]) + self.first_query + 1)

    def write(self, scored: ScoredPart, writer: PartWriter) -> FinishedPart:
        """Write both tables of a part.

        Raises
        ------
        StorageError
            They cannot be written.
        """
        with self.stopwatch.stage("write"):
            record = write_part(
                scored, writer, query_set=self.query_set, first_query=self.first_query, options=self.options
            )
        return FinishedPart(record, self.width.queries)


def write_part(
    scored: ScoredPart, writer: PartWriter, *, query_set: QuerySet, first_query: int, options: ScoreOptions
) -> PartRecord:
    """Write both tables of a part, and return what ``run.json`` says of it.

    Parameters
    ----------
    scored, writer, options : the part, where it goes, and the options of the job.
    query_set, first_query : queries that its own are among, and the position of their first one among all of the job.

    Raises
    ------
    StorageError
        They cannot be written.
    """
    wanted = scored.range
    tables = assemble_part(
        wanted.first - first_query,
        wanted.last - first_query,
        scored.blocks,
        query_set=query_set,
        options=options,
        taken=scored.taken,
    )
    candidates_file, queries_file = writer.write_part(wanted.part, candidates=tables.candidates, queries=tables.queries)
    return PartRecord(
        part=wanted.part,
        first_query=wanted.first,
        queries=wanted.last - wanted.first,
        candidates=tables.candidates.num_rows,
        seeds_given=tables.seeds_given,
        seeds_missing=tables.seeds_missing,
        by_status=dict(sorted(tables.by_status.items())),
        failed_queries=tables.by_status["failed"],
        unfinished_queries=tables.unfinished,
        candidates_file=candidates_file,
        queries_file=queries_file,
        iterations=tables.iterations,
        largest_error_bound=tables.largest_error_bound,
        errors=tables.errors,
        taken_over=tables.taken_over,
        seconds=round(time.perf_counter() - scored.begun, 4),
    )
