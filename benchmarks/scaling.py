"""How the time of a query grows: with edges, queries, width of a block, threads and k.

    python benchmarks/scaling.py --quick
    python benchmarks/scaling.py

Everything is seedrank's cpu backend on RMAT graphs at ten iterations, restart .5, five seeds a query and the best 100
nodes unless a curve says otherwise. Edges, width, threads and k: the kernels with the graph loaded. Queries: the whole
job, files in and out. The points of a curve are measured in turns, the minimum counts. Written to
``results/scaling.json``.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from graphs import SHARED, SimpleGraph, load_graph, make_queries
from measure import alternating_minima, write_results
from own import FIXED, Kernels, prepare_job
from peer import TOP_K

QUERIES = 64

Curve = dict[str, Any]


def curve(
    name: str, unit: str, runs: Mapping[float, Callable[[], object]], queries: Callable[[float], int], rounds: int
) -> Curve:
    """Measure the points of a curve: milliseconds a query by what varies."""
    seconds = alternating_minima(
        {str(value): run for value, run in runs.items()}, rounds={str(value): rounds for value in runs}
    )
    points = [[value, 1e3 * seconds[str(value)] / queries(value)] for value in runs]
    logarithms = np.log([[value, milliseconds] for value, milliseconds in points])
    exponent = float(np.polyfit(logarithms[:, 0], logarithms[:, 1], 1)[0])
    print(f"{name}: exponent {exponent:.2f}; " + ", ".join(f"{value:g} {unit} {time:.3g} ms" for value, time in points))
    return {"curve": name, "unit": unit, "milliseconds_a_query": points, "exponent": exponent}


def over_edges(graphs: list[SimpleGraph], rounds: int) -> Curve:
    """Graphs of twice the edges each."""
    runs = {float(graph.edges): partial(Kernels(graph).solve, make_queries(graph, QUERIES), FIXED) for graph in graphs}
    return curve("edges", "edges", runs, lambda _: QUERIES, rounds)


def over_queries(graph: SimpleGraph, counts: list[int], rounds: int, folder: Path) -> Curve:
    """The whole job with twice the queries each."""
    runs = {}
    for count in counts:
        place = folder / f"queries-{count}"
        place.mkdir()
        runs[float(count)] = prepare_job(graph, make_queries(graph, count), place)
    return curve("queries", "queries", runs, int, rounds)


def over_width(kernels: Kernels, graph: SimpleGraph, rounds: int) -> Curve:
    """Blocks of 16, 32 and 64 queries."""
    seeds = make_queries(graph, QUERIES)
    runs = {float(width): partial(kernels.solve, seeds, FIXED, width=width) for width in (16, 32, 64)}
    return curve("width", "columns", runs, lambda _: QUERIES, rounds)


def over_threads(graph: SimpleGraph, most: int, rounds: int) -> Curve:
    """One thread, two, and so on in powers of two."""
    seeds, runs, threads = make_queries(graph, QUERIES), {}, 1
    while threads <= most:
        runs[float(threads)] = partial(Kernels(graph, threads=threads).solve, seeds, FIXED)
        threads *= 2
    return curve("threads", "threads", runs, lambda _: QUERIES, rounds)


def over_k(kernels: Kernels, graph: SimpleGraph, rounds: int) -> Curve:
    """Ten, a hundred and a thousand candidates a query."""
    seeds = make_queries(graph, QUERIES)
    runs = {float(k): partial(kernels.solve, seeds, FIXED, k=k) for k in (10, TOP_K, 1000)}
    return curve("k", "candidates", runs, lambda _: QUERIES, rounds)


def main() -> None:
    """Measure all curves."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small graphs, few rounds")
    parser.add_argument("--cache", type=Path, help="existing folder that keeps generated graphs")
    parser.add_argument("--rounds", type=int, help="measurements of each point (default: 5; --quick: 2)")
    chosen = parser.parse_args()
    scales = [11, 12, 13, 14] if chosen.quick else [16, 17, 18, 19, 20]
    counts = [64, 128, 256] if chosen.quick else [128, 256, 512, 1024]
    rounds = chosen.rounds or (2 if chosen.quick else 5)
    graphs = [load_graph(f"rmat{scale}", shared=SHARED, cache=chosen.cache) for scale in scales]
    middle = graphs[1]
    kernels = Kernels(middle)
    with tempfile.TemporaryDirectory(prefix="seedrank-scaling-") as name:
        curves = [
            over_edges(graphs, rounds),
            over_queries(middle, counts, rounds, Path(name)),
            over_width(kernels, middle, rounds),
            over_threads(middle, len(os.sched_getaffinity(0)), rounds),
            over_k(kernels, middle, rounds),
        ]
    parameters = {"scales": scales, "middle": middle.name, "rounds": rounds, "queries": QUERIES}
    print(write_results("scaling-quick" if chosen.quick else "scaling", parameters, {"curves": curves}))


if __name__ == "__main__":
    main()
