"""Times of walks, traversals and products of vectors on a GPU, beside the CPU's.

    python benchmarks/gpu/recall_times.py                  # RMAT 17 and 20
    python benchmarks/gpu/recall_times.py --scales 10 --queries 16 --vectors 2000      # a look at whether it runs

The results of both are compared to the last bit before a time counts. Written to ``results/gpu_recall.json``.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from graphs import SHARED, load_graph, make_queries
from measure import write_results
from recall import COMMON, RESTART, STEPS, Loaded, load, queries_of, two_hops, walk

from seedrank.kernels.backends.resolver import resolve_backend
from seedrank.kernels.recall.forms import RecallLimits, RecallQueries
from seedrank.kernels.semantic import nearest_vectors
from seedrank.kernels.vectors import Vectors, norms_of

DIMENSIONS = 768


def fastest(run: Callable[[], Any], rounds: int = 3) -> tuple[float, Any]:
    """Shortest time of a run, in seconds, after one that does not count; and its result."""
    times, result = [], run()
    for _ in range(rounds):
        start = time.perf_counter()
        result = run()
        times.append(time.perf_counter() - start)
    return min(times), result


def beside(device: Callable[[], Any], host: Callable[[], Any]) -> dict[str, float]:
    """Times of both; ends the program where their results differ."""
    (gpu_s, found), (cpu_s, expected) = fastest(device), fastest(host, rounds=1)
    for name, value in vars(expected).items():
        if not np.array_equal(getattr(found, name), value):
            sys.exit(f"{name} of the GPU is not that of the CPU")
    return {"gpu_s": gpu_s, "cpu_s": cpu_s, "times_faster": cpu_s / gpu_s}


def recall(loaded: Loaded, queries: RecallQueries) -> dict[str, Any]:
    """Walks of `STEPS` steps an anchor, with and without weights, and traversals of two hops."""
    graphs = importlib.import_module("seedrank.kernels._gpu.recall_graph")
    on_device = importlib.import_module("seedrank.kernels.recall.gpu_walk").random_walk_on_device
    traverse = importlib.import_module("seedrank.kernels.recall.gpu_traverse").breadth_first_on_device
    threads, rows = os.cpu_count() or 1, {}
    setting = {"restart": RESTART, "steps": STEPS, "random_seed": 0, "limits": RecallLimits(), **COMMON}
    for kind, walks in loaded.walks.items():
        uploaded = graphs.upload_recall_graph(walks.graph, walks.cumulative)
        rows[f"walk_{kind}"] = beside(
            partial(on_device, uploaded, queries, **setting), partial(walk, walks, queries, threads)
        )
        rate = len(queries.anchors) * STEPS / rows[f"walk_{kind}"]["gpu_s"]
        rows[f"walk_{kind}"]["million_steps_a_second"] = rate / 1e6
    uploaded = graphs.upload_recall_graph(loaded.graph)
    rows["two_hops"] = beside(
        partial(traverse, uploaded, queries, hop_decay=0.5, max_hops=2, **COMMON),
        partial(two_hops, loaded.graph, queries, threads),
    )
    return rows


def search(count: int) -> dict[str, float]:
    """The 100 nearest of some vectors for a hundredth as many queries."""
    device = importlib.import_module("seedrank.kernels.gpu_products").DeviceProducts
    random = np.random.default_rng(1)
    sides = []
    for size in (count // 100, count):
        rows = random.normal(size=(size, DIMENSIONS)).astype(np.float32)
        sides.append(Vectors(rows, np.arange(size), norms_of(rows)))
    run = partial(nearest_vectors, sides[0], sides[1], np.arange(count // 100), k=100)
    return beside(lambda: run(multiply=device(), queries_at_once=device.QUERIES_AT_ONCE), run)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scales", type=int, nargs="+", default=[17, 20])
    parser.add_argument("--queries", type=int, default=2048)
    parser.add_argument("--vectors", type=int, default=200_000)
    parser.add_argument("--name", default="gpu_recall", help="of the file in benchmarks/results")
    arguments = parser.parse_args()
    reason = resolve_backend("gpu").reason  # refuses with the reason where there is no GPU
    results: dict[str, Any] = {"device": reason, "vectors": search(arguments.vectors)}
    print("vectors", results["vectors"])
    for scale in arguments.scales:
        simple = load_graph(f"rmat{scale}", shared=SHARED, cache=None)
        loaded = load(simple)
        results[simple.name] = recall(loaded, queries_of(loaded, make_queries(simple, arguments.queries)))
        print(simple.name, results[simple.name])
    setting = {"scales": arguments.scales, "queries": arguments.queries, "vectors": arguments.vectors}
    print(write_results(arguments.name, setting, results))


if __name__ == "__main__":
    main()
