"""Queries that end the worker which scores them: a preload module of Dask workers, for tests of lost workers.

A worker that is started with ``DASK_DISTRIBUTED__WORKER__PRELOAD`` set to this file reads ``DOOM_FOLDER`` before it
scores a block: a file there named ``always-ID`` makes it kill itself when the query of that (integer) id is in the
block, a file named ``once-ID`` as well, but is removed first. For one named ``wait-ID`` it waits until it is removed.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any


def dask_setup(worker: Any) -> None:
    """Let this worker look for doom; Dask calls this when the worker starts."""
    from seedrank.jobs.operators import blocks  # noqa: PLC0415  # in the worker alone

    folder, score_block = Path(os.environ["DOOM_FOLDER"]), blocks._score_block

    def doomed(queries: Any, query_set: Any, work: Any) -> Any:
        present = set(query_set.query_ids.take(queries).to_pylist())
        for file in folder.glob("*-*"):
            when, _, query = file.name.partition("-")
            if int(query) in present:
                while when == "wait" and file.exists():
                    time.sleep(0.02)
                if when == "once":
                    file.unlink(missing_ok=True)
                if when in ("once", "always"):
                    os.kill(os.getpid(), signal.SIGKILL)
        return score_block(queries, query_set, work)

    blocks._score_block = doomed
