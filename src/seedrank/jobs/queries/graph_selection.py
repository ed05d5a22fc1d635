"""What the options of a job select of its graph: found once, however many segments its queries are cut into."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seedrank.config import ScoreOptions
from seedrank.errors import InputDataError
from seedrank.io.graph.node_columns import node_column
from seedrank.io.graph.node_filters import filter_nodes
from seedrank.io.graphstore import GraphStore
from seedrank.jobs.graphs.followed_graph import followed_graph
from seedrank.kernels.recall.recall_graph import FollowedRows, RecallGraph


class GraphSelection:
    """A graph under the options of a job. Nothing here depends on a query; each is found when it is first wanted.

    Parameters
    ----------
    store : GraphStore
        The graph, of n nodes.
    options : ScoreOptions

    Raises
    ------
    InputDataError
        From the attributes: a node or edge type that the graph does not have, or what `seedrank.io.graph.node_filters`
        refuses.
    """

    def __init__(self, store: GraphStore, options: ScoreOptions) -> None:
        self.store = store
        self.options = options

    @cached_property
    def filtered(self) -> npt.NDArray[np.bool_] | None:
        """Bool (n,) over tie ranks: the nodes that pass the filters; None without a filter."""
        options = self.options
        passed = filter_nodes(
            self.store,
            where=options.where,
            require=options.require,
            include_glob=options.include_glob,
            exclude_glob=options.exclude_glob,
            no_tests=options.no_tests,
        )
        if not options.node_type:
            return passed
        typed = self.store.nodes_of_types(options.node_type, option="--node-type")
        return typed if passed is None else typed & passed

    @cached_property
    def eligible(self) -> npt.NDArray[np.bool_] | None:
        """Bool (n,) over internal nodes: those that pass the filters; None without a filter."""
        return None if self.filtered is None else self.filtered[self.store.order]

    @cached_property
    def seeding(self) -> npt.NDArray[np.bool_] | None:
        """Bool (n,) over tie ranks: the nodes that may be seeds; None: all."""
        kinds = self.options.seed_node_type
        return self.store.nodes_of_types(kinds, option="--seed-node-type") if kinds else None

    @cached_property
    def counted(self) -> npt.NDArray[np.bool_] | None:
        """Bool (n,) over internal nodes: the neighbours that make a seed less specific; None: all."""
        kinds = self.options.node_type
        return self.store.nodes_of_types(kinds, option="--node-type")[self.store.order] if kinds else None

    @cached_property
    def followed(self) -> RecallGraph:
        """The edges that the options follow."""
        return followed_graph(self.store, self.options)

    @cached_property
    def successors(self) -> FollowedRows:
        """The edges to the neighbours of seeds, under ``--exclude-neighbors``.

        Successors, whatever else is followed: with both directions what leads to a seed may be just what is wanted.
        """
        if self.options.direction == "in":
            return self.followed.rows[0]
        return followed_graph(self.store, self.options.model_copy(update={"direction": "out"})).rows[0]

    @cached_property
    def groups(self) -> tuple[npt.NDArray[np.int32], pa.Array] | None:
        """Int32 (n,) over internal nodes: position of the node's key of ``--group-by``, -1 without; and the keys."""
        name = self.options.group_by
        if name is None:
            return None
        column = node_column(self.store, name, option="--group-by")
        if pa.types.is_nested(column.type):
            raise InputDataError(
                f"--group-by {name!r}: the column has type {column.type}, whose values are not compared",
                expected="a column of texts, numbers, booleans, dates or times",
                fix="name the column that holds the keys of the groups",
            )
        encoded = column.dictionary_encode()
        by_rank = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
        return by_rank[self.store.order], encoded.dictionary
