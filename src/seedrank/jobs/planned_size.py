"""How large a job is, from footers and ids alone: what ``plan`` stands on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from seedrank.config import ScoreOptions
from seedrank.errors import InputDataError
from seedrank.io.arrow.columns import has_column
from seedrank.io.graph.no_graph import NoGraph
from seedrank.io.hits.query_ids import read_query_ids
from seedrank.io.ids import match_ids
from seedrank.io.tables import TableInput
from seedrank.io.vectors import read_vector_ids
from seedrank.jobs.build import edge_columns, read_nodes_input
from seedrank.jobs.building.memory import BuildSpace
from seedrank.jobs.graphs.followed_graph import type_weights
from seedrank.jobs.graphs.stores import store_of
from seedrank.jobs.inputs import JobInputs
from seedrank.jobs.prepare import (
    check_no_graph_options,
    check_store_options,
)
from seedrank.jobs.queries.graph_selection import GraphSelection
from seedrank.jobs.queries.loading import load_query_set
from seedrank.jobs.queries.query_info import check_vector_column, takes_vectors
from seedrank.jobs.queries.vector_hits import searches_vectors, union_of_ids


@dataclass(frozen=True)
class PlannedGraph:
    """Size of a graph as far as it is known without reading it; see `seedrank.jobs.plan.Plan`."""

    exact: bool
    nodes: int
    edges: int
    bytes: int
    nodes_of_type: dict[str, int] | None
    eligible: int | None
    weighted: bool
    temporary_bytes: int | None = None


def planned_graph(graph: Any, *, nodes: Any, options: ScoreOptions) -> PlannedGraph:
    """Return the size of a graph store, or what the footers of an edge list allow at most.

    Raises
    ------
    ConfigError, InputDataError
        Options or names that do not go with the graph.
    """
    if graph is None:
        check_no_graph_options(nodes=nodes, options=options)
        return PlannedGraph(True, 0, 0, 0, None, 0, weighted=False)
    store = store_of(graph)
    if store is not None:
        check_store_options(store, nodes=nodes, options=options)
        type_weights(options, store.facts.edge_types)
        filtered, facts = GraphSelection(store, options).filtered, store.facts
        eligible = facts.nodes if filtered is None else int(np.count_nonzero(filtered))
        return PlannedGraph(
            True, facts.nodes, facts.edges, store.store_bytes, facts.node_types, eligible, facts.weighted
        )
    table = TableInput.open(graph, what="edges")
    if any(part.rows is None for part in table.parts):
        # A stream in memory has no footer: only reading it tells its length.
        for _ in table.batches([options.src_column]):
            pass
    rows = sum(record.rows for record in table.records)
    space = BuildSpace.of(table, edge_columns(options), options.memory_limit)
    listed = 0
    types: dict[str, int] | None = None
    if nodes is not None and options.all_nodes is not None:
        node_table = read_nodes_input(nodes, options)
        assert node_table is not None
        listed = len(node_table.ids)
        if "type" in node_table.attributes.column_names:
            counted = node_table.attributes.column("type").value_counts().to_pylist()
            types = {row["values"]: row["counts"] for row in counted}
    elif nodes is not None:
        listed = sum(record.rows for record in TableInput.open(nodes, what="nodes").records)
    # Every row may bring two nodes of its own; two CSRs of int32 neighbours, int64 offsets, two orders, an 8 byte id.
    most_nodes = listed + 2 * rows
    size = rows * 2 * 4 + most_nodes * (2 * 8 + 2 * 4 + 8)
    return PlannedGraph(False, most_nodes, rows, size, types, None, space.weighted, space.temporary_bytes)


class PlannedQueryCount(NamedTuple):
    """Rows of hits, distinct queries, and the queries by plan where a planner chooses."""

    hits: int
    queries: int
    plans: dict[str, int] | None


def planned_query_count(
    inputs: JobInputs, *, nodes_of_type: dict[str, int] | None, options: ScoreOptions
) -> PlannedQueryCount:
    """Count the queries of a job by their ids alone, unless a planner has to see their hits.

    Raises
    ------
    InputDataError
        Bad query ids, or no node has the type of ``--all-nodes``.
    """
    store = NoGraph() if inputs.graph is None else store_of(inputs.graph)
    if options.method == "auto" and store is not None:
        # Plans depend on which hits the graph has, so that here the hits are read.
        query_set = load_query_set(store, inputs, options)
        assert query_set.plans is not None
        rows = sum(file.rows for file in query_set.records["queries"].files) if "queries" in query_set.records else 0
        return PlannedQueryCount(rows, len(query_set), query_set.plans.counts)
    if options.all_nodes is None:
        rows, ids = 0, pa.nulls(0)
        if inputs.queries is not None:
            found = read_query_ids(inputs.queries, column=options.hit_query_column)
            rows, ids = found.rows, found.query_ids
        if inputs.query_vectors is not None:
            asked = read_vector_ids(inputs.query_vectors, what="query vectors", id_column=options.vector_query_column)
            rows += len(asked) * (options.vector_depth if searches_vectors(options) else 0)
            ids = union_of_ids((ids, "query_id of the hits"), (asked, "ids of the query vectors"))[1]
        count = len(ids)
        if inputs.query_info is not None:
            info = read_query_ids(inputs.query_info, column=options.hit_query_column, what="query info")
            if inputs.node_vectors is not None:
                there = has_column(info.table, "vector", options.vector_column, explicit=False)
                check_vector_column(inputs, options, info.records[0].uri, there=there)
            more = info.query_ids
            count += int((match_ids(more, ids) < 0).sum())
            if takes_vectors(inputs):
                rows += len(more) * (options.vector_depth if searches_vectors(options) else 0)
        return PlannedQueryCount(rows, count, None)
    if not nodes_of_type or options.all_nodes not in nodes_of_type:
        raise InputDataError(
            f"--all-nodes {options.all_nodes!r}: no node has this type",
            expected="one of " + ", ".join(map(repr, nodes_of_type))
            if nodes_of_type
            else "a node table with a type column",
            fix="correct the name, or pass --nodes",
        )
    count = nodes_of_type[options.all_nodes]
    return PlannedQueryCount(count, count, None)
