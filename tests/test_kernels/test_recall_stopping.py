"""Stop flags that another thread sets while a kernel runs, and results that do not depend on the process."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from seedrank.kernels.building.adjacency import build_adjacency
from seedrank.kernels.paths import shortest_paths
from seedrank.kernels.recall.depth_first import depth_first
from seedrank.kernels.recall.forms import RecallLimits, StopFlags
from seedrank.kernels.recall.recall_graph import RecallGraph, build_recall_graph
from seedrank.kernels.recall.traverse import breadth_first
from seedrank.kernels.recall.walk import random_walk
from seedrank.kernels.recall.walk_graph import build_walk_graph
from seedrank.testing.harness import kernel_graph
from seedrank.testing.recall_harness import recall_graph, recall_queries

NO_LIMITS = RecallLimits()


@contextmanager
def stopped_once_started(flags: StopFlags, query: int) -> Iterator[None]:
    """Set the flag of a query some milliseconds after it has begun."""

    def watch() -> None:
        while not flags.started[query]:
            time.sleep(0.0005)
        time.sleep(0.005)
        flags.stop[query] = 1

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        flags.started[query] = 1
        watcher.join()


def random_graph(nodes: int, edges: int) -> RecallGraph:
    random = np.random.default_rng(6)
    source, target = (random.integers(0, nodes, edges).astype(np.int32) for _ in range(2))
    pair = build_adjacency(source, target, None, None, nodes=nodes, duplicate_edges="max")
    return build_recall_graph(pair.by_source, pair.by_destination, pair.order, direction="both", type_weights=None)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_walk_without_end_is_stopped_and_the_others_are_not(threads: int) -> None:
    graph = kernel_graph([(1, 2), (2, 3), (3, 1)])
    flags = StopFlags.none(3)
    # The other queries have no anchor, so they end by themselves.
    with stopped_once_started(flags, 1):
        result = random_walk(
            build_walk_graph(recall_graph(graph)), recall_queries(graph, [[], [1], []]), restart=0.2, steps=10**12,
            random_seed=0, limits=NO_LIMITS, k=3, eligible=None, min_score=0.0, precision="float64", threads=threads,
            flags=flags,
        )  # fmt: skip
    assert result.timed_out.tolist() == result.truncated.tolist() == [False, True, False]
    assert result.counts.tolist() == [0, 3, 0]
    assert 0 < result.visit_counts[1].sum() < 10**12
    assert result.scores[1].sum() == pytest.approx(result.visit_counts[1].sum() / 10**12)


def test_a_traversal_of_a_large_graph_is_stopped() -> None:
    graph = random_graph(1_000_000, 6_000_000)
    queries = recall_queries(kernel_graph([(0, 1)]), [[0]])
    common = {"hop_decay": 0.5, "limits": NO_LIMITS, "k": 10, "eligible": None, "min_score": 0.0}
    # Loads the compiled code, which is not part of what is to be stopped.
    breadth_first(graph, queries, **common | {"limits": RecallLimits(1)}, precision="float32", threads=1)  # type: ignore[arg-type]
    flags = StopFlags.none(1)
    with stopped_once_started(flags, 0):
        result = breadth_first(graph, queries, **common, precision="float32", threads=1, flags=flags)  # type: ignore[arg-type]
    assert result.timed_out.all()
    assert result.counts[0] == 10
    assert 0 < result.visited_nodes[0] < 900_000
    assert (result.hops[0, :10] <= 20).all()


def test_a_search_in_depth_that_would_take_hours_is_stopped() -> None:
    """In a complete graph a node's depth shrinks as often as there are nodes before it."""
    nodes = 2000
    source, target = (part.ravel().astype(np.int32) for part in np.meshgrid(np.arange(nodes), np.arange(nodes)))
    pair = build_adjacency(source, target, None, None, nodes=nodes, duplicate_edges="max")
    graph = build_recall_graph(pair.by_source, pair.by_destination, pair.order, direction="out", type_weights=None)
    flags = StopFlags.none(1)
    with stopped_once_started(flags, 0):
        result = depth_first(
            graph, recall_queries(kernel_graph([(0, 1)]), [[0]]), hop_decay=1.0, limits=NO_LIMITS, k=10,
            eligible=None, min_score=0.0, precision="float64", threads=2, flags=flags,
        )  # fmt: skip
    assert result.timed_out.all()
    assert result.counts[0] == 10


def test_a_search_for_a_long_path_is_stopped() -> None:
    nodes = 2_000_000
    chain = np.arange(nodes, dtype=np.int32)
    pair = build_adjacency(chain[:-1], chain[1:], None, None, nodes=nodes, duplicate_edges="max")
    graph = build_recall_graph(pair.by_source, pair.by_destination, pair.order, direction="out", type_weights=None)
    ends, offsets = graph.order.argsort()[[0, nodes - 1]].astype(np.int32), np.array([0, 1])
    shortest_paths(graph, offsets, ends[:1], offsets, ends[:1], threads=1)  # loads the compiled code
    flags = StopFlags.none(1)
    with stopped_once_started(flags, 0):
        table = shortest_paths(graph, offsets, ends[:1], offsets, ends[1:], threads=1, flags=flags)
    assert table.ended.all()
    assert table.hops.tolist() == [-1]


PROGRAM = """
import hashlib
import sys

import numpy as np

from seedrank.kernels.recall.depth_first import depth_first
from seedrank.kernels.paths import shortest_paths
from seedrank.kernels.recall.forms import RecallLimits
from seedrank.kernels.recall.traverse import breadth_first
from seedrank.kernels.recall.walk import random_walk
from seedrank.kernels.recall.walk_graph import build_walk_graph
from seedrank.testing.harness import kernel_graph
from seedrank.testing.recall_harness import recall_graph, recall_queries

threads, seed = int(sys.argv[1]), int(sys.argv[2])
random = np.random.default_rng(1)
edges = [(f"n{a}", f"n{b}", 0.5 + a % 3) for a, b in random.integers(0, 200, (900, 2)).tolist()]
np.random.default_rng(seed).shuffle(edges)
graph = kernel_graph(edges)
followed = recall_graph(graph, direction="both")
queries = recall_queries(graph, [[f"n{i}", f"n{i + 5}"] for i in range(60)])
common = dict(k=50, eligible=None, min_score=0.0, precision="float32", threads=threads)
limits = RecallLimits(max_hops=3, max_visited_edges=150)
choices = dict(restart=0.2, steps=200, random_seed=9)
walked = random_walk(build_walk_graph(followed), queries, limits=limits, **choices, **common)
results = [walked]
for method in (breadth_first, depth_first):
    results.append(method(followed, queries, hop_decay=0.5, limits=limits, **common))
offsets = np.arange(0, 61 * 20, 20)
filled = walked.nodes[:, :20].ravel()
results.append(shortest_paths(followed, queries.anchor_offsets, queries.anchors, offsets, filled, threads=threads))
order = graph.adjacency.order
digest = hashlib.sha256()
for result in results:
    for array in vars(result).values():
        if array is not None:
            digest.update(array.tobytes())
print(digest.hexdigest())
"""


def test_other_processes_threads_and_row_orders_give_the_same_bytes() -> None:
    runs = [("1", "0"), ("1", "0"), ("2", "0"), ("2", "5")]
    found = {
        subprocess.run([sys.executable, "-c", PROGRAM, *arguments], check=True, capture_output=True, text=True).stdout
        for arguments in runs
    }
    assert len(found) == 1
    assert len(found.pop()) == 65
