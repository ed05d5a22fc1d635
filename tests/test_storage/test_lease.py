"""One writer for a prefix: who is refused, whose lock is taken over, and who finds out that it lost its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from seedrank.errors import ConfigError
from seedrank.io.run import lease as module
from seedrank.io.run.lease import LOCK_KEY, Lease, leased
from seedrank.io.storage.objects import ObjectFolder, object_folder


@pytest.fixture
def objects(monkeypatch: pytest.MonkeyPatch) -> ObjectFolder:
    """An empty prefix in memory."""
    monkeypatch.setattr(MemoryFileSystem, "store", {})
    monkeypatch.setattr(module, "SETTLE_S", 0.0)
    return object_folder("memory://bucket/run", what="--out")


def lock_of(holder: str, **fields: Any) -> bytes:
    return json.dumps({"holder": holder, "beat": 0, "process": 7, "host": "elsewhere", **fields}).encode()


def test_it_is_there_while_somebody_writes_and_gone_after(objects: ObjectFolder) -> None:
    with leased(objects) as lease:
        found = json.loads(objects.read(LOCK_KEY) or b"")
        assert (found["holder"], found["process"]) == (lease.holder, os.getpid())
        lease.check()
    assert objects.read(LOCK_KEY) is None


def test_a_second_writer_of_this_process_is_refused_at_once(objects: ObjectFolder, waits: list[float]) -> None:
    with leased(objects), pytest.raises(ConfigError, match="is being written by another process"), leased(objects):
        pass
    assert waits == []
    assert objects.read(LOCK_KEY) is None


def test_a_lock_that_this_process_could_not_remove_holds_nobody_up(objects: ObjectFolder) -> None:
    objects.write(LOCK_KEY, Lease(objects).content(0))
    with leased(objects) as lease:
        lease.check()


def test_the_lock_of_a_dead_process_of_this_machine_is_taken_over_at_once(
    objects: ObjectFolder, waits: list[float]
) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        alive = {"process": process.pid, "machine": module._machine(), "began": module._began(process.pid)}
        objects.write(LOCK_KEY, lock_of("dead", **alive))
        with pytest.raises(ConfigError, match=f"number {process.pid}"), leased(objects):
            pass
        process.kill()
        process.wait()
    with leased(objects) as lease:
        lease.check()
    assert waits == [0.0]


def test_a_lock_of_another_machine_that_is_renewed_refuses(
    objects: ObjectFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects.write(LOCK_KEY, lock_of("other"))
    monkeypatch.setattr(
        "seedrank.io.storage.retries.pause", lambda _: objects.write(LOCK_KEY, lock_of("other", beat=1))
    )
    with pytest.raises(ConfigError, match="number 7 on elsewhere"), leased(objects):
        pass
    assert json.loads(objects.read(LOCK_KEY) or b"")["holder"] == "other"


def test_a_lock_of_another_machine_that_is_not_renewed_is_taken_over_after_the_lease(
    objects: ObjectFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects.write(LOCK_KEY, lock_of("other"))
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def wait(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr("seedrank.io.storage.retries.pause", wait)
    with leased(objects) as lease:
        lease.check()
        assert module.LEASE_S < now[0] < module.LEASE_S + 3 * module.LOOK_S
    assert module.LEASE_S > 3 * module.BEAT_S


def test_a_lock_that_is_given_back_while_it_is_watched(objects: ObjectFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    objects.write(LOCK_KEY, lock_of("other"))
    monkeypatch.setattr("seedrank.io.storage.retries.pause", lambda _: objects.remove(LOCK_KEY))
    with leased(objects) as lease:
        lease.check()


def test_of_two_that_take_over_the_last_one_has_it(objects: ObjectFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    objects.write(LOCK_KEY, lock_of("dead", machine=module._machine(), process=2**22 + 1, began="1"))
    monkeypatch.setattr("seedrank.io.storage.retries.pause", lambda _: objects.write(LOCK_KEY, lock_of("faster")))
    with pytest.raises(ConfigError, match="number 7 on elsewhere has taken over"), leased(objects):
        pass
    assert json.loads(objects.read(LOCK_KEY) or b"")["holder"] == "faster"


def test_it_is_renewed_and_a_lost_one_is_neither_renewed_nor_removed(
    objects: ObjectFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BEAT_S", 0.01)
    renewed = threading.Event()
    write = ObjectFolder.write

    def noted(self: ObjectFolder, key: str, content: bytes) -> None:
        write(self, key, content)
        if json.loads(content).get("beat", 0) > 1:
            renewed.set()

    monkeypatch.setattr(ObjectFolder, "write", noted)
    with leased(objects) as lease:
        assert renewed.wait(10)
        write(objects, LOCK_KEY, lock_of("other", beat=5))
        time.sleep(0.1)
        with pytest.raises(ConfigError, match="has taken over"):
            lease.check()
    # The heart may have been between looking and writing once; in the end the lock is the other's, or a renewed one.
    assert json.loads(objects.read(LOCK_KEY) or b"")["holder"] in ("other", lease.holder)


def test_what_is_no_lock_is_taken_for_one_of_somebody_unknown(
    objects: ObjectFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects.write(LOCK_KEY, b"\xff not JSON")
    monkeypatch.setattr(module, "LEASE_S", -1.0)
    with leased(objects) as lease:
        lease.check()
