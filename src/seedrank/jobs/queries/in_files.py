"""Many queries whose hits are put aside in files, a segment each, and read back one segment at a time."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from seedrank.config import ScoreOptions
from seedrank.io.hits.query_ids import read_query_ids
from seedrank.io.hits.staged_hits import MOST_SEGMENTS, StagedHits, stage_hits
from seedrank.io.records import InputRecord
from seedrank.io.tables import TableInput
from seedrank.jobs.inputs import JobInputs
from seedrank.jobs.queries.graph_selection import GraphSelection
from seedrank.jobs.queries.job_hits import hit_columns, takes_signed
from seedrank.jobs.queries.query_set import QuerySet, load_query_set
from seedrank.jobs.queries.segment_size import segment_size
from seedrank.jobs.run.part_ranges import part_count, wanted_parts


@dataclass(frozen=True)
class StagedQueries:
    """The queries of a job, whose hits are in files."""

    inputs: JobInputs
    options: ScoreOptions
    hits: StagedHits

    @property
    def records(self) -> Mapping[str, InputRecord]:
        """What was read, by input name."""
        return {"queries": self.hits.record}

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.hits.query_ids)

    @property
    def size(self) -> int:
        """Queries of a segment."""
        return self.hits.size

    def load(self, graph: GraphSelection, first: int, last: int) -> QuerySet:
        """Return the queries ``first`` … ``last - 1``, which are one segment, or none."""
        inputs = replace(self.inputs, queries=self.hits.load(first, last))
        return load_query_set(graph.store, inputs, self.options, graph=graph)


def staged_queries(inputs: JobInputs, options: ScoreOptions, folder: Path, *, no_seeds: bool) -> StagedQueries | None:
    """Put the hits of a job aside by segments; None where there are not more queries than one segment has.

    Footers are looked at first, then the column of query ids is read, and only then the hits. Of a range of parts only
    the segments that it has queries of are put aside.

    Parameters
    ----------
    inputs, options : of the job; the hits are on storage.
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
    rows = sum(record.rows for record in TableInput.open(inputs.queries, what="queries").records)
    if rows <= segment_size(options):
        return None  # there are not more queries than rows
    query_ids = read_query_ids(inputs.queries, column=options.hit_query_column).query_ids
    size = segment_size(options, queries=len(query_ids), rows=rows)
    if len(query_ids) <= size:
        return None
    parts = part_count(len(query_ids), options)
    size = max(size, -(-parts // MOST_SEGMENTS) * options.part_size)
    wanted = wanted_parts(len(query_ids), options)[0]
    hits = stage_hits(
        inputs.queries,
        hit_columns(options),
        folder,
        query_ids=query_ids,
        size=size,
        wanted=range(wanted.start * options.part_size, wanted.stop * options.part_size),
        sources=options.source,
        signed=takes_signed(options, no_seeds=no_seeds),
    )
    return StagedQueries(inputs, options, hits)


def is_on_storage(source: Any) -> bool:
    """Whether an input is files or URLs, which can be read twice."""
    if isinstance(source, (str, os.PathLike)):
        return True
    return isinstance(source, (list, tuple)) and bool(source) and all(is_on_storage(entry) for entry in source)
