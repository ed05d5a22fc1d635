"""Attributes of the queries of a job, as its options use them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seedrank.config import ScoreOptions
from seedrank.config.names import Budget
from seedrank.io.arrow.fingerprint import content_fingerprint
from seedrank.io.ids import common_id_type, match_ids
from seedrank.io.queries import HitTable
from seedrank.io.query_info import BUDGET, METHOD, QueryInfoTable, read_query_info
from seedrank.io.records import InputRecord
from seedrank.jobs.planning.planner import QUERY_METHODS
from seedrank.jobs.planning.signals import SIGNALS


class JobQueryInfo(NamedTuple):
    """The attributes, and what ``run.json`` records of them."""

    table: QueryInfoTable
    record: InputRecord


def read_job_query_info(source: Any, options: ScoreOptions) -> JobQueryInfo:
    """Read what the job uses: exclusions always, the rest where a planner asks for it.

    Raises
    ------
    InputDataError
        Bad attributes.
    """
    planned = options.method == "auto"
    table = read_query_info(
        source,
        query_id_column=options.hit_query_column,
        flags=SIGNALS if planned else (),
        text=planned,
        choices={BUDGET: get_args(Budget), METHOD: QUERY_METHODS} if planned else {},
    )
    parts = {
        "query_ids": table.query_ids,
        **table.flags,
        "text": table.text,
        **table.choices,
        "exclude_query": table.exclude_query,
        "exclude_node_ids": table.exclude_node_ids,
        "exclude_node": table.exclude_node,
    }
    return JobQueryInfo(table, InputRecord(files=table.records, fingerprint=content_fingerprint(parts)))


def with_queries(hits: HitTable, query_ids: pa.Array, place: str) -> HitTable:
    """Add queries that have no hit, given by their sorted ids; ``place`` is what messages call these.

    Raises
    ------
    InputDataError
        Ids of another kind than those of the hits.
    """
    places = "query_id of the hits", place
    kind = common_id_type(zip((hits.query_ids.type, query_ids.type), places, strict=True))
    mine, others = hits.query_ids.cast(kind), query_ids.cast(kind)
    new = others.filter(pa.array(match_ids(others, mine) < 0))
    if not len(new):
        return hits
    every = pa.concat_arrays([mine, new])
    every = every.take(pc.sort_indices(every))
    positions = match_ids(mine, every)
    null_list = np.zeros(len(every), dtype=np.bool_)
    null_list[positions] = hits.null_list
    return replace(hits, query_ids=every, query=positions[hits.query], null_list=null_list)
