"""``check``: read and validate everything that ``score`` would read, compute nothing, keep nothing."""

from __future__ import annotations

import os
import tempfile
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import numpy as np

from seedrank.config import ScoreOptions, make_options
from seedrank.io.graph.no_graph import NoGraph
from seedrank.io.graphstore import GraphStore, verify_graph_store
from seedrank.io.records import GraphFacts
from seedrank.jobs.graphs.followed_graph import type_weights
from seedrank.jobs.graphs.stores import store_of
from seedrank.jobs.inputs import JobInputs
from seedrank.jobs.methods import check_method_options, method_requirements
from seedrank.jobs.operators.endless import endless_search
from seedrank.jobs.prepare import check_run_output, open_graph, planned_blocks
from seedrank.jobs.progress import Stopwatch
from seedrank.jobs.queries.loading import check_query_options
from seedrank.jobs.queries.query_segments import QuerySegments, open_queries
from seedrank.jobs.run.manifest import new_manifest, record_inputs
from seedrank.jobs.run.part_ranges import check_graph_of_range, check_range_options, wanted_parts
from seedrank.jobs.run.taken_over import EarlierResults, open_earlier
from seedrank.kernels.arrays import BoolArray
from seedrank.keywords import ScoreKeywords


@dataclass(frozen=True)
class CheckReport:
    """What a full validation found: counts, and warnings about what is legal but probably not meant.

    With ``--parts`` the queries and their seeds are those of the range, which ``part_range`` names: ``first:last``,
    without the last. What ``plans`` and ``vectors`` count are all queries. ``taken_over``: with ``--since`` the queries
    whose results the earlier run has; else None.
    """

    nodes: int
    edges: int
    rows: int
    merged_duplicates: int
    zero_weight_rows: int
    dropped_rows: int
    self_loops: int
    dangling: int
    isolated: int
    queries: int
    queries_without_valid_seeds: int
    seeds_given: int
    seeds_missing: int
    eligible_nodes: int
    taken_over: int | None
    part_range: str | None
    plans: dict[str, int] | None
    vectors: dict[str, Any] | None = None
    warnings: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values, for JSON."""
        return asdict(self)


def check(
    graph: Any = None,
    *,
    out: str | os.PathLike[str] | None = None,
    queries: Any = None,
    query_info: Any = None,
    nodes: Any = None,
    exclude: Any = None,
    node_vectors: Any = None,
    query_vectors: Any = None,
    **options: Unpack[ScoreKeywords],
) -> CheckReport:
    """Validate the inputs of `score` completely: every row, every name, every id type, every stored byte.

    An edge list is read and reduced in a temporary folder that is removed again; of a graph store every file's
    content is compared with its recorded hash. Hits of many queries are put aside there, so that memory holds one
    segment of them at a time, as in `score`.

    Raises
    ------
    ConfigError, InputDataError, StorageError
        What `score` would raise.
    """
    return run_check(
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
    )


def run_check(inputs: JobInputs, *, out: str | os.PathLike[str] | None, options: ScoreOptions) -> CheckReport:
    """`check` with validated options."""
    check_method_options(options, inputs.graph)
    check_query_options(inputs, options)
    check_range_options(options)
    check_run_output(out, inputs, options)
    found = store_of(inputs.graph, work_dir=options.work_dir)
    check_graph_of_range(inputs.graph, options, built=found is not None or inputs.graph is None)
    inputs = inputs if found is None else replace(inputs, graph=found)
    with tempfile.TemporaryDirectory(prefix="seedrank-check-") as temporary:
        store, built = open_graph(inputs, options=options, build_in=Path(temporary) / "graph", stopwatch=Stopwatch())
        if not built:
            verify_graph_store(store)
        type_weights(options, store.facts.edge_types)
        scratch = Path(temporary) / "hits"
        scratch.mkdir()
        queries = open_queries(store, inputs, options, scratch)
        parts, part_range = wanted_parts(len(queries), options)
        earlier = None if options.since is None else _earlier(options, store, queries, built=built)
        seen = _seeds_of(queries, range(parts.start * options.part_size, parts.stop * options.part_size), earlier)
        query_set, facts = queries.at_hand(), store.facts
        return CheckReport(
            nodes=facts.nodes,
            edges=facts.edges,
            rows=facts.rows,
            merged_duplicates=facts.merged_duplicates,
            zero_weight_rows=facts.zero_weight_rows,
            dropped_rows=facts.dropped_rows,
            self_loops=facts.self_loops,
            dangling=facts.dangling,
            isolated=facts.isolated,
            queries=seen.queries,
            queries_without_valid_seeds=seen.queries - seen.valid,
            seeds_given=seen.given,
            seeds_missing=seen.missing,
            eligible_nodes=facts.nodes if query_set.eligible is None else int(np.count_nonzero(query_set.eligible)),
            taken_over=None if earlier is None else seen.taken_over,
            part_range=None if part_range is None else f"{part_range.first}:{part_range.last}",
            plans=None if query_set.plans is None else query_set.plans.counts,
            vectors=None if queries.vectors is None else queries.vectors.counts(len(queries), store).model_dump(),
            warnings=_warnings(
                seen, query_set.eligible, None if isinstance(store, NoGraph) else facts, endless_search(options)
            ),
        )


class _Seeds(NamedTuple):
    """How many queries there are, have something to score, and are in an earlier run; hits, and missing ones."""

    queries: int
    valid: int
    given: int
    missing: int
    taken_over: int


def _seeds_of(queries: QuerySegments, wanted: range, earlier: EarlierResults | None) -> _Seeds:
    """Count the seeds of some queries, one segment after the other."""
    total = _Seeds(0, 0, 0, 0, 0)
    first, end = wanted.start, min(wanted.stop, len(queries))
    while first < end:
        query_set, begin = queries.holding(first)
        last = min(begin + len(query_set), end)
        some = slice(first - begin, last - begin)
        counts = (
            last - first,
            np.count_nonzero(query_set.valid[some]),
            query_set.seeds_given[some].clip(min=0).sum(),
            query_set.seeds_missing[some].sum(),
            0 if earlier is None else np.count_nonzero(earlier.find(query_set.input_hashes[some]) >= 0),
        )
        total = _Seeds(*(before + int(more) for before, more in zip(total, counts, strict=True)))
        first = last
    return total


def _earlier(options: ScoreOptions, store: GraphStore, queries: QuerySegments, *, built: bool) -> EarlierResults:
    """Open the run of ``--since`` as `score` would; it is read as a whole."""
    assert options.since is not None
    manifest = new_manifest(options, {})
    record_inputs(manifest, store, queries, len(queries), place=store.path, built=built)
    needs = method_requirements(options, store.facts.nodes)
    manifest.backend = planned_blocks(options, needs, queries=len(queries), solver="")
    return open_earlier(options.since, manifest, several=len(options.restart_probabilities))


def _warnings(seen: _Seeds, eligible: BoolArray | None, graph: GraphFacts | None, endless: str | None) -> list[str]:
    found = [] if endless is None else [endless]
    if graph is not None and (graph.nodes == 0 or graph.edges == 0):
        found.append(f"the graph has {graph.nodes} nodes and {graph.edges} edges")
    if seen.queries == 0:
        found.append("there is no query")
    elif graph is not None and not seen.valid:
        found.append("no query has a valid seed: are the node ids of the hits those of the graph?")
    elif graph is not None and seen.missing * 2 > seen.given:
        found.append(f"{seen.missing} of {seen.given} hits are not in the graph")
    if graph is not None and graph.nodes and eligible is not None and not eligible.any():
        found.append(f"filters and exclusions leave none of the graph's {graph.nodes} nodes to return")
    return found
