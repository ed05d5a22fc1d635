"""What a run at an object store costs beside one on the local disk, in seconds and in requests (case 62).

    python benchmarks/object_store_requests.py
    python benchmarks/object_store_requests.py --quick

The server is moto's, with the API of S3, in this process on loopback: what it takes is Python's time, not that of a
network, so the requests are the figure that counts. Candidates are compared byte by byte. The data is random. Written
to ``results/object_store.json``.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
from measure import write_results
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

import seedrank


class Quiet(WSGIRequestHandler):
    """A handler whose requests are no news."""

    def log(self, *_: Any) -> None:
        """Say nothing."""


class Counting:
    """A WSGI application that counts requests by method before another one answers them."""

    def __init__(self, application: Callable[..., Iterable[bytes]]) -> None:
        self._application = application
        self.requests: Counter[str] = Counter()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answer a request."""
        self.requests[environ["REQUEST_METHOD"]] += 1
        return self._application(environ, start_response)


def main() -> None:
    """Score to a disk, to the store, and once more to the store, where nothing is left to do."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=100_000, help="(default: %(default)s)")
    parser.add_argument("--queries", type=int, default=5_000, help="(default: %(default)s)")
    parser.add_argument("--parts", type=int, default=20, help="(default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="1,000 nodes, 40 queries, 4 parts")
    chosen = parser.parse_args()
    nodes, queries, parts = (1_000, 40, 4) if chosen.quick else (chosen.nodes, chosen.queries, chosen.parts)
    counting = Counting(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, counting, threaded=True, request_handler=Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.environ |= {
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "of-a-server-on-loopback",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{server.server_port}",
    }
    storage = fsspec.filesystem("s3")
    storage.mkdir("bench")
    generator = np.random.default_rng(62)
    hits = pa.table({"query_id": np.arange(queries), "node_id": generator.integers(0, nodes, queries)})
    runs: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="seedrank-object-store-") as name:
        folder = Path(name)
        edges = {column: generator.integers(0, nodes, 8 * nodes) for column in ("src", "dst")}
        store = seedrank.build(pa.table(edges), out=folder / "graph")
        options: dict[str, Any] = {"part_size": queries // parts, "top_k": 50, "work_dir": str(folder / "work")}
        seedrank.score(store, queries=hits, out=folder / "warm", **options)
        places = {
            "disk": str(folder / "run"),
            "object store": "s3://bench/run",
            "object store, again": "s3://bench/run",
        }
        for label, out in places.items():
            counting.requests.clear()
            begin = time.perf_counter()
            seedrank.score(store, queries=hits, out=out, **options)
            runs[label] = {"seconds": round(time.perf_counter() - begin, 2), "requests": dict(counting.requests)}
            print(label, runs[label], flush=True)
        here = {file.name: file.read_bytes() for file in (folder / "run" / "candidates").iterdir()}
        there = {file: storage.cat_file(f"bench/run/candidates/{file}") for file in here}
    server.shutdown()
    write_results(
        "object_store-quick" if chosen.quick else "object_store",
        {"nodes": nodes, "queries": queries, "parts": parts},
        {"runs": runs, "same_files": here == there},
    )


if __name__ == "__main__":
    main()
