"""Breadth-first traversal on the device: that of the CPU, bit for bit, where no budget is set."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seedrank.kernels.recall.forms import RecallLimits, RecallQueries, RecallResult, StopFlags
from seedrank.kernels.recall.recall_graph import RecallGraph
from seedrank.kernels.recall.traverse import breadth_first
from seedrank.testing.harness import kernel_graph
from seedrank.testing.recall_harness import recall_graph, recall_queries
from seedrank.testing.strategies import RandomGraph, graphs

pytestmark = pytest.mark.usefixtures("gpu_device")
SETTING: dict[str, Any] = {
    "hop_decay": 0.5, "max_hops": None, "k": 9, "eligible": None, "min_score": 0.0, "precision": "float32"
}  # fmt: skip


def on_device(graph: RecallGraph, queries: RecallQueries, **setting: Any) -> RecallResult:
    uploaded = importlib.import_module("seedrank.kernels._gpu.recall_graph").upload_recall_graph(graph)
    traverse = importlib.import_module("seedrank.kernels.recall.gpu_traverse").breadth_first_on_device
    found: RecallResult = traverse(uploaded, queries, **setting)
    return found


def assert_same(graph: RecallGraph, queries: RecallQueries, **changes: Any) -> RecallResult:
    setting = SETTING | changes
    found = on_device(graph, queries, **setting)
    limits = RecallLimits(max_hops=setting.pop("max_hops"))
    expected = breadth_first(graph, queries, limits=limits, threads=1, **setting)
    for name, value in vars(expected).items():
        np.testing.assert_array_equal(getattr(found, name), value, err_msg=name)
        assert getattr(found, name).dtype == value.dtype
    return found


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.data(),
    graph=graphs(),
    direction=st.sampled_from(["out", "in", "both"]),
    type_weights=st.sampled_from([None, {"cites": 0.0}]),
    max_hops=st.sampled_from([None, 0, 1, 2, 3]),
)
def test_traversals_are_those_of_the_cpu(
    data: st.DataObject, graph: RandomGraph, direction: Any, type_weights: Any, max_hops: int | None
) -> None:
    kernels = kernel_graph(graph.edges, nodes=graph.nodes)
    some = st.sets(st.sampled_from(graph.nodes), max_size=4)
    rows = data.draw(st.lists(st.tuples(some, some), max_size=4))
    assert_same(
        recall_graph(kernels, direction=direction, type_weights=type_weights),
        recall_queries(kernels, [row[0] for row in rows], excluded=[row[1] for row in rows]),
        max_hops=max_hops,
        hop_decay=data.draw(st.sampled_from([0.5, 1.0, 1e-30])),
        k=data.draw(st.integers(1, 9)),
        eligible=np.random.default_rng(data.draw(st.integers(0, 99))).random(len(kernels.ids)) < 0.7
        if data.draw(st.booleans())
        else None,
        min_score=data.draw(st.sampled_from([0.0, 0.3, 0.5, 2.0])),
        precision=data.draw(st.sampled_from(["float32", "float64"])),
    )


@pytest.mark.parametrize("direction", ["out", "both"])
def test_hubs_and_many_ways(direction: Any) -> None:
    """A level of 300 nodes behind a hub, anchors that meet, and a chain of diamonds with 2**70 ways: more than fit."""
    random = np.random.default_rng(4)
    edges = [(0, node) for node in range(1, 301)] + [(node, node % 7) for node in range(1, 301)]
    edges += [tuple(pair) for pair in random.integers(0, 301, (600, 2)).tolist()]
    chain = 301 + 3 * np.arange(70)
    for start in chain.tolist():
        edges += [(start, start + 1), (start, start + 2), (start + 1, start + 3), (start + 2, start + 3)]
    graph = kernel_graph(edges)
    queries = recall_queries(graph, [{0}, {3, 50, 299}, {301}, set(range(0, 300, 3))], excluded=[{0}, (), (), {1}])
    rows = recall_graph(graph, direction=direction)
    for max_hops in (None, 1, 2, 139, 140):
        found = assert_same(rows, queries, k=600, hop_decay=0.99, precision="float64", max_hops=max_hops)
    assert found.visit_counts.max() == 2**63 - 1


def test_memory_is_shared_by_as_many_queries_as_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = kernel_graph([(node, (node * 3 + 1) % 200) for node in range(200)])
    queries = recall_queries(graph, [{node, 199 - node} for node in range(7)])
    traverse = importlib.import_module("seedrank.kernels.recall.gpu_traverse")
    for free in (1 << 30, 20_000, 1):
        monkeypatch.setattr(traverse, "free_bytes", lambda free=free: free)
        assert_same(recall_graph(graph), queries)


def test_flags_end_queries_between_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = kernel_graph([(node, node + 1) for node in range(30)])
    traverse = importlib.import_module("seedrank.kernels.recall.gpu_traverse")
    flags, launch = StopFlags.none(4), traverse.launch
    flags.stop[2] = 1

    def launched(name: str, grid: Any, threads: Any, *arguments: Any, **more: Any) -> None:
        launch(name, grid, threads, *arguments, **more)
        if name == "count_ways" and arguments[8] == 5:
            flags.stop[1] = 1

    monkeypatch.setattr(traverse, "launch", launched)
    found = on_device(recall_graph(graph), recall_queries(graph, [{0}, {1}, {2}, set()]), **SETTING, flags=flags)
    assert flags.started.tolist() == [1] * 4
    assert found.timed_out.tolist() == [False, True, True, False]
    assert found.visited_nodes.tolist() == [30, 5, 0, 0]
    assert found.counts.tolist() == [9, 6, 1, 0]
