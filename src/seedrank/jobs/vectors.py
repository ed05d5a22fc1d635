"""The vectors of a job: those of nodes and those of queries, ready for kernels, and what is counted of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seedrank.config import ScoreOptions
from seedrank.errors import InputDataError
from seedrank.io.graph.no_graph import NoGraph
from seedrank.io.graphstore import GraphStore
from seedrank.io.ids import match_ids
from seedrank.io.records import InputRecord, VectorCounts
from seedrank.io.vectors import VectorTable, read_vectors
from seedrank.jobs.inputs import JobInputs
from seedrank.jobs.queries.matched_hits import graph_place
from seedrank.kernels.vectors import Vectors, norms_of

#: Rows whose lengths are taken at a time.
_ROWS_AT_ONCE = 1 << 13


@dataclass(frozen=True, eq=False)
class VectorSide:
    """Vectors of nodes, or of queries: as they were read, and as kernels take them; both in the order of ids."""

    table: VectorTable
    _placed: list[PlacedVectors] = field(default_factory=list, repr=False)

    @cached_property
    def vectors(self) -> Vectors:
        """The same vectors with their lengths."""
        rows, places = self.table.rows, self.table.places
        norms = np.zeros(len(places))
        for first in range(0, len(places), _ROWS_AT_ONCE):
            norms[first : first + _ROWS_AT_ONCE] = norms_of(rows[places[first : first + _ROWS_AT_ONCE]])
        return Vectors(rows, places, norms)

    @property
    def ids(self) -> pa.Array:
        """Sorted ids."""
        return self.table.ids

    @property
    def record(self) -> InputRecord:
        """What was read."""
        return InputRecord(files=self.table.records, fingerprint=self.table.fingerprint)

    def placed(self, store: GraphStore) -> PlacedVectors:
        """Return where these are in a graph; kept for the one that was asked for last."""
        if not self._placed or self._placed[-1].store is not store:
            self._placed[:] = [PlacedVectors(self, store)]
        return self._placed[-1]

    def usable_at(self, ids: pa.Array, place: str) -> npt.NDArray[np.int64]:
        """Position of the vector of each of some sorted ids, int64 (len(ids),); -1 without one, or of length 0."""
        of_id = np.full(len(ids), -1, dtype=np.int64)
        match = match_ids(self.ids, ids, wanted_place=self.table.place_of_ids, known_place=place)
        usable = np.flatnonzero((match >= 0) & (self.vectors.norms > 0))
        of_id[match[usable]] = usable
        return of_id


@dataclass(frozen=True, eq=False)
class PlacedVectors:
    """Vectors of nodes in a graph of n nodes; found once, whoever asks for how many queries."""

    side: VectorSide
    store: GraphStore

    @cached_property
    def rank(self) -> npt.NDArray[np.int32]:
        """Tie rank of the node of every vector; -1 if unknown."""
        place = self.side.table.place_of_ids
        return match_ids(self.side.ids, self.store.ids, wanted_place=place, known_place=graph_place(self.store))

    @cached_property
    def of_node(self) -> npt.NDArray[np.int64]:
        """Int64 (n,) over internal nodes: position of the vector of the node; -1 without one, or of length 0."""
        by_rank = np.full(len(self.store.ids), -1, dtype=np.int64)
        usable = np.flatnonzero((self.rank >= 0) & (self.side.vectors.norms > 0))
        by_rank[self.rank[usable]] = usable
        return by_rank[self.store.order]


@dataclass(frozen=True, eq=False)
class JobVectors:
    """Vectors of nodes and of queries, of one width."""

    nodes: VectorSide
    queries: VectorSide

    def counts(self, count: int, store: GraphStore) -> VectorCounts:
        """Count vectors, and those that cannot be used, for so many queries and a graph (or `NoGraph`)."""
        nodes, queries = self.nodes, self.queries
        known = match_ids(nodes.ids, store.ids) >= 0
        graph = not isinstance(store, NoGraph)
        return VectorCounts(
            width=nodes.table.width or queries.table.width,
            node_vectors=len(nodes.ids),
            null_node_vectors=nodes.table.without_vector,
            zero_node_vectors=int((nodes.vectors.norms == 0).sum()),
            unknown_nodes=int((~known).sum()) if graph else 0,
            nodes_without_vector=len(store.ids) - int(known.sum()) if graph else 0,
            query_vectors=len(queries.ids),
            zero_query_vectors=int((queries.vectors.norms == 0).sum()),
            queries_without_vector=count - len(queries.ids),
        )

    def searched(self, store: GraphStore, allowed: npt.NDArray[np.bool_] | None) -> npt.NDArray[np.bool_]:
        """Mask of the node vectors to search: those of nodes of the graph, where there is one, that are allowed.

        ``allowed`` is a mask over tie ranks; None: all.
        """
        if isinstance(store, NoGraph):
            return np.ones(len(self.nodes.ids), dtype=np.bool_)
        rank = self.nodes.placed(store).rank
        return rank >= 0 if allowed is None else np.append(allowed, False)[rank]


def read_node_vectors(source: Any, options: ScoreOptions) -> VectorSide:
    """Read the vectors of nodes.

    Raises
    ------
    InputDataError
        Bad vectors.
    """
    return VectorSide(
        read_vectors(
            source,
            what="node vectors",
            id_column=options.vector_node_column,
            vector_column=options.vector_column,
        )
    )


def read_job_vectors(
    inputs: JobInputs, options: ScoreOptions, vectors_of_info: VectorTable | None
) -> JobVectors | None:
    """Read the vectors of a job, those of queries unless they are among the attributes of these; None without.

    Raises
    ------
    InputDataError
        Bad vectors, or vectors of nodes and queries of two widths.
    """
    if inputs.node_vectors is None or (inputs.query_vectors is None and vectors_of_info is None):
        return None
    side = inputs.node_vectors
    if not isinstance(side, VectorSide):
        side = read_node_vectors(side, options)
    nodes = side.table
    queries = vectors_of_info or inputs.query_vectors
    if not isinstance(queries, VectorTable):
        queries = read_vectors(
            queries,
            what="query vectors",
            id_column=options.vector_query_column,
            vector_column=options.vector_column,
        )
    if nodes.width is not None and queries.width is not None and nodes.width != queries.width:
        raise InputDataError(
            f"the node vectors of {nodes.place} have {nodes.width} numbers, the query vectors of {queries.place} "
            f"{queries.width}",
            expected="vectors of one model",
            fix="check which model made which",
        )
    return JobVectors(side, VectorSide(queries))
