"""``--metrics-file``: what ``run.json`` says of a run, for Prometheus.

The file is in the text exposition format, which the textfile collector of node_exporter reads; written by hand, as it
is a dozen lines of names and numbers, and a client library would bring a registry that outlives the run.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Iterator, Mapping
from functools import reduce
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from seedrank.errors import ConfigError, StorageError
from seedrank.io.records import RunManifest
from seedrank.io.storage.files import storage_errors, write_text_atomically
from seedrank.jobs.locations import local_path
from seedrank.jobs.progress import Reporter, larger
from seedrank.jobs.resources import peak_memory

log = logging.getLogger(__name__)

STATES = ("running", "finished", "incomplete", "failed", "interrupted")
#: Seconds between two times that the metrics of a part in work are written.
INTERVAL_S = 10.0
_SUCCESS = "seedrank_last_success_timestamp_seconds"


def check_file_apart(option: str, path: str | None, out: str | os.PathLike[str]) -> None:
    """Refuse a file of an option inside the run folder, which holds nothing but the run; nothing is touched.

    Raises
    ------
    ConfigError
        Naming both.
    """
    folder = local_path(out)
    if path is not None and folder is not None and Path(path).resolve().is_relative_to(folder.resolve()):
        raise ConfigError(
            f"{option} {path} is inside --out {out}",
            expected="a file elsewhere, such as the folder that node_exporter collects",
            fix=f"choose another {option}",
        )


class InWork(NamedTuple):
    """What is known before a part is finished: queries with results, and the largest bound of this attempt."""

    queries_scored: int = 0
    largest_error_bound: float | None = None


class MetricsFile:
    """The metrics of one run, rewritten as a whole whenever `write` is called.

    Parameters
    ----------
    path : str or None
        None: nothing is written.

    Raises
    ------
    StorageError
        It cannot be written. Later failures are warnings: a run does not end for want of its metrics.
    """

    def __init__(self, path: str | None) -> None:
        self._path = None if path is None else Path(path)
        self._last_success = None if self._path is None else _last_success(self._path)
        self._begun = False
        self._in_work = InWork()
        # Parts are recorded by one thread while the next one is scored by another, and both write.
        self._lock = Lock()

    def write(self, manifest: RunManifest, in_work: InWork | None = None) -> None:
        """Replace the file by what a manifest says now, and what is known of parts in work, or was known last."""
        if self._path is None:
            return
        with self._lock:
            self._in_work = in_work or self._in_work
            self._write(self._path, manifest)

    def _write(self, path: Path, manifest: RunManifest) -> None:
        if manifest.state == "finished":
            self._last_success = time.time()
        try:
            with storage_errors(f"writing --metrics-file {path}"):
                write_text_atomically(path, metrics_text(manifest, self._in_work, last_success=self._last_success))
        except StorageError as error:
            if not self._begun:
                raise
            log.warning("metrics_not_written", extra={"path": str(path), "reason": error.found})
        self._begun = True


class MeteredReporter:
    """Passes progress on to another reporter, and rewrites the metrics while a part is in work.

    Parameters
    ----------
    reporter : Reporter
        Who is told.
    metrics, manifest : MetricsFile, RunManifest
        What is written, and of which run.
    interval_s : float
        Seconds between two writes at least.
    """

    def __init__(
        self, reporter: Reporter, metrics: MetricsFile, manifest: RunManifest, interval_s: float = INTERVAL_S
    ) -> None:
        self._reporter = reporter
        self._metrics = metrics
        self._manifest = manifest
        self._interval = interval_s
        self._written = time.monotonic()
        self._in_work = InWork()

    def start(self, queries: int) -> None:
        """Pass it on."""
        self._in_work = InWork(sum(part.queries for part in self._manifest.parts))
        self._reporter.start(queries)

    def advance(self, queries: int, error_bound: float | None = None) -> None:
        """Pass it on; write when the last time is an interval ago."""
        self._reporter.advance(queries, error_bound)
        self._in_work = InWork(
            self._in_work.queries_scored + queries, larger(self._in_work.largest_error_bound, error_bound)
        )
        now = time.monotonic()
        if now - self._written >= self._interval:
            self._written = now
            self._metrics.write(self._manifest, self._in_work)

    def finish(self) -> None:
        """Pass it on."""
        self._reporter.finish()


def metrics_text(manifest: RunManifest, in_work: InWork | None = None, *, last_success: float | None) -> str:
    """Return a manifest in the text format of Prometheus.

    Parameters
    ----------
    manifest : RunManifest
    in_work : InWork, optional
    last_success : float, optional
        Seconds since 1970 when a run that wrote to this file finished last; None if none ever did.
    """
    backend = manifest.backend.name if manifest.backend else ""
    facts = {
        "version": manifest.seedrank_version,
        "method": str(manifest.options["method"].value),
        "backend": backend,
        "run_id": manifest.run_id or "",
        "run_key": manifest.run_key or "",
    }
    statuses = manifest.queries.by_status if manifest.queries else {}
    candidates = sum(part.candidates for part in manifest.parts)
    total = manifest.queries.total if manifest.queries else 0
    finished = sum(part.queries for part in manifest.parts)
    bounds = [part.largest_error_bound for part in manifest.parts]
    in_work = in_work or InWork()
    bound = reduce(larger, bounds, in_work.largest_error_bound)
    lines = [
        *_family("run_info", "gauge", "The run; always 1.", [(facts, 1)]),
        *_family("run_state", "gauge", "1 for the state the run is in.", _states(manifest.state)),
        *_family("queries_planned", "gauge", "Queries of the run.", [({}, total)]),
        *_family(
            "queries_total", "counter", "Finished queries.", [({"status": name}, n) for name, n in statuses.items()]
        ),
        *_family(
            "queries_scored",
            "gauge",
            "Queries whose results are there, those of parts in work among them.",
            [({}, max(finished, in_work.queries_scored))],
        ),
        *(
            []
            if bound is None
            else _family("largest_error_bound", "gauge", "Largest error bound of these queries.", [({}, bound)])
        ),
        *_family(
            "queries_taken_over",
            "gauge",
            "Queries whose results are those of an earlier run.",
            [({}, manifest.queries.taken_over if manifest.queries else 0)],
        ),
        *_family("candidates_total", "counter", "Candidates in finished parts.", [({}, candidates)]),
        *_family("parts_planned", "gauge", "Parts of the run.", [({}, manifest.parts_planned or 0)]),
        *_family("parts_done", "gauge", "Finished parts.", [({}, len(manifest.parts))]),
        *_family("seconds", "gauge", "Seconds by stage.", [({"stage": k}, v) for k, v in manifest.timings_s.items()]),
        *_family("peak_memory_bytes", "gauge", "Largest resident size so far.", [({}, peak_memory())]),
        *_family("last_update_timestamp_seconds", "gauge", "When this was written.", [({}, round(time.time(), 3))]),
    ]
    if last_success is not None:
        name = _SUCCESS.removeprefix("seedrank_")
        lines += _family(name, "gauge", "When a run finished last.", [({}, round(last_success, 3))])
    return "\n".join(lines) + "\n"


def _states(state: str) -> list[tuple[Mapping[str, str], float]]:
    return [({"state": name}, int(name == state)) for name in STATES]


def _family(name: str, kind: str, text: str, samples: list[tuple[Mapping[str, str], float]]) -> Iterator[str]:
    yield f"# HELP seedrank_{name} {text}"
    yield f"# TYPE seedrank_{name} {kind}"
    for labels, value in samples:
        inside = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
        yield f"seedrank_{name}{{{inside}}} {value}" if inside else f"seedrank_{name} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _last_success(path: Path) -> float | None:
    """What an earlier run wrote, so that one that fails does not take it away."""
    try:
        found = re.search(rf"^{_SUCCESS} ([\d.]+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    except (OSError, UnicodeDecodeError):
        return None
    return None if found is None else float(found[1])
