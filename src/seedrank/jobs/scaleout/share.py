"""What one of several processes of this machine has of it: threads, and memory that was granted."""

from __future__ import annotations

from typing import Any

from seedrank.config import ScoreOptions
from seedrank.jobs.resources import processors
from seedrank.jobs.scaleout.devices import visible_devices


def processes_of(options: ScoreOptions) -> int | None:
    """Return how many processes ``--workers`` starts on this machine; None without it.

    Raises
    ------
    ResourceError
        ``--workers gpu`` where there is no GPU that works.
    """
    if options.workers is None:
        return None
    return len(visible_devices()) if options.workers == "gpu" else int(options.workers)


def options_of_one(options: ScoreOptions, processes: int) -> ScoreOptions:
    """Return the options of each of so many processes that share this machine's threads and the memory limit."""
    shared: dict[str, Any] = {
        "threads": options.threads or max(1, processors() // processes),
        "memory_limit": None if options.memory_limit is None else int(options.memory_limit) // processes,
    }
    if options.workers == "gpu" and options.backend == "auto":
        shared["backend"] = "gpu"
    return options.model_copy(update=shared)
