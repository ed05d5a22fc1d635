"""How much work a PageRank job is, and about how long that takes here: estimated from one measured product."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from seedrank.config import ScoreOptions
from seedrank.kernels.backend import QueryBlock
from seedrank.kernels.backends.resolver import create_backend
from seedrank.kernels.building.adjacency import COMPILED_ROWS, build_adjacency
from seedrank.kernels.transition import build_transition

#: Edges of the random graph that a probe steps on, at most: built in a fraction of a second, without compiled code.
PROBE_EDGES = COMPILED_ROWS - 1
_ROUNDS = 3


@dataclass(frozen=True)
class Work:
    """Work of a job: ``products`` with the graph for every query, at most; all entries times columns that these are."""

    products: int
    edge_columns: int


def ppr_work(options: ScoreOptions, *, edges: int, queries: int) -> Work:
    """Count the products of a PageRank job.

    Parameters
    ----------
    options : ScoreOptions
    edges : int
        Of the graph store; with ``direction="both"`` each is followed twice.
    queries : int

    Returns
    -------
    Work
        The bound after k plain steps is at most 2 (1 - λ)^k; of several restart probabilities λ the smallest counts.
        Sweeps, ``stop="top-k"`` and queries whose seeds lead nowhere take fewer.
    """
    restart = min(options.restart_probabilities)
    products = options.max_iterations
    if options.tolerance > 0:
        needed = 1.0 if restart == 1 else math.log(options.tolerance / 2) / math.log1p(-restart)
        products = min(products, max(math.ceil(needed), 1))
    followed = edges * (2 if options.direction == "both" else 1)
    return Work(products, products * followed * queries)


def probe(options: ScoreOptions, *, backend: str, nodes: int, edges: int, width: int, weighted: bool) -> float:
    """Measure the product of a backend on a small random graph of the same density.

    Parameters
    ----------
    options : ScoreOptions
        ``precision`` and ``threads`` count.
    backend : str
        Who computes.
    nodes, edges : int
        Of the graph; the random one has at most `PROBE_EDGES` edges, and ends that are more frequent than others.
    width : int
        Queries of a block.
    weighted : bool
        Whether edges have weights.

    Returns
    -------
    float
        Entries of the graph times columns, a second; the best of some products. On a graph that is larger than the
        caches, the true rate is lower.
    """
    count = max(min(edges, PROBE_EDGES), 1)
    size = max(min(nodes, round(nodes * count / max(edges, 1))), 1)
    generator = np.random.default_rng(0)
    source, target = (np.minimum(size * generator.random((2, count)) ** 3, size - 1)).astype(np.int32)
    pair = build_adjacency(
        source, target, generator.random(count) + 0.5 if weighted else None, None, nodes=size, duplicate_edges="max"
    )
    transition = build_transition(
        pair.by_source, pair.by_destination, direction="out", type_weights=None, dangling="drop"
    )
    device = create_backend(backend, threads=options.threads)
    device.load(transition, precision=options.precision, order=pair.order)
    ends = np.arange(width + 1, dtype=np.int64)
    device.start(
        QueryBlock(
            seed_offsets=ends,
            seed_nodes=generator.integers(0, size, width).astype(np.int32),
            seed_weights=np.ones(width),
            exclude_offsets=np.zeros(width + 1, dtype=np.int64),
            exclude_nodes=np.empty(0, dtype=np.int32),
        ),
        restart=0.1,
    )
    seconds = []
    # The first products are of few entries; their columns are full after some, and their code compiled.
    for number in range(2 * _ROUNDS):
        begin = time.perf_counter()
        device.step(measure=number % 2 == 1).mass.sum()  # who reads a sum waits for what was asked of a device
        seconds.append(time.perf_counter() - begin)
    return 2 * pair.by_source.entries * width / sum(seconds[-2:])
