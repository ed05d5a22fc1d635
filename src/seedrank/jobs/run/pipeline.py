"""What overlaps in a job: the hits are read while the graph is loaded, a part is written while the next is scored."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, TypeVar

ResultT = TypeVar("ResultT")


class Background:
    """One thread beside the one that computes, and one task at a time.

    Handing over a task waits for the one before it, so that the memory of a job holds one part that is written and one
    that is scored, however fast either is. What the task raised is raised there, or at the end.

    The thread only reads, converts and writes: compiled kernels stay on the thread that made the backend, whose number
    of threads is the user's.
    """

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="seedrank-background")
        self._running: Future[Any] | None = None

    def __enter__(self) -> Background:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self.wait()
        finally:
            # A task that has begun is finished also when the computing thread failed: no part is left half written.
            self._executor.shutdown(wait=True, cancel_futures=True)

    def start(self, task: Callable[[], ResultT]) -> Callable[[], ResultT]:
        """Wait for the task before, then start this one; returns what waits for its result."""
        self.wait()
        running: Future[ResultT] = self._executor.submit(task)
        self._running = running
        return running.result

    def wait(self) -> None:
        """Wait for the running task, and raise what it raised."""
        running, self._running = self._running, None
        if running is not None:
            running.result()
