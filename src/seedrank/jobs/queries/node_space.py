"""The nodes that candidates may be: those of the graph, then hits that the graph does not have."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from seedrank.io.graphstore import GraphStore
from seedrank.io.ids import insertion_points


@dataclass(frozen=True)
class NodeSpace:
    """One numbering of nodes, and one order of their ids.

    Numbers below ``graph_nodes`` are internal nodes of the graph; the foreign ids follow, of which there are none
    without fusion.

    Attributes
    ----------
    store : the graph.
    foreign : (u,) ids that the graph does not have, sorted; of the type that ids of candidates have.
    """

    store: GraphStore
    foreign: pa.Array

    @classmethod
    def of_graph(cls, store: GraphStore) -> NodeSpace:
        """Return the nodes of a graph and nothing else."""
        return cls(store, pa.array([], store.ids.type))

    @property
    def id_type(self) -> pa.DataType:
        """Type that the ids of candidates have."""
        return self.foreign.type

    @property
    def graph_nodes(self) -> int:
        """Number of nodes of the graph."""
        return len(self.store.ids)

    def __len__(self) -> int:
        return self.graph_nodes + len(self.foreign)

    def ids(self, nodes: npt.NDArray[np.integer[Any]]) -> pa.Array:
        """Ids of some nodes."""
        if not self.graph_nodes:
            return self.foreign.take(pa.array(nodes))
        foreign = nodes >= self.graph_nodes
        ranks = self.store.order[np.where(foreign, 0, nodes)]
        known = self.store.ids.take(pa.array(ranks, mask=foreign)).cast(self.foreign.type)
        if not foreign.any():
            return known
        return pc.coalesce(known, self.foreign.take(pa.array(nodes - self.graph_nodes, mask=~foreign)))

    @cached_property
    def order(self) -> npt.NDArray[np.int32]:
        """Tie rank by node, int32 (len(self),): its position among all ids."""
        if not len(self.foreign):
            return self.store.order
        before = insertion_points(self.foreign, self.store.ids.cast(self.foreign.type))
        passed = np.searchsorted(before, np.arange(self.graph_nodes), side="right")
        return np.concatenate(
            (self.store.order + passed[self.store.order], before + np.arange(len(self.foreign)))
        ).astype(np.int32)
