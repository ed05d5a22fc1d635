"""The step of the gpu backend beside cuSPARSE, and beside what the memory of the device allows.

    python benchmarks/gpu/step_times.py                     # RMAT 20
    python benchmarks/gpu/step_times.py --scales 10         # a look at whether it runs

A step is a product with the whole graph, restart and dangling mass added, columns summed. Beside it: the product alone
by cuSPARSE, column-major as CuPy calls it and row-major. ``useful`` counts what a step has to read and write when no
row of the block is found in a cache; ``floor`` is the time of a copy of what it cannot do without, every number once.
Ten steps a time, and a result on the host at their end. Written to ``results/gpu_steps.json``.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from measured import Figures, copied_bytes_per_second, fastest, is_real

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import cusparse
from graphs import SHARED, load_graph, make_queries
from own import Kernels

from seedrank.kernels.backends.resolver import create_backend

WIDTHS = (32, 64, 128, 256)
STEPS = 10


def useful_bytes(edges: int, nodes: int, width: int) -> int:
    """Number and factor of every source, the row of the block it names, and both blocks once."""
    return edges * (8 + 4 * width) + 8 * nodes * width


def needed_bytes(edges: int, nodes: int, width: int) -> int:
    """Every source once, every offset and factor, and both blocks once."""
    return 4 * edges + 12 * nodes + 8 * nodes * width


def step_time(backend: Any, graph: Kernels, queries: Any) -> float:
    """Seconds of a step of a block."""
    backend.start(graph.block(queries), restart=0.5)

    def steps() -> None:
        for _ in range(STEPS):
            backend.step(measure=False)
        backend.step().mass.sum()  # who reads a sum waits for the step

    return fastest(steps) / (STEPS + 1)


def measure(figures: Figures, scale: int, cache: Path | None, cupy: Any) -> None:
    """Times on one graph, by width; cuSPARSE last, so that its trouble costs nothing else."""
    simple = load_graph(f"rmat{scale}", shared=SHARED, cache=cache)
    graph, queries, name = Kernels(simple), make_queries(simple, max(WIDTHS)), simple.name
    backend = create_backend("gpu")
    start = time.perf_counter()
    backend.load(graph.transition, precision="float32", order=graph.order)
    figures.put(time.perf_counter() - start, name, "upload_s")
    copied = copied_bytes_per_second(cupy) if is_real(cupy) else None
    figures.put(copied, name, "copied_bytes_per_s")
    for width in WIDTHS:
        step = step_time(backend, graph, queries[:width])
        figures.put(step, name, str(width), "step_s")
        figures.put(simple.edges * width / step, name, str(width), "edge_columns_per_s")
        if copied is not None:
            useful = useful_bytes(simple.edges, simple.nodes, width) / step
            figures.put(useful / copied, name, str(width), "useful_bytes_per_copied")
            floor = needed_bytes(simple.edges, simple.nodes, width) / copied
            figures.put(floor, name, str(width), "floor_s")
    if not is_real(cupy):
        return
    matrix = cusparse.upload(graph)
    for width in WIDTHS:
        for kind in ("column_major", "row_major"):
            figures.attempt(partial(library_time, matrix, width, kind), name, str(width), f"cusparse_{kind}_s")


def library_time(matrix: Any, width: int, kind: str) -> float:
    """Seconds of a product by cuSPARSE."""
    return fastest(getattr(cusparse, kind)(matrix, width, STEPS)) / STEPS


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scales", type=int, nargs="+", default=[20])
    parser.add_argument("--cache", type=Path, help="folder of graphs that were generated before")
    parser.add_argument("--name", default="gpu_steps", help="of the file in benchmarks/results")
    arguments = parser.parse_args()
    create_backend("gpu")  # refuses with the reason where there is no GPU
    cupy = importlib.import_module("cupy")
    figures = Figures(arguments.name, {"scales": arguments.scales, "steps": STEPS}, cupy)
    for scale in arguments.scales:
        measure(figures, scale, arguments.cache, cupy)
    return figures.end()


if __name__ == "__main__":
    sys.exit(main())
