"""A graph on the device as cuGraph wants it, and what becomes of cuGraph's errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import cupy
import numpy as np
import pylibcugraph

from seedrank.errors import KernelError
from seedrank.kernels._gpu.device import DEVICE_ERRORS, check_alive, device_errors
from seedrank.kernels.arrays import Int32Array, Precision
from seedrank.kernels.transition import Transition

MOST_SHORT_ENTRIES = 2**31 - 1
"""Numbers of edges have the width of node numbers in cuGraph: more edges than this need wide node numbers."""

_MEMORY_SIGNS = ("bad_alloc", "out_of_memory", "cudaErrorMemoryAllocation")


@dataclass
class CugraphGraph:
    """A transition matrix on the device.

    Attributes
    ----------
    transition : Transition
    precision : "float32" or "float64"
    order : int32 (n)
        Tie rank by internal node.
    graph : SGGraph or None
        None without nodes.
    vertices : int32 or int64 (n), on the device
        All nodes, ascending; their type is that of every node number that cuGraph is given.
    out_weight : float64 (n), on the device
        Sum of the weights that leave a node; 0 where mass returns to the seeds.
    dangling : int32, on the device
    longest_row : int
        Most terms of a sum over entries.
    """

    transition: Transition
    precision: Precision
    order: Int32Array
    graph: pylibcugraph.SGGraph | None
    vertices: cupy.ndarray
    out_weight: cupy.ndarray
    dangling: cupy.ndarray
    longest_row: int


def upload_cugraph(
    handle: pylibcugraph.ResourceHandle, transition: Transition, *, precision: Precision, order: Int32Array
) -> CugraphGraph:
    """Copy a transition matrix to the device and let cuGraph make its graph of it.

    Node numbers are handed over as they are (``renumber=False``) with the list of all nodes, so that isolated nodes
    exist wherever they are; entries that stand twice add up. Under the dangling rule ``self`` dangling nodes get a
    loop.

    Parameters
    ----------
    handle : ResourceHandle
    transition : Transition
        Dangling rule ``seeds`` (what cuGraph always does) or ``self``.
    precision : "float32" or "float64"
        Of the run; weights are float64 in either.
    order : int32 (n)
        Tie rank by internal node.

    Returns
    -------
    CugraphGraph
    """
    nodes, loops = transition.nodes, transition.dangling_nodes
    if transition.dangling != "self":
        loops = loops[:0]
    # cuGraph takes no empty list of edges; an edge of weight 0 carries nothing.
    idle = 1 if nodes and not transition.entries + len(loops) else 0
    entries = transition.entries + len(loops) + idle
    node_dtype = vertex_dtype(entries)
    sources, targets = cupy.zeros(entries, node_dtype), cupy.zeros(entries, node_dtype)
    weights = cupy.zeros(entries, np.float64)
    # Entries without a value weigh 1 as long as none has one; beside others their probability has to be written.
    valued = any(rows.probabilities is not None for rows in transition.products)
    at = 0
    for rows in transition.products:
        lengths, last = np.diff(rows.offsets), at + len(rows.columns)
        sources[at:last] = cupy.asarray(rows.columns.astype(node_dtype))
        targets[at:last] = cupy.asarray(np.repeat(np.arange(nodes, dtype=node_dtype), lengths))
        if not valued:
            weights[at:last].fill(1.0)
        elif rows.probabilities is None:
            weights[at:last] = cupy.asarray(transition.inverse_out_weight[rows.columns])
        else:
            weights[at:last] = cupy.asarray(np.ascontiguousarray(rows.probabilities, dtype=np.float64))
        at = last
    out_weight = (transition.out_weight > 0).astype(np.float64) if valued else transition.out_weight.copy()
    if len(loops):
        last = at + len(loops)
        sources[at:last] = targets[at:last] = cupy.asarray(loops.astype(node_dtype))
        weights[at:last].fill(1.0)
        out_weight[loops] = 1.0
    vertices = cupy.asarray(np.arange(nodes, dtype=node_dtype))
    lengths = sum((np.diff(rows.offsets) for rows in transition.products), np.zeros(nodes, dtype=np.int64))
    graph = None
    if nodes:
        graph = pylibcugraph.SGGraph(
            handle,
            pylibcugraph.GraphProperties(is_symmetric=False, is_multigraph=True),
            sources,
            targets,
            weight_array=weights,
            store_transposed=True,
            renumber=False,
            do_expensive_check=False,
            vertices_array=vertices,
        )
    return CugraphGraph(
        transition=transition,
        precision=precision,
        order=order,
        graph=graph,
        vertices=vertices,
        out_weight=cupy.asarray(out_weight),
        dangling=cupy.asarray(transition.dangling_nodes),
        longest_row=int(lengths.max(initial=0)) + 1,
    )


def vertex_dtype(entries: int) -> np.dtype[np.int32] | np.dtype[np.int64]:
    """Type of node numbers for a graph of so many edges."""
    return np.dtype(np.int32) if entries <= MOST_SHORT_ENTRIES else np.dtype(np.int64)


@contextmanager
def library_errors() -> Iterator[None]:
    """Turn errors of cuGraph and of the driver into those that jobs know.

    cuGraph reports what its C++ code threw as a text alone, memory that ran out included.

    Raises
    ------
    MemoryError
        The device has no room.
    ResourceError
        The process has no device any more.
    KernelError
        cuGraph, or the device, refused this call only.
    """
    with device_errors():
        try:
            yield
        except DEVICE_ERRORS:
            raise
        except (RuntimeError, ValueError, NotImplementedError) as error:
            if any(sign in str(error) for sign in _MEMORY_SIGNS):
                raise MemoryError(str(error)) from error
            check_alive(error)
            raise KernelError(
                f"cuGraph refused a call: {error}",
                expected="a call that it takes",
                fix="report this with the output of `seedrank info`; another backend may still work",
            ) from error
