"""One part: turn the scored blocks of a fixed range of queries into the part's two tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from seedrank.config import ScoreOptions
from seedrank.errors import StorageError
from seedrank.io.candidates import candidates_schema, component_column, queries_schema
from seedrank.jobs.methods import candidate_columns, component_names, methods_that_run, score_meaning, table_facts
from seedrank.jobs.operators.blocks import ScoredBlock
from seedrank.jobs.operators.outcome import Outcome
from seedrank.jobs.queries.query_set import QuerySet
from seedrank.jobs.run.taken_over import TakenRows, splice


@dataclass(frozen=True)
class AssembledPart:
    """The tables of a part, and their summary; `unfinished` counts what would be worth another attempt."""

    candidates: pa.Table
    queries: pa.Table
    by_status: Counter[str]
    unfinished: int
    iterations: int
    largest_error_bound: float | None
    errors: list[str]
    taken_over: int
    seeds_given: int
    seeds_missing: int


def assemble_part(
    first: int,
    last: int,
    blocks: Sequence[ScoredBlock],
    *,
    query_set: QuerySet,
    options: ScoreOptions,
    taken: TakenRows | None = None,
) -> AssembledPart:
    """Turn the blocks of the queries ``first`` … ``last - 1``, and rows that are taken over, into the part's tables."""
    several = len(options.restart_probabilities)
    count = (last - first) * several
    status = np.full(count, "no_valid_seeds", dtype=object)
    counts = np.zeros(count, dtype=np.int32)
    # Position of a row among those that have an outcome; -1 for the others, whose measured columns are null.
    place = np.full(count, -1, dtype=np.int64)
    outcomes: list[Outcome] = []
    measured = 0
    for queries, outcome, _ in blocks:
        rows = ((queries - first)[:, np.newaxis] * several + np.arange(several)).ravel()
        if outcome is None:
            status[rows] = "failed"
            continue
        outcomes.append(outcome)
        status[rows], counts[rows] = outcome.status, outcome.counts
        place[rows] = np.arange(measured, measured + len(rows))
        measured += len(rows)
    queries_table = _queries_table(first, status, counts, place, outcomes, query_set, options)
    candidates = candidates_table(first, counts, outcomes, query_set, options)
    if taken is not None:
        queries_table, candidates = _with_taken(queries_table, candidates, counts, taken, several)
    by_status = Counter(queries_table["status"].to_pylist())
    cut_by_deadline = pc.sum(pc.equal(queries_table["budget_hit"], "deadline_s")).as_py() or 0
    return AssembledPart(
        candidates=candidates,
        queries=queries_table,
        by_status=by_status,
        unfinished=by_status["failed"] + cut_by_deadline,
        iterations=pc.sum(queries_table["iterations"]).as_py() or 0,
        largest_error_bound=pc.max(queries_table["error_bound"]).as_py(),
        errors=[block.error for block in blocks if block.error is not None],
        taken_over=0 if taken is None else len(taken.queries),
        seeds_given=int(query_set.seeds_given[first:last].clip(min=0).sum()),
        seeds_missing=int(query_set.seeds_missing[first:last].sum()),
    )


def _with_taken(
    queries: pa.Table, candidates: pa.Table, counts: npt.NDArray[np.int32], taken: TakenRows, several: int
) -> tuple[pa.Table, pa.Table]:
    """Put the rows that are taken over in their places; ``counts`` are the candidates of each row of ``queries``."""
    everyone = np.arange(queries.num_rows) // several
    others = ~np.isin(everyone, taken.queries)
    of_taken = np.repeat(taken.queries, several)
    same = queries["input_hash"].filter(pa.array(~others)).equals(taken.table["input_hash"])
    if not same or pc.sum(taken.table["candidates"]).as_py() != taken.candidates.num_rows:
        raise StorageError(
            "the run of --since was replaced while it was read",
            expected="a run that stays as it is until this one has ended",
            fix="run the same command again",
        )
    owners = np.repeat(of_taken, np.asarray(taken.table["candidates"]))
    return (
        splice(queries.filter(pa.array(others)), taken.table, everyone[others], of_taken),
        splice(candidates, taken.candidates, np.repeat(everyone, counts), owners),
    )


def _queries_table(
    first: int,
    status: npt.NDArray[np.object_],
    counts: npt.NDArray[np.int32],
    place: npt.NDArray[np.int64],
    outcomes: Sequence[Outcome],
    query_set: QuerySet,
    options: ScoreOptions,
) -> pa.Table:
    count, restarts = len(status), options.restart_probabilities
    several = len(restarts)
    queries = np.arange(first, first + count // several).repeat(several)
    query_ids = query_set.query_ids.take(pa.array(queries))
    given = query_set.seeds_given[queries]
    schema = queries_schema(
        query_type=query_ids.type,
        facts=table_facts(options),
        several_restarts=several > 1,
        reranked=options.rerank != "none",
    )
    columns: dict[str, Any] = {
        "query_id": query_ids,
        "restart": pa.array(np.tile(restarts, count // several)),
        "method": pa.repeat(pa.scalar(options.method), count),
        "status": pa.array(status, pa.string()),
        "seeds_given": pa.array(given.astype(np.int32), mask=given < 0),
        "seeds_missing": pa.array(query_set.seeds_missing[queries].astype(np.int32)),
        "candidates": pa.array(counts),
    }
    hashes = [row.tobytes().hex() for row in query_set.input_hashes[first : first + count // several]]
    columns["input_hash"] = pa.array(hashes, pa.string()).take(pa.array(queries - first))
    if query_set.plans is not None:
        chosen = pa.array(queries)
        columns["method"] = query_set.plans.methods.take(chosen)
        columns["plan"] = query_set.plans.plans.take(chosen)
        columns["trace"] = query_set.plans.traces.take(chosen)
    of_query = pa.array(place, mask=place < 0)
    for field in schema:
        if field.name not in columns:
            parts = [
                outcome.query_columns.get(field.name, pa.nulls(len(outcome.counts), field.type)) for outcome in outcomes
            ]
            columns[field.name] = _joined(parts, field.type).take(of_query)
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)


def candidates_table(
    first: int,
    counts: npt.NDArray[np.int32],
    outcomes: Sequence[Outcome],
    query_set: QuerySet,
    options: ScoreOptions,
) -> pa.Table:
    """Return the rows of ``candidates`` of consecutive queries, with schema and metadata.

    Parameters
    ----------
    first : position of the first query.
    counts : int32, candidates of each query; under several restart probabilities a query has one for each.
    outcomes : those of the queries that have any, in their order.
    query_set, options : of the job.
    """
    space, restarts = query_set.space, options.restart_probabilities
    components = component_names(options, query_set)
    further = candidate_columns(options, methods_that_run(options, query_set))
    several = len(restarts)
    schema = candidates_schema(
        query_type=query_set.query_ids.type,
        node_type=space.id_type,
        precision=options.precision,
        facts=table_facts(options),
        meaning=score_meaning(options),
        several_restarts=several > 1,
        components=components,
        columns=further,
        group_type=None if query_set.groups is None else query_set.groups.keys.type,
    )
    of_row = np.repeat(np.arange(len(counts)), counts)
    rank = np.arange(len(of_row)) - np.repeat(np.cumsum(counts) - counts, counts) + 1
    nodes = np.concatenate([np.zeros(0, dtype=np.int32), *(outcome.nodes for outcome in outcomes)])
    columns: Mapping[str, Any] = {
        "query_id": query_set.query_ids.take(pa.array(first + of_row // several)),
        "restart": pa.array(np.asarray(restarts)[of_row % several]),
        "rank": pa.array(rank.astype(np.int32)),
        "node_id": space.ids(nodes),
        "score": _joined([pa.array(outcome.scores) for outcome in outcomes], schema.field("score").type),
        **{
            name: _joined(
                [outcome.candidate_columns.get(name, pa.nulls(len(outcome.nodes))) for outcome in outcomes],
                schema.field(name).type,
            )
            for name in (*map(component_column, components), *further)
        },
    }
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)


def _joined(parts: Sequence[pa.Array], kind: pa.DataType) -> pa.Array:
    return pa.concat_arrays([pa.array([], kind), *(part.cast(kind) for part in parts)])
