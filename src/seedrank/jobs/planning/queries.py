"""The plan of every query of ``--method auto``, and the queries that run together."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seedrank.config import ScoreOptions
from seedrank.config.names import GRAPH_CHANNEL, Budget, Method, SourceRole
from seedrank.errors import ConfigError
from seedrank.io.query_info import BUDGET, METHOD, QueryInfoTable
from seedrank.jobs.planning.planner import (
    BUDGETS,
    PLANS,
    QUERY_METHODS,
    WITHOUT_GRAPH,
    Capabilities,
    Choice,
    PlanName,
    Signals,
    choose,
)
from seedrank.jobs.planning.signals import SIGNALS, TEXT_RULES, text_signals
from seedrank.jobs.queries.query_set import NOTHING, PlannedJob, PlannedQueries, QuerySet

BUDGET_NAMES: tuple[Budget, ...] = get_args(Budget)
#: Methods that rank what they find in the graph, from seeds.
_OF_GRAPH = frozenset({"ppr", "walk", "bfs", "dfs", "neighbors"})


class QueryFacts(NamedTuple):
    """What the planner looks at, of q queries.

    Attributes
    ----------
    signals : bool (q, 3), in the order of `SIGNALS`.
    from_column : bool (q, 3), whether the signal is given.
    rules : int64 (q,), bit i: rule i of `TEXT_RULES` matches the text; -1 without a text.
    budget : int64 (q,), position in `BUDGET_NAMES`, and whether it is given.
    budget_given : bool (q,)
    method : int64 (q,), position in `QUERY_METHODS`; -1: none is given.
    """

    signals: npt.NDArray[np.bool_]
    from_column: npt.NDArray[np.bool_]
    rules: npt.NDArray[np.int64]
    budget: npt.NDArray[np.int64]
    budget_given: npt.NDArray[np.bool_]
    method: npt.NDArray[np.int64]


def query_facts(info: QueryInfoTable | None, place: npt.NDArray[np.int32], options: ScoreOptions) -> QueryFacts:
    """Gather what is known of the queries.

    Parameters
    ----------
    info : attributes of queries, or None.
    place : int32 (q,), row of each query in ``info``; -1 without one.
    options : the default budget.
    """
    count, there = len(place), place >= 0
    rules = np.full(count, -1, dtype=np.int64)
    signals = np.zeros((count, len(SIGNALS)), dtype=np.bool_)
    from_column = np.zeros_like(signals)
    budget = np.full(count, BUDGET_NAMES.index(options.budget), dtype=np.int64)
    budget_given, method = np.zeros(count, dtype=np.bool_), np.full(count, -1, dtype=np.int64)
    if info is not None:
        rows = place[there]
        if info.text is not None:
            rules[there] = _text_rules(info.text)[rows]
            for number, rule in enumerate(TEXT_RULES):
                signals[:, SIGNALS.index(rule.signal)] |= (rules >= 0) & (rules >> number & 1 == 1)
        for number, name in enumerate(SIGNALS):
            if name in info.flags:
                given = np.full(count, -1, dtype=np.int8)
                given[there] = info.flags[name][rows]
                from_column[:, number] = given >= 0
                signals[given >= 0, number] = given[given >= 0] == 1
        named = _positions(info, BUDGET, BUDGET_NAMES)[rows]
        budget_given[there] = named >= 0
        budget[budget_given] = named[named >= 0]
        method[there] = _positions(info, METHOD, QUERY_METHODS)[rows]
    return QueryFacts(signals, from_column, rules, budget, budget_given, method)


def _text_rules(text: pa.Array) -> npt.NDArray[np.int64]:
    bits = 1 << np.arange(len(TEXT_RULES), dtype=np.int64)
    matched = (text_signals(text) * bits[:, np.newaxis]).sum(axis=0)
    return np.where(text.is_valid().to_numpy(zero_copy_only=False), matched, -1)


def _positions(info: QueryInfoTable, column: str, names: tuple[str, ...]) -> npt.NDArray[np.int64]:
    if column not in info.choices:
        return np.full(len(info.query_ids), -1, dtype=np.int64)
    found = info.choices[column].to_pylist()
    known = {name: position for position, name in enumerate(names)}
    return np.array([-1 if name is None else known[name] for name in found], dtype=np.int64)


def plan_queries(
    facts: QueryFacts,
    capabilities: npt.NDArray[np.bool_],
    usable: npt.NDArray[np.bool_],
    options: ScoreOptions,
    variant: Callable[[tuple[SourceRole, ...], tuple[SourceRole, ...], ScoreOptions], QuerySet],
) -> PlannedQueries:
    """Choose a plan for every query and make the query sets that run.

    Parameters
    ----------
    facts : of q queries.
    capabilities : bool (q, 3), in the order of `Capabilities`.
    usable : bool (q,), the query has a hit that can be ranked, whether the graph has it or not.
    options : of the job.
    variant : (roles of the sources that are ranked, roles of those that give seeds, options) → the same queries with
        these hits under these options; see `PlanSteps`.
    """
    columns = (facts.signals, facts.from_column, capabilities, facts.rules, facts.budget, facts.budget_given)
    key = np.column_stack([*columns, facts.method, usable]).astype(np.int64)
    distinct, which = np.unique(key, axis=0, return_inverse=True)
    outcomes = [_outcome(row, options) for row in distinct.tolist()]
    groups = sorted({outcome.group for outcome in outcomes if outcome.group is not None}, key=repr)
    jobs = []
    for group in groups:
        changed = _job_options(group, options)
        steps = None if group.plan is None else PLANS[group.plan]
        ranked, seeds = ((), ()) if steps is None else (steps.ranked, steps.seeds)
        jobs.append(PlannedJob(changed, variant(ranked, seeds, changed)))
    group_of = np.array([-1 if found.group is None else groups.index(found.group) for found in outcomes], np.int32)

    def column(values: list[str | None]) -> pa.Array:
        return pa.array(values, pa.string()).take(pa.array(which.ravel()))

    return PlannedQueries(
        group=group_of[which.ravel()] if len(distinct) else np.zeros(0, np.int32),
        jobs=tuple(jobs),
        plans=column([found.plan for found in outcomes]),
        methods=column([found.method for found in outcomes]),
        traces=column([found.trace for found in outcomes]),
    )


class _Group(NamedTuple):
    """What runs together: the method, the plan whose hits take part (None: all hits), what its budget sets."""

    method: Method
    plan: PlanName | None
    settings: tuple[tuple[str, int | str], ...]


class _Outcome(NamedTuple):
    group: _Group | None
    plan: str | None
    method: str
    trace: str


def _outcome(row: list[int], options: ScoreOptions) -> _Outcome:
    """Plan of the queries that agree in everything the planner looks at."""
    width = len(SIGNALS)
    signals = Signals(*map(bool, row[:width]))
    given, there = row[width : 2 * width], Capabilities(*map(bool, row[2 * width : 2 * width + 3]))
    rules, budget_place, budget_given, method_place, usable = row[2 * width + 3 :]
    budget = BUDGET_NAMES[budget_place]
    if method_place >= 0:
        method = QUERY_METHODS[method_place]
        runs = there.graph if method in _OF_GRAPH else usable
        return _Outcome(_Group(method, None, ()) if runs else None, None, method, json.dumps({"method": "query_info"}))
    choice = choose(signals, budget, there)
    trace = {
        "signals": {
            name: {"value": value, "from": _origin(name, bool(column), rules)}
            for name, value, column in zip(SIGNALS, signals, given, strict=True)
        },
        "budget": {"value": budget, "from": "query_info" if budget_given else "option"},
        "capabilities": {**there._asdict(), "graph_allowed": BUDGETS[budget].graph},
        "rule": choice.rule,
        "gave_way": list(choice.gave_way),
    }
    if choice.plan is None:
        return _Outcome(None, None, NOTHING, json.dumps(trace))
    method = planned_method(choice)
    again = options.rerank == "none" or BUDGETS[budget].rerank
    unranked: tuple[tuple[str, str], ...] = () if again else (("rerank", "none"),)
    if method != PLANS[choice.plan].method:
        return _Outcome(_Group(method, None, unranked), choice.plan, method, json.dumps(trace))
    depths = BUDGETS[budget].depths
    chosen = [(name, depths[name]) for name in PLANS[choice.plan].depths if name not in options.model_fields_set]
    return _Outcome(_Group(method, choice.plan, (*chosen, *unranked)), choice.plan, method, json.dumps(trace))


def planned_method(choice: Choice) -> Method:
    """Return the method that a plan runs: that of the plan, or what needs no graph where it has none."""
    assert choice.plan is not None
    steps = PLANS[choice.plan]
    return WITHOUT_GRAPH if steps.method == "ppr" and not choice.graph else steps.method


def _origin(signal: str, from_column: bool, rules: int) -> str:
    if from_column:
        return "query_info"
    if rules < 0:
        return "nothing"
    matched = [rule.name for number, rule in enumerate(TEXT_RULES) if rule.signal == signal and rules >> number & 1]
    return f"text: {', '.join(matched)}" if matched else "text"


def _job_options(group: _Group, options: ScoreOptions) -> ScoreOptions:
    """Return the options under which a group runs."""
    fused = group.method == WITHOUT_GRAPH if group.plan is None else PLANS[group.plan].fused
    fusion = options.fusion if fused else "none"
    changed: dict[str, Any] = {"method": group.method, "fusion": fusion, **dict(group.settings)}
    if group.method not in _OF_GRAPH:
        changed["fallback"] = "none"
        # Where the graph has no part, it has no weight either.
        weights = {source: weight for source, weight in options.source_weight.items() if source != GRAPH_CHANNEL}
        changed["source_weight"] = weights
    return options.model_copy(update=changed)


def check_possible(
    roles: tuple[SourceRole | None, ...], names: tuple[str, ...], budgets: set[Budget], graph: bool
) -> None:
    """Refuse a job for which no plan is possible, whatever its queries are like.

    Raises
    ------
    ConfigError
        A source without a role; nothing that any plan could use.
    """
    without = [name for name, role in zip(names, roles, strict=True) if role is None]
    if without:
        raise ConfigError(
            f"--method auto does not know what kind of store the source {without[0]!r} is",
            expected="a role for every source: dense, sparse or graph",
            fix=f"for example --source-role {without[0]}=dense",
        )
    there = Capabilities(dense="dense" in roles, sparse="sparse" in roles, graph=graph)
    for budget in sorted(budgets):
        if choose(Signals(False, False, False), budget, there).plan is None:
            raise ConfigError(
                f"--method auto has no plan with budget {budget}: no source is dense or sparse"
                + (", and this budget uses no graph" if graph else ", and there is no graph"),
                expected="a dense or sparse source, or a graph and a budget that uses it",
                fix="give sources a role by --source-role, a graph as the first argument, or another --budget",
            )
