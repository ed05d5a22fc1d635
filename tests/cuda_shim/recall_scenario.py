"""One small run through every kernel of walks and traversals, held against the kernels of the CPU.

Used three times, as ``scenario.py`` is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from seedrank.kernels._gpu.recall_graph import upload_recall_graph
from seedrank.kernels.recall.forms import RecallLimits, RecallQueries, RecallResult
from seedrank.kernels.recall.gpu_traverse import breadth_first_on_device
from seedrank.kernels.recall.gpu_walk import random_walk_on_device
from seedrank.kernels.recall.recall_graph import FollowedRows, RecallGraph
from seedrank.kernels.recall.traverse import breadth_first
from seedrank.kernels.recall.walk import random_walk
from seedrank.kernels.recall.walk_graph import build_walk_graph
from seedrank.kernels.runs import offsets_of

NODES = 500


def made_graph(*, weighted: bool, both: bool) -> RecallGraph:
    """Random rows, the first of 300 entries, some with a neighbour twice; every fifth node leads nowhere."""
    random = np.random.default_rng(21)
    order = random.permutation(NODES).astype(np.int32)
    sides = []
    for reverse in (False, True)[: 1 + both]:
        lengths = random.integers(0, 6, NODES) * (np.arange(NODES) % 5 != 2)
        lengths[0] = 300
        row = np.repeat(np.arange(NODES), lengths)
        neighbors = random.integers(0, NODES, len(row)).astype(np.int32)
        neighbors = neighbors[np.lexsort((order[neighbors], row))]
        weights = random.lognormal(size=len(row)) if weighted else None
        sides.append(FollowedRows(offsets_of(lengths), neighbors, weights, None, reverse))
    return RecallGraph(NODES, order, tuple(sides), (), None)


def made_queries() -> RecallQueries:
    """Forty anchors, one, none, and the hub with others; exclusions among what is near."""
    random = np.random.default_rng(22)
    anchors: list[list[int]] = [random.choice(NODES, 40, replace=False).tolist(), [7], [], [0, 1, 2]]
    excluded: list[list[int]] = [random.choice(NODES, 60).tolist(), [7], [1], []]
    flat = np.concatenate(anchors).astype(np.int32)
    return RecallQueries(
        anchor_offsets=offsets_of([*map(len, anchors)]),
        anchors=flat,
        query_keys=random.integers(0, 2**64, 4, dtype=np.uint64),
        anchor_keys=random.integers(0, 2**64, len(flat), dtype=np.uint64),
        exclude_offsets=offsets_of([*map(len, excluded)]),
        exclude_nodes=np.concatenate(excluded).astype(np.int32),
    )


def same(found: RecallResult, expected: RecallResult) -> bool:
    """Whether two results are equal to the last bit."""
    return all(np.array_equal(getattr(found, name), value) for name, value in vars(expected).items())


def walks(graph: RecallGraph, *, weighted: bool) -> Iterator[tuple[str, bool]]:
    """Walks under no limit and under every one."""
    walk_graph, queries = build_walk_graph(graph), made_queries()
    assert bool(walk_graph.cumulative) == weighted
    uploaded = upload_recall_graph(graph, walk_graph.cumulative)
    eligible = np.random.default_rng(23).random(NODES) < 0.8
    common: dict[str, Any] = {"restart": 0.25, "steps": 60, "random_seed": 3}
    for limits, k, mask, least, precision in (
        (RecallLimits(), 300, None, 0.0, "float32"), (RecallLimits(1), 300, eligible, 0.02, "float64"),
        (RecallLimits(None, 70), 20, eligible, 0.0, "float32"), (RecallLimits(4, None, 33), 5, None, 0.0, "float64"),
        (RecallLimits(4, 31, 90), 300, None, 0.0, "float32"),
    ):  # fmt: skip
        filters: dict[str, Any] = {"k": k, "eligible": mask, "min_score": least, "precision": precision}
        found = random_walk_on_device(uploaded, queries, limits=limits, **filters, **common)
        yield (
            f"walk {limits}",
            same(found, random_walk(walk_graph, queries, limits=limits, threads=1, **filters, **common)),
        )


def traversals(graph: RecallGraph) -> Iterator[tuple[str, bool]]:
    """Traversals as far as there is, and less far."""
    uploaded, queries = upload_recall_graph(graph), made_queries()
    eligible = np.random.default_rng(24).random(NODES) < 0.8
    for hops, k, mask, decay, precision in (
        (None, 600, None, 0.5, "float32"), (2, 30, eligible, 0.9, "float64"), (1, 600, None, 1.0, "float32"),
        (0, 3, None, 0.5, "float32"), (3, 5, eligible, 1e-30, "float32"),
    ):  # fmt: skip
        filters: dict[str, Any] = {"k": k, "eligible": mask, "min_score": 0.0, "precision": precision}
        found = breadth_first_on_device(uploaded, queries, max_hops=hops, hop_decay=decay, **filters)
        limits = RecallLimits(max_hops=hops)
        yield (
            f"traversal of {hops} hops",
            same(found, breadth_first(graph, queries, limits=limits, hop_decay=decay, threads=1, **filters)),
        )


def failures() -> Iterator[str]:
    """What comes out wrong."""
    for weighted, both in ((False, True), (True, True), (True, False)):
        graph = made_graph(weighted=weighted, both=both)
        for name, right in (*walks(graph, weighted=weighted), *traversals(graph)):
            if not right:
                yield f"{name}, {'weighted' if weighted else 'plain'}"


if __name__ == "__main__":
    print(list(failures()))  # noqa: T201  # for the process that has AddressSanitizer
