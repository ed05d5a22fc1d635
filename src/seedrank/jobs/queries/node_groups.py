"""Which group every node of a job belongs to (``--group-by``)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seedrank.config import ScoreOptions
from seedrank.errors import InputDataError
from seedrank.io.graph.node_columns import node_column
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


def node_groups(space: NodeSpace, options: ScoreOptions) -> NodeGroups | None:
    """Return what ``--group-by`` makes of the nodes of a job; None without it.

    Raises
    ------
    InputDataError
        The nodes have no such column, or one whose values are lists or structs.
    """
    if options.group_by is None:
        return None
    column = node_column(space.store, options.group_by, option="--group-by")
    if pa.types.is_nested(column.type):
        raise InputDataError(
            f"--group-by {options.group_by!r}: the column has type {column.type}, whose values are not compared",
            expected="a column of texts, numbers, booleans, dates or times",
            fix="name the column that holds the keys of the groups",
        )
    encoded = column.dictionary_encode()
    by_rank = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
    codes = np.concatenate((by_rank[space.store.order], np.full(len(space.foreign), -1, dtype=np.int32)))
    return NodeGroups(codes, encoded.dictionary)
