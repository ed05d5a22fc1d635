"""What the hits of a job are read from, and what a run records of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from seedrank.config import ScoreOptions
from seedrank.config.names import VECTOR_SOURCE
from seedrank.io.hits.fingerprints import fingerprint_of
from seedrank.io.queries import HitColumns, HitTable, read_hits
from seedrank.io.records import InputRecord
from seedrank.io.vectors import VectorTable
from seedrank.jobs.inputs import JobInputs
from seedrank.jobs.queries.query_info import with_queries
from seedrank.jobs.queries.vector_hits import refuse_source_of_vectors, searches_vectors
from seedrank.jobs.vectors import JobVectors, read_job_vectors

_HIT_ROLES = ("query", "node", "weight", "source", "seeds", "rank", "retriever_weight")


def read_job_hits(
    inputs: JobInputs,
    options: ScoreOptions,
    records: dict[str, InputRecord],
    vectors_of_info: VectorTable | None,
    *,
    no_seeds: bool,
) -> tuple[HitTable, JobVectors | None]:
    """Read hits and vectors; the queries of the table are those of both. Vectors are not searched yet.

    What was read is added to ``records``. ``vectors_of_info``: those among the attributes of queries. ``no_seeds``:
    there is no graph in which hits could be seeds.

    Raises
    ------
    InputDataError
        Bad hits or vectors; a source of the hits is called like that of the vectors.
    """
    vectors = read_job_vectors(inputs, options, vectors_of_info)
    searched = vectors is not None and searches_vectors(options)
    hits = no_hits()
    if isinstance(inputs.queries, HitTable):
        hits = inputs.queries
    elif inputs.queries is not None:
        sources = tuple(name for name in options.source if not (searched and name == VECTOR_SOURCE))
        hits = read_hits(
            inputs.queries, hit_columns(options), sources=sources, signed=takes_signed(options, no_seeds=no_seeds)
        )
        if searched:
            refuse_source_of_vectors(hits)
        if options.source and not sources:  # the vectors alone were named
            hits = replace(no_hits(), query_ids=hits.query_ids, null_list=hits.null_list, records=hits.records)
        records["queries"] = InputRecord(files=hits.records, fingerprint=fingerprint_of(hits))
    if vectors is None:
        return hits, None
    records["node_vectors"] = vectors.nodes.record
    if vectors_of_info is None:
        records["query_vectors"] = vectors.queries.record
    return with_queries(hits, vectors.queries.ids, vectors.queries.table.place_of_ids), vectors


def takes_signed(options: ScoreOptions, *, no_seeds: bool) -> bool:
    """Whether weights of hits may be negative: logarithms or inner products, which make no personalization vector."""
    by_place = options.seed_weighting in ("uniform", "rank")
    return options.method == "fuse" or options.scores_hits or by_place or (options.method == "auto" and no_seeds)


def no_hits() -> HitTable:
    """Return a table without queries and hits."""
    return HitTable(
        query_ids=pa.nulls(0),
        query=np.zeros(0, np.int32),
        node_ids=pa.nulls(0),
        node=np.zeros(0, np.int32),
        weight=np.zeros(0),
        rank=None,
        retriever_weight=None,
        fallback=None,
        source=None,
        source_names=(),
        null_list=np.zeros(0, np.bool_),
        records=[],
    )


def hit_columns(options: ScoreOptions) -> HitColumns:
    """Return the column names of hits, and which of them the user named; what nothing uses is not read."""
    names = {"query": "query_id", "node": "node_id"} | {role: role for role in _HIT_ROLES[2:]}
    unused = {"rank": not options.uses_ranks, "retriever_weight": not options.scores_hits and options.method != "auto"}
    roles = [role for role in _HIT_ROLES if not unused.get(role, False)]
    return HitColumns(
        **{names[role]: getattr(options, f"hit_{role}_column") for role in roles},
        fallback=options.fallback_node_column,
        explicit=frozenset(
            [
                *(["fallback"] if options.fallback_node_column is not None else []),
                *(names[role] for role in roles if f"hit_{role}_column" in options.model_fields_set),
            ]
        ),
    )
