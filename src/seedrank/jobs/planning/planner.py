"""The planner of ``--method auto``: from what a query is like, may cost and has, to a plan. Pure and total.

All rules are rows of the tables below; `choose` only walks over them. ``docs/planner.md`` shows every outcome in a
table that is generated from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from seedrank.config.names import Budget, Method

PlanName = Literal["structural_graph", "fast_lexical", "semantic", "hybrid_fusion"]
Channel = Literal["dense", "sparse", "graph"]


class Signals(NamedTuple):
    """What a query is like; see `seedrank.jobs.planning.signals`."""

    structural: bool
    lexical: bool
    semantic: bool


class Capabilities(NamedTuple):
    """The channels that can rank something for a query.

    Attributes
    ----------
    dense, sparse : it has a hit of a source with that role that it may return.
    graph : there is a graph, and it knows one of the query's hits.
    """

    dense: bool
    sparse: bool
    graph: bool


class Rule(NamedTuple):
    """A row of the rules: the plan, the signals that it asks for, and the channel that has to be there.

    A signal that is not named may have either value.
    """

    plan: PlanName
    signals: Mapping[str, bool]
    channel: Channel | None


#: The first rule that applies decides.
RULES: tuple[Rule, ...] = (
    Rule("structural_graph", {"structural": True}, "graph"),
    Rule("fast_lexical", {"lexical": True, "semantic": False}, "sparse"),
    Rule("semantic", {"semantic": True, "lexical": False}, "dense"),
    Rule("hybrid_fusion", {}, None),
)


class Need(NamedTuple):
    """How many of some channels a plan needs."""

    least: int
    channels: tuple[Channel, ...]


#: What each plan needs, in the order in which a plan that lacks it gives way to the next.
NEEDS: Mapping[PlanName, Need] = {
    "hybrid_fusion": Need(2, ("dense", "sparse", "graph")),
    "semantic": Need(1, ("dense",)),
    "fast_lexical": Need(1, ("sparse",)),
    "structural_graph": Need(1, ("graph",)),
}


class BudgetRule(NamedTuple):
    """What a budget allows, and the depths that it sets; a depth that is given as an option wins."""

    graph: bool
    rerank: bool
    depths: Mapping[str, int]


BUDGETS: Mapping[Budget, BudgetRule] = {
    "fast": BudgetRule(graph=False, rerank=False, depths={}),
    "balanced": BudgetRule(graph=True, rerank=True, depths={"fusion_depth": 100}),
    "thorough": BudgetRule(graph=True, rerank=True, depths={"fusion_depth": 1000}),
}


@dataclass(frozen=True)
class PlanSteps:
    """What a plan does.

    Attributes
    ----------
    method : the method that runs. That of ``hybrid_fusion`` without the graph is `WITHOUT_GRAPH`.
    fused : whether the hits are fused as ``--fusion`` says; a method of the graph is then one more list.
    ranked : roles of the sources whose hits are ranked; all sources without.
    seeds : roles of the sources whose hits are seeds; a query without such a seed in the graph starts from all.
    depths : options that a budget sets.
    """

    method: Literal["ppr", "fuse", "semantic"]
    fused: bool
    ranked: tuple[Channel, ...] = ()
    seeds: tuple[Channel, ...] = ("sparse",)
    depths: tuple[str, ...] = ()


PLANS: Mapping[PlanName, PlanSteps] = {
    "structural_graph": PlanSteps("ppr", fused=False),
    "fast_lexical": PlanSteps("fuse", fused=True, ranked=("sparse",)),
    "semantic": PlanSteps("semantic", fused=False, ranked=("dense",)),
    "hybrid_fusion": PlanSteps("ppr", fused=True, depths=("fusion_depth",)),
}
#: What fuses the hits of a query for which the graph has no part.
WITHOUT_GRAPH: Literal["fuse"] = "fuse"
#: Methods that a query may ask for by itself, past all rules.
QUERY_METHODS: tuple[Method, ...] = tuple(name for name in get_args(Method) if name != "auto")


@dataclass(frozen=True)
class Choice:
    """What `choose` found.

    Attributes
    ----------
    plan : None when no plan is possible.
    rule : number of the rule that applied, from 1 in the order of `RULES`.
    gave_way : the plans that lacked a channel, in the order in which they were tried.
    graph : whether the plan may use the graph.
    """

    plan: PlanName | None
    rule: int
    gave_way: tuple[PlanName, ...]
    graph: bool


def choose(signals: Signals, budget: Budget, capabilities: Capabilities) -> Choice:
    """Choose the plan of a query: the first rule that applies, then whatever does not lack a channel."""
    there = capabilities._replace(graph=capabilities.graph and BUDGETS[budget].graph)
    channels = there._asdict()
    number, rule = next(
        (number, rule)
        for number, rule in enumerate(RULES, start=1)
        if all(getattr(signals, name) == wanted for name, wanted in rule.signals.items())
        and (rule.channel is None or channels[rule.channel])
    )
    tried: list[PlanName] = []
    for plan in _in_turn(rule.plan):
        need = NEEDS[plan]
        if sum(channels[channel] for channel in need.channels) >= need.least:
            return Choice(plan, number, tuple(tried), there.graph)
        tried.append(plan)
    return Choice(None, number, tuple(tried), there.graph)


def _in_turn(first: PlanName) -> Iterable[PlanName]:
    """Yield the plan that a rule names, then the others in their order."""
    yield first
    yield from (plan for plan in NEEDS if plan != first)
