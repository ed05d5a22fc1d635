"""Times of the gpu backend: the step beside cuSPARSE and a plain copy, the selection, and a block beside cpu.

    python benchmarks/gpu/times.py                     # RMAT 17 and 20
    python benchmarks/gpu/times.py --scales 10         # a look at whether it runs

Everything ends with a result on the host, so that no time is that of a launch alone.
"""

from __future__ import annotations

import argparse
import importlib
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
from own import Kernels

from seedrank.kernels.backend import Backend
from seedrank.kernels.backends.resolver import create_backend
from seedrank.kernels.ppr import personalized_pagerank

WIDTHS = (8, 16, 32, 64)
STEPS = 10


def fastest(run: Callable[[], object], rounds: int = 5) -> float:
    """Shortest time of a run, in seconds, after one that does not count."""
    times = []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times[1:])


def copied_bytes_per_second(cupy: Any, size: int) -> float:
    """Bytes read and written by a copy within the device."""
    one, two = cupy.zeros(size // 4, np.float32), cupy.zeros(size // 4, np.float32)

    def copy() -> None:
        two[:] = one
        two[:1].get()

    return 2 * size / fastest(copy)


def cusparse_step(cupy: Any, graph: Kernels, width: int) -> float:
    """Seconds of one product as CuPy offers it: columns one after the other in memory."""
    sparse = importlib.import_module("cupyx.scipy.sparse")
    (rows,) = graph.transition.products
    values = graph.transition.inverse_out_weight[rows.columns].astype(np.float32)
    matrix = sparse.csr_matrix(
        (cupy.asarray(values), cupy.asarray(rows.columns), cupy.asarray(rows.offsets.astype(np.int32)))
    )
    block = cupy.asfortranarray(cupy.ones((matrix.shape[1], width), np.float32))

    def steps() -> None:
        result = block
        for _ in range(STEPS):
            result = matrix @ result
        result[:1, :1].get()

    return fastest(steps) / STEPS


def measure(graph: Kernels, edges: int, cupy: Any, queries: Any) -> dict[str, Any]:
    """Times on one graph, by width."""
    device, nodes = create_backend("gpu"), graph.transition.nodes
    start = time.perf_counter()
    device.load(graph.transition, precision="float32", order=graph.order)
    rows: dict[str, Any] = {"upload_s": time.perf_counter() - start, "widths": {}}
    real = not cupy.__version__.endswith("fake")
    for width in WIDTHS:
        block = graph.block(queries[:width])
        device.start(block, restart=0.5)

        def steps() -> None:
            for _ in range(STEPS):
                device.step(measure=False)
            device.step()

        def select(width: int = width) -> None:
            device.select(np.arange(width), k=100, eligible=None, min_score=0.0)

        step = fastest(steps) / (STEPS + 1)
        # Index and factor of every entry, a gathered row of the block, and both blocks once.
        useful = edges * (8 + 4 * width) + 8 * nodes * width
        rows["widths"][width] = {
            "step_s": step,
            "edge_columns_per_s": edges * width / step,
            "useful_bytes_per_s": useful / step,
            "select_s": fastest(select),
            "cusparse_step_s": cusparse_step(cupy, graph, width) if real else None,
        }
    for name, backend in (("gpu", device), ("cpu", graph.backend("float32"))):
        rows[f"block_of_64_{name}_s"] = fastest(partial(score, backend, graph, queries), rounds=2)
    return rows


def score(backend: Backend, graph: Kernels, queries: Any) -> None:
    """Ten iterations for 64 queries, the top 100 of each."""
    personalized_pagerank(
        backend, graph.block(queries), restart=0.5, max_iterations=10, tolerance=0, k=100, precision="float32"
    )


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scales", type=int, nargs="+", default=[17, 20])
    parser.add_argument("--name", default="gpu", help="of the file in benchmarks/results")
    arguments = parser.parse_args()
    decision = create_backend("gpu")  # refuses with the reason where there is no GPU
    cupy = importlib.import_module("cupy")
    results: dict[str, Any] = {
        "backend": decision.name,
        "device": cupy.cuda.runtime.getDeviceProperties(0)["name"].decode(),
    }
    if not cupy.__version__.endswith("fake"):
        results["copy_bytes_per_s"] = copied_bytes_per_second(cupy, 1 << 30)
    for scale in arguments.scales:
        simple = load_graph(f"rmat{scale}", shared=SHARED, cache=None)
        results[simple.name] = measure(Kernels(simple), simple.edges, cupy, make_queries(simple, 64))
        print(simple.name, results[simple.name])
    print(write_results(arguments.name, {"scales": arguments.scales, "cupy": cupy.__version__}, results))


if __name__ == "__main__":
    main()
