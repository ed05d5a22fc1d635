"""Many queries whose hits are put aside in files, a segment each, and read back one segment at a time."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seedrank.config import ScoreOptions
from seedrank.io.hits.query_ids import read_query_ids
from seedrank.io.hits.staged_hits import MOST_SEGMENTS, StagedHits, stage_hits
from seedrank.io.ids import match_ids
from seedrank.io.queries import HitTable
from seedrank.io.records import InputRecord
from seedrank.io.tables import TableInput
from seedrank.jobs.inputs import JobInputs
from seedrank.jobs.queries.graph_selection import GraphSelection
from seedrank.jobs.queries.job_hits import hit_columns, no_hits, takes_signed
from seedrank.jobs.queries.loading import load_query_set
from seedrank.jobs.queries.query_info import joined_ids
from seedrank.jobs.queries.query_set import QuerySet
from seedrank.jobs.queries.segment_size import segment_size
from seedrank.jobs.queries.vector_hits import refuse_source_of_vectors, searches_vectors
from seedrank.jobs.run.part_ranges import part_count, wanted_parts


@dataclass(frozen=True)
class StagedQueries:
    """The queries of a job, whose hits are in files.

    Attributes
    ----------
    inputs, options : of the job; what is read once for all segments has been read.
    query_ids : of all queries, sorted.
    size : queries of a segment.
    hits : None where the queries are those of vectors and attributes alone.
    """

    inputs: JobInputs
    options: ScoreOptions
    query_ids: pa.Array
    size: int
    hits: StagedHits | None

    @property
    def records(self) -> Mapping[str, InputRecord]:
        """What was read, by input name."""
        return {} if self.hits is None else {"queries": self.hits.record}

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.query_ids)

    @cached_property
    def _attributes_of(self) -> npt.NDArray[np.int32]:
        """Query of each row of attributes."""
        info = self.inputs.query_info
        return np.zeros(0, np.int32) if info is None else match_ids(info.table.query_ids, self.query_ids)

    @cached_property
    def _vectors_of(self) -> npt.NDArray[np.int32]:
        """Query of each vector that is not among the attributes."""
        vectors = self.inputs.query_vectors
        return np.zeros(0, np.int32) if vectors is None else match_ids(vectors.ids, self.query_ids)

    def load(self, graph: GraphSelection, first: int, last: int) -> QuerySet:
        """Return the queries ``first`` … ``last - 1``, which are one segment, or none."""
        info, vectors = self.inputs.query_info, self.inputs.query_vectors
        if info is not None:
            rows = np.searchsorted(self._attributes_of, [first, last]).tolist()
            info = info._replace(table=info.table.some(*rows))
        if vectors is not None:
            vectors = vectors.some(*np.searchsorted(self._vectors_of, [first, last]).tolist())
        inputs = replace(self.inputs, queries=self._hits(first, last), query_info=info, query_vectors=vectors)
        return load_query_set(graph.store, inputs, self.options, graph=graph)

    def _hits(self, first: int, last: int) -> HitTable:
        if self.hits is None:
            some = self.query_ids.slice(first, last - first)
            return replace(no_hits(), query_ids=some, null_list=np.zeros(len(some), dtype=np.bool_))
        hits = self.hits.load(first, last)
        if self.inputs.node_vectors is None or not searches_vectors(self.options):
            return hits
        refuse_source_of_vectors(hits)
        # Beside the source of the search, hits without a source are one in every segment, or in none.
        unnamed = hits.source is None and self.hits.hits > 0
        return replace(hits, source_names=(None,)) if unnamed else hits


def staged_queries(inputs: JobInputs, options: ScoreOptions, folder: Path, *, no_seeds: bool) -> StagedQueries | None:
    """Put the hits of a job aside by segments; None where there are not more queries than one segment has.

    Footers are looked at first, then the column of query ids is read, and only then the hits. Of a range of parts only
    the segments that it has queries of are put aside.

    Parameters
    ----------
    inputs, options : of the job; the hits are on storage, or there are none; what is read once has been read.
    folder : where the files are made.
    no_seeds : whether there is no graph.

    Raises
    ------
    ConfigError
        The range begins behind the last part.
    InputDataError
        Bad hits.
    StorageError
        The files cannot be written.
    """
    rows, query_ids = 0, pa.nulls(0)
    known = _known_queries(inputs)
    if inputs.queries is not None:
        rows = sum(record.rows for record in TableInput.open(inputs.queries, what="queries").records)
    if rows + sum(len(ids) for ids, _ in known) <= segment_size(options):
        return None  # there are not more queries than rows
    if inputs.queries is not None:
        query_ids = read_query_ids(inputs.queries, column=options.hit_query_column).query_ids
    every = query_ids
    for ids, place in known:
        every = joined_ids(every, ids, place)
    if inputs.node_vectors is not None and searches_vectors(options):
        rows += options.vector_depth * len(every)
    size = segment_size(options, queries=len(every), rows=rows)
    if len(every) <= size:
        return None
    size = max(size, -(-part_count(len(every), options) // MOST_SEGMENTS) * options.part_size)
    wanted = wanted_parts(len(every), options)[0]
    hits = None
    if inputs.queries is not None:
        hits = stage_hits(
            inputs.queries,
            hit_columns(options),
            folder,
            query_ids=query_ids,
            every=every,
            size=size,
            wanted=range(wanted.start * options.part_size, wanted.stop * options.part_size),
            sources=options.source,
            signed=takes_signed(options, no_seeds=no_seeds),
        )
    return StagedQueries(inputs, options, every, size, hits)


def _known_queries(inputs: JobInputs) -> list[tuple[pa.Array, str]]:
    """Ids of the queries that have a vector or attributes, in the order in which a job adds them to those of hits."""
    found = []
    info, vectors = inputs.query_info, inputs.query_vectors
    if info is not None and info.table.vectors is not None:
        vectors = info.table.vectors
    if vectors is not None:
        found.append((vectors.ids, vectors.place_of_ids))
    if info is not None:
        found.append((info.table.query_ids, info.table.place("query_id")))
    return found


def is_on_storage(source: Any) -> bool:
    """Whether an input is files or URLs, which can be read twice."""
    if isinstance(source, (str, os.PathLike)):
        return True
    return isinstance(source, (list, tuple)) and bool(source) and all(is_on_storage(entry) for entry in source)
