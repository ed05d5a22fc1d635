"""The fused product of the cpu backend beside a plain product in C: G edge-columns a second, and ratios.

    python benchmarks/product.py --quick
    python benchmarks/product.py                # RMAT 17 and 20

The C code (roofline.c) is compiled when this runs; without gcc its columns stay empty. seedrank's step does more than
the product: it scales, adds the restart and the dangling mass and sums every column. Both are counted over all edges.
"""

from __future__ import annotations

import argparse
import ctypes
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from graphs import SHARED, Int32Array, Int64Array, SimpleGraph, load_graph, make_queries
from measure import alternating_minima, write_results
from own import Kernels
from scipy import sparse

from seedrank.kernels._cpu.layout import ResidentRows, lay_out

WIDTHS = (16, 32, 64)

VARIANTS = {
    "C, layout of seedrank, prefetch 8": ("layout", 8),
    "C, layout of seedrank, prefetch 64": ("layout", 64),
    "C, order of the file, prefetch 8": ("file", 8),
    "C, order of the file, prefetch 64": ("file", 64),
}
"""Order of the nodes, and how many entries ahead the C code prefetches."""

OWN = "seedrank, fused step"
FLAGS = ("-O3", "-march=native", "-ffast-math", "-fopenmp", "-shared", "-fPIC")
SOURCE = Path(__file__).with_name("roofline.c")


def compile_roofline(folder: Path) -> ctypes.CDLL | None:
    """Compile the C code, or return None where there is no gcc."""
    compiler = shutil.which("gcc")
    if compiler is None:
        return None
    library = folder / "roofline.so"
    subprocess.run([compiler, *FLAGS, str(SOURCE), "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


class Rows:
    """A structure-only matrix in one order of the nodes, as the C code wants it."""

    def __init__(self, offsets: Int64Array, columns: Int32Array) -> None:
        self.nodes = len(offsets) - 1
        self.offsets = np.ascontiguousarray(offsets, dtype=np.int64)
        padding = np.zeros(64, dtype=np.int32)
        self.columns = np.concatenate((columns[: offsets[-1]], padding)).astype(np.int32)

    def product(self, library: ctypes.CDLL, x: npt.NDArray[np.float32], ahead: int) -> Callable[[], Any]:
        """The C product with this block, ready to be timed; its first result is compared with SciPy's."""
        width = x.shape[1]
        y = np.empty_like(x)
        arrays: list[npt.NDArray[Any]] = [self.offsets, self.columns, x, y]
        offsets, columns, source, target = (ctypes.c_void_p(array.ctypes.data) for array in arrays)
        function = getattr(library, f"pull{width}")

        def run() -> list[npt.NDArray[Any]]:
            function(ctypes.c_int64(self.nodes), offsets, columns, ctypes.c_int64(ahead), source, target)
            return arrays  # keeps them alive

        run()
        ones = np.ones(int(self.offsets[-1]), dtype=np.float32)
        matrix = sparse.csr_array((ones, self.columns[: len(ones)], self.offsets), shape=(self.nodes, self.nodes))
        column = matrix @ x[:, width - 1].astype(np.float64)
        if not np.allclose(y[:, width - 1], column, rtol=1e-3):
            sys.exit("the C product is wrong")
        return run


def orders(graph: SimpleGraph, kernels: Kernels) -> dict[str, Rows]:
    """The transposed adjacency in seedrank's layout, and by the ids of the file."""
    layout = lay_out(kernels.transition, "float32")
    by_target = np.argsort(graph.target, kind="stable")
    offsets = np.zeros(graph.nodes + 1, dtype=np.int64)
    np.cumsum(np.bincount(graph.target, minlength=graph.nodes), out=offsets[1:])
    first = layout.rows
    assert isinstance(first, ResidentRows)
    return {"layout": Rows(first.offsets, first.columns), "file": Rows(offsets, graph.source[by_target])}


def measure_graph(graph: SimpleGraph, library: ctypes.CDLL | None, rounds: int) -> dict[str, Any]:
    """G edge-columns a second by width and program."""
    kernels = Kernels(graph)
    backend = kernels.backend("float32")
    rows = {} if library is None else orders(graph, kernels)
    speeds: dict[str, dict[str, float]] = {}
    for width in WIDTHS:
        backend.start(kernels.block(make_queries(graph, width)), restart=0.5)
        runs: dict[str, Callable[[], object]] = {OWN: lambda: backend.step(measure=False)}
        if library is not None:
            block = np.random.default_rng(0).random((graph.nodes, width), dtype=np.float32)
            runs |= {name: rows[order].product(library, block, ahead) for name, (order, ahead) in VARIANTS.items()}
        seconds = alternating_minima(runs, rounds=dict.fromkeys(runs, rounds))
        speeds[str(width)] = {name: graph.edges * width / value / 1e9 for name, value in seconds.items()}
    return {"graph": graph.facts(), "giga_edge_columns_per_second": speeds}


def show(result: dict[str, Any]) -> None:
    """Print one graph."""
    graph = result["graph"]
    print(f"\n{graph['name']}: {graph['nodes']:,} nodes, {graph['edges']:,} edges; G edge-columns/s (seedrank / it)")
    for width, speeds in result["giga_edge_columns_per_second"].items():
        print(f"  B {width}")
        for name, speed in speeds.items():
            print(f"    {name:<38}{speed:>7.1f}   ({speeds[OWN] / speed:.2f}x)")
    sys.stdout.flush()


def main() -> None:
    """Measure what the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="+", help="rmatSCALE or a public graph (default: rmat17 rmat20)")
    parser.add_argument("--rounds", type=int, help="measurements of each, in turns (default: 10)")
    parser.add_argument("--quick", action="store_true", help="RMAT 14, three rounds")
    parser.add_argument("--shared", type=Path, default=SHARED, help="folder of the public graphs")
    parser.add_argument("--cache", type=Path, help="existing folder that keeps generated graphs")
    chosen = parser.parse_args()
    names = chosen.graphs or (["rmat14"] if chosen.quick else ["rmat17", "rmat20"])
    rounds = chosen.rounds or (3 if chosen.quick else 10)
    results = []
    with tempfile.TemporaryDirectory(prefix="seedrank-roofline-") as folder:
        library = compile_roofline(Path(folder))
        if library is None:
            print("left out: the C product: no gcc on PATH (Debian, Ubuntu: apt-get install gcc)")
        for name in names:
            graph = load_graph(name, shared=chosen.shared, cache=chosen.cache)
            results.append(measure_graph(graph, library, rounds))
            show(results[-1])
    parameters = {"rounds": rounds, "compiler_flags": list(FLAGS), "quick": chosen.quick}
    path = write_results("product-quick" if chosen.quick else "product", parameters, {"graphs": results})
    print(f"\nwritten: {path}")


if __name__ == "__main__":
    main()
