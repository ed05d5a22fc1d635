"""Parts that no worker survives: the query that ends its worker is found, and fails alone; all others are scored."""

from __future__ import annotations

import logging
import time

import numpy as np
from distributed.scheduler import KilledWorker

from seedrank.errors import ResourceError
from seedrank.jobs.operators.blocks import ScoredBlock
from seedrank.jobs.queries.query_segments import QuerySegments
from seedrank.jobs.run.engine import JobParts
from seedrank.jobs.run.part_scorer import FinishedPart, PartRange, ScoredPart, write_part
from seedrank.jobs.scaleout.logs import replay
from seedrank.jobs.scaleout.tasks import Tasks
from seedrank.jobs.scaleout.worker import PartReport, PieceReport, score_part, score_piece

log = logging.getLogger(__name__)

#: Queries found to end their workers, without anything that ever survived, after which it is not the queries.
_CONVICTED = 3


class PartSplitter:
    """Scores suspect parts, with nothing else on any worker: whatever ends a worker now has no other cause.

    A part is tried as a whole first, as it may have died of another one on its worker. Workers note every block before
    they score it. If they die again, the queries of the block that was noted last are scored one by one, and what lies
    before and behind it as before. The blocks of all pieces come back and the part is written by this process, by the
    same steps as everywhere: its bytes do not tell that it was cut.

    Parameters
    ----------
    job, tasks, queries : of the run; no task is on the way.
    backend : name of the one that the run is computed with.
    survived : number of tasks that workers have survived so far.
    """

    def __init__(self, job: JobParts, tasks: Tasks, queries: QuerySegments, backend: str, *, survived: int) -> None:
        self._job = job
        self._tasks = tasks
        self._queries = queries
        self._backend = backend
        self._survived = survived
        self._convicted = 0

    def score(self, wanted: PartRange) -> FinishedPart:
        """Score and write a part; queries that end their workers are ``failed``.

        Raises
        ------
        ResourceError
            Workers end whatever they score.
        """
        begun = time.perf_counter()
        self._tasks.submit(score_part, wanted, backend=self._backend, noted=True)
        _, report = self._tasks.next()
        if isinstance(report, PartReport):
            self._survived += 1
            replay(report.logs)
            return report.finished
        # Its pieces are scored completely: what an earlier run has of them comes out the same.
        blocks = self._cut(wanted._replace(taken=None), report, width=None)
        query_set, first_query = self._queries.holding(wanted.first)
        record = write_part(
            ScoredPart(wanted, blocks, begun, taken=None),
            self._job.folder,
            query_set=query_set,
            first_query=first_query,
            options=self._job.options,
        )
        return FinishedPart(record, max(len(block.queries) for block in blocks))

    def _piece(self, wanted: PartRange, *, width: int | None) -> list[ScoredBlock]:
        """Score some queries of a part, at most ``width`` of them together; None: as many as elsewhere."""
        if wanted.first == wanted.last:
            return []
        queries = wanted.last - wanted.first
        log.info("part_cut", extra={"part": wanted.part, "first_query": wanted.first, "queries": queries})
        self._tasks.submit(score_piece, wanted, width, backend=self._backend, noted=True)
        _, report = self._tasks.next()
        if isinstance(report, PieceReport):
            self._survived += 1
            replay(report.logs)
            return report.blocks
        return self._cut(wanted, report, width=width)

    def _cut(self, wanted: PartRange, death: KilledWorker, *, width: int | None) -> list[ScoredBlock]:
        """Score a range, of which it is known that it ends workers, in pieces."""
        if wanted.last - wanted.first == 1:
            return [self._failed(wanted.first, death)]
        ends = last_notes(self._tasks.notes())
        if not ends or not wanted.first <= ends[-1][0] < ends[-1][1] <= wanted.last:
            middle = (wanted.first + wanted.last) // 2
            return [
                *self._piece(wanted._replace(last=middle), width=width),
                *self._piece(wanted._replace(first=middle), width=width),
            ]
        first, last = ends[-1]
        suspect, convicted, rest = wanted._replace(first=first, last=last), self._convicted, width
        if last - first == 1 and ends == [(first, last)] * (death.allowed_failures + 1):
            found = [self._failed(first, death)]
        else:
            found = self._piece(suspect, width=1)
            if self._convicted == convicted:
                # Each for itself they do no harm: it is their number.
                rest = max(1, (last - first) // 2)
        return [
            *self._piece(wanted._replace(last=first), width=width),
            *found,
            *self._piece(wanted._replace(first=last), width=rest),
        ]

    def _failed(self, query: int, death: KilledWorker) -> ScoredBlock:
        self._convicted += 1
        if self._convicted >= _CONVICTED and not self._survived:
            raise ResourceError(
                f"workers end whatever they score ({death})",
                expected="workers that live to score",
                fix="see in their logs what ended them; mostly it is memory: give them more, or take fewer --workers",
            )
        query_set, first_query = self._queries.holding(query)
        query_id = query_set.query_ids[query - first_query].as_py()
        reason = (
            f"1 query, {query_id!r}: its worker was killed, crashed or ran out of memory each of "
            f"{death.allowed_failures + 1} times that it was scored alone"
        )
        log.error("query_killed_workers", extra={"query": query_id, "reason": reason})
        return ScoredBlock(np.array([query - first_query]), None, reason)


def last_notes(notes: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the block that each attempt of a task began last; an attempt begins anew, at the first query."""
    return [note for place, note in enumerate(notes) if place + 1 == len(notes) or notes[place + 1][0] <= note[0]]
