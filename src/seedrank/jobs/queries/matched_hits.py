"""Hits, or what takes their place, against the graph."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seedrank.io.graph.no_graph import NoGraph
from seedrank.io.graphstore import GraphStore
from seedrank.io.ids import common_id_type, match_ids, resolve
from seedrank.io.queries import HitTable
from seedrank.jobs.queries.node_space import NodeSpace


class MatchedHits(NamedTuple):
    """h hits, or what takes their place, against the graph; see `HitTable`.

    Attributes
    ----------
    rank : int32 (h,), tie rank; -1 if unknown.
    node : int32 (h,), order of the node's id among those of the hits; -1 if null.
    position : int64 (h,), given position in the list of its source; None: it follows from the weights.
    name : what messages call the hits.
    """

    query_ids: pa.Array
    query: npt.NDArray[np.int32]
    rank: npt.NDArray[np.int32]
    node: npt.NDArray[np.int32]
    position: npt.NDArray[np.int64] | None
    weight: npt.NDArray[np.float64]
    source: npt.NDArray[np.int32] | None
    source_names: tuple[str | None, ...]
    given: npt.NDArray[np.int64]
    missing: npt.NDArray[np.int64]
    name: str


def every_node(store: GraphStore, node_type: str, among: slice) -> MatchedHits:
    """Make a query of every node of a type, with the node as its hit; of those ``among`` them, by their position.

    Raises
    ------
    InputDataError
        No node has the type.
    """
    ranks = np.flatnonzero(store.nodes_of_types((node_type,), option="--all-nodes"))[among].astype(np.int32)
    count = len(ranks)
    return MatchedHits(
        query_ids=store.ids.take(pa.array(ranks)),
        query=np.arange(count, dtype=np.int32),
        rank=ranks,
        node=ranks,
        position=None,
        weight=np.ones(count),
        source=None,
        source_names=(),
        given=np.ones(count, dtype=np.int64),
        missing=np.zeros(count, dtype=np.int64),
        name=f"nodes of type {node_type!r}",
    )


def match_hits(hits: HitTable, store: GraphStore) -> MatchedHits:
    """Find the nodes of the hits in the graph, and count those that it does not have.

    Raises
    ------
    InputDataError
        Ids of another kind than the graph's.
    """
    rank = resolve(graph_positions(hits, store), hits.node)
    queries = len(hits.query_ids)
    given = np.bincount(hits.query, minlength=queries)
    given[hits.null_list & (given == 0)] = -1
    lost = hits.node < 0 if isinstance(store, NoGraph) else rank < 0
    return MatchedHits(
        query_ids=hits.query_ids,
        query=hits.query,
        rank=rank,
        node=hits.node,
        position=hits.rank,
        weight=hits.weight,
        source=hits.source,
        source_names=hits.source_names,
        given=given.astype(np.int64),
        missing=np.bincount(hits.query[lost], minlength=queries).astype(np.int64),
        name=hits.name,
    )


def with_fallback_nodes(hits: HitTable, store: GraphStore) -> HitTable:
    """Put the node that stands in for another where that is null, or unknown to a graph that knows the one instead.

    Raises
    ------
    InputDataError
        Ids of another kind than the graph's.
    """
    if hits.fallback is None:
        return hits
    positions = graph_positions(hits, store)
    unknown, instead = resolve(positions, hits.node) < 0, resolve(positions, hits.fallback) >= 0
    return hits.with_nodes(np.where((hits.node < 0) | (unknown & instead), hits.fallback, hits.node))


def space_with_hits(hits: HitTable, store: GraphStore) -> tuple[NodeSpace, npt.NDArray[np.int32]]:
    """Nodes of the graph and ids that only hits have, and the node of every hit, -1 without a node id."""
    kind = common_id_type([(store.ids.type, graph_place(store)), (hits.node_ids.type, hits.place("node_id"))])
    positions = graph_positions(hits, store)
    unknown = positions < 0
    space = NodeSpace(store, hits.node_ids.filter(pa.array(unknown)).cast(kind))
    nodes = space.graph_nodes + np.cumsum(unknown) - 1
    nodes[~unknown] = store.inverse_order[positions[~unknown]]
    return space, resolve(nodes, hits.node)


def graph_positions(hits: HitTable, store: GraphStore) -> npt.NDArray[np.int32]:
    """Tie rank in the graph of every distinct node id of the hits; -1 if unknown."""
    return match_ids(hits.node_ids, store.ids, wanted_place=hits.place("node_id"), known_place=graph_place(store))


def graph_place(store: GraphStore) -> str:
    """Name the graph in a message."""
    return "no graph" if isinstance(store, NoGraph) else f"the graph {store.path}"
