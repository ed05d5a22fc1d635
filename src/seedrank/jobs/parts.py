"""One part: score a fixed range of queries block by block and turn the results into the part's two tables."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seedrank.config import ScoreOptions
from seedrank.io.candidates import candidates_schema, queries_schema
from seedrank.io.graphstore import GraphStore
from seedrank.jobs.prepare import Engine, table_facts
from seedrank.jobs.progress import Reporter
from seedrank.jobs.query_set import QuerySet
from seedrank.kernels.ppr import BlockResult, personalized_pagerank

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ScoredPart:
    """The tables of a part, and their summary."""

    candidates: pa.Table
    queries: pa.Table
    by_status: Counter[str]
    iterations: int
    largest_error_bound: float | None
    errors: list[str]


def score_part(
    first: int,
    last: int,
    *,
    query_set: QuerySet,
    store: GraphStore,
    engine: Engine,
    options: ScoreOptions,
    reporter: Reporter,
) -> ScoredPart:
    """Score the queries ``first`` … ``last - 1``.

    A block whose kernel fails (a failed self-check, memory) costs its own queries only: their status is ``failed``,
    the reason is logged, the rest of the part goes on.
    """
    valid = np.flatnonzero(query_set.valid[first:last]) + first
    reporter.advance(last - first - len(valid))
    results: list[_BlockOutcome] = []
    for begin in range(0, len(valid), engine.block_size):
        queries = valid[begin : begin + engine.block_size]
        results.append(_score_block(queries, query_set, store, engine, options))
        reporter.advance(len(queries))
    return _assemble(first, last, results, query_set=query_set, store=store, options=options)


class _BlockOutcome(NamedTuple):
    """The queries of a block with their result, or with the reason why there is none."""

    queries: npt.NDArray[np.int64]
    result: BlockResult | None
    error: str | None


def _score_block(
    queries: npt.NDArray[np.int64], query_set: QuerySet, store: GraphStore, engine: Engine, options: ScoreOptions
) -> _BlockOutcome:
    try:
        result = personalized_pagerank(
            engine.backend,
            query_set.block(queries),
            restart=options.restart_probability,
            max_iterations=options.max_iterations,
            tolerance=options.tolerance,
            k=max(1, min(options.top_k, store.facts.nodes)),
            eligible=query_set.eligible,
            min_score=options.min_score,
            precision=options.precision,
            relaxation=engine.relaxation,
        )
    except Exception as error:
        first, last = query_set.query_ids.take(pa.array(queries[[0, -1]])).to_pylist()
        log.exception("block_failed", extra={"queries": len(queries), "first_query": first, "last_query": last})
        reason = f"{len(queries)} queries from {first!r} to {last!r}: {type(error).__name__}: {error}"
        return _BlockOutcome(queries, None, reason)
    return _BlockOutcome(queries, result, None)


def _assemble(
    first: int,
    last: int,
    results: list[_BlockOutcome],
    *,
    query_set: QuerySet,
    store: GraphStore,
    options: ScoreOptions,
) -> ScoredPart:
    count = last - first
    status = np.full(count, "no_valid_seeds", dtype=object)
    counts = np.zeros(count, dtype=np.int32)
    iterations = np.full(count, -1, dtype=np.int32)
    error_bound = np.full(count, np.nan)
    nodes: list[npt.NDArray[np.int32]] = []
    scores: list[npt.NDArray[np.floating]] = []
    for queries, result, _ in results:
        rows = queries - first
        if result is None:
            status[rows] = "failed"
            continue
        status[rows] = np.where(result.converged, "ok", "not_converged")
        counts[rows], iterations[rows], error_bound[rows] = (
            result.counts,
            result.iterations,
            result.error_bound,
        )
        filled = np.arange(result.nodes.shape[1]) < result.counts[:, None]
        nodes.append(result.nodes[filled])
        scores.append(result.scores[filled])
    facts = table_facts(options)
    query_ids = query_set.query_ids.slice(first, count)
    unmeasured = iterations < 0
    given = query_set.seeds_given[first:last]
    query_schema = queries_schema(query_type=query_ids.type, facts=facts)
    absent = {"visited_nodes", "visited_edges", "budget_hit", "truncated", "plan", "trace"}
    columns = {
        "query_id": query_ids,
        "method": pa.repeat(pa.scalar(options.method), count),
        "status": pa.array(status, pa.string()),
        "seeds_given": pa.array(given.astype(np.int32), mask=given < 0),
        "seeds_missing": pa.array(query_set.seeds_missing[first:last].astype(np.int32)),
        "candidates": pa.array(counts),
        "iterations": pa.array(iterations, mask=unmeasured),
        "error_bound": pa.array(error_bound, mask=unmeasured),
    }
    columns |= {name: pa.nulls(count, query_schema.field(name).type) for name in absent}
    schema = candidates_schema(
        query_type=query_ids.type, node_type=store.ids.type, precision=options.precision, facts=facts
    )
    of_row = np.repeat(np.arange(count), counts)
    rank = np.arange(len(of_row)) - np.repeat(np.cumsum(counts) - counts, counts) + 1
    internal = np.concatenate(nodes) if nodes else np.zeros(0, dtype=np.int32)
    candidates = [
        query_ids.take(pa.array(of_row)),
        pa.array(rank.astype(np.int32)),
        store.ids.take(pa.array(store.order[internal])),
        pa.array(np.concatenate(scores) if scores else np.zeros(0), schema.field("score").type),
    ]
    return ScoredPart(
        candidates=pa.Table.from_arrays(candidates, schema=schema),
        queries=pa.Table.from_arrays([columns[name] for name in query_schema.names], schema=query_schema),
        by_status=Counter(status.tolist()),
        iterations=int(iterations[~unmeasured].sum()),
        largest_error_bound=float(np.nanmax(error_bound)) if not unmeasured.all() else None,
        errors=[outcome.error for outcome in results if outcome.error is not None],
    )
