"""``plan``: what ``score`` would do, from footers and the query id column alone. Writes nothing."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Unpack

from seedrank.config import ScoreOptions, make_options
from seedrank.jobs.graphs.graph_memory import GraphSize, graph_memory
from seedrank.jobs.graphs.stores import store_of
from seedrank.jobs.graphs.work_estimate import ppr_work
from seedrank.jobs.graphs.work_estimate import probe as probe_product
from seedrank.jobs.inputs import JobInputs
from seedrank.jobs.methods import METHODS, check_method_options, method_requirements
from seedrank.jobs.operators.endless import endless_search
from seedrank.jobs.planned_size import planned_graph, planned_query_count
from seedrank.jobs.prepare import (
    block_size,
    check_run_output,
    memory_budget,
)
from seedrank.jobs.queries.loading import check_query_options
from seedrank.jobs.queries.query_segments import may_be_cut
from seedrank.jobs.queries.segment_size import segment_size
from seedrank.jobs.resources import processors, shared_memory
from seedrank.jobs.run.earlier import earlier_runs
from seedrank.jobs.run.manifest import new_manifest
from seedrank.jobs.run.part_ranges import check_graph_of_range, check_range_options, part_count, wanted_parts
from seedrank.jobs.run.run_key import have_same_options
from seedrank.jobs.scaleout.share import options_of_one, processes_of
from seedrank.keywords import ScoreKeywords

#: Memory of the interpreter and its libraries, and what one part holds before it is written.
BASE_BYTES = 150 << 20
#: Bytes of one candidate row in memory while a part is put together.
CANDIDATE_BYTES = 40


@dataclass(frozen=True)
class Plan:
    """What a ``score`` run would do.

    How many queries ``--since`` would take over is not among it: that takes reading the hits, as `seedrank.check` does.

    Attributes
    ----------
    workers : with ``--workers`` how many processes share the machine: memory budget, block, probe and what is said of
        the graph in memory are those of each; else None.
    graph : "store", "edge list" or "none"; an edge list is built first.
    nodes, edges : of the store; for an edge list upper limits from the footers, and ``exact`` is False.
    eligible_nodes : nodes that pass the filters; None for an edge list, of which only the footers are read.
    queries, hits : distinct queries and rows of hits.
    parts : files that each result table of the whole run would have.
    part_range : with ``--parts`` those that would be computed, ``first:last`` without the last; else None.
    parts_there : how many of those that are wanted stand at ``out`` already, recorded under the same options; whether
        the inputs are the same, too, score finds out.
    query_segments : pieces of up to 65,536 queries that are in memory one at a time; 1 where all are, or have to be
        (`seedrank.jobs.queries.query_segments`).
    plans : queries by plan, or by the method that they name, with ``--method auto`` on a graph store or without a
        graph; else None.
    backend, backend_reason : who would compute, and why.
    block_size, bytes_per_query : queries scored together, and what each takes.
    block_bytes : what a block takes, with what the backend pads it by.
    graph_bytes : size of the store (estimated for an edge list).
    build_temporary_bytes : of an edge list, most bytes of the temporary files that building its graph takes; 0 where
        its edges fit into memory, None for a store.
    graph_memory : "resident", or "streamed" where the graph does not fit beside a block; None where no PageRank runs.
    bytes_per_step : what one pass over the graph reads, from memory or from disk; of an edge list without its weights.
    scratch_bytes : disk space in the work folder for a graph that is streamed.
    bytes_read : of a graph that is streamed, what all products of all blocks read at most; else None.
    peak_memory_bytes : estimate: graph, or what of a streamed one is in memory, + block + parts + interpreter; of all
        processes together.
    largest_output_rows : queries · top-k, or what fewer nodes or hits there are.
    products : with ``--method ppr`` products with the graph that a query takes at most; else None.
    edge_columns : edges times queries of all these products; an edge counts twice with ``--direction both``.
    edge_columns_per_second : with a probe: the rate of one product on a small random graph of the same density here.
    seconds : ``edge_columns`` at that rate, by as many workers as there are parts and processors for: a rough estimate.
        The number of products is a bound, and a graph larger than the caches of the machine is slower than the small
        one.
    warnings : sentences about what is legal but probably not meant.
    """

    workers: int | None
    graph: str
    exact: bool
    nodes: int
    edges: int
    eligible_nodes: int | None
    queries: int
    hits: int
    parts: int
    part_range: str | None
    parts_there: int
    part_size: int
    query_segments: int
    plans: dict[str, int] | None
    backend: str
    backend_reason: str
    precision: str
    block_size: int
    bytes_per_query: int
    block_bytes: int
    memory_budget_bytes: int
    graph_bytes: int
    build_temporary_bytes: int | None
    graph_memory: str | None
    bytes_per_step: int | None
    scratch_bytes: int | None
    bytes_read: int | None
    peak_memory_bytes: int
    largest_output_rows: int
    products: int | None
    edge_columns: int | None
    edge_columns_per_second: float | None
    seconds: float | None
    warnings: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain values, for JSON."""
        return asdict(self)


def plan(
    graph: Any = None,
    *,
    out: str | os.PathLike[str] | None = None,
    queries: Any = None,
    query_info: Any = None,
    nodes: Any = None,
    exclude: Any = None,
    node_vectors: Any = None,
    query_vectors: Any = None,
    probe: bool = False,
    **options: Unpack[ScoreKeywords],
) -> Plan:
    """Say what `score` with the same arguments would do; reads footers and query ids, writes nothing.

    With ``method="auto"`` it reads hits and attributes of queries, to count the queries of every plan. With ``probe``
    it measures one product on a small random graph, for ``method="ppr"``, and estimates the seconds.

    Raises
    ------
    ConfigError, InputDataError, ResourceError
        What `score` would refuse at the door, as far as footers show it.
    """
    return run_plan(
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
        options=make_options(ScoreOptions, options),
        probed=probe,
    )


def run_plan(
    inputs: JobInputs, *, out: str | os.PathLike[str] | None, options: ScoreOptions, probed: bool = False
) -> Plan:
    """`plan` with validated options."""
    check_method_options(options, inputs.graph)
    check_query_options(inputs, options)
    check_range_options(options)
    check_run_output(out, inputs, options)
    # Of a store at a URL its facts suffice, unless nodes are asked for what they are.
    asked = (options.where, options.require, options.include_glob, options.exclude_glob, options.no_tests)
    fetch = options.method == "auto" or any(asked) or bool(options.node_type)
    store = store_of(inputs.graph, work_dir=options.work_dir, fetch=fetch)
    check_graph_of_range(inputs.graph, options, built=store is not None or inputs.graph is None)
    inputs = inputs if store is None else replace(inputs, graph=store)
    size = planned_graph(inputs.graph, nodes=inputs.nodes, options=options)
    hits, query_count, plans = planned_query_count(inputs, nodes_of_type=size.nodes_of_type, options=options)
    wanted, part_range = wanted_parts(query_count, options)
    workers = processes_of(options)
    processes = workers or 1
    own = options if workers is None else options_of_one(options, workers)
    needs = method_requirements(own, size.nodes)
    memory = None
    with shared_memory(processes):
        budget = memory_budget(own.memory_limit)
        if inputs.graph is not None and "graph_memory" in METHODS[options.method].options:
            known = GraphSize(size.nodes, size.edges, size.weighted, size.bytes)
            memory = graph_memory(known, own, needs)
            budget = memory.left_for_blocks(budget, given=options.memory_limit is not None)
        width = block_size(own, needs, budget=budget, queries=query_count)
    held = memory.streamed_bytes if memory is not None and memory.streamed else size.bytes
    # Hits are candidates whether the graph has them or not.
    eligible = size.nodes if size.eligible is None else size.eligible
    beyond = size.nodes if options.include_expanded else 0
    most_candidates = min(options.top_k, hits + beyond if options.ranks_hits else eligible)
    part_rows = min(query_count, options.part_size) * most_candidates
    work = ppr_work(options, edges=size.edges, queries=query_count) if options.method == "ppr" else None
    rate = None
    if probed and work is not None:
        rate = probe_product(
            own,
            backend=needs.decision.name,
            nodes=size.nodes,
            edges=size.edges,
            width=width,
            weighted=size.weighted,
        )
    of_one = held + needs.block_bytes(min(width, max(query_count, 1))) + part_rows * CANDIDATE_BYTES + BASE_BYTES
    return Plan(
        workers=workers,
        graph="none" if inputs.graph is None else "store" if size.exact else "edge list",
        exact=size.exact,
        nodes=size.nodes,
        edges=size.edges,
        eligible_nodes=size.eligible,
        queries=query_count,
        hits=hits,
        parts=part_count(query_count, options),
        part_range=None if part_range is None else f"{part_range.first}:{part_range.last}",
        parts_there=_parts_there(out, options, wanted),
        part_size=options.part_size,
        query_segments=max(1, -(-query_count // segment_size(options, queries=query_count, rows=hits)))
        if may_be_cut(inputs, options)
        else 1,
        plans=plans,
        backend=needs.decision.name,
        backend_reason=needs.decision.reason,
        precision=options.precision,
        block_size=width,
        bytes_per_query=needs.bytes_per_query,
        block_bytes=needs.block_bytes(width),
        memory_budget_bytes=budget,
        graph_bytes=size.bytes,
        build_temporary_bytes=size.temporary_bytes,
        graph_memory=None if memory is None else memory.form,
        bytes_per_step=None if memory is None else memory.bytes_per_step,
        scratch_bytes=None if memory is None else memory.scratch_bytes,
        bytes_read=None
        if memory is None or work is None or not memory.streamed
        else memory.bytes_per_step * work.products * -(-query_count // width),
        # Workers have a process beside them that reads and records.
        peak_memory_bytes=of_one if workers is None else workers * of_one + BASE_BYTES,
        largest_output_rows=query_count * most_candidates,
        products=None if work is None else work.products,
        edge_columns=None if work is None else work.edge_columns,
        edge_columns_per_second=rate,
        seconds=None
        if work is None or rate is None
        else work.edge_columns / rate / _at_once(own, processes, parts=len(wanted), backend=needs.decision.name),
        warnings=[sentence for sentence in [endless_search(options)] if sentence is not None],
    )


def _parts_there(out: str | os.PathLike[str] | None, options: ScoreOptions, wanted: range) -> int:
    if out is None:
        return 0
    mine = new_manifest(options, {})
    same = [manifest for manifest in earlier_runs(out, options).manifests if have_same_options(manifest, mine)]
    return len({record.part for manifest in same for record in manifest.parts if record.part in wanted})


def _at_once(options: ScoreOptions, processes: int, *, parts: int, backend: str) -> float:
    """How many processes' worth of work is done at a time: no more than there are parts, and processors for."""
    at_once = float(max(1, min(processes, parts)))
    if backend in ("gpu", "cugraph"):
        return at_once
    return max(1.0, min(at_once, processors() / (options.threads or processors())))
