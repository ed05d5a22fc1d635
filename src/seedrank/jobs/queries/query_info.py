"""Attributes of the queries of a job, as its options use them."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seedrank.config import ScoreOptions
from seedrank.config.names import Budget
from seedrank.errors import ConfigError
from seedrank.io.arrow.fingerprint import content_fingerprint
from seedrank.io.ids import common_id_type, match_ids
from seedrank.io.queries import HitTable
from seedrank.io.query_info import BUDGET, METHOD, QueryInfoTable, read_query_info
from seedrank.io.records import InputRecord
from seedrank.jobs.inputs import JobInputs
from seedrank.jobs.planning.planner import QUERY_METHODS
from seedrank.jobs.planning.signals import SIGNALS


class JobQueryInfo(NamedTuple):
    """The attributes, and what ``run.json`` records of them."""

    table: QueryInfoTable
    record: InputRecord


def read_job_query_info(inputs: JobInputs, options: ScoreOptions) -> JobQueryInfo:
    """Read what the job uses: exclusions always, vectors beside those of nodes, the rest where a planner asks for it.

    Raises
    ------
    ConfigError
        Vectors of queries are missing, or are given twice.
    InputDataError
        Bad attributes.
    """
    if isinstance(inputs.query_info, JobQueryInfo):
        return inputs.query_info
    planned = options.method == "auto"
    table = read_query_info(
        inputs.query_info,
        query_id_column=options.hit_query_column,
        flags=SIGNALS if planned else (),
        text=planned,
        choices={BUDGET: get_args(Budget), METHOD: QUERY_METHODS} if planned else {},
        vector_column=None if inputs.node_vectors is None else options.vector_column,
    )
    check_vector_column(inputs, options, table.records[0].uri, there=table.vectors is not None)
    parts = {
        "query_ids": table.query_ids,
        **table.flags,
        "text": table.text,
        **table.choices,
        "exclude_query": table.exclude_query,
        "exclude_node_ids": table.exclude_node_ids,
        "exclude_node": table.exclude_node,
        **({} if table.vectors is None else {"vectors": (table.vectors.fingerprint,)}),
    }
    return JobQueryInfo(table, InputRecord(files=table.records, fingerprint=content_fingerprint(parts)))


def takes_vectors(inputs: JobInputs) -> bool:
    """Whether the vectors of queries are those among their attributes: nothing else has them, and nodes have some."""
    return inputs.query_info is not None and inputs.query_vectors is None and inputs.node_vectors is not None


def check_vector_column(inputs: JobInputs, options: ScoreOptions, place: str, *, there: bool) -> None:
    """Refuse attributes without vectors where nothing else has them, and with vectors where something else has.

    Parameters
    ----------
    inputs, options : of the job.
    place : first file of the attributes.
    there : whether they have the column of vectors; without vectors of nodes nobody asks.

    Raises
    ------
    ConfigError
        Naming what to drop or to add.
    """
    column = options.vector_column
    if inputs.node_vectors is None:
        return
    if there and inputs.query_vectors is not None:
        raise ConfigError(
            f"--query-vectors is given, and the query info in {place} has a column {column!r}, too",
            expected="the vectors of queries in one place",
            fix="drop --query-vectors, or leave the column out of the query info",
        )
    if not there and inputs.query_vectors is None:
        raise ConfigError(
            f"--node-vectors is given without --query-vectors, and the query info in {place} has no column {column!r}",
            expected="vectors of nodes and of queries",
            fix=f"add --query-vectors, or the column {column!r} of the query info; or drop --node-vectors",
        )


def joined_ids(known: pa.Array, query_ids: pa.Array, place: str) -> pa.Array:
    """Return the sorted ids of queries and of further ones, ``known`` itself where there is no further one.

    Raises
    ------
    InputDataError
        Ids of another kind; ``place`` is what messages call these.
    """
    kind = common_id_type(((known.type, "query_id of the hits"), (query_ids.type, place)))
    mine, others = known.cast(kind), query_ids.cast(kind)
    new = others.filter(pa.array(match_ids(others, mine) < 0))
    if not len(new):
        return known
    every = pa.concat_arrays([mine, new])
    return every.take(pc.sort_indices(every))


def with_queries(hits: HitTable, query_ids: pa.Array, place: str) -> HitTable:
    """Add queries that have no hit, given by their sorted ids; ``place`` is what messages call these.

    Raises
    ------
    InputDataError
        Ids of another kind than those of the hits.
    """
    every = joined_ids(hits.query_ids, query_ids, place)
    if every is hits.query_ids:
        return hits
    positions = match_ids(hits.query_ids.cast(every.type), every)
    null_list = np.zeros(len(every), dtype=np.bool_)
    null_list[positions] = hits.null_list
    return replace(hits, query_ids=every, query=positions[hits.query], null_list=null_list)
