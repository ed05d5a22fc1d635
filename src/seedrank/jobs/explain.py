"""``explain``: why a node is where it is among the candidates of a query; that query is computed again."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from seedrank.config import ScoreOptions
from seedrank.errors import ConfigError, InputDataError
from seedrank.io.candidates import component_column
from seedrank.io.graphstore import GraphStore
from seedrank.io.ids import match_ids
from seedrank.jobs.clock import Clock
from seedrank.jobs.explanation import Explanation, ScoreTerm, SeedContribution
from seedrank.jobs.graphs.followed_graph import followed_graph
from seedrank.jobs.inputs import JobInputs
from seedrank.jobs.methods import METHODS, component_names, start_method
from seedrank.jobs.operators.outcome import Outcome
from seedrank.jobs.operators.paths import path_columns
from seedrank.jobs.operators.ppr import followed_transition
from seedrank.jobs.progress import Stopwatch
from seedrank.jobs.queries.exclusion_lists import ExclusionLists
from seedrank.jobs.queries.find_id import find_id, position_of
from seedrank.jobs.queries.node_space import NodeSpace
from seedrank.jobs.queries.query_set import QuerySet
from seedrank.jobs.resources import processors
from seedrank.jobs.results import open_run
from seedrank.jobs.run.recorded import recorded_options, recorded_query, recorded_store
from seedrank.kernels.contributions import seed_contributions
from seedrank.kernels.runs import gather


def explain(
    run: str | os.PathLike[str],
    *,
    query: Any,
    node: Any,
    restart: float | None = None,
    queries: Any = None,
    query_info: Any = None,
    exclude: Any = None,
    node_vectors: Any = None,
    query_vectors: Any = None,
    work_dir: str | None = None,
) -> Explanation:
    """Explain the place of a node among the candidates of a query of a finished run.

    The query is computed again, from the recorded graph and inputs, with the recorded options, but without time limits
    and to the tolerance where the run stopped as soon as its top k was certain. All inputs are read, to compare their
    content with what the run used; the hits of other queries are not kept.

    Parameters
    ----------
    run : path or URL
        The run folder.
    query, node : int or str
        Ids; an integer id may be given by its digits.
    restart : float, optional
        Which result of a run with several restart probabilities.
    queries, query_info, exclude, node_vectors, query_vectors : as for `seedrank.score`, optional
        The inputs of the run, when they have moved or were tables in memory.
    work_dir : path, optional
        Local folder for the copy of a graph store that is at a URL.

    Returns
    -------
    Explanation

    Raises
    ------
    ConfigError
        ``restart`` is missing, or none of the run's.
    InputDataError
        Not a run folder; graph or inputs are gone or have changed; the run has no such query, the graph no such node.
    """
    opened = open_run(run)
    options = recorded_options(opened.manifest)
    row = _row_of(restart, options)
    store = recorded_store(opened, work_dir=work_dir)
    query_set, asked = recorded_query(
        opened,
        store,
        options,
        query,
        JobInputs(
            queries=queries,
            query_info=query_info,
            exclude=exclude,
            node_vectors=node_vectors,
            query_vectors=query_vectors,
        ),
    )
    if not query_set.valid[asked]:
        raise InputDataError(
            f"query {query!r} has no valid seeds: nothing is near it",
            expected="a query with a hit of positive weight" + ("" if options.ranks_hits else " that is in the graph"),
            fix="see seeds_given and seeds_missing of the query in RUN/queries",
        )
    target = _target(node, query_set.space)
    if query_set.plans is None:
        return _explain(store, query_set, options, asked, target, row)
    plans = query_set.plans
    job = plans.jobs[plans.group[asked]]
    found = _explain(store, job.query_set, job.options, asked, target, row)
    return replace(found, plan=plans.plans[asked].as_py(), trace=json.loads(plans.traces[asked].as_py()))


def _target(node: Any, space: NodeSpace) -> int:
    """Position of a node that the graph has, or a hit."""
    if not space.graph_nodes:
        return position_of(node, space.foreign, what="node", place="the hits of the query")
    place, foreign = f"the graph {space.store.path}", find_id(node, space.foreign)
    if foreign >= 0:
        return space.graph_nodes + foreign
    if len(space.foreign):
        place += " or the hits of the query"
    return int(space.store.inverse_order[position_of(node, space.store.ids, what="node", place=place)])


def _explain(
    store: GraphStore, query_set: QuerySet, options: ScoreOptions, asked: int, target: int, row: int
) -> Explanation:
    grouped = query_set, options
    # Ranks are those of nodes; groups are looked at once, for what is returned.
    query_set, options = replace(query_set, groups=None), options.model_copy(update={"group_by": None})
    # Where hits are ranked, a node that is left out leaves its place in the lists to no other: nothing to look at.
    unfiltered = (
        query_set
        if options.ranks_hits
        else replace(query_set, exclusions=ExclusionLists.none(len(query_set)), eligible=None)
    )
    everything = options.model_copy(
        update={"top_k": max(len(query_set.space), 1), "min_score": 0.0, "paths": False, "stop": "tolerance"}
    )
    everywhere = everything.model_copy(update={"rerank": "none"})
    if options.method == "ppr":
        everywhere = everywhere.model_copy(update={"max_hops": None})
    whole = _compute(store, unfiltered, everywhere, asked, row)
    filtered = everything.model_copy(update={"min_score": options.min_score})
    allowed = _compute(store, query_set, filtered, asked, row)
    place, rank = _place(whole.nodes, target), _place(allowed.nodes, target)
    values = {name: column[0].as_py() for name, column in whole.query_columns.items()}
    visits = whole.candidate_columns.get("visit_count")
    in_graph = target < query_set.space.graph_nodes and options.method not in _OF_HITS
    hops, anchor, path = None, None, None
    if in_graph and query_set.seeded[asked]:
        hops, anchor, path = _path(store, query_set, options, asked, target, whole, place)
    candidate = rank is not None and rank < options.top_k
    if grouped[0].groups is not None:
        candidate = rank is not None and _in_a_group(store, *grouped, asked, target, row)
    restart = options.restart_probabilities[row] if "restart" in METHODS[options.method].options else None
    contributions, bound = None, None
    if options.method == "ppr" and options.fusion == "none" and whole.status[0] != "fallback_rrf":
        contributions, bound = _contributions(store, query_set, options, asked, target, row)
    return Explanation(
        query=query_set.query_ids[asked].as_py(),
        node=query_set.space.ids(np.array([target], dtype=np.int32))[0].as_py(),
        method=options.method,
        status=str(whole.status[0]),
        plan=None,
        trace=None,
        restart=restart,
        candidate=candidate,
        rank=None if rank is None else rank + 1,
        returnable=len(allowed.nodes),
        rank_of_all=None if place is None else place + 1,
        scored=len(whole.nodes),
        score=None if place is None else float(whole.scores[place]),
        terms=_terms(whole, place, query_set, options),
        hops=hops,
        anchor=anchor,
        path=path,
        contributions=contributions,
        contribution_bound=None if bound is None else bound + values["error_bound"],
        visit_count=None if place is None or visits is None else visits[place].as_py(),
        **{name: values.get(name) for name in _MEASURED},
    )


#: Methods that follow no path.
_OF_HITS = frozenset({"fuse", "semantic", "hybrid"})
_MEASURED = ("visited_nodes", "visited_edges", "budget_hit", "truncated", "iterations", "error_bound")


def _compute(store: GraphStore, query_set: QuerySet, options: ScoreOptions, asked: int, row: int) -> Outcome:
    runner = start_method(store, lambda: query_set, options, Stopwatch(), Clock())
    return runner.score(np.array([asked], dtype=np.int64)).row(row)


def _place(nodes: npt.NDArray[np.int32], target: int) -> int | None:
    found = np.flatnonzero(nodes == target)
    return int(found[0]) if len(found) else None


def _terms(whole: Outcome, place: int | None, query_set: QuerySet, options: ScoreOptions) -> list[ScoreTerm] | None:
    """Terms that a score is the sum of, in the order of their size, then of their names; None where it is one."""
    names = component_names(options, query_set)
    if not names or place is None:
        return None
    lists = query_set.hit_lists
    weights = {} if lists is None else dict(zip(lists.names, lists.weights.tolist(), strict=True))
    terms = []
    for name in names:
        column = whole.candidate_columns.get(component_column(name))
        value = None if column is None else column[place].as_py()
        if value is not None:
            # weight / (k + rank), solved for the rank.
            by_rank = options.fusion == "rrf" and value > 0
            terms.append(ScoreTerm(name, value, round(weights[name] / value - options.rrf_k) if by_rank else None))
    return sorted(terms, key=lambda term: (-term.contribution, term.name))


def _in_a_group(
    store: GraphStore, query_set: QuerySet, options: ScoreOptions, asked: int, target: int, row: int
) -> bool:
    """Whether a node belongs to a group that is returned."""
    returned = _compute(store, query_set, options.model_copy(update={"paths": False}), asked, row)
    members = returned.candidate_columns["members"].flatten().field("node_id")
    wanted = query_set.space.ids(np.array([target], dtype=np.int32))[0]
    return bool(pc.any(pc.equal(members, wanted)).as_py())


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
    recalled = whole.candidate_columns if "anchor_id" in whole.candidate_columns else None
    fixed = None
    if recalled is not None:
        if place is None or not recalled["anchor_id"][place].is_valid:
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
        clock=Clock(),
    ).columns
    hops = recalled["hops"][place] if recalled is not None else columns["hops"][0]
    return hops.as_py(), columns["anchor_id"][0].as_py(), columns["path"][0].as_py()


def _contributions(
    store: GraphStore, query_set: QuerySet, options: ScoreOptions, asked: int, target: int, row: int
) -> tuple[list[SeedContribution], float]:
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
