"""``check``: read and validate everything that ``score`` would read, compute nothing, keep nothing."""

from __future__ import annotations

import os
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from seedrank.config import ScoreOptions, make_options
from seedrank.io.graph.no_graph import NoGraph
from seedrank.io.graphstore import verify_graph_store
from seedrank.io.records import GraphFacts
from seedrank.jobs.graphs.followed_graph import type_weights
from seedrank.jobs.inputs import JobInputs
from seedrank.jobs.methods import check_method_options
from seedrank.jobs.prepare import check_run_output, open_graph
from seedrank.jobs.progress import Stopwatch
from seedrank.jobs.queries.query_set import QuerySet, check_query_options, load_query_set
from seedrank.keywords import ScoreKeywords


@dataclass(frozen=True)
class CheckReport:
    """What a full validation found: counts, and warnings about what is legal but probably not meant."""

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
    content is compared with its recorded hash.

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
    check_run_output(out, inputs, options)
    with tempfile.TemporaryDirectory(prefix="seedrank-check-") as temporary:
        store, built = open_graph(inputs, options=options, build_in=Path(temporary) / "graph", stopwatch=Stopwatch())
        if not built:
            verify_graph_store(store)
        type_weights(options, store.facts.edge_types)
        query_set = load_query_set(store, inputs, options)
        facts = store.facts
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
            queries=len(query_set),
            queries_without_valid_seeds=int((~query_set.valid).sum()),
            seeds_given=int(query_set.seeds_given.clip(min=0).sum()),
            seeds_missing=int(query_set.seeds_missing.sum()),
            eligible_nodes=facts.nodes if query_set.eligible is None else int(np.count_nonzero(query_set.eligible)),
            vectors=None if query_set.vectors is None else query_set.vectors.counts(len(query_set), store).model_dump(),
            plans=None if query_set.plans is None else query_set.plans.counts,
            warnings=_warnings(query_set, None if isinstance(store, NoGraph) else facts),
        )


def _warnings(query_set: QuerySet, graph: GraphFacts | None) -> list[str]:
    found = []
    given, missing = int(query_set.seeds_given.clip(min=0).sum()), int(query_set.seeds_missing.sum())
    if graph is not None and (graph.nodes == 0 or graph.edges == 0):
        found.append(f"the graph has {graph.nodes} nodes and {graph.edges} edges")
    if len(query_set) == 0:
        found.append("there is no query")
    elif graph is not None and not query_set.valid.any():
        found.append("no query has a valid seed: are the node ids of the hits those of the graph?")
    elif graph is not None and missing * 2 > given:
        found.append(f"{missing} of {given} hits are not in the graph")
    if graph is not None and graph.nodes and query_set.eligible is not None and not query_set.eligible.any():
        found.append(f"filters and exclusions leave none of the graph's {graph.nodes} nodes to return")
    return found
