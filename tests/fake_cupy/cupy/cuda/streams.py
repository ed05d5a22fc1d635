"""Streams, events and pinned memory of the stand-in for CuPy.

What is started on a stream of its own happens as late as CUDA allows: when somebody waits for it. So a wait that is
missing shows, as noise where a copy should be, or as what a buffer held later. The current stream does everything at
once.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from cupy.cuda import runtime

_pinned: dict[int, int] = {}


class Event:
    """A place in the work of a stream."""

    def __init__(self, *, disable_timing: bool = False) -> None:
        self._stream: Stream | None = None
        self._place = 0

    def record(self, stream: Stream) -> None:
        """Mark what was started on the stream so far."""
        self._stream, self._place = stream, stream.started

    @property
    def done(self) -> bool:
        """Whether that has happened."""
        return self._stream is None or self._stream.has_done(self._place)

    def synchronize(self) -> None:
        """Wait until that has happened."""
        runtime.check("memory")
        if self._stream is not None:
            self._stream.run(self._place)


class Stream:
    """A queue of work. The current stream does everything at once, but for copies that the host waits for."""

    def __init__(self, *, non_blocking: bool = False, at_once: bool = False) -> None:
        assert non_blocking or at_once, "a stream that waits for the current one overlaps with nothing"
        self._at_once = at_once
        self._waiting: deque[Callable[[], None]] = deque()
        self.started = 0

    def start(self, work: Callable[[], None]) -> None:
        """Put work behind what was started before."""
        self.started += 1
        self._waiting.append(work)
        if self._at_once:
            self.run(self.started)

    def arrive_later(self, work: Callable[[], None]) -> None:
        """Let the host see something no sooner than it waits, even on a stream that does everything at once."""
        self.started += 1
        self._waiting.append(work)

    def has_done(self, place: int) -> bool:
        """Whether everything up to a place is done."""
        return self.started - len(self._waiting) >= place

    def run(self, place: int) -> None:
        """Do everything up to a place."""
        while not self.has_done(place):
            self._waiting.popleft()()

    def wait_event(self, event: Event) -> None:
        """Let what follows wait for an event."""
        self.start(event.synchronize)

    def record(self) -> Event:
        """Return an event behind what was started so far."""
        event = Event()
        event.record(self)
        return event

    def synchronize(self) -> None:
        """Wait for what was started; errors of kernels are raised here."""
        runtime.check("memory")
        self.run(self.started)


_current = Stream(at_once=True)


def get_current_stream() -> Stream:
    """Return the stream that kernels are started on."""
    return _current


def alloc_pinned_memory(size: int) -> npt.NDArray[np.uint8]:
    """Take memory that a copy reads when it happens, not when it is started; some more than was asked for."""
    runtime.check("pinned")
    memory = np.full(-(-size // 512) * 512, 0x5A, dtype=np.uint8)
    address = memory.ctypes.data
    _pinned[address] = memory.nbytes
    weakref.finalize(memory, _pinned.pop, address, None)
    return memory


def as_copies_see_it(host: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """What a copy from the host reads: pinned memory itself, or other memory as it is when the copy is started."""
    address = host.ctypes.data
    pinned = any(start <= address < start + size for start, size in _pinned.items())
    return host if pinned else host.copy()
