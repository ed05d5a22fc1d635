"""Queries block by block: what fails costs its block, and a block that memory does not hold is halved."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from seedrank.config import ScoreOptions
from seedrank.errors import (
    InputDataError,
    InterruptedRunError,
    ResourceError,
    StorageError,
    is_thread_shortage,
)
from seedrank.jobs.clock import Clock
from seedrank.jobs.operators.outcome import Outcome, OverlappingRunner, Runner
from seedrank.jobs.progress import Reporter
from seedrank.jobs.queries.query_set import QuerySet

log = logging.getLogger(__name__)


class ScoredBlock(NamedTuple):
    """The queries of a block with their outcome, or with the reason why there is none."""

    queries: npt.NDArray[np.int64]
    outcome: Outcome | None
    error: str | None


@dataclass
class BlockWidth:
    """Queries scored together, now: as planned until memory runs out, then less for the rest of the job.

    Attributes
    ----------
    queries : int
        >= 1
    """

    queries: int

    def halve(self, failed: int, reason: str) -> None:
        """Give up a width under which a block of so many queries did not fit.

        Raises
        ------
        ResourceError
            That block was a single query.
        """
        if failed == 1:
            raise ResourceError(
                f"memory ran out while a single query was scored ({reason})",
                expected="memory for one query beside the graph",
                fix="run on a machine with more memory, or with fewer processes beside; a smaller --top-k needs less. "
                "Finished parts are kept, the same command goes on from there",
            )
        self.queries = failed // 2
        log.warning("block_halved", extra={"queries": failed, "block_size": self.queries, "reason": reason})


def score_blocks(
    first: int,
    last: int,
    *,
    query_set: QuerySet,
    runner: Runner,
    width: BlockWidth,
    options: ScoreOptions,
    reporter: Reporter,
    clock: Clock,
    known: npt.NDArray[np.int64] | None = None,
    begin: Callable[[npt.NDArray[np.int64]], None] | None = None,
) -> list[ScoredBlock]:
    """Score the queries ``first`` … ``last - 1``, but those that are ``known``, by their positions after the first one.

    A block whose kernel fails (a failed self-check) costs its own queries only: their status is ``failed``, the reason
    is logged, the rest of the part goes on. A resource that is gone (a GPU that failed for good) is gone for every
    block: that ends the job, and parts that were finished before are kept. A block for which memory runs out is scored
    again in halves, with the same bytes, as no result depends on the width. Blocks that the deadline leaves over have
    no candidates. ``begin`` is told the queries of every block before it is scored.

    Where a device computes beside the host, rows of a block are made while the first steps of the next one are; not
    where ``begin`` is told, so that nothing but the block told last can end the process.

    Raises
    ------
    InterruptedRunError
        The job was cancelled.
    ResourceError
        Memory does not hold a single query, or what computes is not there any more.
    StorageError, InputDataError
        A graph that is streamed cannot be read.
    """
    wanted = query_set.valid[first:last].copy()
    if known is not None:
        wanted[known] = False
    valid = np.flatnonzero(wanted) + first
    reporter.advance(last - first - len(valid))
    blocks: list[ScoredBlock] = []

    def score(block: _Block, meanwhile: Callable[[], None] | None) -> None:
        clock.check_cancelled()
        if clock.expired:
            rows = len(block.queries) * len(options.restart_probabilities)
            block.scored = ScoredBlock(block.queries, Outcome.too_late(rows), None)
            return
        if begin is not None:
            begin(block.queries)
        block.compute(runner, meanwhile, rows_later=begin is None)

    def take(block: _Block) -> None:
        assert block.scored is not None
        blocks.append(block.scored)
        reporter.advance(len(block.queries), _largest_error_bound(block.scored))

    done = 0
    held: _Block | None = None
    while done < len(valid) or held is not None:
        block = _Block(valid[done : done + width.queries], query_set)
        if len(block.queries):
            score(block, None if held is None else held.finish)
        if held is not None:
            held.finish()
            if held.shortage:
                # What was computed meanwhile is computed again: its block may be too wide as well.
                done -= len(held.queries)
                block = held
            else:
                take(held)
            held = None
        if block.shortage:
            # Only here the error is gone, and with it the frames whose arrays it held; some are in a circle.
            gc.collect()
            width.halve(len(block.queries), block.shortage)
            continue
        done += len(block.queries)
        if block.scored is not None:
            take(block)
        elif len(block.queries):
            held = block
    return blocks


class _Block:
    """A block on its way: it is computed, and then, once, made into rows; what fails is kept for whoever takes it.

    Attributes
    ----------
    queries : their positions.
    scored : the block, or why there is none; None before it has rows.
    shortage : what was said when memory ran out, "" where it did not.
    """

    def __init__(self, queries: npt.NDArray[np.int64], query_set: QuerySet) -> None:
        self.queries = queries
        self.scored: ScoredBlock | None = None
        self.shortage = ""
        self._query_set = query_set
        self._rows: Callable[[], Outcome] | None = None

    def compute(self, runner: Runner, meanwhile: Callable[[], None] | None, *, rows_later: bool) -> None:
        """Compute the block, and make its rows, but where they may come later and a device works meanwhile."""
        if rows_later and isinstance(runner, OverlappingRunner) and runner.overlaps:
            self._attempt(lambda: runner.compute(self.queries, meanwhile))
        else:
            self._attempt(lambda: runner.score(self.queries))

    def finish(self) -> None:
        """Make the rows, if they have not been made."""
        rows, self._rows = self._rows, None
        if rows is not None:
            self._attempt(rows)

    def _attempt(self, work: Callable[[], Outcome | Callable[[], Outcome]]) -> None:
        try:
            done = _score_block(self.queries, self._query_set, work)
        except MemoryError as error:
            self.shortage = str(error) or "no further word"
            return
        if isinstance(done, ScoredBlock):
            self.scored = done
        else:
            self._rows = done


def _largest_error_bound(block: ScoredBlock) -> float | None:
    """Largest bound of a block; None where the method has none."""
    bounds = None if block.outcome is None else block.outcome.query_columns.get("error_bound")
    return None if bounds is None else pc.max(bounds).as_py()


def _score_block(
    queries: npt.NDArray[np.int64], query_set: QuerySet, work: Callable[[], Outcome | Callable[[], Outcome]]
) -> ScoredBlock | Callable[[], Outcome]:
    """Do a part of the work on a block, and say what failed of it; returns what makes its rows, where that is left."""
    try:
        done = work()
        return ScoredBlock(queries, done, None) if isinstance(done, Outcome) else done
    except (InterruptedRunError, MemoryError, ResourceError, StorageError, InputDataError):
        # The last two: a graph that is streamed could not be read. So it will be for the next block.
        raise
    except Exception as error:
        if is_thread_shortage(error):
            raise ResourceError(
                f"there is no room for another thread ({error})",
                expected="threads for the kernels and for the clock",
                fix="raise `ulimit -u` or `ulimit -v`, or lower --threads; finished parts are kept, the same command "
                "goes on from there",
            ) from error
        first, last = query_set.query_ids.take(pa.array(queries[[0, -1]])).to_pylist()
        log.exception("block_failed", extra={"queries": len(queries), "first_query": first, "last_query": last})
        reason = f"{len(queries)} queries from {first!r} to {last!r}: {type(error).__name__}: {error}"
        return ScoredBlock(queries, None, reason)
