"""What is tried again, how often, and how long is waited; the forms in which storages say what is wrong."""

from __future__ import annotations

import errno
import random
from typing import Any

import pytest

from seedrank.io.storage import retries
from seedrank.io.storage.retries import ATTEMPTS, FIRST_WAIT_S, LONGEST_WAIT_S, is_transient, retried


class ClientError(Exception):
    """As botocore makes it."""

    def __init__(self, code: str, status: int) -> None:
        super().__init__(code)
        self.response = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}


class NoCredentialsError(Exception):
    """As botocore calls it."""


class ReadTimeoutError(Exception):
    """As botocore and urllib3 call it."""


class StatusError(Exception):
    """As gcsfs (``code``), aiohttp (``status``) and azure (``status_code``) make it."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(str(fields))
        vars(self).update(fields)


def caused(outer: Exception, by: Exception) -> Exception:
    outer.__cause__ = by
    return outer


@pytest.mark.parametrize(
    "error",
    [
        ClientError("InternalError", 500),
        ClientError("SlowDown", 503),
        ClientError("503", 503),
        ClientError("RequestTimeout", 400),
        StatusError(code=429),
        StatusError(status=502),
        StatusError(status_code=503),
        StatusError(code="503"),
        ReadTimeoutError(),
        ConnectionResetError(),
        TimeoutError(),
        OSError(errno.EBUSY, "slow down"),
        OSError(errno.EIO, "cut"),
        caused(OSError(errno.EIO, "internal error"), ClientError("InternalError", 500)),
        caused(ValueError("unreadable answer"), ConnectionResetError()),
    ],
    ids=repr,
)
def test_what_may_pass(error: Exception) -> None:
    assert is_transient(error)


@pytest.mark.parametrize(
    "error",
    [
        ClientError("AccessDenied", 403),
        ClientError("NoSuchBucket", 404),
        ClientError("404", 404),
        ClientError("NotImplemented", 501),
        StatusError(status=403),
        NoCredentialsError(),
        PermissionError(),
        FileNotFoundError(),
        FileExistsError(),
        OSError(errno.ENOSPC, "full"),
        OSError("what?"),
        ValueError("a bug"),
        caused(OSError(errno.EIO, "something"), ClientError("AccessDenied", 403)),
        caused(ConnectionError(), NoCredentialsError()),
    ],
    ids=repr,
)
def test_what_does_not_pass(error: Exception) -> None:
    assert not is_transient(error)


def failing(times: int, error: Exception) -> Any:
    left = [times]

    def action() -> str:
        if left[0]:
            left[0] -= 1
            raise error
        return "done"

    return action


def test_waits_grow_and_end(monkeypatch: pytest.MonkeyPatch, waits: list[float]) -> None:
    monkeypatch.setattr(random, "random", lambda: 1.0)
    assert retried(failing(ATTEMPTS - 1, TimeoutError()), what="x") == "done"
    assert waits == [min(FIRST_WAIT_S * 2**n, LONGEST_WAIT_S) for n in range(ATTEMPTS - 1)]
    assert sum(waits) < 30
    waits.clear()
    monkeypatch.setattr(random, "random", lambda: 0.25)
    with pytest.raises(TimeoutError):
        retried(failing(ATTEMPTS, TimeoutError()), what="x")
    assert waits[0] == FIRST_WAIT_S / 4
    assert len(waits) == ATTEMPTS - 1


def test_what_does_not_pass_is_not_tried_again(waits: list[float]) -> None:
    with pytest.raises(PermissionError):
        retried(failing(1, PermissionError()), what="x")
    assert waits == []


def test_interrupts_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(retries, "pause", interrupt)
    with pytest.raises(KeyboardInterrupt):
        retried(failing(9, TimeoutError()), what="x")
