"""``score``: the job. Graph and hits in, candidate tables out."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from threading import Event
from typing import Any, Unpack

from seedrank.config import ScoreOptions, make_options
from seedrank.errors import InterruptedRunError, SeedrankError, Terminated
from seedrank.jobs.clock import Clock
from seedrank.jobs.graphs.stores import store_of
from seedrank.jobs.inputs import JobInputs, held_in_memory
from seedrank.jobs.methods import check_method_options
from seedrank.jobs.operators.endless import endless_search
from seedrank.jobs.prepare import check_run_output
from seedrank.jobs.progress import Reporter, Silent
from seedrank.jobs.queries.loading import check_query_options
from seedrank.jobs.resources import limited_threads
from seedrank.jobs.results import Run
from seedrank.jobs.run.destination import destination
from seedrank.jobs.run.in_process import make_engine
from seedrank.jobs.run.lineage import LineageFile
from seedrank.jobs.run.manifest import Origin
from seedrank.jobs.run.metrics import check_file_apart
from seedrank.jobs.run.part_ranges import check_graph_of_range, check_range_options
from seedrank.jobs.run.score_job import ScoreJob
from seedrank.keywords import ScoreKeywords

log = logging.getLogger(__name__)


def score(
    graph: Any = None,
    *,
    out: str | os.PathLike[str],
    queries: Any = None,
    query_info: Any = None,
    nodes: Any = None,
    exclude: Any = None,
    node_vectors: Any = None,
    query_vectors: Any = None,
    reporter: Reporter | None = None,
    cancel: Event | None = None,
    **options: Unpack[ScoreKeywords],
) -> Run:
    """Score many seed sets by personalized PageRank, or another method, and write one top-k candidate table.

    Parameters
    ----------
    graph : GraphStore, path of a graph store, or an edge list (path, glob, URL, list, Arrow stream)
        An edge list is built into ``out/graph`` first. ``method="fuse"`` and ``"semantic"`` need none. All may be at
        URLs.
    out : path or URL
        The run folder, or a prefix of an object store (``s3://``, ``gs://``, ``az://``, …). If it holds parts of the
        very same run, the run goes on; those of another one need ``overwrite=True``.
    queries : path, glob, URL, list of these, or any object with ``__arrow_c_stream__``
        Hits: rows (query_id, node_id[, weight][, source][, rank]) or (query_id, seeds: list). Or pass
        ``all_nodes=TYPE``.
    query_info : like ``queries``, optional
        Rows (query_id[, text][, structural][, lexical][, semantic][, budget][, method][, exclude]), one a query: what
        ``method="auto"`` plans with, and nodes that the query must not return. Queries that have no hit are named here.
    nodes : like ``queries``, optional
        Node table, for an edge list.
    exclude : like ``queries``, optional
        Rows ([query_id, ]node_id) that a query (every query, without query_id) must not return.
    node_vectors, query_vectors : like ``queries``, a ``.npy`` path, or a pair (ids, array), optional
        Rows (id, vector) and (query_id, vector). The nodes of largest cosine are hits of the source ``vectors``; with
        ``rerank="vectors"`` candidates are ranked by cosine instead.
    reporter : Reporter, optional
        Receives progress.
    cancel : threading.Event, optional
        Set it from another thread to end the run: the part in work is dropped, finished parts stay.
    **options
        See `seedrank.config.ScoreOptions`.

    Returns
    -------
    Run
        ``.candidates`` and ``.queries`` are tables for pyarrow, polars, pandas and DuckDB; ``.manifest`` is run.json.

    Raises
    ------
    ConfigError, InputDataError, ResourceError, StorageError
        Exit codes 2, 3, 4 and 5 of the command.
    IncompleteRunError
        The run is written, but queries failed, or ``strict`` was set and a query did not end ``ok`` (exit code 6).
    InterruptedRunError
        ``cancel`` was set (exit code 130).
    """
    parsed = make_options(ScoreOptions, options)
    origins: dict[str, Origin] = dict.fromkeys(options, "argument")
    return run_score(
        JobInputs(
            graph=graph,
            queries=queries,
            query_info=query_info,
            nodes=nodes,
            exclude=exclude,
            node_vectors=node_vectors,
            query_vectors=query_vectors,
        ),
        out=out,
        options=parsed,
        origins=origins,
        reporter=reporter,
        cancel=cancel,
    )


def run_score(
    inputs: JobInputs,
    *,
    out: str | os.PathLike[str],
    options: ScoreOptions,
    origins: Mapping[str, Origin],
    reporter: Reporter | None = None,
    cancel: Event | None = None,
    run_id: str | None = None,
) -> Run:
    """`score` with validated options and the origin of each; ``run_id`` is what the log calls this attempt."""
    check_method_options(options, inputs.graph)
    check_query_options(inputs, options)
    check_range_options(options)
    endless = endless_search(options)
    if endless is not None:
        log.warning("search_without_limit", extra={"reason": endless})
    check_run_output(out, inputs, options)
    # A damaged store is refused before an earlier run is replaced, and that of a URL is fetched once.
    store = store_of(inputs.graph, work_dir=options.work_dir)
    check_graph_of_range(inputs.graph, options, built=store is not None or inputs.graph is None)
    inputs = inputs if store is None else replace(inputs, graph=store)
    if options.scales_out:
        inputs = held_in_memory(inputs)
    clock = Clock(timeout_s=options.timeout_s, deadline_s=options.deadline_s, cancel=cancel)
    check_file_apart("--metrics-file", options.metrics_file, out)
    check_file_apart("--lineage-file", options.lineage_file, out)
    with destination(out, options) as (folder, earlier), limited_threads(options.threads):
        engine = make_engine(options)
        job = ScoreJob(folder, earlier, options, origins, reporter or Silent(), clock, engine, run_id)
        lineage = LineageFile(options.lineage_file, job=options.lineage_job, run_id=job.run_id, inputs=inputs, out=out)
        with lineage.watching():
            try:
                with engine:
                    job.prepare(inputs)
                    folder.discard_replaced()
                    job.score_missing()
            except BaseException as error:
                # The original error is what counts: a folder that cannot be written any more must not hide it.
                interrupted = isinstance(error, (KeyboardInterrupt, Terminated, InterruptedRunError))
                with suppress(SeedrankError):
                    job.give_up(
                        "interrupted" if interrupted else "failed",
                        error=str(error) if isinstance(error, SeedrankError) else repr(error),
                    )
                raise
            run = job.finish()
        lineage.complete(run)
        return run
