"""Time limits and cancellation: what ends a query or a job from outside. Kernels know flags, the clock is here."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Event
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from seedrank.errors import InterruptedRunError
from seedrank.kernels.recall.forms import StopFlags

ResultT = TypeVar("ResultT")

#: Seconds between two looks at the clock while a block is computed: how late a limit may strike.
INTERVAL_S = 0.005


class Watched(NamedTuple, Generic[ResultT]):
    """What came of a kernel that was watched.

    Attributes
    ----------
    result : what the kernel returned.
    limits : object (B,), name of the time limit for which the flag of a query was raised, whether it noticed or not; ""
        for none.
    spent_s : float64 (B,), seconds that the queries have taken, to some milliseconds; 0 where nobody looked.
    """

    result: ResultT
    limits: npt.NDArray[np.object_]
    spent_s: npt.NDArray[np.float64]


class Clock:
    """The time limits of one job, counted from the moment that the clock is made.

    Parameters
    ----------
    timeout_s : float, optional
        Seconds that a query may take.
    deadline_s : float, optional
        Seconds that the job may take.
    cancel : threading.Event, optional
        Once it is set, the job ends with `InterruptedRunError`.
    """

    def __init__(
        self, *, timeout_s: float | None = None, deadline_s: float | None = None, cancel: Event | None = None
    ) -> None:
        self._timeout = timeout_s
        self._deadline = None if deadline_s is None else time.monotonic() + deadline_s
        self._cancel = cancel

    def restart(self, deadline_s: float | None) -> None:
        """Count the time of the job anew: so many seconds are left from now on; None for no limit."""
        self._deadline = None if deadline_s is None else time.monotonic() + deadline_s

    @property
    def left(self) -> float | None:
        """Seconds that are left to the job, at least 0; None for no limit."""
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    @property
    def limited(self) -> bool:
        """Whether there is a time limit."""
        return self._timeout is not None or self._deadline is not None

    @property
    def expired(self) -> bool:
        """Whether the time of the job is over."""
        return self._deadline is not None and time.monotonic() >= self._deadline

    def check_cancelled(self) -> None:
        """Raise `InterruptedRunError` if the job was cancelled."""
        if self._cancel is not None and self._cancel.is_set():
            raise InterruptedRunError(
                "the run was cancelled",
                expected="to be left alone until every part is written",
                fix="the parts in run.json are complete; the same command goes on from there",
            )

    def struck(self, begun: float) -> str:
        """Name the limit that ends a query which began at this time (of `time.monotonic`), "" for none."""
        now = time.monotonic()
        if self._deadline is not None and now >= self._deadline:
            return "deadline_s"
        return "timeout_s" if self._timeout is not None and now - begun >= self._timeout else ""

    def timer(self) -> BlockTimer:
        """Start the time of a block whose queries are computed together."""
        return BlockTimer(self)

    def watch(
        self,
        kernel: Callable[[StopFlags], ResultT],
        *,
        width: int,
        spent_s: npt.NDArray[np.float64] | float = 0.0,
    ) -> Watched[ResultT]:
        """Run a kernel in a thread of its own and raise its flags when time is over.

        The caller's thread stays free for the clock and for signals, which Python delivers to the main thread only.

        Parameters
        ----------
        kernel : what to run; it gets the flags.
        width : number of queries B.
        spent_s : float64 (B,), or one number for all: seconds that the queries have taken before.

        Raises
        ------
        InterruptedRunError
            The job was cancelled; the kernel has ended.
        """
        flags = StopFlags.none(width)
        limits = np.full(width, "", dtype=object)
        begun, ended = np.full(width, np.inf), np.full(width, np.inf)
        with ThreadPoolExecutor(max_workers=1) as executor:
            try:
                running = executor.submit(kernel, flags)
                while not self._wait(running):
                    self.check_cancelled()
                    now = time.monotonic()
                    begun[(flags.started != 0) & np.isinf(begun)] = now
                    ended[(flags.started == 2) & np.isinf(ended)] = now
                    if self._timeout is not None:
                        late = (now - begun + spent_s >= self._timeout) & np.isinf(ended)
                        self._raise(flags, limits, late, "timeout_s")
                    if self.expired:
                        self._raise(flags, limits, np.ones(width, dtype=np.bool_), "deadline_s")
            except BaseException:
                flags.stop[:] = 1  # the executor waits for the kernel
                raise
        now = time.monotonic()
        # A query that was never seen at work took less than a moment.
        return Watched(running.result(), limits, spent_s + np.minimum(ended, now) - np.minimum(begun, now))

    def _wait(self, running: Future[ResultT]) -> bool:
        """Wait for a moment, or to the end if nothing but a signal can end it; returns whether it is done."""
        watched = self.limited or self._cancel is not None
        return bool(wait([running], timeout=INTERVAL_S if watched else None).done)

    @staticmethod
    def _raise(flags: StopFlags, limits: npt.NDArray[np.object_], queries: npt.NDArray[np.bool_], limit: str) -> None:
        fresh = queries & (flags.stop == 0)
        limits[fresh] = limit
        flags.stop[fresh] = 1


class BlockTimer:
    """What a driver polls between the steps of a block; begins when it is made.

    Attributes
    ----------
    limit : name of the limit that ended the block, "" so far.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._begun = time.monotonic()
        self.limit = ""

    @property
    def spent_s(self) -> float:
        """Seconds since the block began."""
        return time.monotonic() - self._begun

    def __call__(self) -> bool:
        """Whether the block has to end; raises `InterruptedRunError` if the job was cancelled."""
        self._clock.check_cancelled()
        self.limit = self.limit or self._clock.struck(self._begun)
        return bool(self.limit)
