"""The parts that all recall kernels share: chunks on threads, the heap of the best, arrays without an owner."""

from __future__ import annotations

import sys
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seedrank.kernels._cpu.best import offer, sort_best
from seedrank.kernels._cpu.chunks import Work, run_in_chunks
from seedrank.kernels.recall.forms import RecallLimits
from seedrank.kernels.recall.traverse import breadth_first
from seedrank.testing.harness import kernel_graph
from seedrank.testing.recall_harness import recall_graph, recall_queries


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 2, 15, 16, 17, 1000])
@pytest.mark.parametrize("most", [1, 16, 10_000])
def test_everything_is_done_once(count: int, threads: int, most: int) -> None:
    done: list[int] = []
    begun: list[int] = []

    def begin() -> Work:
        begun.append(threading.get_ident())
        return lambda first, last: done.extend(range(first, last))

    run_in_chunks(count, begin, threads=threads, most=most)
    assert sorted(done) == list(range(count))
    assert 1 <= len(begun) <= threads


@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_ends_the_rest_and_is_raised(threads: int) -> None:
    done: list[int] = []

    def work(first: int, _last: int) -> None:
        if first >= 32:
            raise ArithmeticError("the third chunk")
        time.sleep(0.001)
        done.append(first)

    with pytest.raises(ArithmeticError, match="the third chunk"):
        run_in_chunks(100_000, lambda: work, threads=threads)
    assert len(done) < 20


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    scores=st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), max_size=60),
    k=st.integers(1, 20),
    order=st.randoms(use_true_random=False),
)
def test_the_heap_keeps_the_best_in_order(scores: list[float], k: int, order: np.random.Generator) -> None:
    ranks = list(range(len(scores)))
    order.shuffle(ranks)
    heap = np.empty(k, np.float32), np.empty(k, np.int32), np.empty(k, np.int64)
    count = 0
    for item, (score, rank) in enumerate(zip(scores, ranks, strict=True)):
        count = offer(*heap, count, np.float32(score), rank, item)
    sort_best(*heap, count)
    expected = sorted(range(len(scores)), key=lambda item: (-scores[item], ranks[item]))[:k]
    assert heap[2][:count].tolist() == expected
    assert heap[0][:count].tolist() == [scores[item] for item in expected]
    assert heap[1][:count].tolist() == [ranks[item] for item in expected]


def test_borrowing_neither_leaks_arrays_nor_frees_them() -> None:
    graph = recall_graph(kernel_graph([(node, (node + 1) % 50) for node in range(50)]))
    queries = recall_queries(kernel_graph([(node, 0) for node in range(50)]), [[0], [1]])
    arrays = (graph.order, graph.rows[0].neighbors, queries.anchors)

    def run() -> list[int]:
        result = breadth_first(
            graph, queries, hop_decay=0.5, limits=RecallLimits(), k=5, eligible=None, min_score=0.0,
            precision="float32", threads=1,
        )  # fmt: skip
        assert result.counts.tolist() == [5, 5]
        return [sys.getrefcount(array) for array in arrays]

    before = run()
    for _ in range(50):
        after = run()
    assert after == before
