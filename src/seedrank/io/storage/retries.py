"""Trying again what a storage refused for a moment, and telling that from what it refuses for good."""

from __future__ import annotations

import errno
import logging
import random
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from seedrank.redaction import redacted

log = logging.getLogger(__name__)

ResultT = TypeVar("ResultT")

#: Attempts of one operation; with the waits between them about 8 seconds on average, 16 at most, to which come
#: the time limits and attempts of the storage's own client.
ATTEMPTS = 6
FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 8.0

#: Of HTTP: request timeout, too early, too many requests, and what servers say of themselves.
_TRANSIENT_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})
#: What storages answer beside a status, or instead of it.
_TRANSIENT_CODES = frozenset(
    {
        "InternalError",
        "InternalFailure",
        "ServiceUnavailable",
        "SlowDown",
        "RequestTimeout",
        "RequestTimeoutException",
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "RequestLimitExceeded",
        "TooManyRequestsException",
        "BandwidthLimitExceeded",
        "IncompleteBody",
        "BadDigest",
        "XAmzContentSHA256Mismatch",
        "OperationAborted",
    }
)
#: Classes of clients for a connection that failed or was cut; by name, as the clients are optional.
_TRANSIENT_CLASSES = frozenset(
    {
        # botocore, urllib3
        "ConnectionError",
        "EndpointConnectionError",
        "ConnectTimeoutError",
        "ReadTimeoutError",
        "ConnectionClosedError",
        "HTTPClientError",
        "ResponseStreamingError",
        "IncompleteReadError",
        "ResponseParserError",
        "ProtocolError",
        # aiohttp; the first is an answer that was cut, and has a code that nobody sent
        "HttpProcessingError",
        "ClientConnectionError",
        "ClientPayloadError",
        # http.client, azure
        "IncompleteRead",
        "ServiceRequestError",
        "ServiceResponseError",
    }
)
_PERMANENT_CLASSES = frozenset({"NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError"})
_TRANSIENT_ERRNOS = frozenset(
    {
        errno.EAGAIN,
        errno.EBUSY,
        errno.ECONNABORTED,
        errno.ECONNREFUSED,
        errno.ECONNRESET,
        errno.EHOSTUNREACH,
        errno.EIO,
        errno.ENETDOWN,
        errno.ENETRESET,
        errno.ENETUNREACH,
        errno.EPIPE,
        errno.ETIMEDOUT,
        getattr(errno, "EREMOTEIO", errno.EIO),
    }
)


def retried(action: Callable[[], ResultT], *, what: str) -> ResultT:
    """Run an action of a storage, again and again while it fails for reasons that may pass.

    Between two attempts lies a random time of up to `FIRST_WAIT_S`, which doubles up to `LONGEST_WAIT_S` (exponential
    backoff with full jitter, so that many jobs that were refused together do not come back together).

    Parameters
    ----------
    action : must be safe to repeat, also after an attempt of which the answer was lost.
    what : what is done, for the log.

    Raises
    ------
    Exception
        What the last of `ATTEMPTS` attempts raised, or the first one that `is_transient` calls permanent.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return action()
        except Exception as error:
            if attempt == ATTEMPTS or not is_transient(error):
                raise
            wait = random.random() * min(FIRST_WAIT_S * 2 ** (attempt - 1), LONGEST_WAIT_S)  # noqa: S311  # no secret
            log.warning(
                "storage_retried",
                extra={
                    "action": redacted(what),
                    "attempt": attempt,
                    "wait_s": round(wait, 2),
                    "reason": redacted(f"{type(error).__name__}: {error}"),
                },
            )
            pause(wait)
    raise AssertionError  # the last attempt returns or raises


def pause(seconds: float) -> None:
    """Wait; by itself so that tests need not."""
    time.sleep(seconds)


def is_transient(error: BaseException) -> bool:
    """Whether an error of a storage may pass by itself: timeouts, 5xx, throttling, a connection that broke.

    The client's own exception often lies beneath the one that fsspec makes of it, so the whole chain counts; what is
    permanent anywhere in it (no permission, no such bucket or key, no credentials) decides.
    """
    verdicts = [_verdict(link) for link in _chain(error)]
    return False not in verdicts and True in verdicts


def _chain(error: BaseException) -> Iterator[BaseException]:
    link: BaseException | None = error
    while link is not None:
        yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def _verdict(error: BaseException) -> bool | None:
    """True for transient, False for permanent, None where the exception alone does not tell."""
    names = {kind.__name__ for kind in type(error).__mro__}
    if names & _PERMANENT_CLASSES or isinstance(
        error, FileNotFoundError | PermissionError | FileExistsError | IsADirectoryError | NotADirectoryError
    ):
        return False
    if names & _TRANSIENT_CLASSES or isinstance(error, TimeoutError | ConnectionError):
        return True
    code, status = _answer(error)
    if code in _TRANSIENT_CODES or status in _TRANSIENT_STATUS:
        return True
    if code is not None or status is not None:
        return False
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno in _TRANSIENT_ERRNOS
    return None


def _answer(error: BaseException) -> tuple[str | None, int | None]:
    """Code and HTTP status that a storage answered, in the forms of botocore, aiohttp, gcsfs and azure."""
    response = getattr(error, "response", None)
    if isinstance(response, dict):
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        code = str(response.get("Error", {}).get("Code", "")) or None
        return code, int(code) if code is not None and code.isdigit() else status
    for name in ("status_code", "status", "code"):
        value = getattr(error, name, None)
        if isinstance(value, int | str) and str(value).isdigit():
            return None, int(value)
    return None, None
