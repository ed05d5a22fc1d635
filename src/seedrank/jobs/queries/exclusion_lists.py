"""What single queries must not return: nodes that are listed, and the neighbours of their seeds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seedrank.kernels.recall.neighbor_sets import edge_ranges, neighbors_of_sets
from seedrank.kernels.recall.recall_graph import FollowedRows
from seedrank.kernels.runs import gather, offsets_of


@dataclass(frozen=True)
class SeedNeighbors:
    """The neighbours of the seeds of q queries, found when a block needs them: a hub may be a seed of every query.

    Attributes
    ----------
    rows : edges to follow.
    offsets, nodes : int64 (q + 1,), int32: seeds of each query, internal.
    """

    rows: FollowedRows
    offsets: npt.NDArray[np.int64]
    nodes: npt.NDArray[np.int32]

    def of(self, queries: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """Offsets and nodes of some queries, in the order given."""
        offsets, entries = gather(self.offsets, queries)
        return neighbors_of_sets(self.rows, offsets, self.nodes[entries])

    def has(self, query: npt.NDArray[np.int32], node: npt.NDArray[np.int32], nodes: int) -> npt.NDArray[np.bool_]:
        """Mask of (query, internal node) pairs, sorted by query, that are a query and a neighbour of its seeds.

        Parameters
        ----------
        query, node : int32 (h,); a node of -1 is none.
        nodes : number of nodes of the graph.
        """
        found = np.zeros(len(query), dtype=np.bool_)
        before = offsets_of(np.diff(self.rows.offsets)[self.nodes] if len(self.nodes) else ())
        for first, last in edge_ranges(np.diff(before[self.offsets])):
            offsets, neighbors = self.of(np.arange(first, last))
            keys = np.repeat(np.arange(first, last), np.diff(offsets)) * nodes + neighbors
            asked = slice(*np.searchsorted(query, [first, last]))
            found[asked] = np.isin(query[asked].astype(np.int64) * nodes + node[asked], keys)
        return found & (node >= 0)


@dataclass(frozen=True)
class ExclusionLists:
    """What each of q queries must not return.

    Attributes
    ----------
    offsets, nodes : int64 (q + 1,), int32: listed nodes of each query, internal, sorted.
    neighbors : of the seeds, under ``--exclude-neighbors``; else None.
    """

    offsets: npt.NDArray[np.int64]
    nodes: npt.NDArray[np.int32]
    neighbors: SeedNeighbors | None = None

    @classmethod
    def none(cls, queries: int) -> ExclusionLists:
        """So many queries that may return everything."""
        return cls(np.zeros(queries + 1, dtype=np.int64), np.zeros(0, dtype=np.int32))

    def of(self, queries: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """Offsets and nodes of some queries, in the order given; a node may be repeated."""
        offsets, entries = gather(self.offsets, queries)
        nodes = self.nodes[entries]
        if self.neighbors is None:
            return offsets, nodes
        further_offsets, further = self.neighbors.of(queries)
        query = np.arange(len(queries))
        owner = np.concatenate((np.repeat(query, np.diff(offsets)), np.repeat(query, np.diff(further_offsets))))
        by_query = np.argsort(owner, kind="stable")
        return offsets + further_offsets, np.concatenate((nodes, further))[by_query]
