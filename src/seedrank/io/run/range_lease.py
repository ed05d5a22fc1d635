"""One writer for every part of a run on an object store while several machines write ranges of parts.

A range has a lock object of its own, ``_ranges/NAME.lock``, that is renewed and looked at as that of a whole run is
(`seedrank.io.run.lease`). Everybody puts the own lock first and looks at those of others then: of two that may not
write at the same time at least one is refused, and both may be, where they begin in the same moment.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from seedrank.errors import ConfigError
from seedrank.io.run.lease import LOCK_KEY, Lease, leased, settle_lock
from seedrank.io.run.part_files import RANGES_FOLDER
from seedrank.io.storage.objects import ObjectFolder
from seedrank.part_span import PartSpan, span_of_name

_SUFFIX = ".lock"


@contextmanager
def leased_range(objects: ObjectFolder, span: PartSpan) -> Iterator[Lease]:
    """Be the only writer of some parts of a run below a prefix for the length of a ``with`` block.

    Raises
    ------
    ConfigError
        A whole run, or a range that has one of these parts, too, is being written.
    StorageError
        A lock could not be read or written.
    """
    with leased(objects, key=f"{RANGES_FOLDER}/{span.name}{_SUFFIX}") as lease:
        settle_lock(objects, LOCK_KEY)
        _settle_ranges(objects, lease, span)
        yield lease


@contextmanager
def leased_without_ranges(objects: ObjectFolder) -> Iterator[Lease]:
    """Be the only writer below a prefix for the length of a ``with`` block, ranges of parts included.

    Raises
    ------
    ConfigError
        Another run, or a range of parts, is being written.
    StorageError
        A lock could not be read or written.
    """
    with leased(objects) as lease:
        _settle_ranges(objects, lease, PartSpan(0, None))
        yield lease


def is_range_at_work(objects: ObjectFolder, span: PartSpan) -> bool:
    """Whether somebody writes a range; takes as long as it takes to see that a holder of its lock is dead.

    Raises
    ------
    StorageError
        The lock could not be read.
    """
    try:
        settle_lock(objects, f"{RANGES_FOLDER}/{span.name}{_SUFFIX}")
    except ConfigError:
        return True
    return False


def _settle_ranges(objects: ObjectFolder, lease: Lease, span: PartSpan) -> None:
    """Remove the locks of dead writers of parts of a span; refuse where one is alive."""
    for key in objects.names():
        folder, _, name = key.partition("/")
        if folder != RANGES_FOLDER or not name.endswith(_SUFFIX) or key == lease.key:
            continue
        other = span_of_name(name.removesuffix(_SUFFIX))
        if other is not None and other.overlaps(span):
            settle_lock(objects, key)
