"""What people see on stderr: log lines with stable event names, a bar on a terminal, lines at intervals elsewhere."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, MutableMapping
from typing import Any, TypeVar

import click
import structlog
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from seedrank.jobs.cli.printable import printable
from seedrank.jobs.progress import Reporter, larger
from seedrank.redaction import redacted

CommandT = TypeVar("CommandT", bound=Callable[..., Any])

#: Seconds between two progress lines where there is no terminal.
INTERVAL_S = 10.0

log = logging.getLogger("seedrank.progress")


def console_options(command: CommandT) -> CommandT:
    """Decorate a command with ``--log-format``, ``--verbose`` and ``--quiet``."""
    for decorator in (
        click.option("-q", "--quiet", is_flag=True, help="Only warnings and errors on stderr."),
        click.option("-v", "--verbose", is_flag=True, help="Also debug messages on stderr."),
        click.option(
            "--log-format",
            type=click.Choice(["auto", "console", "json"]),
            default="auto",
            show_default=True,
            help="Form of the log lines on stderr; auto is console.",
        ),
    ):
        command = decorator(command)
    return command


def set_up_logging(*, log_format: str, verbose: bool, quiet: bool, run_id: str | None = None) -> None:
    """Send the package's log records to stderr, as text or as one JSON object a line (UTC times).

    Every JSON object carries the id of the run, if there is one, so that the lines of many runs can be told apart.
    """
    shared: list[Any] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if log_format == "json":
        if run_id is not None:
            shared.append(lambda logger, name, event: {**event, "run_id": run_id})
        last: list[Any] = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    else:
        renderer = structlog.dev.ConsoleRenderer(colors=_colours(), exception_formatter=structlog.dev.plain_traceback)
        last = [structlog.processors.format_exc_info, _printable, renderer]
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        # The whole line is redacted, tracebacks and messages of libraries included.
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last, _without_credentials],
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    logging.captureWarnings(capture=True)
    for name in ("seedrank", "py.warnings"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(logging.DEBUG if verbose else logging.WARNING if quiet else logging.INFO)


def _without_credentials(_logger: Any, _method: str, line: Any) -> str:
    return redacted(str(line))


def make_reporter(*, log_format: str, quiet: bool) -> Reporter:
    """Return a bar where stderr is a terminal that can draw one, log lines elsewhere."""
    plain = quiet or log_format == "json" or os.environ.get("TERM") == "dumb" or "CI" in os.environ
    return LineReporter() if plain or not sys.stderr.isatty() else BarReporter()


class BarReporter:
    """A rich progress bar with the rate and the time left."""

    def __init__(self) -> None:
        self._progress = Progress(
            TextColumn("scoring"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("queries"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[bound]}"),
            console=Console(stderr=True),
            transient=True,
        )

    def start(self, queries: int) -> None:
        """Draw the empty bar."""
        self._task = self._progress.add_task("scoring", total=queries, bound="")
        self._progress.start()

    def advance(self, queries: int, error_bound: float | None = None) -> None:
        """Move the bar, and show the bound of the last block."""
        shown = "" if error_bound is None else f"error ≤ {error_bound:.1e}"
        self._progress.update(self._task, advance=queries, bound=shown)

    def finish(self) -> None:
        """Remove the bar."""
        self._progress.stop()


class LineReporter:
    """At most one log line per interval: what cron and Airflow keep."""

    def __init__(self, interval_s: float = INTERVAL_S) -> None:
        self._interval = interval_s
        self._total = self._done = 0
        self._bound: float | None = None
        self._begin = self._last = time.monotonic()

    def start(self, queries: int) -> None:
        """Remember the total and start the clock."""
        self._total, self._done, self._bound = queries, 0, None
        self._begin = self._last = time.monotonic()

    def advance(self, queries: int, error_bound: float | None = None) -> None:
        """Write a line when the last one is an interval old, with the largest bound since then."""
        self._done += queries
        self._bound = larger(self._bound, error_bound)
        now = time.monotonic()
        if now - self._last >= self._interval:
            self._last = now
            rate = self._done / (now - self._begin)
            left = (self._total - self._done) / rate if rate else float("inf")
            log.info(
                "progress",
                extra={
                    "queries_done": self._done,
                    "queries": self._total,
                    "queries_per_second": round(rate, 1),
                    "seconds_left": round(left, 1),
                    **({} if self._bound is None else {"largest_error_bound": self._bound}),
                },
            )
            self._bound = None

    def finish(self) -> None:
        """Nothing is left to draw."""


def _printable(logger: Any, name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Processor: values as they may be shown on a terminal; what is no text is shown by its ``repr``, which can be."""
    for key, value in event.items():
        if isinstance(value, str):
            event[key] = printable(value, one_line=key not in ("event", "exception"))
    return event


def _colours() -> bool:
    return sys.stderr.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
