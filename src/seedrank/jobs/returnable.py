"""What a query may return: exclusions, and the nodes that pass the filters of the job."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seedrank.config import ScoreOptions
from seedrank.io.exclusions import read_exclusions
from seedrank.io.fingerprint import content_fingerprint
from seedrank.io.graphstore import GraphStore
from seedrank.io.ids import match_ids, resolve
from seedrank.io.queries import HitTable
from seedrank.io.records import InputRecord

#: What the node ids of hits are called in messages.
HIT_NODES = "node_id of the hits"


class Exclusions(NamedTuple):
    """Nodes that a query must not return; ``query`` is a position among the queries of the job, None: every one."""

    query: npt.NDArray[np.int32] | None
    node_ids: pa.Array
    node: npt.NDArray[np.int32]
    record: InputRecord

    def among(self, ids: pa.Array, place: str) -> tuple[npt.NDArray[np.int32] | None, npt.NDArray[np.int32]]:
        """Query, and position among some sorted ids, of the exclusions that say something of both."""
        matched = match_ids(self.node_ids, ids, wanted_place="node_id of the exclusions", known_place=place)
        position = resolve(matched, self.node)
        if self.query is None:
            return None, position[position >= 0]
        usable = (position >= 0) & (self.query >= 0)
        return self.query[usable], position[usable]


def read_job_exclusions(exclude: Any, query_ids: pa.Array, options: ScoreOptions) -> Exclusions:
    """Read exclusions and match them with the queries of the job.

    Raises
    ------
    InputDataError
        Bad rows, or query ids of another kind than those of the hits.
    """
    table = read_exclusions(exclude, query_id_column=options.hit_query_column, node_id_column=options.hit_node_column)
    parts = {"query_ids": table.query_ids, "query": table.query, "node_ids": table.node_ids, "node": table.node}
    of_query = None
    if table.query is not None and table.query_ids is not None:
        of_query = match_ids(
            table.query_ids, query_ids, wanted_place="query_id of the exclusions", known_place="query_id of the hits"
        )[table.query]
    return Exclusions(
        query=of_query,
        node_ids=table.node_ids,
        node=table.node,
        record=InputRecord(files=table.records, fingerprint=content_fingerprint(parts)),
    )


def exclusion_lists(
    pairs: list[tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]], queries: int, store: GraphStore
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Join (query, tie rank) pairs into sorted, distinct (query, internal node) pairs, as offsets and nodes."""
    nodes = max(len(store.ids), 1)
    keys = [query.astype(np.int64) * nodes + store.inverse_order[rank] for query, rank in pairs]
    distinct = np.unique(np.concatenate(keys)) if keys else np.zeros(0, dtype=np.int64)
    offsets = np.zeros(queries + 1, dtype=np.int64)
    np.cumsum(np.bincount(distinct // nodes, minlength=queries), out=offsets[1:])
    return offsets, (distinct % nodes).astype(np.int32)


def filtered_nodes(store: GraphStore, options: ScoreOptions) -> npt.NDArray[np.bool_] | None:
    """Mask over tie ranks of the nodes that pass the filters of the job; None without a filter.

    Raises
    ------
    InputDataError
        A node type that no node has.
    """
    if not options.node_type:
        return None
    return store.nodes_of_types(options.node_type, option="--node-type")


def eligible_nodes(
    store: GraphStore, filtered: npt.NDArray[np.bool_] | None, everywhere: npt.NDArray[np.int32]
) -> npt.NDArray[np.bool_] | None:
    """Output mask over internal nodes; None when every node may be returned.

    Parameters
    ----------
    store : the graph, of n nodes.
    filtered : bool (n,) over tie ranks, see `filtered_nodes`.
    everywhere : int32, tie ranks of the nodes that no query may return.
    """
    if filtered is None and not len(everywhere):
        return None
    by_rank = np.ones(len(store.ids), dtype=np.bool_) if filtered is None else filtered.copy()
    by_rank[everywhere] = False
    return by_rank[store.order]


def returnable_hits(
    hits: HitTable,
    rank: npt.NDArray[np.int32],
    filtered: npt.NDArray[np.bool_] | None,
    exclusions: Exclusions | None,
) -> npt.NDArray[np.bool_]:
    """Mask of the hits that their query may return: those that pass the filters and are not excluded.

    Parameters
    ----------
    hits : h hits.
    rank : int32 (h,), tie rank of each hit's node; -1 where the graph does not have it.
    filtered : bool over tie ranks, see `filtered_nodes`.
    exclusions : those of the job.
    """
    allowed = np.ones(len(rank), dtype=np.bool_)
    if filtered is not None:
        # One entry more, addressed as -1: what the graph does not know has neither type nor attribute.
        allowed = np.append(filtered, False)[rank]
    if exclusions is None:
        return allowed
    of_query, excluded = exclusions.among(hits.node_ids, HIT_NODES)
    if of_query is None:
        return allowed & ~np.isin(hits.node, excluded)
    ids = max(len(hits.node_ids), 1)
    pairs = hits.query.astype(np.int64) * ids + hits.node
    return allowed & ~np.isin(pairs, of_query.astype(np.int64) * ids + excluded)
