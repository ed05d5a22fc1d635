"""The random numbers of walks and the whole-numbered weights that they are compared with."""

from __future__ import annotations

from collections import Counter
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seedrank.kernels._cpu.philox import random_pair, scaled
from seedrank.kernels._cpu.walk import _first_above
from seedrank.kernels.recall import walk_graph as walk_graph_module
from seedrank.kernels.recall.forms import RecallLimits
from seedrank.kernels.recall.walk import random_walk
from seedrank.kernels.recall.walk_graph import build_walk_graph
from seedrank.testing.harness import kernel_graph
from seedrank.testing.recall_harness import recall_graph, recall_queries
from seedrank.testing.reference_random import reference_philox, reference_whole_weights
from seedrank.testing.reference_recall import reference_choices
from seedrank.testing.strategies import RandomGraph, graphs

ONES = 2**32 - 1
#: Known answers that Random123 publishes for philox4x32 with 10 rounds: counter, key, output.
KNOWN = (
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((ONES, ONES, ONES, ONES), (ONES, ONES), (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
)
WORD = st.integers(0, 2**64 - 1)


def joined(low: int, high: int) -> np.uint64:
    return np.uint64(low | high << 32)


@pytest.mark.parametrize(("counter", "key", "output"), KNOWN)
def test_philox_gives_the_published_numbers(
    counter: tuple[int, ...], key: tuple[int, int], output: tuple[int, ...]
) -> None:
    assert reference_philox(counter, key) == output
    low, high = random_pair(joined(*key), joined(*counter[2:]), joined(*counter[:2]))
    assert (low, high) == (joined(*output[:2]), joined(*output[2:]))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(key=WORD, stream=WORD, counter=WORD)
def test_philox_is_its_definition(key: int, stream: int, counter: int) -> None:
    low, high = random_pair(np.uint64(key), np.uint64(stream), np.uint64(counter))
    words = reference_philox((counter & ONES, counter >> 32, stream & ONES, stream >> 32), (key & ONES, key >> 32))
    assert (int(low), int(high)) == (words[0] | words[1] << 32, words[2] | words[3] << 32)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(draw=WORD, total=st.one_of(WORD, st.integers(1, 100), st.sampled_from([2**32, 2**62 - 1, 2**64 - 1])))
def test_scaling_is_the_upper_half_of_the_product(draw: int, total: int) -> None:
    assert int(scaled(np.uint64(draw), np.uint64(total))) == draw * total >> 64


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    graph=graphs(),
    direction=st.sampled_from(["out", "in", "both"]),
    type_weights=st.sampled_from([None, {"cites": 0.0}, {"likes": 0.3, "cites": 1.0}, {"likes": 1e-300}]),
    stretch=st.sampled_from([1, 4, 1 << 20]),
)
def test_running_sums_are_those_of_the_whole_weights(
    graph: RandomGraph, direction: Literal["out", "in", "both"], type_weights: dict[str, float] | None, stretch: int
) -> None:
    built = kernel_graph(graph.edges, nodes=graph.nodes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(walk_graph_module, "STRETCH", stretch)
        walk_graph = build_walk_graph(recall_graph(built, direction=direction, type_weights=type_weights))
    choices = reference_choices(graph.edges, direction=direction, type_weights=type_weights)
    order = built.adjacency.order
    for node in range(len(graph.nodes)):
        row = choices[built.ids[order[node]]]
        entries = [(side, slice(*side.offsets[node : node + 2])) for side in walk_graph.graph.rows]
        neighbors = [built.ids[rank] for side, part in entries for rank in order[side.neighbors[part]]]
        assert neighbors == [neighbor for neighbor, _ in row]
        if walk_graph.cumulative:
            parts = zip(walk_graph.cumulative, entries, strict=True)
            sums = [int(value) for cumulative, (_, part) in parts for value in cumulative[part]]
            assert sums == np.cumsum(reference_whole_weights([weight for _, weight in row]), dtype=object).tolist()
        else:
            assert {weight for _, weight in row} <= {1.0} or type_weights is not None


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    weights=st.lists(st.one_of(st.integers(0, 3), st.integers(0, 2**40)), min_size=1, max_size=200),
    before=st.integers(0, 2**40),
    data=st.data(),
)
def test_the_entry_is_found_wherever_the_search_starts(weights: list[int], before: int, data: st.DataObject) -> None:
    """Skewed weights, and some of 0, which no value falls on."""
    sums = np.cumsum([99, before, *weights, 5])
    first, last = 2, 2 + len(weights)
    below, total = int(sums[1]), int(sums[last - 1])
    if total > below:
        value = data.draw(st.one_of(st.integers(below, total - 1), st.sampled_from([below, total - 1])))
        expected = np.searchsorted(sums[:last], value, side="right")
        assert _first_above(sums, first, last, np.int64(value), np.int64(below), np.int64(total)) == expected


def test_running_sums_survive_the_overflow_of_their_common_total() -> None:
    """Ten nodes of degree 1 have 2**60 each: the sum over the graph is beyond int64."""
    graph = kernel_graph([(node, node + 100, float(node + 1)) for node in range(10)])
    (sums,) = build_walk_graph(recall_graph(graph)).cumulative
    assert all(2**60 <= value < 2**61 for value in sums.tolist())


def test_a_graph_without_weights_needs_no_sums() -> None:
    assert build_walk_graph(recall_graph(kernel_graph([("a", "b"), ("b", "a")]))).cumulative == ()
    typed = kernel_graph([("a", "b", 1.0, "x"), ("b", "a", 1.0, "y")])
    assert build_walk_graph(recall_graph(typed, type_weights={"x": 0.3, "y": 0.3})).cumulative == ()
    assert len(build_walk_graph(recall_graph(typed, type_weights={"x": 0.3}, direction="both")).cumulative) == 2


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("direction", ["out", "both"])
def test_chi_square_of_the_first_step(weighted: bool, direction: str) -> None:
    """First steps of 100,000 queries are independent; 12 neighbours, at most the 99.9 % quantile for 11 degrees."""
    weights = [1.0 + node % 5 for node in range(12)] if weighted else [1.0] * 12
    edges = [("hub", f"leaf {node:02}", weights[node]) for node in range(12)]
    if direction == "both":
        edges = edges[:7] + [(target, source, weight) for source, target, weight in edges[7:]]
    graph = kernel_graph(edges)
    queries = 100_000
    result = random_walk(
        build_walk_graph(recall_graph(graph, direction=direction)),  # type: ignore[arg-type]
        recall_queries(graph, [["hub"]] * queries),
        restart=1e-9, steps=1, random_seed=3, limits=RecallLimits(), k=1, eligible=None, min_score=0.0,
        precision="float32", threads=1,
    )  # fmt: skip
    seen = Counter(graph.ids[rank] for rank in graph.adjacency.order[result.nodes[:, 0]])
    expected = {f"leaf {node:02}": queries * weight / sum(weights) for node, weight in enumerate(weights)}
    assert sum((seen[leaf] - count) ** 2 / count for leaf, count in expected.items()) < 31.26


def test_visits_on_a_chain_have_the_exact_expectation() -> None:
    """1→2→3→4→5 for 12 steps: P(step t ends on node i) follows a small recurrence; 40,000 walks, 4.5 deviations."""
    restart, steps, walks = 0.25, 12, 40_000
    share = [1.0, 0.0, 0.0, 0.0, 0.0]
    expected = np.zeros(5)
    for _ in range(steps):
        moved = [(1 - restart) * part for part in share[:-1]]
        share = [1.0 - sum(moved), *moved]
        expected += share
    graph = kernel_graph([(node, node + 1) for node in range(1, 5)])
    result = random_walk(
        build_walk_graph(recall_graph(graph)), recall_queries(graph, [[1]] * walks),
        restart=restart, steps=steps, random_seed=11, limits=RecallLimits(), k=5, eligible=None, min_score=0.0,
        precision="float64", threads=2,
    )  # fmt: skip
    visits = np.zeros((walks, 5))
    query, place = np.nonzero(result.nodes >= 0)
    visits[query, graph.adjacency.order[result.nodes[query, place]]] = result.visit_counts[query, place]
    assert (visits.sum(axis=1) == steps).all()
    deviation = visits.std(axis=0) / np.sqrt(walks)
    assert (np.abs(visits.mean(axis=0) - expected) < 4.5 * deviation).all()
