"""The queries of a job, however many: in segments of whole parts, of which one is in memory at a time.

A job of few queries is one segment, its `QuerySet`. Every query of a part is in one segment, and nothing that a part
holds depends on how the queries are cut.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from seedrank.config import ScoreOptions
from seedrank.config.names import VECTOR_SOURCE
from seedrank.io.graph.no_graph import NoGraph
from seedrank.io.graphstore import GraphStore
from seedrank.io.records import InputRecord
from seedrank.jobs.inputs import JobInputs
from seedrank.jobs.queries.by_node import NodeQueries
from seedrank.jobs.queries.graph_selection import GraphSelection
from seedrank.jobs.queries.in_files import StagedQueries, is_on_storage, staged_queries
from seedrank.jobs.queries.loading import check_query_options, load_query_set
from seedrank.jobs.queries.query_info import read_job_query_info
from seedrank.jobs.queries.query_set import QuerySet
from seedrank.jobs.queries.returnable import read_exclusion_table
from seedrank.jobs.run.part_ranges import wanted_parts
from seedrank.jobs.vectors import JobVectors, read_job_vectors


class Segment(NamedTuple):
    """Consecutive queries, and the position of their first one among all queries of the job."""

    query_set: QuerySet
    first: int


class QuerySegments:
    """All queries of a job, sorted by query id.

    Parameters
    ----------
    load : callable
        Given the graph of the job, and positions ``first`` and ``last``, it returns the queries ``first`` …
        ``last - 1``.
    graph : GraphSelection
        What the options select of the graph, for all segments.
    count : int
        How many queries there are.
    size : int
        Queries of a segment, of the last one perhaps less.
    records : mapping
        What was read, by input name.
    vectors : JobVectors, optional
        Those of all queries.
    begin : int
        The query that will be asked for first.
    """

    def __init__(
        self,
        load: Callable[[GraphSelection, int, int], QuerySet],
        graph: GraphSelection,
        *,
        count: int,
        size: int,
        records: Mapping[str, InputRecord],
        vectors: JobVectors | None = None,
        begin: int = 0,
    ) -> None:
        self._load = load
        self._graph = graph
        self._count = count
        self._size = max(size, 1)
        self.records = records
        self.vectors = vectors
        self._begin = begin
        self._held: Segment | None = None

    @classmethod
    def of_one(cls, query_set: QuerySet, options: ScoreOptions) -> QuerySegments:
        """Return the one segment of a job of few queries; what these needed of the graph is let go."""
        return cls(
            lambda graph, _first, _last: query_set.on(graph.store),
            GraphSelection(query_set.space.store, options),
            count=len(query_set),
            size=len(query_set),
            records=query_set.records,
            vectors=query_set.vectors,
        )

    def __len__(self) -> int:
        return self._count

    def holding(self, query: int) -> Segment:
        """Return the segment of a query, which is kept until another one is asked for; not for several threads."""
        first = query // self._size * self._size
        if self._held is None or self._held.first != first:
            self._held = None  # never two at a time here
            last = min(first + self._size, self._count)
            self._held = Segment(self._load(self._graph, first, last), first)
        return self._held

    def at_hand(self) -> QuerySet:
        """Return the queries of the segment that is held, or wanted first: what tells how a method is started."""
        return self.holding(self._begin if self._held is None else self._held.first).query_set

    def on(self, store: GraphStore) -> None:
        """Go on with the same graph that has been opened elsewhere."""
        self._graph = GraphSelection(store, self._graph.options)
        if self._held is not None:
            self._held = Segment(self._held.query_set.on(store), self._held.first)


def open_queries(store: GraphStore, inputs: JobInputs, options: ScoreOptions, scratch: Path) -> QuerySegments:
    """Read the queries of a job, or, where there are many, what tells of them.

    Parameters
    ----------
    store, inputs, options : of the job.
    scratch : local folder for the hits of many queries; it exists, and is there until the last segment has been read.

    Raises
    ------
    ConfigError, InputDataError
        See `seedrank.jobs.queries.loading.load_query_set`; bad rows of all inputs are found here, none later.
    StorageError
        The hits cannot be put aside.
    """
    check_query_options(inputs, options)
    source: NodeQueries | StagedQueries | None = None
    graph = GraphSelection(store, options)
    vectors = None
    if may_be_cut(inputs, options):
        inputs, vectors = _read_once(inputs, options)
        if options.all_nodes is not None:
            source = NodeQueries.of(store, inputs, options)
        else:
            source = staged_queries(inputs, options, scratch, no_seeds=isinstance(store, NoGraph))
    if source is None:
        return QuerySegments.of_one(load_query_set(store, inputs, options, graph=graph), options)
    # An empty segment: names in options are checked against all hits, and what else is read is recorded.
    nothing = source.load(graph, 0, 0)
    return QuerySegments(
        source.load,
        graph,
        count=source.count,
        size=source.size,
        records={**nothing.records, **source.records},
        vectors=vectors,
        begin=wanted_parts(source.count, options)[0].start * options.part_size,
    )


def _read_once(inputs: JobInputs, options: ScoreOptions) -> tuple[JobInputs, JobVectors | None]:
    """Read what is the same table for every segment; also return all vectors."""
    info = None if inputs.query_info is None else read_job_query_info(inputs, options)
    vectors = read_job_vectors(inputs, options, None if info is None else info.table.vectors)
    inputs = replace(inputs, query_info=info)
    if inputs.exclude is not None:
        inputs = replace(inputs, exclude=read_exclusion_table(inputs.exclude, options))
    if vectors is not None:
        queries = None if inputs.query_vectors is None else vectors.queries.table
        inputs = replace(inputs, node_vectors=vectors.nodes, query_vectors=queries)
    return inputs, vectors


def may_be_cut(inputs: JobInputs, options: ScoreOptions) -> bool:
    """Whether a job of many queries need not hold them all at a time.

    It has to where nodes that only hits have are numbered (fusion, fallback, ``semantic``, ``hybrid``) and where a
    planner looks at every query. Hits that are in memory already may as well stay there. What is said of the source of
    a search among vectors is said of all hits.
    """
    if options.ranks_hits or options.method == "auto" or VECTOR_SOURCE in options.source:
        return False
    return options.all_nodes is not None or inputs.queries is None or is_on_storage(inputs.queries)
