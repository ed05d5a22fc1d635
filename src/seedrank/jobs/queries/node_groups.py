"""Which group every node of a job belongs to (``--group-by``)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seedrank.jobs.queries.graph_selection import GraphSelection
from seedrank.jobs.queries.node_space import NodeSpace


@dataclass(frozen=True)
class NodeGroups:
    """The group of every node that may be a candidate.

    Attributes
    ----------
    codes : int32 (nodes,), position of the node's key among ``keys``; -1 without a key: a group of its own.
    keys : distinct values of the column, in its type.
    """

    codes: npt.NDArray[np.int32]
    keys: pa.Array

    def keys_of(self, nodes: npt.NDArray[np.int32]) -> pa.Array:
        """Key of each of some nodes; null without one."""
        codes = self.codes[nodes]
        return self.keys.take(pa.array(codes, mask=codes < 0))


def node_groups(space: NodeSpace, graph: GraphSelection) -> NodeGroups | None:
    """Return what ``--group-by`` makes of the nodes of a job; None without it."""
    if graph.groups is None:
        return None
    codes, keys = graph.groups
    if len(space.foreign):
        codes = np.concatenate((codes, np.full(len(space.foreign), -1, dtype=np.int32)))
    return NodeGroups(codes, keys)
