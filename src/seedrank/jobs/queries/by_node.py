"""Every node of a type as a query of its own (``--all-nodes``), some of them at a time: there is no list of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from seedrank.config import ScoreOptions
from seedrank.io.graphstore import GraphStore
from seedrank.io.records import InputRecord
from seedrank.jobs.inputs import JobInputs
from seedrank.jobs.queries.graph_selection import GraphSelection
from seedrank.jobs.queries.loading import load_query_set
from seedrank.jobs.queries.query_set import QuerySet
from seedrank.jobs.queries.segment_size import segment_size


@dataclass(frozen=True)
class NodeQueries:
    """The queries of a job under ``--all-nodes``.

    Attributes
    ----------
    inputs, options : of the job.
    count, size : how many there are, and how many a segment has.
    """

    inputs: JobInputs
    options: ScoreOptions

    count: int
    size: int

    @classmethod
    def of(cls, store: GraphStore, inputs: JobInputs, options: ScoreOptions) -> NodeQueries | None:
        """Return those of a job; None where there are not more than one segment has.

        Raises
        ------
        InputDataError
            No node has the type.
        """
        assert options.all_nodes is not None
        count = int(np.count_nonzero(store.nodes_of_types((options.all_nodes,), option="--all-nodes")))
        size = segment_size(options)
        return None if count <= size else cls(inputs, options, count, size)

    @property
    def records(self) -> Mapping[str, InputRecord]:
        """What was read, by input name: nothing, the nodes are those of the graph."""
        return {}

    def load(self, graph: GraphSelection, first: int, last: int) -> QuerySet:
        """Return the queries ``first`` … ``last - 1``, by node id."""
        return load_query_set(graph.store, self.inputs, self.options, among=slice(first, last), graph=graph)
