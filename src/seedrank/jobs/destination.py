"""Where a run is written: locked, settled after whatever happened there before, and with the run to go on with."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from seedrank.config import ScoreOptions
from seedrank.io.lease import leased
from seedrank.io.lock import locked
from seedrank.io.objects import object_folder
from seedrank.io.records import RunManifest
from seedrank.io.run_objects import (
    RunObjects,
    check_objects_replaceable,
    has_objects_parts,
    read_objects_manifest,
)
from seedrank.io.run_store import RunStore
from seedrank.io.runfolder import (
    check_run_replaceable,
    create_run_folder,
    has_parts,
    read_manifest,
    recover_replaced,
    reopen_run_folder,
)
from seedrank.jobs.locations import local_output, remote_url
from seedrank.jobs.resume import run_to_go_on_with
from seedrank.jobs.work_dir import work_folder


@contextmanager
def destination(out: str | os.PathLike[str], options: ScoreOptions) -> Iterator[tuple[RunStore, RunManifest | None]]:
    """Be the only writer of a run for the length of a ``with`` block.

    Yields
    ------
    store : RunStore
        A run folder, or for a URL a prefix of an object store.
    earlier : RunManifest or None
        The run that stands there and may be gone on with; None when one begins from nothing.

    Raises
    ------
    ConfigError
        Somebody else is writing, or what is there may not be replaced.
    StorageError
        The place cannot be prepared.
    """
    url = remote_url(out)
    if url is None:
        path = local_output(out)
        with locked(path):
            recover_replaced(path)
            earlier = earlier_run(out, options)
            if earlier is None:
                yield create_run_folder(path, overwrite=options.overwrite), None
            else:
                yield reopen_run_folder(path), earlier
        return
    objects = object_folder(url, what="--out")
    with leased(objects) as lease:
        earlier = earlier_run(out, options)
        check_objects_replaceable(objects, overwrite=options.overwrite or earlier is not None)
        place: Literal["none", "replaced", "resumed"] = "resumed"
        if earlier is None:
            place = "replaced" if has_objects_parts(objects) else "none"
        store = RunObjects(lease, url=url, work=work_folder(options.work_dir), earlier=place)
        try:
            yield store, earlier
        finally:
            store.leave()


def earlier_run(out: str | os.PathLike[str], options: ScoreOptions) -> RunManifest | None:
    """Return the manifest of the run that stands at a place, or None where a run has to begin from nothing.

    Raises
    ------
    ConfigError
        There are parts, but nothing that can be read says of which run; or something that no run wrote.
    """
    if options.overwrite or options.resume == "never":
        return None
    url = remote_url(out)
    if url is None:
        path = local_output(out)
        if not has_parts(path):
            return None
        check_run_replaceable(path, overwrite=True)
        return run_to_go_on_with(str(path), lambda: read_manifest(path))
    objects = object_folder(url, what="--out")
    if not has_objects_parts(objects):
        return None
    return run_to_go_on_with(objects.url, lambda: read_objects_manifest(objects))
