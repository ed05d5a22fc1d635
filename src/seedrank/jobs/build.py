"""``build``: edge list → graph store."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pyarrow as pa

from seedrank._version import __version__
from seedrank.config import BuildOptions, make_options
from seedrank.io.edge_list.edge_rows import EdgeColumns
from seedrank.io.edge_list.encoded_edges import encode_edges
from seedrank.io.edges import edge_list_of
from seedrank.io.graph.remote_graph import check_graph_replaceable, keep_copy, put_graph_store
from seedrank.io.graphstore import (
    GraphStore,
    check_replaceable,
    recover_graph_store,
    write_graph_store,
)
from seedrank.io.ids import match_ids
from seedrank.io.nodes import NodeTable, read_nodes
from seedrank.io.run.lease import leased
from seedrank.io.run.lock import locked
from seedrank.io.run.owned import Ownership
from seedrank.io.storage.files import remove_tree, storage_errors
from seedrank.io.storage.objects import ObjectFolder, object_folder
from seedrank.io.tables import TableInput
from seedrank.jobs.building.bucketed import build_in_buckets
from seedrank.jobs.building.built_graph import build_in_memory
from seedrank.jobs.building.memory import BuildSpace
from seedrank.jobs.locations import check_objects_apart, check_output_apart, local_output, remote_url
from seedrank.jobs.progress import Stopwatch
from seedrank.jobs.work_dir import work_folder
from seedrank.keywords import BuildKeywords

log = logging.getLogger(__name__)

#: Build options that shape the graph; where it is put and with how much memory does not.
GRAPH_OPTIONS = tuple(
    name for name in BuildOptions.model_fields if name not in ("overwrite", "work_dir", "memory_limit")
)


def build(
    edges: Any,
    *,
    out: str | os.PathLike[str],
    nodes: Any = None,
    **options: Unpack[BuildKeywords],
) -> GraphStore:
    """Build a graph store from an edge list: validated, relabelled, memory-mappable.

    Parameters
    ----------
    edges : path, glob, URL, list of these, or any object with ``__arrow_c_stream__``
        Rows (src, dst[, weight][, type]), directed src → dst.
    out : path or URL
        The folder to write, or a prefix of an object store. It must not exist, or hold an earlier graph store under
        ``overwrite=True``.
    nodes : like ``edges``, optional
        Rows (id[, type][, …]): isolated nodes, node types, attributes.
    **options
        See `seedrank.config.BuildOptions`.

    Returns
    -------
    GraphStore
        The open store; ``.facts`` has the counts.

    Raises
    ------
    ConfigError, InputDataError, StorageError
        Exit codes 2, 3 and 5 of the command.
    """
    return run_build(edges, out=out, nodes=nodes, options=make_options(BuildOptions, options), stopwatch=Stopwatch())


def run_build(
    edges: Any, *, out: str | os.PathLike[str], nodes: Any, options: BuildOptions, stopwatch: Stopwatch
) -> GraphStore:
    """`build` with validated options."""
    read = {"the edge list": edges, "the node table": nodes}
    url = remote_url(out)
    if url is not None:
        objects = object_folder(url, what="--out")
        check_objects_apart(objects, read)
        return _build_and_put(objects, edges=edges, nodes=nodes, options=options, stopwatch=stopwatch)
    path = local_output(out)
    check_output_apart(path, read)
    with locked(path):
        recover_graph_store(path)
        return build_store(path, edges=edges, nodes=nodes, options=options, stopwatch=stopwatch)


def _build_and_put(
    objects: ObjectFolder, *, edges: Any, nodes: Any, options: BuildOptions, stopwatch: Stopwatch
) -> GraphStore:
    """Build a store in the work folder, put its files below a prefix, and keep the copy for who scores it here."""
    cache = work_folder(options.work_dir)
    with leased(objects) as lease:
        check_graph_replaceable(objects, overwrite=options.overwrite)
        place = cache / "builds" / lease.holder
        ownership = Ownership(place)
        try:
            store = build_store(place / "graph", edges=edges, nodes=nodes, options=options, stopwatch=stopwatch)
            with stopwatch.stage("put_graph"):
                put_graph_store(store, lease)
            return keep_copy(store, objects, cache=cache)
        finally:
            with storage_errors(f"removing {place}"):
                remove_tree(place)
            ownership.give_back()


def build_store(path: Path, *, edges: Any, nodes: Any, options: BuildOptions, stopwatch: Stopwatch) -> GraphStore:
    """Read, reduce, relabel and write; the part of `build` that ``score`` shares. The folder is locked."""
    check_replaceable(path, overwrite=options.overwrite)
    # Whatever ends a build, `recover_graph_store` finds this folder beside the store, too.
    temporary = path.with_name(f".{path.name}.staged-{os.getpid()}-edges")
    try:
        return _build_store(path, temporary, edges=edges, nodes=nodes, options=options, stopwatch=stopwatch)
    finally:
        with storage_errors(f"removing {temporary}"):
            remove_tree(temporary)


def _build_store(
    path: Path, temporary: Path, *, edges: Any, nodes: Any, options: BuildOptions, stopwatch: Stopwatch
) -> GraphStore:
    with stopwatch.stage("read_graph"):
        table = read_nodes_input(nodes, options)
        space = BuildSpace.of(TableInput.open(edges, what="edges"), edge_columns(options), options.memory_limit)
        spill = space.spill(temporary)
        edge_list = encode_edges(
            space.table,
            space.columns,
            null_weight=options.null_weight,
            on_bad_rows=options.on_bad_rows,
            nodes=table,
            spill=spill,
        )
        in_memory = edge_list_of(edge_list) if space.holds(edge_list) else None
    log.info("graph_read", extra={"rows": edge_list.rows, "nodes": len(edge_list.ids)})
    with stopwatch.stage("build_graph"):
        if in_memory is None:
            graph = build_in_buckets(
                edge_list, spill, duplicate_edges=options.duplicate_edges, memory=space.memory, most=space.most
            )
        else:
            graph = build_in_memory(in_memory, duplicate_edges=options.duplicate_edges)
            del in_memory
        attributes, without = (None, 0) if table is None else _align_attributes(table, edge_list.ids)
    with stopwatch.stage("write_graph"):
        store = write_graph_store(
            path,
            ids=edge_list.ids,
            order=graph.order,
            inverse_order=graph.inverse_order,
            rows=graph.rows,
            attributes=attributes,
            facts={
                "seedrank_version": __version__,
                "nodes": len(edge_list.ids),
                "edges": graph.edges,
                "rows": edge_list.rows,
                "merged_duplicates": graph.merged_duplicates,
                "zero_weight_rows": edge_list.zero_weight_rows,
                "dropped_rows": edge_list.dropped_rows,
                "self_loops": graph.self_loops,
                "dangling": graph.dangling,
                "isolated": graph.isolated,
                "nodes_without_attributes": without,
                "id_type": str(edge_list.ids.type),
                "weighted": graph.weighted,
                "edge_types": list(edge_list.type_names),
                "node_types": None if attributes is None else _count_types(attributes),
                "options": {name: getattr(options, name) for name in GRAPH_OPTIONS},
                "inputs": {"edges": edge_list.records, "nodes": [] if table is None else table.records},
            },
            overwrite=options.overwrite,
        )
    log.info("graph_written", extra={"path": str(path), "nodes": store.facts.nodes, "edges": store.facts.edges})
    return store


def read_nodes_input(nodes: Any, options: BuildOptions) -> NodeTable | None:
    """Read the node table, if there is one."""
    if nodes is None:
        return None
    return read_nodes(nodes, id_column=options.node_id_column, type_column=options.node_type_column)


def edge_columns(options: BuildOptions) -> EdgeColumns:
    """Return the column names of an edge list, and which of them the user named."""
    roles = ("src", "dst", "weight", "type")
    return EdgeColumns(
        **{role: getattr(options, f"{role}_column") for role in roles},
        explicit=frozenset(role for role in roles if f"{role}_column" in options.model_fields_set),
    )


def _align_attributes(table: NodeTable, ids: pa.Array) -> tuple[pa.Table | None, int]:
    """Bring the node table into tie-rank order; nodes that it does not list get nulls and are counted.

    A table of nothing but ids has no attributes to store: None.
    """
    row_of_rank = np.full(len(ids), -1, dtype=np.int64)
    row_of_rank[match_ids(table.ids, ids)] = np.arange(len(table.ids))
    missing = row_of_rank < 0
    if not table.attributes.column_names:
        return None, int(missing.sum())
    rows = pa.array(row_of_rank, mask=missing)
    return table.attributes.take(rows).combine_chunks(), int(missing.sum())


def _count_types(attributes: pa.Table) -> Mapping[str, int] | None:
    if "type" not in attributes.column_names:
        return None
    counts = attributes.column("type").value_counts().to_pylist()
    return {
        row["values"]: row["counts"]
        for row in sorted(counts, key=lambda row: str(row["values"]))
        if row["values"] is not None
    }
