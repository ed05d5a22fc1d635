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
from seedrank.jobs.operators.outcome import Outcome, Runner
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
    done = 0
    while done < len(valid):
        queries = valid[done : done + width.queries]
        clock.check_cancelled()
        if clock.expired:
            rows = len(queries) * len(options.restart_probabilities)
            blocks.append(ScoredBlock(queries, Outcome.too_late(rows), None))
        else:
            if begin is not None:
                begin(queries)
            try:
                blocks.append(_score_block(queries, query_set, runner))
            except MemoryError as error:
                shortage = str(error) or "no further word"
            else:
                shortage = ""
            if shortage:
                # Only here the error is gone, and with it the frames whose arrays it held; some are in a circle.
                gc.collect()
                width.halve(len(queries), shortage)
                continue
        done += len(queries)
        reporter.advance(len(queries), _largest_error_bound(blocks[-1]))
    return blocks


def _largest_error_bound(block: ScoredBlock) -> float | None:
    """Largest bound of a block; None where the method has none."""
    bounds = None if block.outcome is None else block.outcome.query_columns.get("error_bound")
    return None if bounds is None else pc.max(bounds).as_py()


def _score_block(queries: npt.NDArray[np.int64], query_set: QuerySet, runner: Runner) -> ScoredBlock:
    try:
        return ScoredBlock(queries, runner.score(queries), None)
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
