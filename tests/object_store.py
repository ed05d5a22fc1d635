"""A real S3 API on loopback (moto's server), with faults between it and its clients."""

from __future__ import annotations

import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import parse_qs, unquote

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seedrank.io.storage import retries

SECRET = "sEcret/of+the/tests"  # noqa: S105  # of a server on loopback
ERROR = "<?xml version='1.0'?><Error><Code>{code}</Code><Message>{code} of the tests</Message></Error>"
STATUS = {
    "InternalError": "500 Internal Server Error",
    "ServiceUnavailable": "503 Service Unavailable",
    "SlowDown": "503 Slow Down",
    "AccessDenied": "403 Forbidden",
}
EMPTY_LISTING = (
    "<?xml version='1.0'?><ListBucketResult><Name>b</Name><KeyCount>0</KeyCount><MaxKeys>1000</MaxKeys>"
    "<IsTruncated>false</IsTruncated></ListBucketResult>"
)


@dataclass(frozen=True)
class Request:
    """What a client asks: method, bucket/key, and for a listing its prefix."""

    method: str
    path: str
    prefix: str | None

    @property
    def is_listing(self) -> bool:
        return self.prefix is not None


@dataclass
class Faults:
    """A WSGI application that stands before another one and lets requests go wrong.

    ``fail(kind, when, times)``: the next ``times`` requests for which ``when`` holds end by an error code of S3, or

    - ``timeout``: no answer in time; ``cut``: the connection is cut in the middle of a put, or of an answer;
    - ``lost``: the request is carried out, its answer is lost; ``empty``: a listing that lags behind;
    - a function: it is called, and the request is carried out.
    """

    app: Callable[..., Iterable[bytes]]
    rules: list[list[Any]] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    #: Whether a role that sees only one prefix asks: what it may not list it may not look at either.
    only_prefix: str | None = None
    #: What the policy of a role permits, in place of `only_prefix`.
    policy: Callable[[Request], bool] | None = None
    #: How long clients wait for an answer; long enough for a machine that is busy.
    timeout_s: float = 30.0

    def fail(self, kind: str | Callable[[], None], when: Callable[[Request], bool], times: int = 10**6) -> None:
        self.rules.append([kind, when, times])

    def clear(self) -> None:
        self.rules.clear()
        self.requests.clear()
        self.only_prefix = self.policy = None

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        query = parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True)
        path = unquote(environ["PATH_INFO"]).lstrip("/")
        prefix = query.get("prefix", [""])[0] if "list-type" in query or "prefix" in query else None
        request = Request(environ["REQUEST_METHOD"], path.encode("latin-1").decode(), prefix)
        self.requests.append(request)
        limited = self.only_prefix is not None or self.policy is not None
        if limited and not self._permitted(request):
            return self._error("AccessDenied", environ, start_response)
        for rule in self.rules:
            kind, when, times = rule
            if times > 0 and when(request):
                rule[2] -= 1
                if callable(kind):
                    kind()
                    break
                return self._fault(kind, environ, start_response)
        if limited:
            return self._hiding_what_is_missing(environ, start_response)
        return self.app(environ, start_response)

    def _permitted(self, request: Request) -> bool:
        if self.policy is not None:
            return self.policy(request)
        assert self.only_prefix is not None
        bucket, _, allowed = self.only_prefix.partition("/")
        if request.path.rstrip("/") == bucket:
            return request.method == "GET" and (request.prefix or "").startswith(allowed + "/")
        return request.path.startswith(self.only_prefix + "/")

    def _hiding_what_is_missing(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answer 403 in place of 404, as S3 does where the role may not list the whole bucket."""
        told: list[Any] = []
        content = b"".join(self.app(environ, lambda *answer: told.extend(answer)))
        if told[0].startswith("404"):
            return self._error("AccessDenied", environ, start_response)
        start_response(*told)
        return [content]

    def _fault(self, kind: str, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        connection: socket.socket = environ["werkzeug.socket"]
        if kind == "timeout":
            time.sleep(self.timeout_s * 1.5)
            _cut(connection)
        if kind == "empty":
            start_response("200 OK", [("Content-Type", "application/xml"), ("Content-Length", str(len(EMPTY_LISTING)))])
            return [EMPTY_LISTING.encode()]
        if kind in ("cut", "lost"):
            if kind == "cut" and environ["REQUEST_METHOD"] == "PUT":
                environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0) // 2)
            elif kind == "cut":
                content = b"".join(self.app(environ, start_response))
                return _halved(content, connection)
            else:
                list(self.app(environ, lambda *_: None))
            _cut(connection)
        return self._error(kind, environ, start_response)

    @staticmethod
    def _error(code: str, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        content = b"" if environ["REQUEST_METHOD"] == "HEAD" else ERROR.format(code=code).encode()
        start_response(STATUS[code], [("Content-Type", "application/xml"), ("Content-Length", str(len(content)))])
        return [content]


def _halved(content: bytes, connection: socket.socket) -> Iterator[bytes]:
    yield content[: len(content) // 2]
    _cut(connection)


def _cut(connection: socket.socket) -> NoReturn:
    connection.shutdown(socket.SHUT_RDWR)
    raise ConnectionResetError  # the server takes it for a client that has gone


@dataclass(frozen=True)
class S3:
    """A bucket of one's own on the server, and what a client in another process needs to know."""

    bucket: str
    faults: Faults
    environment: dict[str, str]
    filesystem: Any

    def url(self, key: str) -> str:
        return f"s3://{self.bucket}/{key}"

    def content(self, key: str) -> dict[str, bytes]:
        """Every object below a key, by its name relative to it."""
        self.filesystem.invalidate_cache()
        below = f"{self.bucket}/{key}/"
        return {name.removeprefix(below): self.filesystem.cat_file(name) for name in self.filesystem.find(below)}


@pytest.fixture(scope="session")
def server() -> Iterator[tuple[Faults, str]]:
    """The server, for all tests of this process, and its address."""
    moto = pytest.importorskip("moto.server")
    serving = pytest.importorskip("werkzeug.serving")

    class Quiet(serving.WSGIRequestHandler):  # type: ignore[misc, name-defined]
        def log(self, *_: Any) -> None:
            """Requests are no news."""

    faults = Faults(moto.DomainDispatcherApplication(moto.create_backend_app))
    made = serving.make_server("127.0.0.1", 0, faults, threaded=True, request_handler=Quiet)
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield faults, f"http://127.0.0.1:{made.server_port}"
    made.shutdown()
    made.server_close()
    thread.join()


@pytest.fixture
def s3(server: tuple[Faults, str], monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[S3]:
    """An empty bucket; clients do not try again by themselves. A parameter is how long they wait for an answer."""
    s3fs = pytest.importorskip("s3fs")
    faults, address = server
    environment = {
        "AWS_ACCESS_KEY_ID": "key-of-the-tests",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL_S3": address,
        "AWS_MAX_ATTEMPTS": "1",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    faults.timeout_s = getattr(request, "param", Faults.timeout_s)
    monkeypatch.setitem(fsspec.config.conf, "s3", {"config_kwargs": {"read_timeout": faults.timeout_s}})
    monkeypatch.setattr(s3fs.S3FileSystem, "retries", 1)
    faults.clear()
    bucket = f"bucket-{uuid.uuid4().hex[:12]}"
    filesystem = fsspec.filesystem("s3")
    filesystem.mkdir(bucket)
    yield S3(bucket, faults, environment, filesystem)
    faults.clear()


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that were to be waited between attempts, which nobody waits for."""
    asked: list[float] = []
    monkeypatch.setattr(retries, "pause", asked.append)
    return asked


@pytest.fixture(scope="session")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph of 40 nodes as edges.parquet, and hits.parquet with 20 queries."""
    folder = tmp_path_factory.mktemp("inputs")
    generator = np.random.default_rng(3)
    edges = {name: generator.integers(0, 40, 200) for name in ("src", "dst")}
    pq.write_table(pa.table({**edges, "weight": generator.random(200)}), folder / "edges.parquet")
    hits = {"query_id": np.arange(20), "node_id": generator.integers(0, 40, 20)}
    pq.write_table(pa.table(hits), folder / "hits.parquet")
    return folder
