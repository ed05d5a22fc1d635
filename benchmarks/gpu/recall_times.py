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
from measured import Figures, fastest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from graphs import SHARED, load_graph, make_queries
from recall import COMMON, RESTART, STEPS, Loaded, load, queries_of, two_hops, walk

from seedrank.kernels.backends.resolver import resolve_backend
from seedrank.kernels.recall.forms import RecallLimits, RecallQueries
from seedrank.kernels.semantic import nearest_vectors
from seedrank.kernels.vectors import Vectors, norms_of

DIMENSIONS = 768


def beside(device: Callable[[], Any], host: Callable[[], Any]) -> dict[str, float]:
    """Times of both, after their results were compared."""
    found, expected = device(), host()
    for name, value in vars(expected).items():
        if not np.array_equal(getattr(found, name), value):
            raise ValueError(f"{name} of the GPU is not that of the CPU")
    gpu_s = fastest(device, rounds=3)
    start = time.perf_counter()
    host()
    cpu_s = time.perf_counter() - start
    return {"gpu_s": gpu_s, "cpu_s": cpu_s, "times_faster": cpu_s / gpu_s}


def recall(figures: Figures, loaded: Loaded, queries: RecallQueries) -> None:
    """Walks of `STEPS` steps an anchor, with and without weights, and traversals of two hops."""
    graphs = importlib.import_module("seedrank.kernels._gpu.recall_graph")
    on_device = importlib.import_module("seedrank.kernels.recall.gpu_walk").random_walk_on_device
    traverse = importlib.import_module("seedrank.kernels.recall.gpu_traverse").breadth_first_on_device
    threads = os.cpu_count() or 1
    setting = {"restart": RESTART, "steps": STEPS, "random_seed": 0, "limits": RecallLimits(), **COMMON}
    for kind, walks in loaded.walks.items():
        uploaded = graphs.upload_recall_graph(walks.graph, walks.cumulative)
        device = partial(on_device, uploaded, queries, **setting)
        host = partial(walk, walks, queries, threads)
        figures.attempt(partial(beside, device, host), loaded.name, f"walk_{kind}")
    figures.put(len(queries.anchors) * STEPS, loaded.name, "steps_of_walks")
    uploaded = graphs.upload_recall_graph(loaded.graph)
    device = partial(traverse, uploaded, queries, hop_decay=0.5, max_hops=2, **COMMON)
    host = partial(two_hops, loaded.graph, queries, threads)
    figures.attempt(partial(beside, device, host), loaded.name, "two_hops")


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


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scales", type=int, nargs="+", default=[17, 20])
    parser.add_argument("--queries", type=int, default=2048)
    parser.add_argument("--vectors", type=int, default=200_000)
    parser.add_argument("--cache", type=Path, help="folder of graphs that were generated before")
    parser.add_argument("--name", default="gpu_recall", help="of the file in benchmarks/results")
    arguments = parser.parse_args()
    resolve_backend("gpu")  # refuses with the reason where there is no GPU
    setting = {"scales": arguments.scales, "queries": arguments.queries, "vectors": arguments.vectors}
    figures = Figures(arguments.name, setting, importlib.import_module("cupy"))
    for scale in arguments.scales:
        simple = load_graph(f"rmat{scale}", shared=SHARED, cache=arguments.cache)
        loaded = load(simple)
        recall(figures, loaded, queries_of(loaded, make_queries(simple, arguments.queries)))
    figures.attempt(partial(search, arguments.vectors), "vectors")
    return figures.end()


if __name__ == "__main__":
    sys.exit(main())
