"""What stands in the place of a graph store where a job has no graph."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seedrank._version import __version__
from seedrank.io.graph.graph_facts import FORMAT_VERSION
from seedrank.io.graphstore import GraphStore
from seedrank.io.records import GraphFacts


class NoGraph(GraphStore):
    """A graph without nodes, edges, types and files: whatever asks it, nothing is known."""

    def __init__(self) -> None:
        facts = GraphFacts(
            format_version=FORMAT_VERSION,
            seedrank_version=__version__,
            fingerprint="",
            nodes=0,
            edges=0,
            rows=0,
            merged_duplicates=0,
            zero_weight_rows=0,
            dropped_rows=0,
            self_loops=0,
            dangling=0,
            isolated=0,
            nodes_without_attributes=0,
            id_type=str(pa.null()),
            weighted=False,
            edge_types=[],
            node_types=None,
            options={},
            inputs={},
            files={},
        )
        super().__init__(path=Path(os.devnull), facts=facts)

    @cached_property
    def ids(self) -> pa.Array:
        """No ids; their type fits every other."""
        return pa.nulls(0)

    @cached_property
    def order(self) -> npt.NDArray[np.int32]:
        """Of no nodes."""
        return np.zeros(0, dtype=np.int32)

    @cached_property
    def inverse_order(self) -> npt.NDArray[np.int32]:
        """Of no nodes."""
        return np.zeros(0, dtype=np.int32)
