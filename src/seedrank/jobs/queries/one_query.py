"""One of the queries of a job, however many there are: all hits are read, and only those of this query are kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from seedrank.config import ScoreOptions
from seedrank.io.graph.no_graph import NoGraph
from seedrank.io.graphstore import GraphStore
from seedrank.io.hits.query_ids import read_query_ids
from seedrank.io.hits.staged_hits import stage_hits
from seedrank.jobs.inputs import JobInputs
from seedrank.jobs.queries.find_id import find_id, position_of
from seedrank.jobs.queries.in_files import is_on_storage
from seedrank.jobs.queries.job_hits import hit_columns, takes_signed
from seedrank.jobs.queries.loading import load_query_set
from seedrank.jobs.queries.query_set import QuerySet


class OneQuery(NamedTuple):
    """A query among those of a query set, which has all of its hits, and of other queries none or some."""

    query_set: QuerySet
    position: int


def load_one_query(
    store: GraphStore, inputs: JobInputs, options: ScoreOptions, query: Any, *, place: str, scratch: Path
) -> OneQuery:
    """Read the queries of a job for the sake of one.

    Every row is read and checked, and the records are those of all hits. What is searched by vectors, and hits that are
    in memory anyway, are kept as a whole.

    Parameters
    ----------
    store, inputs, options : of the job.
    query, place : id of the query, and what messages call the queries.
    scratch : local folder for the hits of the query; it exists.

    Raises
    ------
    InputDataError
        There is no such query, or what `load_query_set` refuses.
    """
    if options.all_nodes is not None:
        ranks = np.flatnonzero(store.nodes_of_types((options.all_nodes,), option="--all-nodes"))
        position = position_of(query, store.ids.take(pa.array(ranks)), what="query", place=place)
        return OneQuery(load_query_set(store, inputs, options, among=slice(position, position + 1)), 0)
    if inputs.node_vectors is not None or not is_on_storage(inputs.queries):
        query_set = load_query_set(store, inputs, options)
    else:
        query_ids = read_query_ids(inputs.queries, column=options.hit_query_column).query_ids
        position = find_id(query, query_ids)
        wanted = range(0) if position < 0 else range(position, position + 1)
        hits = stage_hits(
            inputs.queries,
            hit_columns(options),
            scratch,
            query_ids=query_ids,
            size=1,
            wanted=wanted,
            sources=options.source,
            signed=takes_signed(options, no_seeds=isinstance(store, NoGraph)),
        )
        query_set = load_query_set(store, replace(inputs, queries=hits.load(wanted.start, wanted.stop)), options)
        query_set = replace(query_set, records={**query_set.records, "queries": hits.record})
    # Attributes and vectors may bring queries that no hit has.
    return OneQuery(query_set, position_of(query, query_set.query_ids, what="query", place=place))
