"""Hypothesis strategies for graphs and seed sets. The only module of the package that imports Hypothesis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from hypothesis import strategies as st

from seedrank.testing.toys import Edge

IdKind = Literal["small", "large", "unsigned", "string"]
TYPE_NAMES = ("cites", "follows", "likes")


@dataclass(frozen=True)
class RandomGraph:
    """A drawn graph.

    Attributes
    ----------
    edges : tuple of tuples
        (src, dst), (src, dst, weight) or (src, dst, weight, type); may hold duplicates, loops, dangling
        nodes.
    nodes : tuple
        All ids, ascending; some may have no edge.
    """

    edges: tuple[Edge, ...]
    nodes: tuple[Any, ...]


def node_ids(kind: IdKind) -> st.SearchStrategy[Any]:
    """Ids of one kind.

    Parameters
    ----------
    kind : "small", "large", "unsigned" or "string"
        int64 near 0 of either sign; int64 around 2**53 and 10**15; uint64 up to the last; strings, among them
        numbers with leading zeros, empty and non-ASCII ones.
    """
    if kind == "small":
        return st.integers(-20, 20)
    if kind == "large":
        return st.one_of(st.integers(2**53 - 3, 2**53 + 3), st.integers(10**15, 10**15 + 9), st.just(2**63 - 1))
    if kind == "unsigned":
        return st.one_of(st.integers(0, 9), st.integers(2**64 - 9, 2**64 - 1))
    return st.one_of(st.sampled_from(["", "0", "7", "007", "a", "A", "é", "日本", "𝔸"]), st.text("xyz", max_size=3))


def weights() -> st.SearchStrategy[float]:
    """Positive edge weights: everyday ones, whole numbers (which tie), and a few of extreme size."""
    return st.one_of(
        st.floats(0.01, 100.0),
        st.integers(1, 4).map(float),
        st.sampled_from([1e39, 1e-39, 1e-310, 1e100]),
    )


@st.composite
def graphs(
    draw: st.DrawFn,
    *,
    ids: IdKind | None = None,
    weighted: bool | None = None,
    typed: bool | None = None,
    max_nodes: int = 9,
    max_edges: int = 24,
) -> RandomGraph:
    """Graphs of a few nodes with loops, duplicates, dangling and isolated nodes.

    Parameters
    ----------
    ids : IdKind, optional
        None: any kind, one a graph.
    weighted, typed : bool, optional
        None: either. Typed edges carry a weight too (1.0 where `weighted` is off).
    max_nodes, max_edges : int
    """
    kinds: tuple[IdKind, ...] = ("small", "large", "unsigned", "string") if ids is None else (ids,)
    kind = draw(st.sampled_from(kinds))
    nodes = sorted(draw(st.lists(node_ids(kind), min_size=1, max_size=max_nodes, unique=True)))
    has_weights = draw(st.booleans()) if weighted is None else weighted
    has_types = draw(st.booleans()) if typed is None else typed
    columns: list[st.SearchStrategy[Any]] = [st.sampled_from(nodes), st.sampled_from(nodes)]
    if has_weights or has_types:
        columns.append(weights() if has_weights else st.just(1.0))
    if has_types:
        columns.append(st.sampled_from(TYPE_NAMES))
    edges = draw(st.lists(st.tuples(*columns), max_size=max_edges))
    return RandomGraph(tuple(edges), tuple(nodes))


def seed_sets(graph: RandomGraph, *, max_seeds: int = 4) -> st.SearchStrategy[dict[Any, float]]:
    """Seed sets of a drawn graph: node id → positive weight, not normalised."""
    return st.dictionaries(
        st.sampled_from(graph.nodes),
        st.one_of(st.integers(1, 5).map(float), st.floats(0.01, 10.0)),
        min_size=1,
        max_size=max_seeds,
    )
