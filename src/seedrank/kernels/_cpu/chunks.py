"""Work on several threads: each takes the next few queries (or nodes) until none are left."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from seedrank.kernels._cpu import arguments
from seedrank.kernels.arrays import BoolArray, Precision
from seedrank.kernels.recall.forms import RecallLimits, RecallQueries, RecallResult, StopFlags
from seedrank.kernels.recall.recall_graph import RecallGraph

MOST_QUERIES = 16
"""Queries that a thread takes at once: few, because one of them may take as long as all others together."""

Work = Callable[[int, int], None]


def run_in_chunks(count: int, begin: Callable[[], Work], *, threads: int, most: int = MOST_QUERIES) -> None:
    """Do the work for the queries (or nodes) ``0 … count - 1`` on some threads.

    The compiled functions that the work calls release the global lock, so other Python threads (clocks, signal
    handlers) go on meanwhile. An error or an interrupt ends the rest after the chunks that are under way.

    Parameters
    ----------
    count : int
    begin : callable
        Called once by every thread; returns the function that does the work for ``first … last - 1`` with memory of
        its own.
    threads : int
        >= 1
    most : int
        Queries (or nodes) that a thread takes at once, at most.
    """
    size = max(1, min(most, count // (4 * threads)))
    chunks = iter(range(0, count, size))
    lock = threading.Lock()
    ended = threading.Event()

    def run() -> None:
        try:
            work = begin()
            while not ended.is_set():
                with lock:
                    first = next(chunks, None)
                if first is None:
                    return
                work(first, min(first + size, count))
        except BaseException:
            ended.set()
            raise

    if threads == 1 or count <= size:
        run()
        return
    with ThreadPoolExecutor(threads) as pool:
        try:
            for future in [pool.submit(run) for _ in range(threads)]:
                future.result()
        finally:
            ended.set()


def run_traversal(
    traverse: Callable[..., None],
    new_memory: Callable[[int], Any],
    graph: RecallGraph,
    queries: RecallQueries,
    options: tuple[float | int, ...],
    *,
    limits: RecallLimits,
    k: int,
    eligible: BoolArray | None,
    min_score: float,
    precision: Precision,
    threads: int,
    flags: StopFlags | None,
) -> RecallResult:
    """Run one of the compiled traversals over a block of queries; `options` are its own."""
    result = RecallResult.empty(queries.width, k, precision)
    shared = (
        arguments.row_arguments(graph.rows),
        arguments.read_only(graph.order),
        arguments.query_arguments(queries),
        (*options, *arguments.limit_arguments(limits)),
        arguments.filter_arguments(eligible, min_score, precision),
        arguments.flag_arguments(flags, queries.width),
        arguments.result_arguments(result),
    )

    def begin() -> Work:
        memory = new_memory(graph.nodes)
        return lambda first, last: traverse(first, last, *shared, memory)

    run_in_chunks(queries.width, begin, threads=threads)
    return result
