"""Where a run is written: locked, settled after whatever happened there before, and with the run to go on with."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from seedrank.config import ScoreOptions
from seedrank.io.run.lock import locked
from seedrank.io.run.range_folder import open_range_folder
from seedrank.io.run.range_lease import leased_range, leased_without_ranges
from seedrank.io.run.range_lock import locked_range
from seedrank.io.run.range_objects import RangeObjects
from seedrank.io.run.run_objects import RunObjects, check_objects_replaceable, has_objects_parts
from seedrank.io.run.run_store import RunStore
from seedrank.io.run.runfolder import create_run_folder, recover_replaced, reopen_run_folder
from seedrank.io.storage.objects import object_folder
from seedrank.jobs.locations import local_output, remote_url
from seedrank.jobs.run.earlier import Earlier, earlier_runs
from seedrank.jobs.work_dir import work_folder


@contextmanager
def destination(out: str | os.PathLike[str], options: ScoreOptions) -> Iterator[tuple[RunStore, Earlier]]:
    """Be the only writer of a run, or of a range of its parts, for the length of a ``with`` block.

    Yields
    ------
    store : RunStore
        A run folder, or for a URL a prefix of an object store.
    earlier : Earlier
        What stands there and may be gone on with; nothing where a run begins.

    Raises
    ------
    ConfigError
        Somebody else is writing, or what is there may not be replaced.
    StorageError
        The place cannot be prepared.
    """
    span, url = options.part_span, remote_url(out)
    if url is None:
        path = local_output(out)
        if span is not None:
            with locked_range(path, span):
                earlier = earlier_runs(out, options)
                yield open_range_folder(path, span), earlier
            return
        with locked(path):
            recover_replaced(path)
            earlier = earlier_runs(out, options)
            if earlier:
                yield reopen_run_folder(path), earlier
            else:
                yield create_run_folder(path, overwrite=options.overwrite), earlier
        return
    objects = object_folder(url, what="--out")
    work = work_folder(options.work_dir)
    with leased_without_ranges(objects) if span is None else leased_range(objects, span) as lease:
        earlier = earlier_runs(out, options)
        check_objects_replaceable(objects, overwrite=options.overwrite or bool(earlier) or span is not None)
        store: RunObjects
        if span is not None:
            store = RangeObjects(lease, url=url, work=work, span=span, earlier="resumed" if earlier else "none")
        else:
            place: Literal["none", "replaced", "resumed"] = "resumed"
            if not earlier:
                place = "replaced" if has_objects_parts(objects) else "none"
            store = RunObjects(lease, url=url, work=work, earlier=place)
        try:
            yield store, earlier
        finally:
            store.leave()
