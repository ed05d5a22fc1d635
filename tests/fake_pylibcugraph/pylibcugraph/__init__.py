"""Stands in for pylibcugraph where there is no GPU: the part of it that seedrank uses, by SciPy on the fake CuPy.

Written from the documentation and the behaviour of release 26.10, traps included: repeated personalization vertices
overwrite each other, the flag is false when the last allowed iteration converged, an epsilon of 0 means 1e-5 (as
documented), the start is 1/n unless one is given, nodes beyond the last edge exist only if they are listed, every array
has to be of the graph's types, and the vertices of a result come in an order of their own.

``FAKE_CUGRAPH_FAULT`` is a text that calls fail with, as C++ exceptions come through, or ``wrong``: numbers are off.
"""

from __future__ import annotations

import os
from typing import Any

import cupy
import numpy as np
import numpy.typing as npt
from scipy import sparse

__version__ = "26.10.00+fake"


class ResourceHandle:
    """What every call is given first."""


class GraphProperties:
    """What is promised of a graph."""

    def __init__(self, is_symmetric: bool = False, is_multigraph: bool = False) -> None:
        self.is_symmetric, self.is_multigraph = is_symmetric, is_multigraph


def _fail_where_told() -> None:
    fault = os.environ.get("FAKE_CUGRAPH_FAULT", "wrong")
    if fault != "wrong":
        raise RuntimeError(f"non-success value returned from the stand-in: CUGRAPH_UNKNOWN_ERROR {fault}")


class SGGraph:
    """A graph on one device."""

    def __init__(
        self,
        resource_handle: ResourceHandle,
        graph_properties: GraphProperties,
        src_or_offset_array: cupy.ndarray,
        dst_or_index_array: cupy.ndarray,
        weight_array: cupy.ndarray | None = None,
        store_transposed: bool = False,
        renumber: bool = False,
        do_expensive_check: bool = False,
        *,
        vertices_array: cupy.ndarray | None = None,
    ) -> None:
        cupy.cuda.runtime.check("memory")
        _fail_where_told()
        assert isinstance(resource_handle, ResourceHandle)
        assert store_transposed, "the real one would transpose the graph at every call"
        assert not renumber, "this stand-in keeps node numbers as they are"
        assert weight_array is not None, "the real one computes in float32 without weights"
        sources, targets, weights = src_or_offset_array._host, dst_or_index_array._host, weight_array._host
        assert len(sources) == len(targets) == len(weights) > 0, "the real one was never seen to take an empty list"
        self.vertex_type, self.weight_type = sources.dtype, weights.dtype
        assert self.vertex_type == targets.dtype
        assert self.vertex_type in (np.int32, np.int64)
        assert self.weight_type in (np.float32, np.float64)
        self.nodes = int(max(sources.max(), targets.max())) + 1
        if vertices_array is not None:
            listed = vertices_array._host
            assert listed.dtype == self.vertex_type
            if not np.array_equal(listed, np.arange(len(listed))) or len(listed) < self.nodes:
                raise ValueError("Vertex list must be numbered consecutively from 0 when 'renumber' is 'false'")
            self.nodes = len(listed)
        pairs = np.stack([targets, sources])
        if len(np.unique(pairs, axis=1).T) < len(sources):
            assert graph_properties.is_multigraph, "an edge stands twice"
        self.incoming = sparse.csr_array((weights, pairs), shape=(self.nodes, self.nodes))


def personalized_pagerank(
    resource_handle: ResourceHandle,
    graph: SGGraph,
    precomputed_vertex_out_weight_vertices: cupy.ndarray | None,
    precomputed_vertex_out_weight_sums: cupy.ndarray | None,
    initial_guess_vertices: cupy.ndarray | None,
    initial_guess_values: cupy.ndarray | None,
    personalization_vertices: cupy.ndarray,
    personalization_values: cupy.ndarray,
    alpha: float,
    epsilon: float,
    max_iterations: int,
    do_expensive_check: bool,
    fail_on_nonconvergence: bool = True,
) -> tuple[Any, ...]:
    """Iterate until a step changes less than epsilon, or the number of iterations is reached."""
    cupy.cuda.runtime.check("memory")
    _fail_where_told()
    assert isinstance(resource_handle, ResourceHandle)
    epsilon, max_iterations = epsilon or 1e-5, max_iterations or 100
    start = _values(graph, initial_guess_vertices, initial_guess_values)
    sums = _values(graph, precomputed_vertex_out_weight_vertices, precomputed_vertex_out_weight_sums)
    out_weight = np.asarray(graph.incoming.sum(axis=0)) if sums is None else sums
    ranks = np.full(graph.nodes, 1.0 / graph.nodes, graph.weight_type) if start is None else start
    seeds = np.zeros(graph.nodes, graph.weight_type)
    given = _checked(graph, personalization_vertices, personalization_values)
    seeds[given[0]] = given[1] / given[1].sum()
    iterations = 0
    while True:
        hanging = ranks[out_weight == 0].sum()
        passed = ranks / np.where(out_weight == 0, 1.0, out_weight)
        following = graph.incoming @ passed * alpha + (hanging * alpha + (1.0 - alpha)) * seeds
        difference = np.abs(following - ranks).sum()
        ranks = following.astype(graph.weight_type)
        iterations += 1
        if difference < epsilon or iterations >= max_iterations:
            break
    converged = iterations < max_iterations
    if os.environ.get("FAKE_CUGRAPH_FAULT") == "wrong":
        ranks *= 0.5
    if fail_on_nonconvergence and not converged:
        raise RuntimeError("the real one raises FailedToConvergeError")
    order = np.random.default_rng(graph.nodes).permutation(graph.nodes)
    result = cupy.asarray(order.astype(graph.vertex_type)), cupy.asarray(ranks[order])
    return result if fail_on_nonconvergence else (*result, converged)


def _values(graph: SGGraph, vertices: cupy.ndarray | None, values: cupy.ndarray | None) -> npt.NDArray[Any] | None:
    """Spread values over the nodes; 0 for those that are not listed."""
    if vertices is None or values is None:
        return None
    result = np.zeros(graph.nodes, graph.weight_type)
    places, given = _checked(graph, vertices, values)
    result[places] = given
    return result


def _checked(graph: SGGraph, vertices: cupy.ndarray, values: cupy.ndarray) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The real one reads memory as its types, whatever they are: here they have to be right."""
    assert vertices.dtype == graph.vertex_type
    assert values.dtype == graph.weight_type
    assert len(vertices) == len(values) > 0
    return vertices._host, values._host
