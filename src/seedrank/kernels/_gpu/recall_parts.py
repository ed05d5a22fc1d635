"""What walks and traversals on the device share: parts of a block, the best keys of queries, stretches of threads."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from seedrank.kernels._gpu.device import launch
from seedrank.kernels._gpu.source import RECALL_THREADS
from seedrank.kernels.arrays import Int32Array, Int64Array
from seedrank.kernels.recall.forms import RecallQueries, RecallResult

USABLE = 0.85
"""Share of the free memory that queries are planned with."""

MOST_QUERIES = 1 << 14
"""Queries that are computed together, at most: a grid has 65,535 blocks in its second direction."""

NEVER = np.iinfo(np.int32).max
NO_LIMIT = np.iinfo(np.int64).max


def queries_of(queries: RecallQueries, first: int, last: int) -> RecallQueries:
    """The queries ``first … last - 1`` of a block."""
    start, stop = queries.anchor_offsets[[first, last]]
    excluded, excluded_end = queries.exclude_offsets[[first, last]]
    return RecallQueries(
        anchor_offsets=queries.anchor_offsets[first : last + 1] - start,
        anchors=queries.anchors[start:stop],
        query_keys=queries.query_keys[first:last],
        anchor_keys=queries.anchor_keys[start:stop],
        exclude_offsets=queries.exclude_offsets[first : last + 1] - excluded,
        exclude_nodes=queries.exclude_nodes[excluded:excluded_end],
    )


def owners(offsets: Int64Array) -> Int32Array:
    """Position of the range that each element belongs to."""
    return np.repeat(np.arange(len(offsets) - 1, dtype=np.int32), np.diff(offsets))


def launch_recall(name: str, grid: tuple[int, ...], *arguments: Any, threads: int = RECALL_THREADS) -> None:
    """Start a kernel of walks and traversals; see `seedrank.kernels._gpu.device.launch`."""
    launch(name, grid, (threads,), *arguments, group="recall")


def choose_places(
    keys: cupy.ndarray, firsts: Int64Array, lasts: Int64Array, k: int
) -> tuple[cupy.ndarray, cupy.ndarray, Int32Array]:
    """Find the places of the k largest keys of each query; 0 is no key, others are distinct within a query.

    Parameters
    ----------
    keys : device uint64
    firsts, lasts : int64 (B)
        Where the keys of each query begin and end.
    k : int
        >= 1

    Returns
    -------
    found : device int32 (B)
    chosen : device int64 (B · k)
        Places, in any order.
    counts : int32 (B)
        `found` on the host.
    """
    found, chosen = cupy.zeros(len(firsts), np.int32), cupy.empty(len(firsts) * k, np.int64)
    launch_recall("choose_best", (len(firsts),), keys, cupy.asarray(firsts), cupy.asarray(lasts), k, found, chosen)
    return found, chosen, found.get()


def write_ranked(
    result: RecallResult,
    first: int,
    queries: RecallQueries,
    order: Int32Array,
    counts: Int32Array,
    columns: tuple[Any, Any, Any, Any, Any],
) -> None:
    """Sort what was chosen and write it down.

    Parameters
    ----------
    result : RecallResult
    first : int
        Row of the first of these queries.
    queries : RecallQueries
    order : int32 (n)
        Tie ranks.
    counts : int32 (B)
        Candidates of each query.
    columns : tuple of arrays (B, k)
        Nodes, scores, hops, positions of the anchors within their query, visits; in any order within a query.
    """
    nodes, scores, hops, places, visits = columns
    query, place = np.nonzero(np.arange(nodes.shape[1]) < counts[:, np.newaxis])
    ranking = np.lexsort((order[nodes[query, place]], -scores[query, place], query))
    row = first + query
    result.nodes[row, place] = nodes[query, place][ranking]
    result.scores[row, place] = scores[query, place][ranking]
    result.hops[row, place] = hops[query, place][ranking]
    result.anchors[row, place] = queries.anchors[queries.anchor_offsets[query] + places[query, place][ranking]]
    result.visit_counts[row, place] = visits[query, place][ranking]
    result.counts[first : first + len(counts)] = counts
