"""`build_adjacency` against a dictionary."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seedrank.kernels.building import adjacency as adjacency_module
from seedrank.kernels.building.adjacency import Adjacency, AdjacencyPair, build_adjacency
from seedrank.testing.harness import KernelGraph, kernel_graph
from seedrank.testing.reference import reference_edges
from seedrank.testing.strategies import RandomGraph, graphs

RULES = st.sampled_from(["sum", "max", "min", "mean"])


def entries(graph: KernelGraph, adjacency: Adjacency) -> list[list[tuple[Any, Any, float]]]:
    """(neighbour id, type name, weight) by row, rows in id order, within a row as stored."""
    rows = []
    for rank in range(len(graph.ids)):
        node = graph.adjacency.inverse_order[rank]
        row = []
        for entry in range(adjacency.offsets[node], adjacency.offsets[node + 1]):
            neighbor = graph.ids[graph.adjacency.order[adjacency.neighbors[entry]]]
            kind = None if adjacency.types is None else graph.type_names[adjacency.types[entry]]
            row.append((neighbor, kind, 1.0 if adjacency.weights is None else float(adjacency.weights[entry])))
        rows.append(row)
    return rows


@pytest.mark.parametrize("compiled_rows", [0, 1 << 20], ids=["compiled", "NumPy"])
@settings(max_examples=60, deadline=None, derandomize=True)
@given(graph=graphs(), rule=RULES)
def test_against_a_dictionary(compiled_rows: int, graph: RandomGraph, rule: Any) -> None:
    with mock.patch.object(adjacency_module, "COMPILED_ROWS", compiled_rows):
        built = kernel_graph(graph.edges, nodes=graph.nodes, duplicate_edges=rule)
    expected = reference_edges(graph.edges, duplicate_edges=rule)
    by_source: list[list[tuple[Any, Any, Any]]] = [[] for _ in built.ids]
    by_destination: list[list[tuple[Any, Any, Any]]] = [[] for _ in built.ids]
    for (source, target, kind), weight in expected.items():
        close = pytest.approx(weight, rel=1e-15)
        by_source[built.rank[source]].append((target, kind, close))
        by_destination[built.rank[target]].append((source, kind, close))
    pair = built.adjacency
    assert entries(built, pair.by_source) == [sorted(row, key=lambda entry: entry[:2]) for row in by_source]
    assert entries(built, pair.by_destination) == [sorted(row, key=lambda entry: entry[:2]) for row in by_destination]
    assert pair.merged_duplicates == len(graph.edges) - len(expected)
    assert pair.self_loops == len({source for source, target, _ in expected if source == target})
    assert pair.dangling == len(set(graph.nodes) - {source for source, _, _ in expected})
    assert pair.isolated == len(set(graph.nodes) - {end for edge in expected for end in edge[:2]})
    degrees = [len(by_source[rank]) + len(by_destination[rank]) for rank in range(len(built.ids))]
    assert pair.order.tolist() == sorted(range(len(built.ids)), key=lambda rank: (-degrees[rank], rank))
    assert pair.inverse_order[pair.order].tolist() == list(range(len(built.ids)))


def arrays(pair: AdjacencyPair) -> list[bytes]:
    found: list[Any] = [pair.order, pair.inverse_order]
    for adjacency in (pair.by_source, pair.by_destination):
        found += [adjacency.offsets, adjacency.neighbors, adjacency.weights, adjacency.types]
    return [b"" if array is None else array.tobytes() for array in found]


@pytest.mark.parametrize("compiled_rows", [0, 1 << 20], ids=["compiled", "NumPy"])
@settings(max_examples=40, deadline=None, derandomize=True)
@given(graph=graphs(max_nodes=3), rule=RULES, data=st.data())
def test_order_of_rows_does_not_change_a_bit(
    compiled_rows: int, graph: RandomGraph, rule: Any, data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(graph.edges))
    expected = kernel_graph(graph.edges, nodes=graph.nodes, duplicate_edges=rule)
    with mock.patch.object(adjacency_module, "COMPILED_ROWS", compiled_rows):
        built = kernel_graph(shuffled, nodes=graph.nodes, duplicate_edges=rule)
    assert arrays(built.adjacency) == arrays(expected.adjacency)


def test_data_types_and_absent_columns() -> None:
    plain = kernel_graph([(1, 2), (2, 3)]).adjacency.by_source
    assert plain.offsets.dtype == np.int64
    assert plain.neighbors.dtype == np.int32
    assert plain.weights is None
    assert plain.types is None
    assert kernel_graph([(1, 2, 1.0), (2, 3, 1.0)]).adjacency.by_source.weights is None
    typed = kernel_graph([(1, 2, 0.5, f"t{kind:03}") for kind in range(300)]).adjacency.by_destination
    assert typed.types is not None
    assert typed.types.dtype == np.uint16
    assert typed.types.tolist() == list(range(300))
    assert typed.weights is not None
    assert typed.weights.dtype == np.float64


def test_mean_and_sum_do_not_depend_on_cancellation_order() -> None:
    values = [1e39, 1.0, 1e-39, 3.0, 1e39]
    for rule in ("sum", "mean"):
        results = {
            kernel_graph(
                [("a", "b", value) for value in values[shift:] + values[:shift]], duplicate_edges=rule
            ).adjacency.by_source.weights.tobytes()  # type: ignore[union-attr]
            for shift in range(5)
        }
        assert len(results) == 1


def test_no_nodes_at_all() -> None:
    empty = np.zeros(0, np.int32)
    pair = build_adjacency(empty, empty, None, None, nodes=0, duplicate_edges="sum")
    assert pair.by_source.nodes == pair.by_destination.entries == pair.isolated == 0


def test_highest_ranks_fit_the_packed_key() -> None:
    """Nearly 2**20 nodes and three types: bits of neighbouring fields must not run into each other."""
    nodes = 2**20 - 1
    source = np.array([nodes - 1, 0, nodes - 1], np.int32)
    target = np.array([nodes - 1, nodes - 1, 0], np.int32)
    kinds = np.array([2, 1, 0], np.int32)
    pair = build_adjacency(source, target, None, kinds, nodes=nodes, duplicate_edges="sum")
    last = pair.inverse_order[nodes - 1]
    row = slice(pair.by_source.offsets[last], pair.by_source.offsets[last + 1])
    assert pair.order[pair.by_source.neighbors[row]].tolist() == [0, nodes - 1]
    assert pair.by_source.types is not None
    assert pair.by_source.types[row].tolist() == [0, 2]
