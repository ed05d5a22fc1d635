"""Public packages, and the script that one would write with SciPy, as peers."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from graphs import Int32Array, SimpleGraph
from peer import ITERATIONS, RESTART, Peer
from scipy import sparse

FloatArray = npt.NDArray[Any]


class SciPyBlock(Peer):
    """The baseline: what a few lines of SciPy do."""

    name = "SciPy block script"
    computes = "10 power iterations of 64 queries, csr @ dense, float32, argpartition per query; 1 thread"
    install = "pip install scipy"
    goal = "iterations"
    block = 64
    always_whole = True

    def __init__(self, graph: SimpleGraph) -> None:
        super().__init__(graph)
        degree = graph.out_degree
        values = (1.0 / degree[graph.source]).astype(np.float32)
        self.transposed = sparse.csr_array((values, (graph.target, graph.source)), shape=(graph.nodes, graph.nodes))
        self.dangling = (degree == 0).astype(np.float32)

    def product(self, block: FloatArray) -> FloatArray:
        """Multiply the transposed transition matrix by a dense block."""
        product: FloatArray = self.transposed @ block
        return product

    def scores(self, seeds: Int32Array) -> FloatArray:
        """See `Peer.scores`."""
        width, per_query = seeds.shape
        column = np.arange(width)[:, None]
        block = np.zeros((self.graph.nodes, width), dtype=np.float32)
        block[seeds, column] = 1 / per_query
        for _ in range(ITERATIONS):
            share = RESTART + (1 - RESTART) * (self.dangling @ block)
            block = self.product(block)
            block *= 1 - RESTART
            block[seeds, column] += share[:, None] / per_query
        return block.T


class MklBlock(SciPyBlock):
    """The same script with the product of Intel's library."""

    name = "SciPy script, product by MKL"
    computes = "as the SciPy script, the product by MKL through sparse_dot_mkl; threads as MKL likes"
    install = "pip install sparse-dot-mkl mkl"

    def __init__(self, graph: SimpleGraph) -> None:
        # One OpenMP runtime in the process, and the library where a wheel puts it (no unversioned link there).
        os.environ.setdefault("MKL_THREADING_LAYER", "GNU")
        for library in sorted(Path(sys.prefix, "lib").glob("libmkl_rt.so*")):
            os.environ.setdefault("MKL_RT", str(library))
        from sparse_dot_mkl import dot_product_mkl  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415

        super().__init__(graph)
        self._multiply = dot_product_mkl
        self.matrix = sparse.csr_matrix(self.transposed)

    def product(self, block: FloatArray) -> FloatArray:
        """Multiply the transposed transition matrix by a dense block."""
        product: FloatArray = self._multiply(self.matrix, block)
        return product


class TorchPpr(Peer):
    """torch-ppr on torch's CPU build; its iteration, not its public function, because that takes single nodes only."""

    name = "torch-ppr"
    computes = (
        "10 power iterations of a block, sparse COO, float32; lost dangling mass is made up for by normalising every "
        "iteration, which on graphs with dangling nodes is another vector"
    )
    install = "pip install torch torch-ppr  (the CPU build of torch is enough)"
    goal = "iterations"
    block = 64

    def __init__(self, graph: SimpleGraph) -> None:
        import torch  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415
        from torch_ppr.utils import power_iteration  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415

        super().__init__(graph)
        logging.getLogger("torch_ppr.utils").setLevel(logging.ERROR)  # it warns about "no convergence" every time
        self._torch: Any = torch
        self._iterate = power_iteration
        values = (1.0 / graph.out_degree[graph.source]).astype(np.float32)
        indices = np.stack((graph.target, graph.source)).astype(np.int64)
        shape = (graph.nodes, graph.nodes)
        entries = torch.sparse_coo_tensor(
            torch.from_numpy(indices), torch.from_numpy(values), shape, check_invariants=False
        )
        self._adjacency = entries.coalesce()

    def scores(self, seeds: Int32Array) -> FloatArray:
        """See `Peer.scores`."""
        start = np.zeros((self.graph.nodes, len(seeds)), dtype=np.float32)
        start[seeds, np.arange(len(seeds))[:, None]] = 1 / seeds.shape[1]
        block = self._iterate(
            self._adjacency, self._torch.from_numpy(start), alpha=RESTART, max_iter=ITERATIONS, epsilon=0.0
        )
        scores: FloatArray = block.numpy().T
        return scores


class Igraph(Peer):
    """The solver inside most GraphRAG programs."""

    name = "igraph PRPACK"
    computes = "linear solver to 1e-10, one query a call, float64; 1 thread"
    install = "pip install igraph"
    goal = "solution"

    def __init__(self, graph: SimpleGraph) -> None:
        import igraph  # noqa: PLC0415

        super().__init__(graph)
        edges = np.column_stack((graph.source, graph.target)).astype(np.int64)
        self._graph = igraph.Graph(n=graph.nodes, edges=edges, directed=True)

    def scores(self, seeds: Int32Array) -> FloatArray:
        """See `Peer.scores`."""
        vector = self._graph.personalized_pagerank(
            directed=True, damping=1 - RESTART, reset_vertices=seeds[0].tolist(), implementation="prpack"
        )
        return np.array(vector)[None]


class Networkx(Peer):
    """networkx as one calls it; every call makes a sparse matrix of the graph again."""

    name = "networkx"
    computes = "power iteration to an L1 change of n·1e-6 (its default), one query a call, float64; 1 thread"
    install = "pip install networkx"
    goal = "solution"
    most_edges = 1_000_000
    too_large = "every call converts the DiGraph, seconds a query"

    def __init__(self, graph: SimpleGraph) -> None:
        import networkx as nx  # noqa: PLC0415

        super().__init__(graph)
        self._nx = nx
        self._graph = nx.DiGraph()
        self._graph.add_nodes_from(range(graph.nodes))
        self._graph.add_edges_from(zip(graph.source.tolist(), graph.target.tolist(), strict=True))

    def scores(self, seeds: Int32Array) -> FloatArray:
        """See `Peer.scores`."""
        share = dict.fromkeys(seeds[0].tolist(), 1.0)
        vector = self._nx.pagerank(self._graph, alpha=1 - RESTART, personalization=share)
        return np.fromiter((vector[node] for node in range(self.graph.nodes)), dtype=np.float64)[None]


class ScikitNetwork(Peer):
    """scikit-network's default solver."""

    name = "scikit-network"
    computes = (
        "10 power iterations (its default), one query a call, float64; 1 thread; dangling mass as in torch-ppr, so "
        "another vector where there are dangling nodes"
    )
    install = "pip install scikit-network"
    goal = "iterations"

    def __init__(self, graph: SimpleGraph) -> None:
        from sknetwork.ranking import PageRank  # noqa: PLC0415

        super().__init__(graph)
        ones = np.ones(graph.edges)
        self._adjacency = sparse.csr_matrix((ones, (graph.source, graph.target)), shape=(graph.nodes,) * 2)
        self._solver = PageRank(damping_factor=1 - RESTART, solver="piteration", n_iter=ITERATIONS, tol=0)

    def scores(self, seeds: Int32Array) -> FloatArray:
        """See `Peer.scores`."""
        weights = np.zeros(self.graph.nodes)
        weights[seeds[0]] = 1.0
        vector: FloatArray = self._solver.fit_predict(self._adjacency, weights=weights)
        return vector[None]


class FastPagerank(Peer):
    """fast-pagerank's power method; every call normalises the matrix again."""

    name = "fast-pagerank"
    computes = "power iteration to an L2 change of 1e-6 (its default), one query a call, float64; 1 thread"
    install = "pip install fast-pagerank"
    goal = "solution"

    def __init__(self, graph: SimpleGraph) -> None:
        from fast_pagerank import (  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415
            pagerank_power,
        )

        super().__init__(graph)
        self._solve = pagerank_power
        ones = np.ones(graph.edges)
        self._adjacency = sparse.csr_matrix((ones, (graph.source, graph.target)), shape=(graph.nodes,) * 2)

    def scores(self, seeds: Int32Array) -> FloatArray:
        """See `Peer.scores`."""
        weights = np.zeros(self.graph.nodes)
        weights[seeds[0]] = 1.0
        vector: FloatArray = self._solve(self._adjacency, p=1 - RESTART, personalize=weights)
        return vector[None]
