"""Folders of single processes in a folder that many use: what a killed one left is removed by whoever comes next.

Beside each folder is a lock file that its process holds; the operating system takes the lock back when that process
ends, however it ends.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from seedrank.errors import ConfigError
from seedrank.io.run.lock import acquired
from seedrank.io.storage.files import storage_errors

#: Names of such folders. Whatever else lies beside them, as where somebody keeps runs in the folder ``runs`` of a work
#: folder, is nobody's business here.
_NAME = re.compile(r"[0-9a-f]{16}(?:[0-9a-f]{16})?")
_LOCK = re.compile(rf"\.(?P<name>{_NAME.pattern})\.lock")


class Ownership:
    """Of a folder that is about to be made, below another; to be given back when the folder is done with.

    Parameters
    ----------
    place : the folder; its name is 16 or 32 hexadecimal digits that no other process ever uses.

    Raises
    ------
    StorageError
        The lock file cannot be made.
    """

    def __init__(self, place: Path) -> None:
        def refused(holder: str) -> ConfigError:
            return ConfigError(
                f"{place} is used by another process{holder}",
                expected="a name of its own for every process",
                fix="run the same command again",
            )

        self._file = _lock_of(place)
        with storage_errors(f"locking {place}"):
            while True:
                place.parent.mkdir(parents=True, exist_ok=True)
                with suppress(FileNotFoundError):  # whoever tidies up removes folders that are empty
                    self._descriptor = acquired(self._file, refused)
                    break

    def give_back(self) -> None:
        """Let others have it."""
        with suppress(OSError):  # left behind it does no harm
            self._file.unlink()
        os.close(self._descriptor)


def folders_below(parent: Path) -> list[Path]:
    """Return the folders that processes own, or have owned, below another, by their names; also those not made yet."""
    names = set()
    with suppress(OSError):
        for entry in parent.iterdir():
            lock = _LOCK.fullmatch(entry.name)
            if lock:
                names.add(lock["name"])
            elif _NAME.fullmatch(entry.name) and entry.is_dir() and not entry.is_symlink():
                names.add(entry.name)
    return [parent / name for name in sorted(names)]


@contextmanager
def without_owner(place: Path) -> Iterator[bool]:
    """Tell whether the process that owned a folder is gone; if it is, nobody else gets the folder meanwhile.

    Where the file system has no locks nobody can tell, and the folder counts as owned.
    """
    file = _lock_of(place)
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
            return
        yield True
        with suppress(OSError):
            file.unlink()
    finally:
        os.close(descriptor)


def _lock_of(place: Path) -> Path:
    return place.with_name(f".{place.name}.lock")
