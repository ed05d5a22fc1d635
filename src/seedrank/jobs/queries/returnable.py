"""What a query may return: exclusions, and the nodes that pass the filters of the job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seedrank.config import ScoreOptions
from seedrank.io.arrow.fingerprint import content_fingerprint
from seedrank.io.exclusions import ExclusionTable, read_exclusions
from seedrank.io.graphstore import GraphStore
from seedrank.io.ids import match_ids, resolve
from seedrank.io.queries import HitTable
from seedrank.io.query_info import QueryInfoTable
from seedrank.io.records import InputRecord
from seedrank.jobs.queries.exclusion_lists import ExclusionLists, SeedNeighbors
from seedrank.jobs.queries.graph_selection import GraphSelection
from seedrank.kernels.runs import offsets_of


class Exclusions(NamedTuple):
    """Nodes that a query must not return; ``query`` is a position among the queries of the job, None: every one.

    ``record`` is None where they are part of another input. ``place`` is what messages call the node ids.
    """

    query: npt.NDArray[np.int32] | None
    node_ids: pa.Array
    node: npt.NDArray[np.int32]
    record: InputRecord | None
    place: str

    def among(self, ids: pa.Array, place: str) -> tuple[npt.NDArray[np.int32] | None, npt.NDArray[np.int32]]:
        """Query, and position among some sorted ids, of the exclusions that say something of both."""
        matched = match_ids(self.node_ids, ids, wanted_place=self.place, known_place=place)
        position = resolve(matched, self.node)
        if self.query is None:
            return None, position[position >= 0]
        usable = (position >= 0) & (self.query >= 0)
        return self.query[usable], position[usable]


def read_exclusion_table(exclude: Any, options: ScoreOptions) -> ExclusionTable:
    """Read exclusions under the column names of hits.

    Raises
    ------
    InputDataError
        Bad rows.
    """
    return read_exclusions(exclude, query_id_column=options.hit_query_column, node_id_column=options.hit_node_column)


def read_job_exclusions(exclude: Any, query_ids: pa.Array, options: ScoreOptions) -> Exclusions:
    """Read exclusions, unless they have been read already, and match them with the queries of the job.

    Raises
    ------
    InputDataError
        Bad rows, or query ids of another kind than those of the hits.
    """
    table = exclude if isinstance(exclude, ExclusionTable) else read_exclusion_table(exclude, options)
    parts = {"query_ids": table.query_ids, "query": table.query, "node_ids": table.node_ids, "node": table.node}
    of_query = None
    if table.query is not None and table.query_ids is not None:
        of_query = match_ids(
            table.query_ids, query_ids, wanted_place=table.place("query_id"), known_place="query_id of the hits"
        )[table.query]
    return Exclusions(
        query=of_query,
        node_ids=table.node_ids,
        node=table.node,
        record=InputRecord(files=table.records, fingerprint=content_fingerprint(parts)),
        place=table.place("node_id"),
    )


def info_exclusions(info: QueryInfoTable, query_ids: pa.Array) -> Exclusions:
    """Match the exclusions among the attributes of queries with the queries of the job."""
    return Exclusions(
        query=resolve(
            match_ids(
                info.query_ids, query_ids, wanted_place=info.place("query_id"), known_place="query_id of the hits"
            ),
            info.exclude_query,
        ),
        node_ids=info.exclude_node_ids,
        node=info.exclude_node,
        record=None,
        place=info.place("exclude"),
    )


def exclusion_lists(
    pairs: list[tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]],
    seeds: tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]],
    queries: int,
    graph: GraphSelection,
) -> ExclusionLists:
    """Make lists of what the queries must not return.

    Parameters
    ----------
    pairs : of (query, tie rank), which a query must not return.
    seeds : query and tie rank of the hits that may be seeds.
    queries : how many there are.
    graph : with the options, which say whether neighbours of the seeds are left out.

    Raises
    ------
    InputDataError
        An edge type that no edge has.
    """
    store, neighbors = graph.store, None
    if graph.options.exclude_neighbors:
        neighbors = SeedNeighbors(graph.successors, *_distinct(*seeds, queries, store))
    query = np.concatenate([np.zeros(0, np.int32), *(pair[0] for pair in pairs)])
    rank = np.concatenate([np.zeros(0, np.int32), *(pair[1] for pair in pairs)])
    return ExclusionLists(*_distinct(query, rank, queries, store), neighbors)


def _distinct(
    query: npt.NDArray[np.int32], rank: npt.NDArray[np.int32], queries: int, store: GraphStore
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Sorted, distinct (query, internal node) pairs, as offsets and nodes."""
    nodes = max(len(store.ids), 1)
    distinct = np.unique(query.astype(np.int64) * nodes + store.inverse_order[rank])
    return offsets_of(np.bincount(distinct // nodes, minlength=queries)), (distinct % nodes).astype(np.int32)


def eligible_nodes(graph: GraphSelection, everywhere: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_] | None:
    """Output mask over internal nodes; None when every node may be returned.

    Parameters
    ----------
    graph : of n nodes, some of which pass the filters.
    everywhere : int32, tie ranks of the nodes that no query may return.
    """
    if not len(everywhere):
        return graph.eligible
    store = graph.store
    mask = np.ones(len(store.ids), dtype=np.bool_) if graph.eligible is None else graph.eligible.copy()
    mask[store.inverse_order[everywhere]] = False
    return mask


def returnable_hits(
    hits: HitTable,
    rank: npt.NDArray[np.int32],
    filtered: npt.NDArray[np.bool_] | None,
    exclusions: Sequence[Exclusions],
    neighbors: SeedNeighbors | None,
    store: GraphStore,
) -> npt.NDArray[np.bool_]:
    """Mask of the hits that their query may return: those that pass the filters and are not excluded.

    Parameters
    ----------
    hits : h hits.
    rank : int32 (h,), tie rank of each hit's node; -1 where the graph does not have it.
    filtered : bool over tie ranks, see `GraphSelection`.
    exclusions : those of the job, of every input.
    neighbors : of the seeds of each query, which it must not return.
    store : the graph.
    """
    allowed = np.ones(len(rank), dtype=np.bool_)
    if filtered is not None:
        # One entry more, addressed as -1: what the graph does not know has neither type nor attribute.
        allowed = np.append(filtered, False)[rank]
    if neighbors is not None:
        node = np.append(store.inverse_order, -1)[rank]
        allowed &= ~neighbors.has(hits.query, node, max(len(store.ids), 1))
    ids = max(len(hits.node_ids), 1)
    for some in exclusions:
        of_query, excluded = some.among(hits.node_ids, hits.place("node_id"))
        if of_query is None:
            allowed &= ~np.isin(hits.node, excluded)
        else:
            pairs = hits.query.astype(np.int64) * ids + hits.node
            allowed &= ~np.isin(pairs, of_query.astype(np.int64) * ids + excluded)
    return allowed
