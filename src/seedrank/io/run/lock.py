"""One writer per output folder: a lock that the operating system takes back when its process ends, however it ends."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from seedrank.errors import ConfigError
from seedrank.io.storage.files import storage_errors

log = logging.getLogger(__name__)

#: What file systems without locks answer.
_NO_LOCKS = frozenset({errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK})


@contextmanager
def locked(path: Path, *, shared: bool = False) -> Iterator[None]:
    """Be the only writer of an output folder for the length of a ``with`` block, or one of several that agree.

    The lock is ``flock`` on the file ``.NAME.lock`` beside the folder, so that the folder holds nothing foreign and may
    be moved aside meanwhile. A folder that cannot be moved (a mount point, or one whose parent may not be written) is
    locked itself. The file is removed at the end; one that a killed process left locks nobody out.

    Parameters
    ----------
    path : the output folder; it need not exist, its parent is made.
    shared : whether others that say so, too, may write at the same time; they leave the file where it is.

    Raises
    ------
    ConfigError
        Another process, or another thread of this one, is writing to it.
    StorageError
        The lock file could not be made.
    """

    def refused(holder: str) -> ConfigError:
        return ConfigError(
            f"--out {path} is being written by another process{holder}",
            expected="one run at a time for an output folder" + (", or only ranges of one (--parts)" if shared else ""),
            fix="wait for it to end or end it, then run the same command again; or choose another --out",
        )

    target = Path(os.path.realpath(path))
    fixed = target.is_dir() and (target.is_mount() or not os.access(target.parent, os.W_OK))
    file = target if fixed else target.with_name(f".{target.name}.lock")
    with storage_errors(f"locking {path}"):
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = acquired(file, refused, shared=shared)
    try:
        yield
    finally:
        if not fixed and not shared:
            with suppress(OSError):  # left behind it does no harm
                file.unlink()  # still locked: nobody else can hold this file now
        os.close(descriptor)


@contextmanager
def in_turn(path: Path) -> Iterator[None]:
    """Do something to a path of a cache that others do, too, one after another: waits until it is free.

    The lock is on a file ``.NAME.lock`` beside it, which stays. On a file system without locks nothing is waited for;
    whoever uses this must therefore publish by rename.
    """
    file = path.with_name(f".{path.name}.lock")
    with storage_errors(f"locking {path}"):
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def acquired(file: Path, refused: Callable[[str], ConfigError], *, shared: bool = False) -> int:
    """Open and lock a file or folder at once, or refuse.

    Parameters
    ----------
    file : what is locked; made if need be.
    refused : makes the error out of what is known of the holder, "" or ", number N on HOST".
    shared : whether others that say so, too, may hold it at the same time.

    Returns
    -------
    int
        The descriptor that holds the lock until it is closed.

    Raises
    ------
    ConfigError
        Somebody else holds it.
    """
    operation = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB
    while True:
        descriptor = os.open(file, os.O_RDONLY) if file.is_dir() else os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(descriptor, operation)
        except BlockingIOError:
            holder = _holder(descriptor)
            os.close(descriptor)
            raise refused(holder) from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                os.close(descriptor)
                raise
            log.warning("folder_not_locked", extra={"path": str(file), "reason": error.strerror})
            return descriptor
        if _is_still(file, descriptor):
            _sign(descriptor)
            return descriptor
        os.close(descriptor)  # its last holder removed it between our opening and our locking: lock its successor


def _is_still(file: Path, descriptor: int) -> bool:
    """Whether the path still names what was opened."""
    try:
        return os.path.samestat(file.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _sign(descriptor: int) -> None:
    """Leave word of who holds the lock, for the message that others get; a folder takes none."""
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()} {socket.gethostname()}".encode(), 0)


def _holder(descriptor: int) -> str:
    """Name the holder, if it has left word."""
    try:
        number, host = os.pread(descriptor, 1000, 0).decode(errors="replace").split()
    except (OSError, ValueError):  # a folder, or not written yet
        return ""
    return f", number {number} on {host}"
