"""Forward push as PyTorch Geometric's ``get_ppr`` does it, one source at a time, written here for weighted sums."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
from graphs import Int32Array, SimpleGraph
from numba import njit
from peer import RESTART, Peer, best


class ForwardPush(Peer):
    """Approximate by design: residues below ``teleport * epsilon * degree`` stay where they are."""

    name = "forward push, ε 1e-5"
    computes = (
        "PyG's get_ppr and its ε, in Numba with arrays for its dictionaries: one push per seed, summed; float64, one "
        "thread a query; approximate: see its L1"
    )
    epsilon = 1e-5
    goal = "solution"
    block = 64

    def __init__(self, graph: SimpleGraph) -> None:
        super().__init__(graph)
        self._offsets = np.zeros(graph.nodes + 1, dtype=np.int64)
        np.cumsum(graph.out_degree, out=self._offsets[1:])
        self._threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self._pool = ThreadPoolExecutor(self._threads)

    def scores(self, seeds: Int32Array) -> npt.NDArray[Any]:
        """See `Peer.scores`."""
        dense = np.zeros((len(seeds), self.graph.nodes))
        for row, (nodes, values) in zip(dense, self._push(seeds), strict=True):
            row[nodes] = values
        return dense

    def top(self, seeds: Int32Array) -> list[Int32Array]:
        """See `Peer.top`; looks at the nodes that were reached only."""
        return [
            nodes[best(values, np.flatnonzero(np.isin(nodes, excluded)).astype(np.int32))]
            for (nodes, values), excluded in zip(self._push(seeds), seeds, strict=True)
        ]

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()

    def _push(self, seeds: Int32Array) -> list[tuple[Int32Array, npt.NDArray[np.float64]]]:
        """Nodes that were reached by each query, and their scores; the queries are dealt to the threads."""

        def work(thread: int) -> list[tuple[Int32Array, npt.NDArray[np.float64]]]:
            estimate, residue = np.zeros((2, self.graph.nodes))
            seen, queued = np.zeros((2, self.graph.nodes), dtype=np.bool_)
            return [
                _push_query(
                    self._offsets, self.graph.target, row, RESTART, self.epsilon, estimate, residue, seen, queued
                )
                for row in seeds[thread :: self._threads]
            ]

        shares = list(self._pool.map(work, range(self._threads)))
        return [shares[query % self._threads][query // self._threads] for query in range(len(seeds))]


class FinePush(ForwardPush):
    """The same, made more accurate."""

    name = "forward push, ε 1e-7"
    computes = "the same to ε 1e-7"
    epsilon = 1e-7
    most_edges = 4_000_000
    too_large = "minutes a query"


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _push_query(
    offsets: Any,
    targets: Any,
    seeds: Any,
    teleport: float,
    epsilon: float,
    estimate: Any,
    residue: Any,
    seen: Any,
    queued: Any,
) -> Any:
    """Push from every seed in turn and add up; returns (nodes, scores) and leaves the scratch arrays zero.

    Mass that arrives at a dangling node is kept there in its share and otherwise lost. Dividing the sum of all seeds
    by its total afterwards is the same as sending the lost mass back to the seeds. (`estimate`, `residue`, `seen` and
    `queued` have n entries.)
    """
    threshold = teleport * epsilon
    touched = [seeds[0]]
    touched.pop()
    for seed in seeds:
        changed = [seed]
        stack = [seed]
        residue[seed] = 1.0
        queued[seed] = True
        while len(stack) > 0:
            node = stack.pop()
            queued[node] = False
            amount = residue[node]
            residue[node] = 0.0
            if not seen[node]:
                seen[node] = True
                touched.append(node)
            estimate[node] += teleport * amount
            degree = offsets[node + 1] - offsets[node]
            if degree == 0:
                continue
            share = (1.0 - teleport) * amount / degree
            for entry in range(offsets[node], offsets[node + 1]):
                target = targets[entry]
                if residue[target] == 0.0:
                    changed.append(target)
                residue[target] += share
                limit = offsets[target + 1] - offsets[target]
                if not queued[target] and residue[target] >= threshold * limit:
                    queued[target] = True
                    stack.append(target)
        for node in changed:
            residue[node] = 0.0
    nodes = np.array(touched)
    scores = estimate[nodes]
    scores /= scores.sum()
    for node in touched:
        estimate[node] = 0.0
        seen[node] = False
    return nodes, scores
