"""One query in process: the hits of a query ranked on a loaded graph, as a job would rank them."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
import pyarrow as pa

from seedrank.config import ScoreOptions, make_options
from seedrank.config.names import GRAPH_CHANNEL
from seedrank.errors import ConfigError, InputDataError
from seedrank.io.graph.no_graph import NoGraph
from seedrank.io.graphstore import GraphStore
from seedrank.io.queries import HitTable, read_hits
from seedrank.jobs.brought_along import BroughtAlong, hit_table
from seedrank.jobs.clock import Clock
from seedrank.jobs.graphs.stores import store_of
from seedrank.jobs.inputs import JobInputs
from seedrank.jobs.methods import check_method_options, start_method
from seedrank.jobs.prepare import check_store_options
from seedrank.jobs.progress import Stopwatch
from seedrank.jobs.queries.graph_selection import GraphSelection
from seedrank.jobs.queries.hit_lists import UNNAMED_SOURCE
from seedrank.jobs.queries.job_hits import hit_columns, no_hits, takes_signed
from seedrank.jobs.queries.loading import load_query_set
from seedrank.jobs.queries.query_set import QuerySet
from seedrank.jobs.queries.vector_hits import refuse_source_of_vectors, searches_vectors
from seedrank.jobs.resources import limited_threads
from seedrank.jobs.run.parts import candidates_table
from seedrank.jobs.vectors import read_node_vectors
from seedrank.keywords import ScoreKeywords

#: What the query is called that is given no id.
QUERY_ID = "query"
#: Options of a job and its run folder, which a query in process has not.
_OF_A_JOB = (
    *("all_nodes", "part_size", "deadline_s", "resume", "strict", "overwrite"),
    *("parts", "since", "metrics_file", "lineage_file", "lineage_job"),
)


class Ranker:
    """A loaded graph that ranks the hits of one query after another.

    Calls may come from several threads; they take turns.

    Parameters
    ----------
    graph : GraphStore, or path or URL of one, optional
        ``method="fuse"`` and ``"semantic"`` need none.
    sources : sequence of str
        Sources that hits may be from, beyond those that options name: fused runs have a column for each.
    node_vectors : like that of `seedrank.score`, optional
        They are read once; queries may then have a vector.
    **options
        See `seedrank.config.ScoreOptions`; those of the run folder and of parts have no place here.

    Raises
    ------
    ConfigError
        An option that makes no sense here, an edge list in place of a store, no graph where one is needed.
    InputDataError
        A damaged store; names of types that the graph does not have.
    """

    def __init__(
        self,
        graph: GraphStore | str | os.PathLike[str] | None = None,
        *,
        sources: Sequence[str] = (),
        node_vectors: Any = None,
        **options: Unpack[ScoreKeywords],
    ) -> None:
        self._options = make_options(ScoreOptions, options)
        _check_options(self._options, options)
        check_method_options(self._options, graph)
        self._store = _open(graph, self._options)
        self._sources = {*sources, *_named_sources(self._options)}
        self._turn = threading.Lock()
        self._graph = GraphSelection(self._store, self._options)
        self._vectors = None if node_vectors is None else read_node_vectors(node_vectors, self._options)
        clock = Clock(timeout_s=self._options.timeout_s)
        nothing = self._query_set(no_hits(), BroughtAlong(pa.nulls(0), self._store, self._options))
        self._runner = start_method(self._store, lambda: nothing, self._options, Stopwatch(), clock)

    def rank(
        self,
        hits: Any,
        *,
        query_id: int | str = QUERY_ID,
        query_info: Any = None,
        exclude: Any = None,
        query_vectors: Any = None,
    ) -> pa.Table:
        """Rank the hits of one query.

        Parameters
        ----------
        hits : mapping, sequence or table
            {node id: weight}; (node id, weight) or (node id, weight, source), one a hit; or an Arrow table (any object
            with ``__arrow_c_stream__``) of one query's rows, as `seedrank.score` takes them, with or without
            ``query_id``.
        query_id : int or str
            Id of the query, where the hits have none. The random numbers of walks depend on it.
        query_info : mapping or table, optional
            {attribute: value}, or a table of one row: what the query has of the attributes that `seedrank.score` reads.
        exclude : sequence or table, optional
            Ids of nodes that the query must not return; or a table, as `seedrank.score` takes it.
        query_vectors : sequence or array of one dimension, optional
            The vector of the query, where there are node vectors; or what `seedrank.score` takes.

        Returns
        -------
        pyarrow.Table
            The rows of ``candidates`` that a job with the same options writes for the query, to the last bit. None
            where the query has no valid seed.

        Raises
        ------
        ConfigError
            A vector without node vectors, or twice.
        InputDataError
            What `seedrank.score` would refuse, or more than one query.
        """
        table = hit_table(hits, query_id, self._store, self._options)
        found = read_hits(
            table,
            hit_columns(self._options),
            signed=takes_signed(self._options, no_seeds=isinstance(self._store, NoGraph)),
        )
        if not len(found.query_ids):
            found = replace(found, query_ids=pa.array([query_id]), null_list=np.zeros(1, np.bool_))
        _check_one(found.query_ids)
        brought = BroughtAlong(found.query_ids, self._store, self._options)
        query_set = self._query_set(found, brought, info=query_info, exclude=exclude, vectors=query_vectors)
        _check_one(query_set.query_ids)
        only = np.zeros(1, dtype=np.int64)
        counts, outcomes = np.zeros(len(self._options.restart_probabilities), dtype=np.int32), []
        if query_set.valid[0]:
            with self._turn, limited_threads(self._options.threads):
                outcomes = [self._runner.on(query_set).score(only)]
            counts = outcomes[0].counts
        return candidates_table(0, counts, outcomes, query_set, self._options)

    def _query_set(
        self, hits: HitTable, brought: BroughtAlong, *, info: Any = None, exclude: Any = None, vectors: Any = None
    ) -> QuerySet:
        """Return the query of some hits, and of what else it has; or none."""
        table = None if info is None else brought.info(info)
        if self._vectors is not None:
            if searches_vectors(self._options):
                refuse_source_of_vectors(hits)
            if vectors is None and (table is None or self._options.vector_column not in table.column_names):
                vectors = brought.no_vector(self._vectors)
        inputs = JobInputs(
            queries=self._declared(hits),
            query_info=table,
            exclude=None if exclude is None else brought.exclusions(exclude),
            node_vectors=self._vectors,
            query_vectors=None if vectors is None else brought.vectors(vectors),
        )
        return load_query_set(self._store, inputs, self._options, graph=self._graph)

    def _declared(self, hits: HitTable) -> HitTable:
        """Keep the hits of the sources to use, and name all sources, those that this query has no hit of included."""
        if self._options.source:
            kept = np.array([name in self._options.source for name in hits.source_names], dtype=np.bool_)
            keep = np.zeros(len(hits.query), np.bool_) if hits.source is None else kept[hits.source]
            hits = replace(
                hits,
                query=hits.query[keep],
                node=hits.node[keep],
                weight=hits.weight[keep],
                rank=None if hits.rank is None else hits.rank[keep],
                retriever_weight=None if hits.retriever_weight is None else hits.retriever_weight[keep],
                fallback=None if hits.fallback is None else hits.fallback[keep],
                source=None if hits.source is None else hits.source[keep],
            )
        unnamed = hits.source is None and len(hits.query) > 0
        known = {name for name in hits.source_names if name is not None}
        named = (known & {*self._options.source} if self._options.source else known) | self._sources
        if unnamed or None in hits.source_names:
            named.discard(UNNAMED_SOURCE)
        if not named:
            return replace(hits, source=None, source_names=()) if self._options.source else hits
        names = (*sorted(named), *((None,) if unnamed or None in hits.source_names else ()))
        # Names of sources that were left out have no hit any more.
        place = {name: number for number, name in enumerate(names)}
        code = np.array([place.get(name, -1) for name in hits.source_names or (None,)], np.int32)
        given = np.zeros(len(hits.query), np.int32) if hits.source is None else hits.source
        return replace(hits, source=code[given], source_names=names)


def rerank(
    hits: Any,
    graph: GraphStore | str | os.PathLike[str] | Ranker | None = None,
    *,
    query_id: int | str = QUERY_ID,
    query_info: Any = None,
    exclude: Any = None,
    node_vectors: Any = None,
    query_vectors: Any = None,
    **options: Unpack[ScoreKeywords],
) -> pa.Table:
    """Rank the hits of one query on a graph, in this process and without a file.

    Parameters
    ----------
    hits, query_id, query_info, exclude, query_vectors : see `Ranker.rank`
    graph : GraphStore, path of one, or `Ranker`
        A store is loaded for the call; a `Ranker` is loaded already and has its own options.
    node_vectors : like that of `seedrank.score`, optional
        A `Ranker` has its own.
    **options
        See `Ranker`.

    Returns
    -------
    pyarrow.Table
        As `Ranker.rank` returns it.

    Raises
    ------
    ConfigError, InputDataError
        See `Ranker`; options beside a `Ranker`.
    """
    if isinstance(graph, Ranker):
        given = [*options, *([] if node_vectors is None else ["node_vectors"])]
        if given:
            raise ConfigError(
                f"options are given beside a Ranker: {', '.join(given)}",
                expected="options where the Ranker is made",
                fix="leave them out here",
            )
        ranker = graph
    else:
        ranker = Ranker(graph, node_vectors=node_vectors, **options)
    return ranker.rank(hits, query_id=query_id, query_info=query_info, exclude=exclude, query_vectors=query_vectors)


def _check_options(options: ScoreOptions, given: Mapping[str, Any]) -> None:
    for name in _OF_A_JOB:
        if name in given:
            raise ConfigError(
                f"option {name!r} is given for a query in process",
                expected="options of the query; this one is of a job",
                fix="leave it out, or use seedrank.score",
            )


def _check_one(query_ids: pa.Array) -> None:
    if len(query_ids) != 1:
        raise InputDataError(
            f"there are rows of {len(query_ids)} queries",
            expected="the hits of one query, and what else it has",
            fix="call rank once for each, or seedrank.score for many",
        )


def _open(graph: Any, options: ScoreOptions) -> GraphStore:
    if graph is None:
        return NoGraph()
    store = store_of(graph, work_dir=options.work_dir)
    if store is None:
        raise ConfigError(
            f"{graph if isinstance(graph, (str, os.PathLike)) else type(graph).__name__} is no graph store",
            expected="a GraphStore, or the path of one",
            fix="build it first: seedrank.build(edges, out=...)",
        )
    check_store_options(store, nodes=None, options=options)
    return store


def _named_sources(options: ScoreOptions) -> set[str]:
    """Names of sources that options speak of; those that this query has no hit of are no mistake."""
    return {*options.seed_source_weight, *options.lower_is_better, *options.source_weight} - {GRAPH_CHANNEL}
