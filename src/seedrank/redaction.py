"""Credentials out of texts: what is logged, recorded or raised passes through `redacted`."""

from __future__ import annotations

import os
import re
from typing import Any

HIDDEN = "***"

#: Parameters of URLs, connection strings and storage options whose values are secrets, or name an account's key.
_NAMES = (
    r"x-(?:amz|goog)-(?:signature|credential|security-token)|signature|awsaccesskeyid|googleaccessid|sig|"
    r"(?:access_|id_|session_|sas_?)?token|(?:client_|aws_)?secret(?:_?(?:access_)?key)?|aws_session_token|"
    r"password|passwd|pwd|api_?key|(?:shared_?)?(?:account|access)_?key|connection_string"
)
#: ``scheme://user:password@host``; a port is no password. A password may hold slashes and signs of its own.
_USER = re.compile(r"(?P<scheme>[a-z][\w+.-]*:/{2,})[^\s/:@'\"]*:(?!\d+(?:[/?#\s]|$))(?:[^\s/'\"]*|[^\s'\"]*)@", re.I)
#: ``https://token@host``. (``abfs://container@account`` is no credential.)
_TOKEN = re.compile(r"(?P<scheme>https?://)[^\s/@'\"]+@", re.I)
#: ``?sig=…``, ``AccountKey=…;``; but not a partition folder such as ``/token=…/``.
_PARAMETER = re.compile(rf"(?<![/\w-])(?P<name>{_NAMES})=[^\s&'\"<>,;)]*", re.I)
#: ``"secret": "…"``, as options appear in messages of libraries.
_FIELD = re.compile(rf"(?P<name>(?P<quote>['\"])(?:{_NAMES})(?P=quote)\s*:\s*)(?P<mark>['\"]).*?(?P=mark)", re.I)

#: Variables whose values are secrets, wherever they turn up.
_VARIABLES = (
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "FSSPEC_S3_SECRET",
    "FSSPEC_S3_TOKEN",
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_CONNECTION_STRING",
    "AZURE_STORAGE_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
    "AZURE_CLIENT_SECRET",
)
_SHORTEST_SECRET = 8


def redacted(text: str) -> str:
    """Return a text with ``***`` in place of every credential.

    Hidden are users and passwords in URLs, the values of signing parameters (``X-Amz-Signature``, ``sig`` of a shared
    access signature, …), of keys in connection strings and quoted options, and whatever the variables hold that
    cloud libraries read their secrets from. A text without any of these is returned as it is.
    """
    for name in _VARIABLES:
        value = os.environ.get(name, "")
        if len(value) >= _SHORTEST_SECRET:
            text = text.replace(value, HIDDEN)
    if "@" in text:
        text = _TOKEN.sub(rf"\g<scheme>{HIDDEN}@", _USER.sub(rf"\g<scheme>{HIDDEN}@", text))
    if "=" in text:
        text = _PARAMETER.sub(rf"\g<name>={HIDDEN}", text)
    if "'" in text or '"' in text:
        text = _FIELD.sub(rf"\g<name>\g<mark>{HIDDEN}\g<mark>", text)
    return text


def redacted_values(document: Any) -> Any:
    """Return a JSON document with `redacted` texts; keys stay."""
    if isinstance(document, str):
        return redacted(document)
    if isinstance(document, dict):
        return {key: redacted_values(value) for key, value in document.items()}
    if isinstance(document, list):
        return [redacted_values(value) for value in document]
    return document


def without_credentials(error: BaseException) -> BaseException:
    """Return an exception to raise from: the given one, or one of redacted words if its chain holds a credential."""
    link: BaseException | None = error
    while link is not None:
        if redacted(str(link)) != str(link):
            return RuntimeError(redacted(f"{type(error).__name__}: {error}"))
        link = link.__cause__ or link.__context__
    return error
