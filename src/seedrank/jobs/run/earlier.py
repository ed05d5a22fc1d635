"""What stands at the place of a run: the run itself, ranges of its parts, or nothing."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import chain

from seedrank.config import ScoreOptions
from seedrank.errors import InputDataError
from seedrank.io.records import RunManifest
from seedrank.io.run.range_folder import read_range_manifests
from seedrank.io.run.range_objects import read_range_objects
from seedrank.io.run.run_objects import has_objects_parts, read_objects_manifest
from seedrank.io.run.runfolder import MANIFEST_FILE, check_run_replaceable, has_parts, read_manifest
from seedrank.io.storage.objects import object_folder
from seedrank.jobs.locations import local_output, remote_url
from seedrank.jobs.run.resume import unreadable_run
from seedrank.part_span import PartSpan


@dataclass(frozen=True)
class Earlier:
    """The manifests of what was written there before; false where that is nothing.

    Attributes
    ----------
    own : of an earlier attempt at the same: the run as a whole, or the same range of its parts.
    others : of ranges of its parts; for a range also of the run as a whole. Their parts may be taken over.
    """

    own: RunManifest | None = None
    others: tuple[RunManifest, ...] = ()

    def __bool__(self) -> bool:
        return self.own is not None or bool(self.others)

    @property
    def manifests(self) -> tuple[RunManifest, ...]:
        """All of them, the own first."""
        return self.others if self.own is None else (self.own, *self.others)


def earlier_runs(out: str | os.PathLike[str], options: ScoreOptions) -> Earlier:
    """Return what stands at a place and may be gone on with; nothing where a run has to begin.

    Raises
    ------
    ConfigError
        There are parts, but nothing that can be read says of which run; or something that no run wrote.
    """
    if options.overwrite or options.resume == "never":
        return Earlier()
    url = remote_url(out)
    whole = None
    if url is None:
        path = local_output(out)
        name = str(path)
        if not has_parts(path):
            return Earlier()
        check_run_replaceable(path, overwrite=True)
        ranges = read_range_manifests(path)
        try:
            whole = read_manifest(path) if (path / MANIFEST_FILE).exists() else None
        except InputDataError:
            raise unreadable_run(name) from None
    else:
        objects = object_folder(url, what="--out")
        name = objects.url
        if not has_objects_parts(objects):
            return Earlier()
        ranges = read_range_objects(objects)
        try:
            whole = read_objects_manifest(objects)
        except InputDataError:
            raise unreadable_run(name) from None
    found = _among(options.part_span, whole, ranges)
    if not found and options.part_span is None:
        raise unreadable_run(name)
    return found


def _among(span: PartSpan | None, whole: RunManifest | None, ranges: dict[PartSpan, RunManifest]) -> Earlier:
    """Sort out what is our own; what has no part says nothing about those that are there, unless nothing else does."""
    everything = [manifest for manifest in chain([whole], ranges.values()) if manifest is not None]
    planned = [manifest for manifest in everything if manifest.run_key is not None]
    telling = [manifest for manifest in planned if manifest.parts] or planned
    own = whole if span is None else ranges.get(span)
    # A run that failed at the door says nothing of the parts that ranges have written.
    mine = own is not None and (any(own is other for other in telling) or (span is None and not ranges))
    return Earlier(own if mine else None, tuple(other for other in telling if other is not own))
