"""Small runs with exact answers, on the cycle 0 → 1 → 2 → 0: what kernels compute before a job believes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from seedrank.kernels.backend import Backend, QueryBlock
from seedrank.kernels.recall.forms import RecallLimits, RecallQueries
from seedrank.kernels.recall.recall_graph import FollowedRows, RecallGraph
from seedrank.kernels.transition import SparseRows, Transition

_OFFSETS = np.arange(4, dtype=np.int64)
_ORDER = np.array([0, 2, 1], dtype=np.int32)
_NO_NODES = np.zeros(0, dtype=np.int32)


def check_steps(backend: Backend) -> str:
    """Compute two steps of PageRank, and the best nodes; say what is wrong, or ""."""
    one = np.ones(3)
    cycle = Transition(
        nodes=3,
        products=(SparseRows(_OFFSETS, np.array([2, 0, 1], dtype=np.int32), None),),
        outgoing=(),
        out_weight=one,
        inverse_out_weight=one,
        dangling_nodes=_NO_NODES,
        dangling="seeds",
    )
    backend.load(cycle, precision="float32", order=_ORDER)
    none = np.zeros(2, dtype=np.int64)
    backend.start(QueryBlock(np.array([0, 1]), np.zeros(1, dtype=np.int32), np.ones(1), none, _NO_NODES), restart=0.5)
    backend.step()
    report = backend.step()
    best = backend.select(np.zeros(1, dtype=np.int64), k=2, eligible=None, min_score=0.0)
    return _difference(
        "two steps on a cycle",
        [best.nodes[0].tolist(), best.scores[0].tolist(), report.mass.tolist(), report.difference.tolist()],
        [[0, 2], [0.5, 0.25], [1.0], [0.5]],
    )


def check_recall() -> str:
    """Walk and traverse from node 0 but without returning node 2; say what is wrong, or "". Imports CuPy."""
    from seedrank.kernels._gpu.recall_graph import upload_recall_graph  # noqa: PLC0415
    from seedrank.kernels.recall.gpu_traverse import breadth_first_on_device  # noqa: PLC0415
    from seedrank.kernels.recall.gpu_walk import random_walk_on_device  # noqa: PLC0415

    rows = FollowedRows(_OFFSETS, np.array([1, 2, 0], dtype=np.int32), None, None, reversed=False)
    graph = upload_recall_graph(RecallGraph(3, _ORDER, (rows,), (), None))
    one, zero = np.array([0, 1]), np.zeros(1, dtype=np.int32)
    queries = RecallQueries(
        anchor_offsets=one,
        anchors=zero,
        query_keys=np.zeros(1, dtype=np.uint64),
        anchor_keys=np.zeros(1, dtype=np.uint64),
        exclude_offsets=one,
        exclude_nodes=np.array([2], dtype=np.int32),
    )
    common: dict[str, Any] = {"k": 2, "eligible": None, "min_score": 0.0, "precision": "float32"}
    reached = breadth_first_on_device(graph, queries, hop_decay=0.5, max_hops=1, **common)
    # It returns with a probability of 2**-60, and not with this seed: six steps, two rounds.
    limits = RecallLimits()
    walked = random_walk_on_device(graph, queries, restart=2.0**-60, steps=8, random_seed=0, limits=limits, **common)
    return _difference(
        "a traversal and a walk on a cycle",
        [
            [found.nodes.tolist(), found.scores.tolist(), found.visited_edges.tolist(), found.visit_counts.tolist()]
            for found in (reached, walked)
        ],
        [[[[0, 1]], [[1.0, 0.5]], [1], [[1, 1]]], [[[1, 0]], [[0.375, 0.25]], [8], [[3, 2]]]],
    )


def check_products() -> str:
    """Multiply some vectors; say what is wrong, or "". Imports CuPy."""
    from seedrank.kernels.gpu_products import DeviceProducts  # noqa: PLC0415

    rows = np.arange(6, dtype=np.float32).reshape(2, 3)
    return _difference("products of the vectors", DeviceProducts()(rows, rows).tolist(), [[5.0, 14.0], [14.0, 50.0]])


def _difference(what: str, found: object, expected: object) -> str:
    return "" if found == expected else f"{what} of three nodes gave {found}, not {expected}"
