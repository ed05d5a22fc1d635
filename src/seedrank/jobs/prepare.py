"""What ``score``, ``plan`` and ``check`` share: opening the graph, names against the data, memory and block size."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from seedrank.config import BuildOptions, ScoreOptions
from seedrank.errors import ConfigError, ResourceError
from seedrank.io.graph.no_graph import NoGraph
from seedrank.io.graphstore import GraphStore
from seedrank.io.records import BackendRecord
from seedrank.io.run.run_objects import check_objects_replaceable
from seedrank.io.run.runfolder import check_run_replaceable
from seedrank.io.storage.objects import object_folder
from seedrank.jobs.build import GRAPH_OPTIONS, build_store
from seedrank.jobs.graphs.stores import store_of
from seedrank.jobs.inputs import JobInputs
from seedrank.jobs.locations import check_objects_apart, check_output_apart, local_output, remote_url
from seedrank.jobs.operators.outcome import Requirements
from seedrank.jobs.progress import Stopwatch
from seedrank.jobs.resources import DEFAULT_SHARE, available_memory
from seedrank.kernels.backends.block_size import choose_block_size


def check_run_output(out: str | os.PathLike[str] | None, inputs: JobInputs, options: ScoreOptions) -> None:
    """Refuse a run folder that overlaps an input or may not be written; nothing is touched.

    Raises
    ------
    ConfigError
        With the paths named.
    """
    if out is None:
        return
    replacing = options.overwrite or options.resume == "auto"
    read = {
        name: source.origin or source.path if isinstance(source, GraphStore) else source
        for name, source in {**inputs.by_description(), "--since": options.since}.items()
    }
    url = remote_url(out)
    if url is not None:
        objects = object_folder(url, what="--out")
        check_objects_apart(objects, read)
        check_objects_replaceable(objects, overwrite=replacing)
        return
    path = local_output(out)
    check_output_apart(path, read)
    check_run_replaceable(path, overwrite=replacing)


def open_graph(
    inputs: JobInputs, *, options: ScoreOptions, build_in: Path, stopwatch: Stopwatch
) -> tuple[GraphStore, bool]:
    """Open a graph store, or build one from an edge list; without either, `NoGraph` stands in its place.

    Returns the store and whether it was built here, at ``build_in``.

    Raises
    ------
    ConfigError
        Options of the edge list or a node table were given with a store that was built otherwise, or without a graph.
    InputDataError
        Bad data, or a damaged store.
    """
    if inputs.graph is None:
        check_no_graph_options(nodes=inputs.nodes, options=options)
        return NoGraph(), False
    store = store_of(inputs.graph, work_dir=options.work_dir)
    if store is None:
        values = {name: getattr(options, name) for name in options.model_fields_set & {*GRAPH_OPTIONS, "memory_limit"}}
        return build_store(
            build_in, edges=inputs.graph, nodes=inputs.nodes, options=BuildOptions(**values), stopwatch=stopwatch
        ), True
    check_store_options(store, nodes=inputs.nodes, options=options)
    return store, False


def check_no_graph_options(*, nodes: Any, options: ScoreOptions) -> None:
    """Refuse a node table and options of an edge list where there is no graph."""
    given = ["nodes"] if nodes is not None else []
    given += [name for name in GRAPH_OPTIONS if name in options.model_fields_set]
    if given:
        flag = f"--{given[0].replace('_', '-')}"
        raise ConfigError(
            f"{flag} is given without a graph", expected=f"{flag} together with an edge list", fix=f"drop {flag}"
        )


def check_store_options(store: GraphStore, *, nodes: Any, options: ScoreOptions) -> None:
    """Refuse options that belong to ``build`` when they contradict the store."""
    if nodes is not None:
        raise ConfigError(
            f"--nodes is given with the graph store {store.path}",
            expected="--nodes at build time: a store holds its node attributes",
            fix="drop --nodes, or rebuild the store with it",
        )
    for name in GRAPH_OPTIONS:
        given, built = getattr(options, name), store.facts.options.get(name)
        if name in options.model_fields_set and given != built:
            raise ConfigError(
                f"--{name.replace('_', '-')} {given} is given with a graph store that was built with {built}",
                expected="the value the store was built with, or nothing",
                fix="rebuild the store, or drop the option",
            )


def memory_budget(memory_limit: int | None) -> int:
    """Bytes that a block may plan with."""
    return int(available_memory() * DEFAULT_SHARE) if memory_limit is None else int(memory_limit)


def block_size(options: ScoreOptions, needs: Requirements, *, budget: int, queries: int) -> int:
    """Queries per block: what the user says, else what the budget holds; never more than the method takes.

    Raises
    ------
    ResourceError
        The budget does not hold what the user says, or a single query.
    """
    if options.block_size is None:
        queries, maximum = min(queries, options.part_size), needs.widest
    else:
        queries = maximum = min(options.block_size, needs.widest)
    width = choose_block_size(needs.bytes_per_query, budget, queries, maximum, stored_columns=needs.stored_columns)
    if options.block_size is not None and width < maximum:
        raise ResourceError(
            f"--block-size {options.block_size} needs {needs.block_bytes(maximum) / 1e6:,.1f} MB, "
            f"{budget / 1e6:,.1f} MB are left beside the graph",
            expected="memory for a block of that size",
            fix=f"drop --block-size ({width} queries fit), or raise --memory-limit",
        )
    return width


def planned_blocks(options: ScoreOptions, needs: Requirements, *, queries: int, solver: str) -> BackendRecord:
    """Fix the block size by the memory that there is now, and say what ``run.json`` records of who computes.

    Raises
    ------
    ResourceError
        The budget does not hold what the user says, or a single query.
    """
    budget = memory_budget(options.memory_limit)
    width = block_size(options, needs, budget=budget, queries=queries)
    return needs.record(options, solver=solver, width=width, budget=budget)
