"""From hits and exclusions to arrays: every query of a job with its seeds and what it must not return."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from seedrank.config import ScoreOptions
from seedrank.errors import ConfigError
from seedrank.io.graph.no_graph import NoGraph
from seedrank.io.graphstore import GraphStore
from seedrank.io.records import InputRecord
from seedrank.jobs.inputs import JobInputs
from seedrank.jobs.planning.hits import PlannedHits, plan_hits
from seedrank.jobs.queries.graph_selection import GraphSelection
from seedrank.jobs.queries.hit_lists import build_hit_lists
from seedrank.jobs.queries.input_hashes import input_hashes
from seedrank.jobs.queries.job_hits import read_job_hits
from seedrank.jobs.queries.matched_hits import every_node, graph_place, match_hits, space_with_hits, with_fallback_nodes
from seedrank.jobs.queries.node_groups import node_groups
from seedrank.jobs.queries.node_space import NodeSpace
from seedrank.jobs.queries.query_info import JobQueryInfo, read_job_query_info, takes_vectors, with_queries
from seedrank.jobs.queries.query_seeds import query_seeds, seed_hits
from seedrank.jobs.queries.query_set import QuerySet
from seedrank.jobs.queries.returnable import (
    Exclusions,
    eligible_nodes,
    exclusion_lists,
    info_exclusions,
    read_job_exclusions,
    returnable_hits,
)
from seedrank.jobs.queries.vector_hits import check_vector_options, points_away, searches_vectors, with_vector_hits

#: Options that say how hits are read or become seeds.
_OF_HITS = (
    *("source", "seed_source_weight", "lower_is_better"),
    *("seed_weighting", "seed_node_type", "fallback_node_column"),
)


def load_query_set(
    store: GraphStore,
    inputs: JobInputs,
    options: ScoreOptions,
    *,
    among: slice = slice(None),
    graph: GraphSelection | None = None,
) -> QuerySet:
    """Read hits (or make a query of every node of a type), match them with the graph, normalise the seeds.

    Of the nodes of a type only those ``among`` them are made a query, by their position. ``graph`` is what the options
    select of the store, where other queries of the job have asked for it already.

    Raises
    ------
    ConfigError
        Neither or both of ``queries`` and ``all_nodes`` are given; options that need hits without hits; weights of
        sources, or a threshold, under which nothing can be returned.
    InputDataError
        Bad hits or exclusions, ids of another kind than the graph's, unknown sources or node types.
    """
    check_query_options(inputs, options)
    graph = graph or GraphSelection(store, options)
    records: dict[str, InputRecord] = {}
    info = None if inputs.query_info is None else read_job_query_info(inputs, options)
    hits = vectors = None
    if options.all_nodes is not None:
        found = every_node(store, options.all_nodes, among)
        query_ids = found.query_ids
    else:
        known = None if info is None else info.table.vectors
        hits, vectors = read_job_hits(inputs, options, records, known, no_seeds=isinstance(store, NoGraph))
        if info is not None:
            hits = with_queries(hits, info.table.query_ids, info.table.place("query_id"))
        hits = with_fallback_nodes(hits, store)
        query_ids = hits.query_ids
    exclusions = _read_exclusions(inputs, info, query_ids, options, records)
    hashes = input_hashes(
        query_ids,
        hits,
        exclusions,
        None if info is None else info.table,
        vectors,
        hits.source_names if hits is not None and options.ranks_hits else (),
    )
    searched = vectors is not None and searches_vectors(options)
    if hits is not None:
        if vectors is not None and searched:
            hits = with_vector_hits(hits, vectors, store, graph.filtered, exclusions, options)
        found = match_hits(hits, store)
    seeding = seed_hits(found, graph)
    if searched:
        seeding &= ~points_away(found.source, found.source_names, found.weight)
    seeds = found.query[seeding], found.rank[seeding]
    pairs = [] if options.include_seeds else [seeds]
    everywhere = np.zeros(0, dtype=np.int32)
    for some in exclusions:
        of_query, excluded = some.among(store.ids, graph_place(store))
        if of_query is None:
            everywhere = excluded
        else:
            pairs.append((of_query, excluded))
    lists = exclusion_lists(pairs, seeds, len(found.query_ids), graph)
    space, hit_lists = NodeSpace.of_graph(store), None
    nodes = returnable = None
    if hits is not None and options.ranks_hits:
        space, nodes = space_with_hits(hits, store)
        returnable = returnable_hits(hits, found.rank, graph.filtered, exclusions, lists.neighbors, store)
        hit_lists = build_hit_lists(hits, nodes, returnable, options)
    query_set = QuerySet(
        query_ids=found.query_ids,
        seeds_given=found.given,
        seeds_missing=found.missing,
        seeds=query_seeds(found, seeding, graph, options),
        exclusions=lists,
        eligible=eligible_nodes(graph, everywhere),
        space=space,
        groups=node_groups(space, graph),
        hit_lists=hit_lists,
        vectors=vectors,
        records=records,
        plans=None,
        input_hashes=hashes,
    )
    if options.method != "auto":
        return query_set
    assert hits is not None
    assert nodes is not None
    assert returnable is not None
    known_hits = PlannedHits(query_set, graph, hits, found, seeding, nodes, returnable)
    return replace(query_set, plans=plan_hits(known_hits, None if info is None else info.table, options))


def _read_exclusions(
    inputs: JobInputs,
    info: JobQueryInfo | None,
    query_ids: pa.Array,
    options: ScoreOptions,
    records: dict[str, InputRecord],
) -> list[Exclusions]:
    """Exclusions of both inputs that may have some; both are recorded."""
    exclusions = []
    if inputs.exclude is not None:
        exclusions.append(read_job_exclusions(inputs.exclude, query_ids, options))
        assert exclusions[0].record is not None
        records["exclude"] = exclusions[0].record
    if info is not None:
        records["query_info"] = info.record
        if len(info.table.exclude_node):
            exclusions.append(info_exclusions(info.table, query_ids))
    return exclusions


def check_query_options(inputs: JobInputs, options: ScoreOptions) -> None:
    """Refuse neither or both ways of giving queries, and options of what is not given."""
    check_vector_options(inputs, options)
    named = inputs.queries is not None or inputs.query_vectors is not None
    named |= takes_vectors(inputs) and options.all_nodes is None
    if named == (options.all_nodes is not None):
        raise ConfigError(
            f"{'--queries' if inputs.queries is not None else '--query-vectors'} and --all-nodes are both given"
            if named
            else "neither --queries nor --all-nodes is given",
            expected="exactly one of them",
            fix="--queries HITS reads seed sets, --query-vectors searches for some, --all-nodes TYPE makes every node "
            "of a type a query",
        )
    if options.all_nodes is None:
        return
    if inputs.query_info is not None:
        raise ConfigError(
            "--query-info speaks of the queries of hits, but --all-nodes makes its own",
            expected="--query-info together with --queries",
            fix="drop it; --exclude takes rows (query_id, node_id)",
        )
    if options.ranks_hits:
        raise ConfigError(
            f"{_ranked_by(options)} ranks hits, but --all-nodes has none",
            expected="this option together with --queries",
            fix="drop it",
        )
    given = [name for name in _OF_HITS if name in options.model_fields_set]
    if given:
        flag = f"--{given[0].replace('_', '-')}"
        raise ConfigError(
            f"{flag} speaks of hits, but --all-nodes has none",
            expected=f"{flag} together with --queries",
            fix=f"drop {flag}",
        )


def _ranked_by(options: ScoreOptions) -> str:
    if options.scores_hits:
        return f"--method {options.method}"
    if options.method == "auto":
        return "--method auto"
    return "--fusion" if options.fusion != "none" else "--fallback"
