"""One writer per prefix of an object store: an object ``_lock`` that its holder renews while it lives.

Object stores have no locks that end with a process. So whoever writes puts ``_lock`` (by a conditional put, where the
store has that), renews it every `BEAT_S` seconds, and looks at it before each put of its own. Another run that finds a
``_lock`` watches it: if it is renewed, its holder is alive and the other run is refused; if it is not for `LEASE_S`
seconds, its holder is dead and the lock is taken over. No clock of another machine matters. A dead holder of the same
machine is recognised at once by its process number.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seedrank.errors import ConfigError, SeedrankError
from seedrank.io.storage import retries
from seedrank.io.storage.objects import ObjectFolder

log = logging.getLogger(__name__)

LOCK_KEY = "_lock"
#: Seconds between two renewals, and without a renewal until a lock is taken over.
BEAT_S = 15.0
LEASE_S = 60.0
#: Seconds between two looks at somebody else's lock, and for which a lock that was taken over must stay ours.
LOOK_S = 2.0
SETTLE_S = 1.0

#: Holders of this process, to tell a thread that writes from one that could not remove its lock.
_held: set[str] = set()


@dataclass(frozen=True)
class Lease:
    """The right to write below a prefix.

    Attributes
    ----------
    objects : the prefix.
    holder : what identifies this holder among all that ever were.
    key : the lock; of a range of parts (`seedrank.io.run.range_lease`) it is not that of the whole prefix.
    """

    objects: ObjectFolder
    holder: str = field(default_factory=lambda: uuid.uuid4().hex)
    key: str = LOCK_KEY

    def check(self) -> None:
        """Look whether the prefix is still ours; to be called before every put.

        Raises
        ------
        ConfigError
            Another run has taken it over, or somebody has removed the lock. Nothing more may be written.
        """
        found = _parsed(self.objects.read(self.key))
        if found.get("holder") != self.holder:
            whom = f"{_who(found)} has taken over" if found else "somebody has removed the lock of"
            raise ConfigError(
                f"{whom} {self.objects.url}, which this run was writing",
                expected="one run at a time for an output prefix",
                fix="leave the prefix to that run, or end it and run the same command again",
            )

    def content(self, beat: int) -> bytes:
        """Return what the lock holds: the holder, how often it was renewed, and whom to ask about it."""
        told = {"holder": self.holder, "beat": beat, "process": os.getpid(), "host": socket.gethostname()}
        return json.dumps({**told, "machine": _machine(), "began": _began(os.getpid())}).encode()


@contextmanager
def leased(objects: ObjectFolder, *, key: str = LOCK_KEY) -> Iterator[Lease]:
    """Be the only writer below a prefix, or of what else a lock is about, for the length of a ``with`` block.

    Raises
    ------
    ConfigError
        Another run is writing there.
    StorageError
        The lock could not be read or written.
    """
    lease = Lease(objects, key=key)
    _held.add(lease.holder)
    try:
        _acquire(lease)
    except BaseException:
        _held.discard(lease.holder)
        raise
    stopped = threading.Event()
    beating = threading.Thread(target=_beat, args=(lease, stopped), name="seedrank-lease", daemon=True)
    beating.start()
    try:
        yield lease
    finally:
        stopped.set()
        beating.join()
        # Left behind, it holds up the next run for as long as a lease lasts.
        with suppress(SeedrankError):
            lease.check()
            objects.remove(key)
        _held.discard(lease.holder)


def _acquire(lease: Lease) -> None:
    objects, key = lease.objects, lease.key
    while not objects.create(key, lease.content(0)):
        found = objects.read(key)
        if found is None or not _outlived(objects, key, found):
            continue
        objects.write(key, lease.content(0))
        # Of several that took it over in this moment the last one has it, and the others see that.
        retries.pause(SETTLE_S)
        lease.check()
        return


def settle_lock(objects: ObjectFolder, key: str) -> None:
    """Remove a lock that a dead process left; a living holder of it finds that out before its next put.

    Raises
    ------
    ConfigError
        The holder is alive.
    """
    found = objects.read(key)
    if found is not None and _outlived(objects, key, found):
        objects.remove(key)


def _outlived(objects: ObjectFolder, key: str, found: bytes) -> bool:
    """Watch a lock until it is certain that its holder is dead; False if it was removed meanwhile.

    Raises
    ------
    ConfigError
        The holder is alive.
    """
    seen = time.monotonic()
    while (alive := _is_alive(found)) is None and time.monotonic() - seen <= LEASE_S:
        log.info("waiting_for_lock", extra={"url": objects.url, "holder": _who(_parsed(found))})
        retries.pause(LOOK_S)
        latest = objects.read(key)
        if latest != found:
            alive = latest is not None
            break
    if alive:
        raise ConfigError(
            f"--out {objects.url} is being written by another process, {_who(_parsed(found))}"
            + ("" if key == LOCK_KEY else f" ({key})"),
            expected="one run at a time for an output prefix",
            fix="wait for it to end or end it, then run the same command again; or choose another --out",
        )
    log.info("lock_of_dead_process", extra={"url": objects.url, "holder": _who(_parsed(found))})
    return objects.read(key) == found


def _beat(lease: Lease, stopped: threading.Event) -> None:
    """Renew a lock until the end, or until it is another's."""
    beat = 0
    while not stopped.wait(BEAT_S):
        beat += 1
        try:
            lease.check()
            lease.objects.write(lease.key, lease.content(beat))
        except ConfigError:
            return  # the run finds out before its next put
        except SeedrankError as error:
            log.warning("lock_not_renewed", extra={"url": lease.objects.url, "reason": error.found})


def _parsed(content: bytes | None) -> dict[str, Any]:
    try:
        found = json.loads(content or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _who(found: dict[str, Any]) -> str:
    return f"number {found.get('process')} on {found.get('host')}"


def _is_alive(content: bytes) -> bool | None:
    """Whether the holder of a lock lives, if it is a process of this machine; None where that cannot be known."""
    found = _parsed(content)
    machine, number = found.get("machine"), found.get("process")
    if machine is None or machine != _machine() or not isinstance(number, int):
        return None
    if number == os.getpid():
        return found.get("holder") in _held
    return _began(number) == found.get("began")


def _machine() -> str | None:
    """Name the boot of this machine and its table of processes; None where there is no such name."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return None


def _began(number: int) -> str | None:
    """When a living process began, in ticks since boot; None if there is none of that number, or nobody tells."""
    try:
        # The name of the program stands in parentheses and may hold anything.
        fields = Path(f"/proc/{number}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]
