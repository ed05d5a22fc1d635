"""How many products a certified L1 error takes, and whether the certificate is true.

    python benchmarks/convergence.py --quick
    python benchmarks/convergence.py            # RMAT 17 and 20, and public graphs where they are

For every graph, damping (.85 and .5) and precision: the iterations and the error bound that seedrank reports for 64
queries at a tolerance of 1e-6. On a few of them the whole vector is compared with an independent one: plain power
iteration in SciPy, float64, to 1e-12, which also says how many products power iteration needs for the same bound.
Nothing is timed, so this can run on a busy machine.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from graphs import SHARED, Int32Array, SimpleGraph, available_graphs, load_graph, make_queries
from measure import write_results
from own import Kernels, Setting
from scipy import sparse

from seedrank.kernels.arrays import Precision

TOLERANCE = 1e-6
REFERENCE = 1e-12
DAMPINGS = (0.85, 0.5)
PRECISIONS: tuple[Precision, ...] = ("float32", "float64")
QUERIES = 64
LARGE = 4_000_000
"""From this many edges on four queries have a reference instead of eight."""


@dataclass(frozen=True)
class Row:
    """One graph, damping and precision.

    ``bound`` is the worst that seedrank reports (truncation and rounding), ``true_error`` the worst L1 distance to the
    reference; ``products_of_power_worst`` is over the queries that have a reference.
    """

    graph: str
    damping: float
    precision: str
    solver: str
    queries: int
    products_mean: float
    products_worst: int
    converged: bool
    bound: float
    checked_queries: int
    true_error: float
    bound_on_checked: float
    bound_holds: bool
    products_of_power_worst: int


def power_iteration(
    graph: SimpleGraph, seeds: Int32Array, damping: float
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Whole vectors (b, n) to `REFERENCE`, and the products until α/(1-α)·‖change‖₁ <= `TOLERANCE` by query."""
    degree = graph.out_degree
    values = 1.0 / degree[graph.source]
    transposed = sparse.csr_array((values, (graph.target, graph.source)), shape=(graph.nodes, graph.nodes))
    dangling = (degree == 0).astype(np.float64)
    width, per_query = seeds.shape
    column = np.arange(width)[:, None]
    block = np.zeros((graph.nodes, width))
    block[seeds, column] = 1 / per_query
    products = np.zeros(width, dtype=np.int64)
    step = 0
    while True:
        step += 1
        following = damping * (transposed @ block)
        share = 1 - damping + damping * (dangling @ block)
        following[seeds, column] += share[:, None] / per_query
        bound = damping / (1 - damping) * np.abs(following - block).sum(axis=0)
        block = following
        products[(products == 0) & (bound <= TOLERANCE)] = step
        if bound.max() <= REFERENCE:
            return block.T, products


def measure_graph(graph: SimpleGraph) -> list[Row]:
    """All dampings and precisions of one graph."""
    kernels = Kernels(graph)
    seeds = make_queries(graph, QUERIES)
    checked = seeds[: 4 if graph.edges >= LARGE else 8]
    rows = []
    for damping in DAMPINGS:
        exact, products = power_iteration(graph, checked, damping)
        for precision in PRECISIONS:
            setting = Setting(precision, 1 - damping, 10_000, TOLERANCE)
            relaxation = kernels.relaxation(setting)
            results = kernels.solve(seeds, setting)
            iterations = np.concatenate([result.iterations for result in results])
            vectors, checked_result = kernels.vectors(checked, setting)
            errors = np.abs(vectors - exact).sum(axis=1)
            rows.append(
                Row(
                    graph=graph.name,
                    damping=damping,
                    precision=precision,
                    solver="steps" if relaxation is None else f"sweeps, ω {relaxation.factor:.2f}",
                    queries=len(seeds),
                    products_mean=float(iterations.mean()),
                    products_worst=int(iterations.max()),
                    converged=all(bool(result.converged.all()) for result in results),
                    bound=float(max(result.error_bound.max() for result in results)),
                    checked_queries=len(checked),
                    true_error=float(errors.max()),
                    bound_on_checked=float(checked_result.error_bound.max()),
                    bound_holds=bool((errors <= checked_result.error_bound + REFERENCE).all()),
                    products_of_power_worst=int(products.max()),
                )
            )
    return rows


def show(rows: list[Row]) -> None:
    """Print the rows of one graph."""
    for row in rows:
        print(
            f"{row.graph:<20}{row.damping:>8}{row.precision:>9}{row.products_mean:>10.1f}{row.products_worst:>7}"
            f"{row.products_of_power_worst:>7}{row.bound:>10.1e}{row.true_error:>10.1e}   {row.solver}"
            f"{'' if row.bound_holds else '   BOUND BROKEN'}{'' if row.converged else '   NOT CONVERGED'}"
        )
    sys.stdout.flush()


def main() -> None:
    """Measure what the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="+", help="rmatSCALE or a public graph (default: all, see --quick)")
    parser.add_argument("--quick", action="store_true", help="RMAT 14 and the smallest public graph")
    parser.add_argument("--shared", type=Path, default=SHARED, help="folder of the public graphs")
    parser.add_argument("--cache", type=Path, help="existing folder that keeps generated graphs")
    chosen = parser.parse_args()
    public = available_graphs(chosen.shared)
    names = chosen.graphs or (["rmat14", *public[-1:]] if chosen.quick else ["rmat17", "rmat20", *public])
    print(
        f"{'graph':<20}{'damping':>8}{'':>9}{'products':>10}{'worst':>7}{'power':>7}{'bound':>10}{'true L1':>10}"
        "   solver   "
        f"(tolerance {TOLERANCE:.0e}, {QUERIES} queries)"
    )
    rows: list[dict[str, Any]] = []
    for name in names:
        measured = measure_graph(load_graph(name, shared=chosen.shared, cache=chosen.cache))
        show(measured)
        rows += [asdict(row) for row in measured]
    parameters = {"tolerance": TOLERANCE, "reference_tolerance": REFERENCE, "quick": chosen.quick}
    path = write_results("convergence-quick" if chosen.quick else "convergence", parameters, {"rows": rows})
    print(f"\nwritten: {path}")


if __name__ == "__main__":
    main()
