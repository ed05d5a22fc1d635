"""Exact top-k of columns of a block on the device."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from seedrank.kernels._gpu.device import NULL, blocks, device_dtype, lanes_for, launch, stripes
from seedrank.kernels._gpu.device_graph import DeviceGraph
from seedrank.kernels._gpu.source import BINS, LANES, SELECT_THREADS
from seedrank.kernels.arrays import Int32Array, Int64Array
from seedrank.kernels.backend import Selection

ROWS_A_BLOCK = 1024
"""Rows for which it pays that a thread block clears its counters and adds them to the others'."""

_BITS = 8


def select_on_device(
    graph: DeviceGraph,
    block: cupy.ndarray,
    *,
    width: int,
    positions: Int64Array,
    bits: Int64Array,
    excluded: Int32Array,
    excluded_from: Int32Array,
    eligible: cupy.ndarray | None,
    reachable: cupy.ndarray | None,
    k: int,
    min_score: float,
) -> Selection:
    """Select the k best nodes of some columns; `seedrank.kernels.topk` states the rules.

    A radix select finds the k-th key of (score descending, tie rank ascending) for all columns at once, then one pass
    writes down what is not below it, and the host sorts these few.

    Parameters
    ----------
    graph : DeviceGraph
    block : device array (n × width)
        Scores, >= 0.
    width : int
    positions : int64 (c)
        Columns of the block.
    bits : int64 (c)
        The bit of `reachable` of each.
    excluded, excluded_from : int32 (x)
        Internal nodes that may not be selected, and for which of the c columns.
    eligible : device uint8 (n) or None
    reachable : device uint64 (n) or None
    k : int
    min_score : float

    Returns
    -------
    Selection
    """
    dtype, count = device_dtype(graph.precision), len(positions)
    words = blocks(count, LANES)
    place = cupy.asarray(positions.astype(np.int32))
    allowed = _allowed(graph, count, words, bits, excluded, excluded_from, eligible, reachable)
    known_score, known_rank = cupy.zeros(count, np.uint64), cupy.zeros(count, np.uint64)
    wanted, tied = cupy.asarray(np.full(count, k, dtype=np.int32)), cupy.zeros(count, np.int32)
    counted = cupy.zeros(count * BINS, np.int32)
    lanes = lanes_for(count)
    grid, threads = (stripes(graph.nodes, ROWS_A_BLOCK), words), (lanes, SELECT_THREADS // lanes)
    least = max(dtype.type(min_score), np.nextafter(dtype.type(0), dtype.type(1)))
    common: tuple[Any, ...] = (
        block, graph.nodes, width, place, count, allowed, words, least, graph.order, known_score, known_rank,
    )  # fmt: skip

    def narrow(by_rank: int, size: int) -> None:
        for shift in range(size - _BITS, -1, -_BITS):
            launch(f"count_digits_{graph.precision}", grid, threads, *common, wanted, by_rank, shift, counted)
            launch("choose_digit", (count,), (LANES,), counted, by_rank, shift, known_score, known_rank, wanted, tied)

    narrow(0, dtype.itemsize * 8)
    if bool((tied.get() > wanted.get()).any()):
        narrow(1, 32)
    found, node = cupy.zeros(count, np.int32), cupy.asarray(np.full(count * k, -1, dtype=np.int32))
    score = cupy.zeros(count * k, dtype)
    launch(f"gather_{graph.precision}", grid, threads, *common, k, found, node, score)
    nodes, scores = node.get().reshape(count, k), score.get().reshape(count, k)
    # All columns at once: the device waits meanwhile. What was not filled has score 0, so it stays behind.
    ranking = np.lexsort((graph.order_host[nodes], -scores))
    return Selection(
        nodes=np.take_along_axis(nodes, ranking, axis=1),
        scores=np.take_along_axis(scores, ranking, axis=1),
        counts=found.get(),
    )


def _allowed(
    graph: DeviceGraph,
    count: int,
    words: int,
    bits: Int64Array,
    excluded: Int32Array,
    excluded_from: Int32Array,
    eligible: cupy.ndarray | None,
    reachable: cupy.ndarray | None,
) -> cupy.ndarray:
    """Which nodes each column may select: a bit each, `words` numbers a node."""
    allowed = cupy.empty(graph.nodes * words, np.uint32)
    launch(
        "allow",
        (stripes(graph.nodes, SELECT_THREADS),),
        (SELECT_THREADS,),
        *(graph.nodes, count, words, cupy.asarray(bits.astype(np.int32))),
        NULL if eligible is None else eligible,
        NULL if reachable is None else reachable,
        allowed,
    )
    launch(
        "exclude",
        (blocks(len(excluded), 256),),
        (256,),
        *(cupy.asarray(excluded), cupy.asarray(excluded_from), len(excluded), words, allowed),
    )
    return allowed
