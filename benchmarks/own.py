"""seedrank itself: the kernels without files, and the whole job with them."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from graphs import Int32Array, SimpleGraph
from peer import ITERATIONS, RESTART, TOP_K

import seedrank
from seedrank.kernels.arrays import Precision
from seedrank.kernels.backend import Backend, QueryBlock
from seedrank.kernels.backends.resolver import create_backend
from seedrank.kernels.building.adjacency import build_adjacency
from seedrank.kernels.ppr import BlockResult, personalized_pagerank
from seedrank.kernels.relaxation import Relaxation, choose_relaxation
from seedrank.kernels.transition import Transition, build_transition


@dataclass(frozen=True)
class Setting:
    """How far seedrank iterates, and in which precision vectors are stored."""

    precision: Precision
    restart: float
    max_iterations: int
    tolerance: float


FIXED = Setting("float32", RESTART, ITERATIONS, 0.0)
"""The common task: ten iterations."""

TIGHT = Setting("float64", RESTART, 1_000, 1e-10)
"""What igraph's solver promises."""


def own_edges(graph: SimpleGraph) -> tuple[Int32Array, Int32Array, Literal["out", "both"]]:
    """How seedrank is given a graph: undirected edges once, to be followed both ways."""
    if not graph.undirected:
        return graph.source, graph.target, "out"
    once = graph.source < graph.target
    return graph.source[once], graph.target[once], "both"


class Kernels:
    """The cpu backend with one graph loaded, in as many precisions as are asked for."""

    def __init__(self, graph: SimpleGraph, *, threads: int | None = None) -> None:
        self._threads = threads
        source, target, direction = own_edges(graph)
        pair = build_adjacency(source, target, None, None, nodes=graph.nodes, duplicate_edges="sum")
        self.order, self.inverse_order = pair.order, pair.inverse_order
        self.transition: Transition = build_transition(
            pair.by_source, pair.by_destination, direction=direction, type_weights=None, dangling="seeds"
        )
        self._symmetric = direction == "both"
        self._backends: dict[Precision, Backend] = {}
        self._relaxations: dict[Setting, Relaxation | None] = {}

    def backend(self, precision: Precision) -> Backend:
        """The loaded backend of a precision; loads it the first time."""
        if precision not in self._backends:
            backend = create_backend("cpu", threads=self._threads)
            backend.load(self.transition, precision=precision, order=self.order)
            self._backends[precision] = backend
        return self._backends[precision]

    def relaxation(self, setting: Setting) -> Relaxation | None:
        """How the job would speed up the iteration on this graph; decided the first time, by a probe."""
        if setting not in self._relaxations:
            self._relaxations[setting] = choose_relaxation(
                self.backend(setting.precision),
                self.transition,
                restart=setting.restart,
                tolerance=setting.tolerance,
                max_iterations=setting.max_iterations,
                symmetric=self._symmetric,
            )
        return self._relaxations[setting]

    def block(self, seeds: Int32Array) -> QueryBlock:
        """Turn (b, 5) nodes into a block whose seeds are excluded from the result."""
        width, per_query = seeds.shape
        offsets = np.arange(0, seeds.size + 1, per_query, dtype=np.int64)
        nodes = self.inverse_order[seeds.ravel()]
        return QueryBlock(
            seed_offsets=offsets,
            seed_nodes=nodes,
            seed_weights=np.full(width * per_query, 1 / per_query),
            exclude_offsets=offsets,
            exclude_nodes=nodes,
        )

    def width(self, precision: Precision) -> int:
        """Queries a block, as the job chooses it: 64, or 32 where that fits the cache better."""
        return self.backend(precision).widest_block(self.transition.nodes, precision)

    def solve(
        self, seeds: Int32Array, setting: Setting, *, k: int = TOP_K, width: int | None = None
    ) -> list[BlockResult]:
        """Score any number of queries, block by block; the k best without seeds."""
        width = width or self.width(setting.precision)
        return [
            self._solve_block(self.block(seeds[first : first + width]), setting, k)
            for first in range(0, len(seeds), width)
        ]

    def vectors(self, seeds: Int32Array, setting: Setting) -> tuple[npt.NDArray[np.float64], BlockResult]:
        """Whole vectors, float64 (b, n) by node, seeds included, and the result of the block they come from."""
        with_seeds = self.block(seeds)
        nothing = np.zeros(len(seeds) + 1, dtype=np.int64)
        block = QueryBlock(
            seed_offsets=with_seeds.seed_offsets,
            seed_nodes=with_seeds.seed_nodes,
            seed_weights=with_seeds.seed_weights,
            exclude_offsets=nothing,
            exclude_nodes=with_seeds.exclude_nodes[:0],
        )
        result = self._solve_block(block, setting, self.transition.nodes)
        dense = np.zeros((len(seeds), self.transition.nodes))
        for row, nodes, scores, count in zip(dense, result.nodes, result.scores, result.counts, strict=True):
            row[self.order[nodes[:count]]] = scores[:count]
        return dense, result

    def top(self, seeds: Int32Array, setting: Setting) -> list[Int32Array]:
        """Top 100 by node, best first."""
        return [
            self.order[nodes[:count]]
            for result in self.solve(seeds, setting)
            for nodes, count in zip(result.nodes, result.counts, strict=True)
        ]

    def _solve_block(self, block: QueryBlock, setting: Setting, k: int) -> BlockResult:
        return personalized_pagerank(
            self.backend(setting.precision),
            block,
            restart=setting.restart,
            max_iterations=setting.max_iterations,
            tolerance=setting.tolerance,
            k=k,
            precision=setting.precision,
            relaxation=self.relaxation(setting),
        )


@dataclass(frozen=True)
class JobRun:
    """One call of `seedrank.score`: wall seconds, seconds by stage (from run.json), and its candidates."""

    seconds: float
    stages: dict[str, float]
    top: list[Int32Array]


def prepare_job(graph: SimpleGraph, seeds: Int32Array, folder: Path) -> Callable[[], JobRun]:
    """Write graph store and hits as files; return the job from there to the written candidate table."""
    source, target, direction = own_edges(graph)
    edges = pa.table({"src": source.astype(np.int64), "dst": target.astype(np.int64)})
    nodes = pa.table({"id": np.arange(graph.nodes, dtype=np.int64)})
    store = folder / "graph"
    seedrank.build(edges, nodes=nodes, out=store)
    query = np.repeat(np.arange(len(seeds)), seeds.shape[1])
    hits = folder / "hits.parquet"
    pq.write_table(pa.table({"query_id": query, "node_id": seeds.ravel().astype(np.int64)}), hits)

    def run() -> JobRun:
        with tempfile.TemporaryDirectory(dir=folder) as out:
            begin = time.perf_counter()
            finished = seedrank.score(
                store,
                queries=hits,
                out=Path(out) / "run",
                restart=RESTART,
                max_iterations=ITERATIONS,
                tolerance=0.0,
                top_k=TOP_K,
                direction=direction,
                backend="cpu",
            )
            seconds = time.perf_counter() - begin
            return JobRun(seconds, dict(finished.manifest.timings_s), _by_query(finished.candidates.to_arrow()))

    return run


def _by_query(candidates: Any) -> list[Int32Array]:
    node = candidates["node_id"].to_numpy().astype(np.int32)
    query = candidates["query_id"].to_numpy()
    return np.split(node, np.flatnonzero(np.diff(query)) + 1)
