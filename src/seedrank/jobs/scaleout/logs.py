"""What is logged where parts are scored elsewhere: records of workers are carried home, Dask says only what matters."""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

#: Most records that one part may send home.
MOST = 100

_log = logging.getLogger("seedrank")


class _Collector(logging.Handler):
    def __init__(self, worker: str) -> None:
        super().__init__()
        self._worker = worker
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        if len(self.records) == MOST:
            return
        if record.exc_info:
            # Tracebacks stay behind: frames cannot travel. Formatters show this as they would have shown them.
            record.exception = "".join(traceback.format_exception(*record.exc_info)).rstrip()
            record.exc_info = None
        record.worker = self._worker
        self.records.append(record)


@contextmanager
def collected_logs(worker: str, level: int) -> Iterator[list[logging.LogRecord]]:
    """Collect what is logged within a ``with`` block, from this level on; nothing is shown here.

    Parameters
    ----------
    worker : what every record says of where it comes from.
    level : of `logging`.
    """
    collector = _Collector(worker)
    before = _log.handlers, _log.level, _log.propagate
    _log.handlers, _log.propagate = [collector], False
    _log.setLevel(level)
    try:
        yield collector.records
    finally:
        _log.handlers, _log.propagate = before[0], before[2]
        _log.setLevel(before[1])


def replay(records: list[logging.LogRecord]) -> None:
    """Log collected records here."""
    for record in records:
        logging.getLogger(record.name).handle(record)


def load_quietly() -> None:
    """Import Dask and let its warnings go where those of seedrank go, unless the program had it in use before."""
    if "distributed" in sys.modules:
        return
    import distributed  # noqa: F401, PLC0415  # heavy; sets up a log of its own on stderr

    for name in ("distributed", "distributed.client", "distributed.gc", "tornado"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [], True
    dask = logging.getLogger("distributed")
    dask.handlers, dask.propagate = [_Forwarder()], False
    dask.setLevel(logging.WARNING)


class _Forwarder(logging.Handler):
    """Hands records of Dask to the handlers of seedrank's log, or of the program's; Dask changes handlers it finds."""

    def emit(self, record: logging.LogRecord) -> None:
        if not record.getMessage():
            return  # the traceback of something that was ended on purpose
        for handler in _log.handlers or logging.getLogger().handlers:
            handler.handle(record)
