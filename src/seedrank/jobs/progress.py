"""How a running job tells the outside world: one small protocol, a silent default, stage timings."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

log = logging.getLogger(__name__)


class Reporter(Protocol):
    """Receives the progress of a job; implementations must be cheap, they are called once per block."""

    def start(self, queries: int) -> None:
        """Scoring begins; ``queries`` is the total."""

    def advance(self, queries: int, error_bound: float | None = None) -> None:
        """``queries`` further queries are done; the largest of their error bounds, where the method has such."""

    def finish(self) -> None:
        """Scoring is over, however it ended."""


class Silent:
    """Reports nothing: the default of the Python interface."""

    def start(self, queries: int) -> None:
        """Ignore."""

    def advance(self, queries: int, error_bound: float | None = None) -> None:
        """Ignore."""

    def finish(self) -> None:
        """Ignore."""


def larger(bound: float | None, other: float | None) -> float | None:
    """Return the larger one of two error bounds of which either may not be there."""
    if bound is None or other is None:
        return other if bound is None else bound
    return max(bound, other)


class Stopwatch:
    """Adds up wall-clock seconds by stage; what ``timings_s`` of ``run.json`` shows."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._begin = time.perf_counter()

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Measure a stage; a stage entered several times adds up."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - begin

    def expect(self, name: str) -> None:
        """Give a stage its place among the others now, as it may begin and end at any time."""
        self.seconds.setdefault(name, 0.0)

    def total(self) -> dict[str, float]:
        """Seconds by stage, and ``total`` since the stopwatch was made; rounded to 0.1 ms."""
        return {
            name: round(value, 4)
            for name, value in {**self.seconds, "total": time.perf_counter() - self._begin}.items()
        }
