"""Every node of a type as a query of its own (``--all-nodes``), some of them at a time: there is no list of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from seedrank.config import ScoreOptions
from seedrank.io.graphstore import GraphStore
from seedrank.io.records import InputRecord
from seedrank.jobs.inputs import JobInputs
from seedrank.jobs.query_set import QuerySet, load_query_set


@dataclass(frozen=True)
class NodeQueries:
    """The queries of a job under ``--all-nodes``."""

    inputs: JobInputs
    options: ScoreOptions

    @property
    def records(self) -> Mapping[str, InputRecord]:
        """What was read, by input name: nothing, the nodes are those of the graph."""
        return {}

    def size(self, least: int) -> int:
        """Return the queries of a segment."""
        return least

    def count(self, store: GraphStore) -> int:
        """Return how many there are.

        Raises
        ------
        InputDataError
            No node has the type.
        """
        assert self.options.all_nodes is not None
        return int(np.count_nonzero(store.nodes_of_types((self.options.all_nodes,), option="--all-nodes")))

    def load(self, store: GraphStore, first: int, last: int) -> QuerySet:
        """Return the queries ``first`` … ``last - 1``, by node id."""
        return load_query_set(store, self.inputs, self.options, among=slice(first, last))
