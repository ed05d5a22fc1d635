"""The columns that say how a candidate was reached."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seedrank.io.candidates import path_type
from seedrank.io.graphstore import GraphStore
from seedrank.jobs.clock import Clock
from seedrank.kernels.paths import shortest_paths
from seedrank.kernels.recall.recall_graph import RecallGraph
from seedrank.kernels.runs import offsets_of


def id_column(store: GraphStore, nodes: npt.NDArray[np.int32]) -> pa.Array:
    """Ids of internal nodes, null for -1."""
    return store.ids.take(pa.array(store.order[nodes], mask=nodes < 0))


class Paths(NamedTuple):
    """Columns that say how candidates were reached, and queries for which time did not suffice.

    Attributes
    ----------
    columns : ``hops``, ``anchor_id`` and ``path`` of every candidate; null where no path leads to it, or none was found
        in time.
    limits : object (B,), time limit that ended the search of a query before its last candidate; "" for none.
    """

    columns: dict[str, pa.Array]
    limits: npt.NDArray[np.object_]


def path_columns(
    graph: RecallGraph,
    store: GraphStore,
    *,
    anchor_offsets: npt.NDArray[np.int64],
    anchors: npt.NDArray[np.int32],
    counts: npt.NDArray[np.int32],
    targets: npt.NDArray[np.int32],
    from_anchors: npt.NDArray[np.int32] | None,
    threads: int,
    clock: Clock,
    spent_s: npt.NDArray[np.float64] | float = 0.0,
) -> Paths:
    """Find the paths that lead to candidates.

    Parameters
    ----------
    graph : of the store, as `seedrank.jobs.graphs.followed_graph.followed_graph` makes it.
    anchor_offsets, anchors : int64 (B + 1,), int32: anchors of each query, internal, by tie rank.
    counts, targets : int32 (B,), int32 (c,): candidates of each query, internal.
    from_anchors : int32 (c,), the anchor from which the path of each candidate starts; None: the nearest.
    threads : int
    clock, spent_s : time limits, and the seconds that the queries have taken before (`Clock.watch`).

    Raises
    ------
    InterruptedRunError
        The job was cancelled.
    """
    target_offsets = offsets_of(counts)
    watched = clock.watch(
        lambda flags: shortest_paths(
            graph,
            anchor_offsets,
            anchors,
            target_offsets,
            targets,
            from_anchors=from_anchors,
            threads=threads,
            flags=flags,
        ),
        width=len(counts),
        spent_s=spent_s,
    )
    table = watched.result
    unreached = table.hops < 0
    kinds = pa.array(store.facts.edge_types, pa.string())
    steps = len(table.source)
    edges = pa.StructArray.from_arrays(
        [
            id_column(store, table.source),
            id_column(store, table.target),
            pa.nulls(steps, pa.string()) if table.types is None else kinds.take(pa.array(table.types)),
            pa.array(table.weights),
            pa.array(table.reversed),
        ],
        fields=list(path_type(store.ids.type).value_type),
    )
    lists = pa.ListArray.from_arrays(
        pa.array(table.offsets.astype(np.int32)), edges, type=path_type(store.ids.type), mask=pa.array(unreached)
    )
    columns = {
        "hops": pa.array(table.hops, mask=unreached),
        "anchor_id": id_column(store, table.anchors),
        "path": lists,
    }
    return Paths(columns, np.where(table.ended, watched.limits, ""))
