"""``explain``: why a node is where it is among the candidates of a query; that query is computed again."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seedrank.config import ScoreOptions
from seedrank.errors import ConfigError, InputDataError
from seedrank.io.graphstore import GraphStore
from seedrank.io.ids import is_string, match_ids
from seedrank.jobs.clock import Clock
from seedrank.jobs.exclusion_lists import ExclusionLists
from seedrank.jobs.inputs import JobInputs
from seedrank.jobs.method_ppr import followed_transition
from seedrank.jobs.methods import METHODS
from seedrank.jobs.outcome import Outcome
from seedrank.jobs.paths import followed_graph, path_columns
from seedrank.jobs.progress import Stopwatch
from seedrank.jobs.query_set import QuerySet
from seedrank.jobs.recorded import recorded_options, recorded_queries, recorded_store
from seedrank.jobs.resources import processors
from seedrank.jobs.results import open_run
from seedrank.kernels.collapse import collapse
from seedrank.kernels.contributions import seed_contributions
from seedrank.kernels.runs import gather


@dataclass(frozen=True)
class SeedContribution:
    """What a seed brings to a score: its id, its share of the seeds, its part of the score."""

    seed: Any
    weight: float
    contribution: float


@dataclass(frozen=True)
class Explanation:
    """Why a node is where it is among the candidates of a query.

    Attributes
    ----------
    query, node : the ids, in the types of the inputs.
    method, status : what ran, and how the query ended, without time limits.
    restart : restart probability of ppr and walks, else None.
    candidate : whether the node is among the first ``top_k``; with groups, a member of one of these.
    rank : position among the nodes that the query may return; None if it may not return the node, or has no score.
    returnable : number of nodes that the query may return.
    rank_of_all, scored : position among all nodes that have a score, seeds and exclusions included, and their number.
    score : None when the method gives the node none.
    hops, anchor : of the path; None when no path leads to the node. A walk's hops are its fewest steps.
    path : edges from the anchor to the node: src, dst, type, weight, reversed.
    contributions : of every seed to the score, the largest first (ppr only, else None).
    contribution_bound : how far their sum may be from ``score``.
    visit_count : as in ``candidates`` (None for ppr).
    visited_nodes, visited_edges, budget_hit, truncated, iterations, error_bound : as in ``queries``.
    """

    query: Any
    node: Any
    method: str
    status: str
    restart: float | None
    candidate: bool
    rank: int | None
    returnable: int
    rank_of_all: int | None
    scored: int
    score: float | None
    hops: int | None
    anchor: Any
    path: list[dict[str, Any]] | None
    contributions: list[SeedContribution] | None
    contribution_bound: float | None
    visit_count: int | None
    visited_nodes: int | None
    visited_edges: int | None
    budget_hit: str | None
    truncated: bool | None
    iterations: int | None
    error_bound: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as plain values, for JSON."""
        return asdict(self)


def explain(
    run: str | os.PathLike[str],
    *,
    query: Any,
    node: Any,
    restart: float | None = None,
    queries: Any = None,
    query_info: Any = None,
    exclude: Any = None,
) -> Explanation:
    """Explain the place of a node among the candidates of a query of a finished run.

    The query is computed again, from the recorded graph and inputs, with the recorded options, but without time limits
    and to the tolerance where the run stopped as soon as its top k was certain.

    Parameters
    ----------
    run : path
        The run folder.
    query, node : int or str
        Ids; an integer id may be given by its digits.
    restart : float, optional
        Which result of a run with several restart probabilities.
    queries, query_info, exclude : as for `seedrank.score`, optional
        The inputs of the run, when they have moved or were tables in memory.

    Returns
    -------
    Explanation

    Raises
    ------
    ConfigError
        ``restart`` is missing, or none of the run's; the run fused its lists.
    InputDataError
        Not a run folder; graph or inputs are gone or have changed; the run has no such query, the graph no such node.
    """
    opened = open_run(run)
    options = recorded_options(opened.manifest)
    if options.fusion != "none":
        raise ConfigError(
            f"{opened.path} fused its lists (--fusion {options.fusion}), which this command does not take apart",
            expected="a run with --fusion none",
            fix="see the columns score_… of RUN/candidates: they say what each list contributes to a score",
        )
    row = _row_of(restart, options)
    store = recorded_store(opened)
    query_set = recorded_queries(
        opened, store, options, JobInputs(queries=queries, query_info=query_info, exclude=exclude)
    )
    asked = _position(query, query_set.query_ids, what="query", place=f"the hits of {opened.path}")
    target = int(store.inverse_order[_position(node, store.ids, what="node", place=f"the graph {store.path}")])
    if not query_set.seeded[asked]:
        raise InputDataError(
            f"query {query!r} has no valid seeds: nothing is near it",
            expected="a query with a hit of positive weight that is in the graph",
            fix="see seeds_given and seeds_missing of the query in RUN/queries",
        )
    return _explain(store, query_set, options, asked, target, row)


def _explain(
    store: GraphStore, query_set: QuerySet, options: ScoreOptions, asked: int, target: int, row: int
) -> Explanation:
    unfiltered = replace(query_set, exclusions=ExclusionLists.none(len(query_set)), eligible=None)
    everything = options.model_copy(
        update={"top_k": max(store.facts.nodes, 1), "min_score": 0.0, "paths": False, "stop": "tolerance"}
    )
    everywhere = everything.model_copy(update={"max_hops": None}) if options.method == "ppr" else everything
    whole = _compute(store, unfiltered, everywhere, asked, row)
    filtered = everything.model_copy(update={"min_score": options.min_score})
    allowed = _compute(store, query_set, filtered, asked, row)
    place, rank = _place(whole.nodes, target), _place(allowed.nodes, target)
    values = {name: column[0].as_py() for name, column in whole.query_columns.items()}
    visits = whole.candidate_columns.get("visit_count")
    hops, anchor, path = _path(store, query_set, options, asked, target, whole, place)
    restart = options.restart_probabilities[row] if "restart" in METHODS[options.method].options else None
    contributions, bound = _contributions(store, query_set, options, asked, target, row)
    return Explanation(
        query=query_set.query_ids[asked].as_py(),
        node=store.ids[int(store.order[target])].as_py(),
        method=options.method,
        status=str(whole.status[0]),
        restart=restart,
        candidate=rank is not None and _is_candidate(rank, allowed.nodes, query_set, options),
        rank=None if rank is None else rank + 1,
        returnable=len(allowed.nodes),
        rank_of_all=None if place is None else place + 1,
        scored=len(whole.nodes),
        score=None if place is None else float(whole.scores[place]),
        hops=hops,
        anchor=anchor,
        path=path,
        contributions=contributions,
        contribution_bound=None if bound is None else bound + values["error_bound"],
        visit_count=None if place is None or visits is None else visits[place].as_py(),
        **{name: values.get(name) for name in _MEASURED},
    )


_MEASURED = ("visited_nodes", "visited_edges", "budget_hit", "truncated", "iterations", "error_bound")


def _compute(store: GraphStore, query_set: QuerySet, options: ScoreOptions, asked: int, row: int) -> Outcome:
    runner = METHODS[options.method].start(store, lambda: query_set, options, Stopwatch(), Clock())
    return runner.score(np.array([asked], dtype=np.int64)).row(row)


def _place(nodes: npt.NDArray[np.int32], target: int) -> int | None:
    found = np.flatnonzero(nodes == target)
    return int(found[0]) if len(found) else None


def _is_candidate(rank: int, nodes: npt.NDArray[np.int32], query_set: QuerySet, options: ScoreOptions) -> bool:
    """Whether a node at some place of a ranking, from 0, is returned, or belongs to a group that is."""
    if query_set.groups is None:
        return rank < options.top_k
    counts = np.array([len(nodes)], dtype=np.int32)
    return bool((collapse(counts, query_set.groups.codes[nodes], k=options.top_k).members == rank).any())


def _path(
    store: GraphStore,
    query_set: QuerySet,
    options: ScoreOptions,
    asked: int,
    target: int,
    whole: Outcome,
    place: int | None,
) -> tuple[int | None, Any, list[dict[str, Any]] | None]:
    """Hops, anchor and path of the node; of recall, from the anchor that its score comes from."""
    offsets, entries = gather(query_set.seeds.offsets, np.array([asked]))
    anchors = query_set.seeds.nodes[entries]
    recalled = whole.candidate_columns
    fixed = None
    if recalled:
        if place is None:
            return None, None, None
        rank = match_ids(recalled["anchor_id"].slice(place, 1), store.ids)
        fixed = store.inverse_order[rank].astype(np.int32)
    columns = path_columns(
        followed_graph(store, options),
        store,
        anchor_offsets=offsets,
        anchors=anchors,
        counts=np.ones(1, dtype=np.int32),
        targets=np.array([target], dtype=np.int32),
        from_anchors=fixed,
        threads=processors(),
    )
    hops = recalled["hops"][place] if recalled else columns["hops"][0]
    return hops.as_py(), columns["anchor_id"][0].as_py(), columns["path"][0].as_py()


def _contributions(
    store: GraphStore, query_set: QuerySet, options: ScoreOptions, asked: int, target: int, row: int
) -> tuple[list[SeedContribution] | None, float | None]:
    if options.method != "ppr":
        return None, None
    first, last = query_set.seeds.offsets[asked : asked + 2]
    nodes, weights = query_set.seeds.nodes[first:last], query_set.seeds.weights[first:last]
    found = seed_contributions(
        followed_transition(store, options, dangling=options.dangling),
        nodes,
        weights,
        node=target,
        restart=options.restart_probabilities[row],
    )
    ids: Sequence[Any] = store.ids.take(pa.array(store.order[nodes])).to_pylist()
    parts = [
        SeedContribution(seed, float(weight), float(value))
        for seed, weight, value in zip(ids, weights, found.values, strict=True)
    ]
    # Stable: equal contributions stay in the order of the ids.
    return sorted(parts, key=lambda part: -part.contribution), found.bound


def _row_of(restart: float | None, options: ScoreOptions) -> int:
    """Position of the restart probability that was asked for among those of the run."""
    known = options.restart_probabilities if "restart" in METHODS[options.method].options else ()
    if restart is None and len(known) <= 1:
        return 0
    found = [i for i, value in enumerate(known) if restart is not None and math.isclose(value, restart)]
    if not found:
        raise ConfigError(
            "the run has several restart probabilities"
            if restart is None
            else f"--restart {restart} is not in the run",
            expected=f"--restart with one of {', '.join(map(str, known))}" if known else "no --restart for this method",
            fix="pass --restart, as run.json has it" if known else "drop it",
        )
    return found[0]


def _position(wanted: Any, known: pa.Array, *, what: str, place: str) -> int:
    """Find an id; text of digits names an integer id."""
    try:
        value = str(wanted) if is_string(known.type) else int(wanted)
        position = int(match_ids(pa.array([value], known.type), known)[0])
    except (ValueError, OverflowError, pa.ArrowInvalid):
        position = -1
    if position < 0:
        raise InputDataError(
            f"{what} {wanted!r} is not in {place}",
            expected=f"an id of type {known.type}",
            fix="check the id: strings are compared by every character",
        )
    return position
