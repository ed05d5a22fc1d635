"""Subgraphs and hybrid scores against the obvious definition, and against values worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedrank.kernels import subgraph
from seedrank.kernels.fuse import RankedLists
from seedrank.kernels.hybrid import HybridRanking, hybrid
from seedrank.kernels.recall.recall_graph import build_recall_graph
from seedrank.kernels.subgraph import subgraphs
from seedrank.testing.harness import KernelGraph, kernel_graph
from seedrank.testing.reference_hybrid import reference_hybrid
from seedrank.testing.strategies import TYPE_NAMES, graphs

Direction = Literal["out", "in", "both"]
Hit = tuple[Any, float, float | None]
#: a → b, a → c (of weight 3), b → c, c → c, d → a, e alone.
EDGES = [("a", "b", 1.0, "x"), ("a", "c", 3.0, "y"), ("b", "c", 2.0, "x"), ("c", "c", 5.0, "x"), ("d", "a", 4.0, "x")]


def ranked(
    graph: KernelGraph,
    queries: Sequence[Sequence[Hit]],
    *,
    depth: int,
    direction: Direction = "out",
    type_weights: Mapping[str, float] | None = None,
    unreturnable: Sequence[Any] = (),
    precision: Literal["float32", "float64"] = "float64",
    **options: Any,
) -> tuple[HybridRanking, list[list[Any]]]:
    """Rank hits, of which those that the graph lacks get nodes beyond it; the ids of each query, best first."""
    foreign = sorted({node for hits in queries for node, _, _ in hits} - {*graph.ids})
    ids = sorted([*graph.ids, *foreign])
    pair = graph.adjacency
    known = len(graph.ids)
    order = np.array([ids.index(graph.ids[rank]) for rank in pair.order] + [ids.index(node) for node in foreign])
    node_of = {ids[rank]: node for node, rank in enumerate(order.tolist())}
    factors = None
    if type_weights is not None:
        factors = np.array([type_weights.get(name, 1.0) for name in graph.type_names])
    rows = [
        (query, node_of[node], score * max(1.0 if factor is None else factor, 0.0), node not in unreturnable)
        for query, hits in enumerate(queries)
        for node, score, factor in hits
    ]
    entries = RankedLists(
        offsets=np.cumsum([0, *(len(hits) for hits in queries)]),
        lists=np.zeros(len(rows), np.int32),
        nodes=np.array([row[1] for row in rows], np.int32),
        scores=np.array([row[2] for row in rows]),
        ranks=None,
        returnable=np.array([row[3] for row in rows], np.bool_),
    )
    followed = build_recall_graph(
        pair.by_source, pair.by_destination, pair.order, direction=direction, type_weights=factors
    )
    inside = entries.nodes < known
    around = subgraphs(
        followed,
        pair.by_source,
        np.concatenate(([0], np.cumsum(inside)))[entries.offsets],
        entries.nodes[inside],
        depth=depth,
        type_weights=factors,
    )
    banned = np.array([node_of[node] for node in unreturnable if node_of[node] < known], np.int32)
    found = hybrid(
        entries,
        around if depth else None,
        graph_nodes=known,
        eligible=None,
        exclude_offsets=np.arange(len(queries) + 1) * len(banned),
        exclude_nodes=np.tile(banned, len(queries)),
        order=order.astype(np.int32),
        precision=precision,
        **{
            "include_expanded": False, "edge_bonus": 0.1, "centrality_bonus": 0.1, "k": 100, "min_score": 0.0,
            **options,
        },
    )  # fmt: skip
    ends = np.cumsum(found.counts)
    nodes = [[ids[order[node]] for node in found.nodes[end - count : end]] for end, count in zip(ends, found.counts)]  # noqa: B905
    return found, nodes


def test_worked_out_by_hand() -> None:
    found, ((*nodes,),) = ranked(kernel_graph(EDGES), [[("a", 0.9, 0.5), ("e", -0.2, None)]], depth=1)
    # The subgraph: a, b, c, e; edges a → b (1), a → c (3), b → c (2), c → c (5). d is behind a.
    assert nodes == ["a", "e"]
    assert found.components[:, 0] == pytest.approx([0.45, 0.1 * 4, 0.1 * 2 / 3])
    assert found.components[:, 1] == pytest.approx([-0.2, 0, 0])
    assert found.scores == pytest.approx([0.45 + 0.4 + 0.2 / 3, -0.2])
    found, (nodes,) = ranked(
        kernel_graph(EDGES), [[("a", 0.9, 0.5), ("e", -0.2, None)]], depth=1, include_expanded=True
    )
    # c: 3 + 2 + 5, the loop once; three edges. b: 1 + 2, two edges.
    assert dict(zip(nodes, found.scores.tolist(), strict=True)) == pytest.approx(
        {"c": 1.0 + 0.1, "a": 0.45 + 0.4 + 0.2 / 3, "b": 0.3 + 0.2 / 3, "e": -0.2}
    )


def test_direction_is_that_of_steps_only() -> None:
    expected: dict[Direction, str] = {"out": "abc", "in": "ad", "both": "abcd"}
    for direction, reached in expected.items():
        _, (nodes,) = ranked(
            kernel_graph(EDGES), [[("a", 0.0, None)]], depth=1, include_expanded=True, direction=direction
        )
        assert "".join(sorted(nodes)) == reached
    found, _ = ranked(kernel_graph(EDGES), [[("a", 0.0, None)]], depth=1, direction="in")
    assert found.components[:, 0] == pytest.approx([0, 0.1 * 4, 0.1])


def test_a_removed_type_is_neither_followed_nor_counted() -> None:
    found, (nodes,) = ranked(
        kernel_graph(EDGES), [[("a", 1.0, None)]], depth=1, include_expanded=True, type_weights={"y": 0.0, "x": 2.0}
    )
    assert nodes == ["a", "b"]
    assert found.components == pytest.approx(np.array([[1, 0], [0.2, 0.2], [0.1, 0.1]]))


def test_one_node_has_no_centrality() -> None:
    found, _ = ranked(kernel_graph([("a", "a", 2.0, "x")]), [[("a", 0.5, None)]], depth=3)
    assert found.components[:, 0] == pytest.approx([0.5, 0.2, 0])


def test_sums_beyond_the_largest_number() -> None:
    edges = [("a", "b", 1e308, "x"), ("a", "b", 1e308, "y")]
    found, (nodes,) = ranked(kernel_graph(edges), [[("a", 1.0, None), ("c", 2.0, None)]], depth=1)
    assert (nodes, found.scores[0]) == (["a", "c"], np.inf)
    found, (nodes,) = ranked(kernel_graph(edges), [[("a", 1.0, None), ("c", 2.0, None)]], depth=1, edge_bonus=0)
    assert nodes == ["c", "a"]


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[tuple[Any, Any, float, str]], list[list[Hit]], dict[str, Any]]:
    graph = draw(graphs(ids="small", weighted=True, typed=True))
    distinct = {(edge[0], edge[1], edge[3]): edge for edge in graph.edges}
    edges = [(edge[0], edge[1], 1.0 if edge[2] > 1e6 else edge[2], edge[3]) for edge in distinct.values()]
    scores = st.sampled_from([-1.0, -0.25, 0.0, 0.25, 0.5, 1.0])
    factors = st.sampled_from([None, -1.0, 0.0, 0.5, 2.0])
    hits = st.lists(st.tuples(st.sampled_from([*graph.nodes, 77, -77]), scores, factors), max_size=5)
    queries = draw(st.lists(hits, min_size=1, max_size=4))
    settings = {
        "depth": draw(st.integers(0, 3)),
        "direction": draw(st.sampled_from(["out", "in", "both"])),
        "type_weights": draw(st.dictionaries(st.sampled_from(TYPE_NAMES), st.sampled_from([0.0, 0.5, 2.0]))),
        "include_expanded": draw(st.booleans()),
        "unreturnable": draw(st.lists(st.sampled_from(graph.nodes), max_size=2, unique=True)),
    }
    return edges, queries, settings


@given(case=cases())
def test_agrees_with_the_reference(case: Any) -> None:
    edges, queries, settings = case
    nodes = {node for edge in edges for node in edge[:2]} | {*settings["unreturnable"]} | {0}
    found, ids = ranked(kernel_graph(edges, nodes=nodes), queries, **settings)
    first = 0
    for hits, got in zip(queries, ids, strict=True):
        if not hits:
            assert got == []
            continue
        expected = reference_hybrid(edges, hits, **settings)
        scores = found.scores[first : first + len(got)]
        assert {*got} == {candidate.node for candidate in expected}
        by_node = {candidate.node: candidate for candidate in expected}
        for place, node in enumerate(got):
            candidate = by_node[node]
            assert found.components[:, first + place] == pytest.approx(
                [float(candidate.semantic), float(candidate.edge), float(candidate.centrality)], rel=1e-12
            )
        assert scores == pytest.approx([float(candidate.score) for candidate in expected], rel=1e-12)
        first += len(got)


@given(case=cases())
def test_neither_neighbours_in_the_block_nor_slices_change_a_bit(case: Any) -> None:
    edges, queries, settings = case
    graph = kernel_graph(edges, nodes=[*settings["unreturnable"], 0])
    together, ids = ranked(graph, queries, **settings)
    alone = [ranked(graph, [hits], **settings) for hits in queries]
    assert [nodes for _, (nodes,) in alone] == ids
    assert together.components.tobytes() == np.concatenate([found.components for found, _ in alone], axis=1).tobytes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subgraph, "EDGES_AT_ONCE", 1)
        patch.setattr(subgraph, "NODES_AT_ONCE", 1)
        sliced, _ = ranked(graph, queries, **settings)
    assert sliced.scores.tobytes() == together.scores.tobytes()
    assert sliced.components.tobytes() == together.components.tobytes()


def test_the_best_k_and_a_threshold() -> None:
    hits = [(node, 0.5, None) for node in "edcba"]
    for k in range(1, 6):
        _, (nodes,) = ranked(kernel_graph(EDGES), [hits], depth=0, k=k)
        assert nodes == list("abcde")[:k]
    _, (nodes,) = ranked(kernel_graph(EDGES), [[("a", 0.5, None), ("b", 0.1, None)]], depth=0, min_score=0.1)
    assert nodes == ["a", "b"]
    found, (nodes,) = ranked(
        kernel_graph(EDGES), [[("a", 0.1, None), ("b", 0.05, None)]], depth=0, min_score=0.1, precision="float32"
    )
    assert nodes == ["a"]
    assert found.scores.dtype == np.float32


def test_the_reference_by_hand() -> None:
    first, second = reference_hybrid(EDGES, [("a", 0.5, None), ("e", 0.25, 2.0)], depth=1)
    assert (first.node, first.edge, first.centrality) == ("a", Fraction(0.1) * 4, Fraction(0.1) * Fraction(2, 3))
    assert (second.node, second.score) == ("e", Fraction(1, 2))
