"""Tasks on the way: handed to Dask, waited for without being deaf to the clock, to signals and to what is lost."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from distributed.scheduler import KilledWorker, NoValidWorkerError, NoWorkerError

from seedrank.jobs.clock import Clock
from seedrank.jobs.run.part_scorer import PartRange
from seedrank.jobs.scaleout.cluster import WORKERS_S, Workers, answering, no_worker
from seedrank.jobs.scaleout.worker import Task

#: Seconds between two looks at the clock and at a cancelled run, and between two counts of the workers.
TICK_S, COUNT_S = 0.2, 1.0


class Tasks:
    """Tasks of one run that are on the way.

    Parameters
    ----------
    workers : Workers
    clock : Clock
        Of the run; what cancels it ends the wait.
    address : str
        Of the scheduler, for messages.
    job : str
        Name of the run among its workers.
    """

    def __init__(self, workers: Workers, clock: Clock, address: str, job: str) -> None:
        self._workers = workers
        self._clock = clock
        self._address = address
        self._job = job
        self._done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._running: dict[str, tuple[PartRange | None, Any]] = {}
        self._submitted = 0
        with answering(address):
            self._count = len(workers.addresses())
        self._counted = self._seen = time.monotonic()

    def __len__(self) -> int:
        return len(self._running)

    @property
    def room(self) -> bool:
        """Whether a worker has nothing to do. More tasks would wait beside a running one, and die with its worker."""
        return len(self._running) < max(1, self._count)

    def submit(
        self,
        function: Callable[..., Any],
        wanted: PartRange | None,
        *more: Any,
        backend: str | None,
        on: str | None = None,
        noted: bool = False,
    ) -> None:
        """Hand over a task.

        Parameters
        ----------
        function : of `seedrank.jobs.scaleout.worker`; takes a `Task`, and the queries if there are any.
        wanted : its queries, and what it is called when it is done.
        more : what else the function takes.
        backend : see `Task`.
        on : address of the worker that should do it, if it lives.
        noted : whether every block is noted before it is scored, see `notes`.

        Raises
        ------
        StorageError
            The scheduler is lost.
        """
        self._submitted += 1
        task = Task(self._job, backend, self._clock.left, self._topic if noted else None)
        with answering(self._address):
            future = self._workers.client.submit(
                function,
                task,
                *([] if wanted is None else [wanted]),
                *more,
                key=f"seedrank_{function.__name__}-{self._job}-{self._submitted}",
                pure=False,
                workers=None if on is None else [on],
                allow_other_workers=on is not None,
                resources=self._workers.resources or None,
            )
        self._running[future.key] = wanted, future
        future.add_done_callback(self._done.put)

    def notes(self) -> list[tuple[int, int]]:
        """Return the first and the last query + 1 of every block that the task which came last has begun.

        Those of all its attempts, one after the other.
        """
        with answering(self._address):
            return [(int(first), int(last)) for _, (first, last) in self._workers.client.get_events(self._topic)]

    @property
    def _topic(self) -> str:
        return f"{self._job}-{self._submitted}"

    def next(self) -> tuple[PartRange | None, Any]:
        """Wait for a task; returns what it is called, and its result, or a `KilledWorker` if no worker survived it.

        Raises
        ------
        InterruptedRunError
            The run was cancelled.
        ResourceError
            There is no worker, or none that may do it.
        StorageError
            The scheduler is lost.
        Exception
            What the task raised.
        """
        self._clock.check_cancelled()
        while True:
            try:
                done = self._done.get(timeout=TICK_S)
            except queue.Empty:
                self._look()
                continue
            wanted, future = self._running.pop(done.key)
            try:
                return wanted, self._result(future)
            finally:
                future.release()  # or it would be computed again when its worker dies later

    def _result(self, future: Any) -> Any:
        while True:
            if future.status == "error":
                error = future.exception(timeout=WORKERS_S)
                if isinstance(error, KilledWorker):
                    return error
                if isinstance(error, (NoValidWorkerError, NoWorkerError)):
                    raise no_worker(WORKERS_S)
                raise error
            try:
                with answering(self._address), suppress(TimeoutError):
                    return future.result(timeout=TICK_S)
            except Exception:
                if future.status != "error":
                    raise
            self._look()  # the worker died with its result: the task is done once more

    def _look(self) -> None:
        """See whether the run was cancelled, and how many workers there are."""
        self._clock.check_cancelled()
        now = time.monotonic()
        if now - self._counted < COUNT_S:
            return
        self._counted = now
        with answering(self._address):
            self._count = len(self._workers.addresses())
        if self._count:
            self._seen = now
        elif now - self._seen > WORKERS_S:
            raise no_worker(WORKERS_S)
