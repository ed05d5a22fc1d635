"""What a build makes of the edges, in memory or in buckets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seedrank.io.edges import EdgeList
from seedrank.io.graph.graph_files import RowStream, StoredRows
from seedrank.kernels.arrays import DuplicateRule
from seedrank.kernels.building.adjacency import Adjacency, build_adjacency


@dataclass(frozen=True, eq=False)
class BuiltGraph:
    """Both CSRs and the numbering of the nodes, to be written (`seedrank.kernels.building.adjacency.AdjacencyPair`).

    Parameters
    ----------
    rows : mapping
        ``{"by_source": …, "by_destination": …}``.
    edges : int
        Distinct (source, target, type).
    weighted : bool
        Whether any of them weighs other than 1.
    """

    order: npt.NDArray[np.int32]
    inverse_order: npt.NDArray[np.int32]
    rows: Mapping[str, StoredRows | RowStream]
    edges: int
    weighted: bool
    merged_duplicates: int
    self_loops: int
    dangling: int
    isolated: int


def build_in_memory(edges: EdgeList, *, duplicate_edges: DuplicateRule) -> BuiltGraph:
    """Reduce duplicate edges, relabel the nodes and compress the edges in both directions."""
    pair = build_adjacency(
        edges.source,
        edges.target,
        edges.weight,
        edges.edge_type,
        nodes=len(edges.ids),
        duplicate_edges=duplicate_edges,
    )
    return BuiltGraph(
        order=pair.order,
        inverse_order=pair.inverse_order,
        rows={"by_source": _stored(pair.by_source), "by_destination": _stored(pair.by_destination)},
        edges=pair.by_source.entries,
        weighted=pair.by_source.weights is not None,
        merged_duplicates=pair.merged_duplicates,
        self_loops=pair.self_loops,
        dangling=pair.dangling,
        isolated=pair.isolated,
    )


def _stored(adjacency: Adjacency) -> StoredRows:
    return StoredRows(adjacency.offsets, adjacency.neighbors, adjacency.weights, adjacency.types)
