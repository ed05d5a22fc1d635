"""One writer for every part of a run folder while several machines write ranges of parts (`seedrank.part_span`).

Whoever writes a range shares the lock of the folder (`seedrank.io.run.lock`), which a whole run has alone, and holds
``RUN/_ranges/NAME.lock``. Who may have which range is decided by one process after another.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from seedrank.errors import ConfigError
from seedrank.io.run.lock import acquired, in_turn, locked
from seedrank.io.run.part_files import RANGES_FOLDER
from seedrank.io.storage.files import storage_errors
from seedrank.part_span import PartSpan, span_of_name

#: What a lock answers that another holds.
_HELD = frozenset({errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES})


@contextmanager
def locked_range(path: Path, span: PartSpan) -> Iterator[None]:
    """Be the only writer of some parts of a run folder for the length of a ``with`` block.

    Locks of dead processes lock nobody out, however they ended.

    Parameters
    ----------
    path : the run folder; made if need be.
    span : the parts.

    Raises
    ------
    ConfigError
        A whole run, or a range that has one of these parts, too, is being written.
    StorageError
        The lock files could not be made.
    """
    ranges = path / RANGES_FOLDER
    with locked(path, shared=True):
        with storage_errors(f"locking parts {span} of {path}"):
            ranges.mkdir(parents=True, exist_ok=True)
            with in_turn(ranges / "claims"):
                for file in ranges.glob("parts-*.lock"):
                    other = span_of_name(file.stem)
                    if other is not None and other != span and other.overlaps(span):
                        _check_free(file, path, span, other)
                own = ranges / f"{span.name}.lock"
                descriptor = acquired(own, lambda holder: _refused(path, span, span, holder))
        try:
            yield
        finally:
            with suppress(OSError):  # left behind it does no harm
                own.unlink()
            os.close(descriptor)


def ranges_at_work(path: Path) -> set[PartSpan]:
    """Return the ranges of a run folder that are being written; none where the file system has no locks.

    Raises
    ------
    StorageError
        The folder cannot be read.
    """
    ranges, found = path / RANGES_FOLDER, set()
    # In turn with those who take a lock: none of them may find it held by who only looks.
    with in_turn(ranges / "claims"), storage_errors(f"reading {ranges}"):
        for file in ranges.glob("parts-*.lock"):
            span = span_of_name(file.stem)
            if span is not None and _is_held(file):
                found.add(span)
    return found


def _is_held(file: Path) -> bool:
    try:
        descriptor = os.open(file, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in _HELD
    finally:
        os.close(descriptor)
    return False


def _check_free(file: Path, path: Path, span: PartSpan, other: PartSpan) -> None:
    """Refuse a range whose lock is held; a lock that nobody holds is removed."""
    try:
        descriptor = os.open(file, os.O_RDWR)
    except FileNotFoundError:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file.unlink(missing_ok=True)
    except OSError as error:
        # Where the file system has no locks, nobody is locked out.
        if error.errno in _HELD:
            raise _refused(path, span, other, "") from None
    finally:
        os.close(descriptor)


def _refused(path: Path, span: PartSpan, other: PartSpan, holder: str) -> ConfigError:
    return ConfigError(
        f"parts {span} of --out {path} are asked for while another process{holder} writes parts {other}",
        expected="ranges without a common part, where they are computed at the same time",
        fix="wait for it to end or end it, then run the same command again; or choose other --parts",
    )
