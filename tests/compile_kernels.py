"""Compiles the kernels of the cpu backend: ``python tests/compile_kernels.py``, before the tests of a fresh clone.

Each is compiled once, by one of as many processes as there are processors, and kept for all that come later. Tests
that run side by side would compile the same ones at the same time, and so would the processes that they start. A
kernel that is missing here costs time only.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args
from unittest import mock

import numpy as np
import pyarrow as pa

import seedrank
from seedrank.config.names import Precision
from seedrank.kernels.building import adjacency

NODES = 2500
#: Queries of a job: blocks have 16, 32 or 64 columns.
WIDTHS = (1, 20, 40)
#: Jobs that share kernels with each other, and hardly any with others; what takes longest first.
GROUPS = ("ppr float32", "ppr float64", "dfs", "walk", "bfs", "neighbors", "build")


def edges(columns: str) -> pa.Table:
    """A ring with shortcuts, and some of the columns ``weight`` and ``type``."""
    node = np.arange(4 * NODES)
    table = pa.table({"src": node // 4, "dst": (node // 4 + np.take((1, 2, 5, 11), node % 4)) % NODES})
    if "weight" in columns:
        table = table.append_column("weight", pa.array(1.0 + node % 3))
    if "type" in columns:
        table = table.append_column("type", pa.array(["x", "y"] * (2 * NODES)))
    return table


def hits(queries: int) -> pa.Table:
    """Two seeds for each query."""
    return pa.table({"query_id": np.arange(2 * queries) // 2, "node_id": np.arange(2 * queries) % NODES})


def jobs(group: str) -> Iterator[dict[str, Any]]:
    """Arguments of `seedrank.score` that need all kernels of a group."""
    method, _, precision = group.partition(" ")
    if method != "ppr":
        for each in get_args(Precision):
            yield {"graph": edges(""), "queries": hits(1), "method": method, "precision": each, "paths": True}
        return
    for graph in (edges(""), edges("weight")):
        common = {"graph": graph, "precision": precision, "direction": "both"}
        for width in WIDTHS:
            yield {"queries": hits(width), "max_iterations": 20, "tolerance": 1e-9, **common}
        yield {"queries": hits(1), "restart": (0.2, 0.6), "max_hops": 2, **common}


def compile_group(group: str) -> tuple[str, float]:
    """Run the jobs of a group; returns it with the seconds that took."""
    begun = time.perf_counter()
    with TemporaryDirectory() as folder, mock.patch.object(adjacency, "COMPILED_ROWS", 0):
        if group == "build":
            for number, columns in enumerate(("", "weight", "type", "weight and type")):
                for often in (1, 2):
                    seedrank.build([edges(columns)] * often, out=Path(folder, f"{number} {often}"))
        else:
            for number, job in enumerate(jobs(group)):
                seedrank.score(**job, out=Path(folder, str(number)))
    return group, time.perf_counter() - begun


def main() -> None:
    """Compile everything, and say how long it took."""
    with ProcessPoolExecutor(os.cpu_count(), mp_context=multiprocessing.get_context("spawn")) as pool:
        for group, seconds in pool.map(compile_group, GROUPS):
            sys.stdout.write(f"{seconds:6.1f} s  kernels of {group}\n")


if __name__ == "__main__":
    main()
