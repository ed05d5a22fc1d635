"""Walks on the device: those of the CPU, bit for bit, whatever is cut, filtered or tied."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seedrank.errors import ResourceError
from seedrank.kernels.recall.forms import RecallLimits, RecallQueries, RecallResult, StopFlags
from seedrank.kernels.recall.walk import random_walk
from seedrank.kernels.recall.walk_graph import WalkGraph, build_walk_graph
from seedrank.testing.harness import KernelGraph, kernel_graph
from seedrank.testing.recall_harness import recall_graph, recall_queries
from seedrank.testing.strategies import RandomGraph, graphs

pytestmark = pytest.mark.usefixtures("gpu_device")
SETTING: dict[str, Any] = {
    "restart": 0.2, "steps": 600, "random_seed": 7, "limits": RecallLimits(), "k": 9, "eligible": None,
    "min_score": 0.0, "precision": "float32",
}  # fmt: skip


def on_device(graph: WalkGraph, queries: RecallQueries, **setting: Any) -> RecallResult:
    uploaded = importlib.import_module("seedrank.kernels._gpu.recall_graph")
    walk = importlib.import_module("seedrank.kernels.recall.gpu_walk").random_walk_on_device
    found: RecallResult = walk(uploaded.upload_recall_graph(graph.graph, graph.cumulative), queries, **setting)
    return found


def assert_same(graph: WalkGraph, queries: RecallQueries, **changes: Any) -> RecallResult:
    setting = SETTING | changes
    found, expected = on_device(graph, queries, **setting), random_walk(graph, queries, threads=1, **setting)
    for name, value in vars(expected).items():
        np.testing.assert_array_equal(getattr(found, name), value, err_msg=name)
        assert getattr(found, name).dtype == value.dtype
    return found


def hub(*, weighted: bool) -> tuple[KernelGraph, WalkGraph]:
    """Node 0 leads to 300 others, which lead back, onwards or nowhere; edges of both kinds of weights."""
    random = np.random.default_rng(5)
    pairs = {(0, node) for node in range(1, 301)} | {(node, (node * 7) % 301) for node in range(1, 301) if node % 5}
    edges = [
        (*pair, float(weight)) for pair, weight in zip(sorted(pairs), random.lognormal(size=len(pairs)), strict=True)
    ]
    graph = kernel_graph(edges if weighted else [edge[:2] for edge in edges])
    return graph, build_walk_graph(recall_graph(graph, direction="both"))


LIMIT = st.one_of(st.none(), st.integers(0, 12))


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.data(),
    graph=graphs(),
    direction=st.sampled_from(["out", "in", "both"]),
    type_weights=st.sampled_from([None, {"cites": 0.0}, {"likes": 0.3, "cites": 1.0}]),
    limits=st.tuples(LIMIT, LIMIT, LIMIT),
)
def test_walks_are_those_of_the_cpu(
    data: st.DataObject, graph: RandomGraph, direction: Any, type_weights: Any, limits: tuple[int | None, ...]
) -> None:
    kernels = kernel_graph(graph.edges, nodes=graph.nodes)
    some = st.sets(st.sampled_from(graph.nodes), max_size=4)
    rows = data.draw(st.lists(st.tuples(some, some), max_size=4))
    assert_same(
        build_walk_graph(recall_graph(kernels, direction=direction, type_weights=type_weights)),
        recall_queries(kernels, [row[0] for row in rows], excluded=[row[1] for row in rows]),
        restart=data.draw(st.sampled_from([0.01, 0.2, 1.0])),
        steps=data.draw(st.integers(1, 40)),
        random_seed=data.draw(st.integers(0, 2**64 - 1)),
        limits=RecallLimits(*limits),
        k=data.draw(st.integers(1, 9)),
        eligible=np.random.default_rng(data.draw(st.integers(0, 99))).random(len(kernels.ids)) < 0.7
        if data.draw(st.booleans())
        else None,
        min_score=data.draw(st.sampled_from([0.0, 0.1, 0.5, 2.0])),
        precision=data.draw(st.sampled_from(["float32", "float64"])),
    )


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize(
    "limits",
    [(), (None, 40), (None, None, 700), (2, 90, 900), (0,), (None, 0), (None, None, 0)],
    ids=["none", "nodes", "edges", "all", "no hop", "no node", "no edge"],
)
def test_budgets_cut_where_the_cpu_cuts(weighted: bool, limits: tuple[int | None, ...]) -> None:
    graph, rows = hub(weighted=weighted)
    queries = recall_queries(graph, [{0}, {5, 17, 200}, set(), {0, 1, 2, 3, 4}], excluded=[{0}, {5}, (), {7}])
    found = assert_same(rows, queries, limits=RecallLimits(*limits), k=400)
    assert found.limit.any() == (limits != ())


def test_a_query_with_more_anchors_than_a_warp_has_lanes() -> None:
    graph, rows = hub(weighted=True)
    queries = recall_queries(graph, [set(range(0, 300, 3)), {1}])
    for limits in (RecallLimits(), RecallLimits(max_visited_edges=77), RecallLimits(max_visited_nodes=31)):
        assert_same(rows, queries, steps=40, limits=limits, k=30)


def test_scores_that_are_equal_in_float32_only_go_by_rank() -> None:
    """Of 2**30 steps: the kernels are given numbers of visits, because nobody waits for so many steps."""
    steps, visits, order = 2**30, [2**29 + 1, 2**29, 2**29 + 20, 5, 0], [3, 2, 4, 0, 1]
    cupy, parts = importlib.import_module("cupy"), importlib.import_module("seedrank.kernels._gpu.recall_parts")
    best = cupy.asarray(np.array(visits, np.uint64) << np.uint64(32))
    starts, keys = np.array([0, 5]), cupy.asarray(np.arange(5, dtype=np.int32))
    for precision, expected in ((1, [1, 0, 2]), (0, [2, 0, 1])):
        ranked = cupy.empty(5, np.uint64)
        parts.launch_recall(
            "rank_walks", (1, 1), cupy.asarray(starts), cupy.asarray(np.array(order, np.int32)), keys, best,
            np.uintp(0), 6, steps, precision, ranked,
        )  # fmt: skip
        scores = (np.array(visits) / steps).astype([np.float64, np.float32][precision])
        assert np.lexsort((np.array(order), -scores))[:3].tolist() == expected
        assert sorted(range(3), key=lambda node: -int(ranked.get()[node])) == expected
        assert not ranked.get()[3:].any()
        _, chosen, counts = parts.choose_places(ranked, starts[:1], starts[1:], 2)
        assert counts.tolist() == [2]
        assert set(chosen.get()[:2].tolist()) == set(expected[:2])


def test_memory_is_shared_by_as_many_queries_as_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, rows = hub(weighted=True)
    queries = recall_queries(graph, [{node, node * 2 % 301} for node in range(1, 9)])
    walk = importlib.import_module("seedrank.kernels.recall.gpu_walk")
    widths: list[int] = []
    whole = walk._walk

    def counted(graph: Any, queries: RecallQueries, *rest: Any) -> None:
        widths.append(queries.width)
        whole(graph, queries, *rest)

    monkeypatch.setattr(walk, "_walk", counted)
    for free, expected in ((1 << 30, [8]), (250_000, [3, 3, 2]), (1, [1] * 8)):
        monkeypatch.setattr(walk, "free_bytes", lambda free=free: free)
        widths.clear()
        assert_same(rows, queries, steps=1000)
        assert widths == expected


def test_more_steps_than_numbers_hold_are_refused() -> None:
    graph, rows = hub(weighted=False)
    with pytest.raises(ResourceError, match=r"3 anchors, of 1,000,000,000 steps each"):
        on_device(rows, recall_queries(graph, [{1, 2, 3}]), **SETTING | {"steps": 10**9})


def test_flags_end_queries_between_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, rows = hub(weighted=True)
    queries = recall_queries(graph, [{0, 1}, {2}, {3}, set()])
    walk = importlib.import_module("seedrank.kernels.recall.gpu_walk")
    monkeypatch.setattr(walk, "STRETCH", 100)
    flags, launches = StopFlags.none(4), []
    launch: Callable[..., None] = walk.launch_recall

    def launched(name: str, *arguments: Any, **more: Any) -> None:
        launch(name, *arguments, **more)
        if name == "walk_steps":
            launches.append(name)
            flags.stop[1] = 1
            if len(launches) == 3:
                flags.stop[:] = 1

    monkeypatch.setattr(walk, "launch_recall", launched)
    flags.stop[2] = 1
    found = on_device(rows, queries, **SETTING, flags=flags)
    assert flags.started.tolist() == [1] * 4
    assert len(launches) == 3
    # What a query has done until then is what it does in so few steps; shares are still of all of them.
    for query, steps in enumerate((300, 100, 0)):
        part = recall_queries(graph, [[{0, 1}, {2}, {3}][query]], names=[query])
        assert found.timed_out[query]
        if steps:
            expected = random_walk(rows, part, threads=1, **SETTING | {"steps": steps, "k": 301})
            count = found.counts[query]
            assert found.nodes[query, :count].tolist() == expected.nodes[0, :count].tolist()
            assert found.visit_counts[query].tolist() == expected.visit_counts[0, :9].tolist()
            assert found.visited_edges[query] == expected.visited_edges[0]
            assert found.scores[query, 0] == np.float32(found.visit_counts[query, 0] / 600)
        else:
            assert (found.counts[query], found.visited_nodes[query], found.visited_edges[query]) == (0, 0, 0)
    assert not found.timed_out[3]
