"""The top k of a block on a GPU, beside torch.topk and argpartition.

    python benchmarks/gpu/selection_times.py                # RMAT 20
    python benchmarks/gpu/selection_times.py --scales 10    # a look at whether it runs

The block is what ten steps left, seeds are excluded by `seedrank` alone. torch is compared with where it is installed,
on the same memory. argpartition is CuPy's, which sorts, and NumPy's after the block was copied to the host. Written to
``results/gpu_selection.json``.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from measured import Figures, fastest, is_real

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from graphs import SHARED, load_graph, make_queries
from own import Kernels

from seedrank.kernels.backends.resolver import create_backend

WIDTHS = (32, 64, 128, 256)
TOP_K = 100


def by_torch(block: Any) -> float:
    """Seconds of torch.topk over the rows of a matrix."""
    torch = importlib.import_module("torch")
    matrix = torch.from_dlpack(block)

    def run() -> None:
        torch.topk(matrix, TOP_K, dim=0).indices.cpu()

    return fastest(run)


def by_cupy(cupy: Any, block: Any) -> float:
    """Seconds of CuPy's argpartition, scores negated."""

    def run() -> None:
        cupy.argpartition(-block, TOP_K - 1, axis=0)[:TOP_K].get()

    return fastest(run, rounds=2)


def by_numpy(block: Any) -> float:
    """Seconds of a copy to the host, and of NumPy's argpartition there."""

    def run() -> None:
        scores = np.ascontiguousarray(block.get().T)
        np.argpartition(scores, len(scores[0]) - TOP_K, axis=1)

    return fastest(run, rounds=1)


def measure(figures: Figures, scale: int, cache: Path | None, cupy: Any) -> None:
    """Times on one graph, by width."""
    simple = load_graph(f"rmat{scale}", shared=SHARED, cache=cache)
    graph, queries, name = Kernels(simple), make_queries(simple, max(WIDTHS)), simple.name
    backend: Any = create_backend("gpu")
    backend.load(graph.transition, precision="float32", order=graph.order)
    blocks = {}
    for width in WIDTHS:
        backend.start(graph.block(queries[:width]), restart=0.5)
        for _ in range(10):
            backend.step(measure=False)
        select = partial(backend.select, np.arange(width), k=TOP_K, eligible=None, min_score=0.0)
        figures.put(fastest(select), name, str(width), "select_s")
        if is_real(cupy):
            flat = backend._block.current[: simple.nodes * width]  # noqa: SLF001  # what others are given, too
            blocks[width] = flat.reshape(simple.nodes, width).copy()
    for width, block in blocks.items():
        if importlib.util.find_spec("torch") is not None:
            figures.attempt(partial(by_torch, block), name, str(width), "torch_s")
        figures.attempt(partial(by_numpy, block), name, str(width), "numpy_s")
        figures.attempt(partial(by_cupy, cupy, block), name, str(width), "cupy_s")


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scales", type=int, nargs="+", default=[20])
    parser.add_argument("--cache", type=Path, help="folder of graphs that were generated before")
    parser.add_argument("--name", default="gpu_selection", help="of the file in benchmarks/results")
    arguments = parser.parse_args()
    create_backend("gpu")  # refuses with the reason where there is no GPU
    cupy = importlib.import_module("cupy")
    figures = Figures(arguments.name, {"scales": arguments.scales, "top_k": TOP_K}, cupy)
    for scale in arguments.scales:
        measure(figures, scale, arguments.cache, cupy)
    return figures.end()


if __name__ == "__main__":
    sys.exit(main())
