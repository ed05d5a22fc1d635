"""The graph of walks and traversals on the device, and masks over its nodes."""

from __future__ import annotations

from dataclasses import dataclass, field

import cupy
import numpy as np

from seedrank.kernels._gpu.device import NULL, device_errors
from seedrank.kernels._gpu.staging import PIECE_BYTES, Staging
from seedrank.kernels.arrays import BoolArray, Int32Array, Int64Array
from seedrank.kernels.recall.recall_graph import RecallGraph


@dataclass
class DeviceRecallGraph:
    """What the kernels read of a graph. Arrays are on the device unless said otherwise.

    Attributes
    ----------
    nodes : int
    order : int32 (n)
        Tie ranks.
    order_host : int32 (n)
        On the host.
    sides : list of (offsets, neighbors, sums)
        int64 (n + 1), int32 (m), int64 (m) or a null pointer where edges weigh the same; a second element, of null
        pointers where one direction is followed.
    bounds_host : list of int64 (n + 1)
        The offsets of the directions that are followed, on the host.
    """

    nodes: int
    order: cupy.ndarray
    order_host: Int32Array
    sides: list[tuple[object, object, object]]
    bounds_host: list[Int64Array]
    _mask: tuple[BoolArray, cupy.ndarray] | None = field(default=None, repr=False)

    def with_edges(self, nodes: Int32Array) -> BoolArray:
        """Whether an edge leads away from each of some nodes."""
        leaving: BoolArray = np.any([bounds[nodes + 1] > bounds[nodes] for bounds in self.bounds_host], axis=0)
        return leaving

    def mask(self, eligible: BoolArray | None) -> object:
        """A mask over the nodes on the device; the last one is kept, because a job has one. None: a null pointer."""
        if eligible is None:
            return NULL
        if self._mask is None or self._mask[0] is not eligible:
            self._mask = eligible, cupy.asarray(eligible.astype(np.uint8))
        return self._mask[1]


def upload_recall_graph(
    graph: RecallGraph, cumulative: tuple[Int64Array, ...] = (), *, piece_bytes: int = PIECE_BYTES
) -> DeviceRecallGraph:
    """Copy a graph to the device, once for all blocks.

    Parameters
    ----------
    graph : RecallGraph
    cumulative : tuple of int64 (m)
        Of a `seedrank.kernels.recall.walk_graph.WalkGraph`, for choices by weight.
    piece_bytes : int
        See `seedrank.kernels._gpu.staging.Staging`.

    Returns
    -------
    DeviceRecallGraph

    Raises
    ------
    MemoryError
        It does not fit.
    KernelError, ResourceError
        See `seedrank.kernels._gpu.device.device_errors`.
    """
    order = np.asarray(graph.order, dtype=np.int32)
    sides: list[tuple[object, object, object]] = []
    with device_errors():
        staging = Staging(piece_bytes)
        for place, rows in enumerate(graph.rows):
            sums = staging.upload_array(cumulative[place]) if cumulative else NULL
            offsets = staging.upload_array(rows.offsets, np.int64)
            sides.append((offsets, staging.upload_array(rows.neighbors, np.int32), sums))
        if len(sides) == 1:
            sides.append((NULL, NULL, NULL))
        return DeviceRecallGraph(
            nodes=graph.nodes,
            order=staging.upload_array(order),
            order_host=order,
            sides=sides,
            bounds_host=[np.asarray(rows.offsets) for rows in graph.rows],
        )
