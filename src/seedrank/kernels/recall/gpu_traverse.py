"""Breadth-first traversal on a GPU: the twin of `seedrank.kernels.recall.traverse`. Importing it imports CuPy."""

from __future__ import annotations

import cupy
import numpy as np

from seedrank.errors import KernelError
from seedrank.kernels._gpu.device import blocks, device_errors, filled, free_bytes, launch, stripes
from seedrank.kernels._gpu.recall_graph import DeviceRecallGraph
from seedrank.kernels._gpu.recall_parts import (
    MOST_QUERIES,
    NEVER,
    USABLE,
    choose_places,
    launch_recall,
    owners,
    queries_of,
    write_ranked,
)
from seedrank.kernels._gpu.source import LANES, RECALL_THREADS
from seedrank.kernels.arrays import BoolArray, Int32Array, Int64Array, Precision, ScoreArray
from seedrank.kernels.recall.forms import LIMITS, RecallQueries, RecallResult, StopFlags

NODE_BYTES = 28
"""Bytes of a node for each query: hops, anchor, ways, place among those found, key of the ranking."""

_MAX_HOPS, _STOPPED = LIMITS.index("max_hops"), LIMITS.index("timeout_s")


def breadth_first_on_device(
    graph: DeviceRecallGraph,
    queries: RecallQueries,
    *,
    hop_decay: float,
    max_hops: int | None,
    k: int,
    eligible: BoolArray | None,
    min_score: float,
    precision: Precision,
    flags: StopFlags | None = None,
) -> RecallResult:
    """Reach nodes level by level from all anchors of a query; `seedrank.kernels.recall.traverse` states the rules.

    The result is that of the CPU, bit for bit. There is no budget of nodes or edges here: under one, nodes of a level
    take turns, one after the other, which is no work for a GPU. As many queries as the free memory holds are traversed
    together, with 28 bytes a node of the graph for each.

    Parameters
    ----------
    graph : DeviceRecallGraph
    queries, hop_decay, k, eligible, min_score, precision
        See `seedrank.kernels.recall.traverse.breadth_first`.
    max_hops : int or None
        >= 0. Steps from an anchor.
    flags : StopFlags, optional
        Looked at before every level; all queries that are traversed together start together.

    Returns
    -------
    RecallResult

    Raises
    ------
    MemoryError
        The device has no room for these queries.
    KernelError
        The kernels computed nonsense, or the driver refused a call.
    ResourceError
        The device is lost.
    """
    result = RecallResult.empty(queries.width, k, precision)
    used = StopFlags.none(queries.width) if flags is None else flags
    with device_errors():
        width = int(USABLE * free_bytes()) // (NODE_BYTES * max(graph.nodes, 1))
        width = max(1, min(width, MOST_QUERIES))
        for first in range(0, queries.width, width):
            part = queries_of(queries, first, min(first + width, queries.width))
            reached = _Reached(graph, part)
            reached.follow(max_hops, used, first, result)
            scores = _scores(reached.deepest, hop_decay, precision)
            reached.rank(scores, k, eligible, min_score, first, result)
    return result


def _scores(deepest: int, decay: float, precision: Precision) -> ScoreArray:
    """Score by hops: decay ** hops, multiplied up in float64; the smallest positive number where that is too small."""
    kind = np.dtype(precision).type
    exact = np.multiply.accumulate(np.concatenate(([1.0], np.full(deepest, decay))))
    scores: ScoreArray = np.maximum(exact.astype(precision), np.nextafter(kind(0), kind(1)))
    return scores


class _Reached:
    """What some queries have reached, on the device."""

    def __init__(self, graph: DeviceRecallGraph, queries: RecallQueries) -> None:
        self._graph, self._queries = graph, queries
        size, anchors = graph.nodes * queries.width, len(queries.anchors)
        self._hops, self._origins = filled(size, -1, np.int32), filled(size, NEVER, np.int32)
        self._ways, self._found = cupy.zeros(size, np.uint64), cupy.empty(size, np.int32)
        self._counts = np.diff(queries.anchor_offsets).astype(np.int32)
        self.deepest = 0
        launch_recall(
            "start_levels", (blocks(anchors, RECALL_THREADS),), cupy.asarray(queries.anchors),
            cupy.asarray(owners(queries.anchor_offsets)), cupy.asarray(queries.anchor_offsets.astype(np.int32)),
            anchors, graph.nodes, self._hops, self._origins, self._ways, self._found,
        )  # fmt: skip

    def follow(self, max_hops: int | None, flags: StopFlags, first: int, result: RecallResult) -> None:
        """Reach level after level, and write down what that took and which limit was met."""
        graph, width = self._graph, self._queries.width
        part = slice(first, first + width)
        (offsets, neighbors, _), (other_offsets, other_neighbors, _) = graph.sides
        rows = (offsets, neighbors, other_offsets, other_neighbors, graph.order, graph.nodes)
        edges = cupy.zeros(width, np.uint64)
        counts, starts, ends = cupy.asarray(self._counts), np.zeros(width, np.int32), self._counts
        flags.started[part] = 1
        most = NEVER if max_hops is None else max_hops
        while (starts < ends).any() and self.deepest < most:
            stopped = (flags.stop[part] != 0) & (starts < ends)
            result.limit[part][stopped] = _STOPPED
            starts = np.where(stopped, ends, starts).astype(np.int32)
            level = (cupy.asarray(starts), cupy.asarray(ends))
            grid, threads = self._grid(starts, ends, RECALL_THREADS // LANES), (LANES, RECALL_THREADS // LANES)
            hop = self.deepest + 1
            common = (*rows, *level, hop, self._hops, self._origins, self._found)
            launch("reach_level", grid, threads, *common, counts, edges, group="recall")
            launch("count_ways", grid, threads, *common, self._ways, group="recall")
            starts, ends = ends, counts.get()
            self.deepest = hop
        if self.deepest == most:
            more = cupy.zeros(width, np.int32)
            level = (cupy.asarray(starts), cupy.asarray(ends))
            grid = self._grid(starts, ends, RECALL_THREADS)
            launch_recall("has_edges", grid, offsets, other_offsets, graph.nodes, *level, self._found, more)
            result.limit[part][(more.get() != 0) & (result.limit[part] == 0)] = _MAX_HOPS
        followed = edges.get().astype(np.int64)
        self._check(followed, ends, result.limit[part] != _STOPPED, most)
        result.visited_nodes[part] = ends - self._counts
        result.visited_edges[part] = followed
        self._counts = ends

    def _check(self, followed: Int64Array, counts: Int32Array, finished: BoolArray, max_hops: int) -> None:
        """Notice kernels that did nothing: every edge of an anchor is followed, and nodes are reached by edges only."""
        queries = self._queries
        leaving = np.zeros(queries.width, dtype=np.bool_)
        np.logical_or.at(leaving, owners(queries.anchor_offsets), self._graph.with_edges(queries.anchors))
        idle = leaving & finished & (followed == 0) if max_hops > 0 else np.zeros_like(leaving)
        if idle.any() or (counts - self._counts > followed).any():
            raise KernelError(
                f"the traversal on the GPU followed {int(followed.sum()):,} edges to {int(counts.sum()):,} nodes",
                expected="the edges of every anchor, and no node without an edge to it",
                fix="report this with the output of `seedrank info`, and use --backend cpu",
            )

    @staticmethod
    def _grid(starts: Int32Array, ends: Int32Array, a_block: int) -> tuple[int, int]:
        return stripes(int((ends - starts).max(initial=0)), a_block), len(ends)

    def rank(
        self,
        scores: ScoreArray,
        k: int,
        eligible: BoolArray | None,
        min_score: float,
        first: int,
        result: RecallResult,
    ) -> None:
        """Filter, keep the k best of each query and write them down; `scores` are by hops."""
        graph, queries, width = self._graph, self._queries, self._queries.width
        counts, excluded = cupy.asarray(self._counts), queries.exclude_nodes
        launch_recall(
            "exclude_levels", (blocks(len(excluded), RECALL_THREADS),), cupy.asarray(excluded),
            cupy.asarray(owners(queries.exclude_offsets)), len(excluded), graph.nodes, self._ways,
        )  # fmt: skip
        # Equal scores of different hops are equal: ranks decide between them.
        classes = np.unique(scores, return_inverse=True)[1].astype(np.int32) + np.int32(1)
        classes[scores < scores.dtype.type(min_score)] = 0
        ranked = cupy.empty(graph.nodes * width, np.uint64)
        launch_recall(
            "rank_levels", self._grid(np.zeros_like(self._counts), self._counts, RECALL_THREADS), graph.order,
            graph.nodes, counts, self._found, self._hops, self._ways, graph.mask(eligible), cupy.asarray(classes),
            ranked,
        )  # fmt: skip
        firsts: Int64Array = np.arange(width, dtype=np.int64) * graph.nodes
        chosen_counts, chosen, kept = choose_places(ranked, firsts, firsts + self._counts, k)
        described = [*(cupy.empty(width * k, np.int32) for _ in range(3)), cupy.empty(width * k, np.uint64)]
        launch_recall(
            "describe_levels", (blocks(k, RECALL_THREADS), width), chosen_counts, chosen, k, graph.nodes, self._found,
            self._hops, self._origins, self._ways, *described,
        )  # fmt: skip
        node, hop, origin, ways = (column.get().reshape(width, k) for column in described)
        known = np.arange(k) < kept[:, np.newaxis]
        columns = (node, scores[np.where(known, hop, 0)], hop, origin, ways.astype(np.int64))
        write_ranked(result, first, queries, graph.order_host, kept, columns)
