"""The planner: every combination of signals, budget and channels against a plain statement of the rules."""

from __future__ import annotations

from itertools import product
from typing import get_args

import pytest

from seedrank.config.names import Budget
from seedrank.jobs.planning.planner import BUDGETS, NEEDS, PLANS, RULES, Capabilities, PlanName, Signals, choose

TRUTH = (False, True)
SIGNALS = [Signals(*values) for values in product(TRUTH, repeat=3)]
CAPABILITIES = [Capabilities(*values) for values in product(TRUTH, repeat=3)]
BUDGET_NAMES: tuple[Budget, ...] = get_args(Budget)


def plan_in_words(signals: Signals, budget: Budget, there: Capabilities) -> PlanName | None:
    """The rules as a reader of the documentation would write them down, without a table."""
    graph = there.graph and budget != "fast"
    if signals.structural and graph:
        return "structural_graph"
    if signals.lexical and not signals.semantic and there.sparse:
        return "fast_lexical"
    if signals.semantic and not signals.lexical and there.dense:
        return "semantic"
    if (there.dense and there.sparse) or (there.dense and graph) or (there.sparse and graph):
        return "hybrid_fusion"
    # Two of the three are not there, so that one is left, or none.
    return "semantic" if there.dense else "fast_lexical" if there.sparse else "structural_graph" if graph else None


@pytest.mark.parametrize("budget", BUDGET_NAMES)
def test_every_combination(budget: Budget) -> None:
    for signals, there in product(SIGNALS, CAPABILITIES):
        choice = choose(signals, budget, there)
        assert choice.plan == plan_in_words(signals, budget, there), (signals, there)
        assert choice == choose(signals, budget, there)


@pytest.mark.parametrize("budget", BUDGET_NAMES)
def test_a_plan_has_what_it_needs_and_no_plan_means_that_none_has(budget: Budget) -> None:
    for signals, there in product(SIGNALS, CAPABILITIES):
        choice = choose(signals, budget, there)
        channels = {**there._asdict(), "graph": there.graph and BUDGETS[budget].graph}
        able = {plan for plan, need in NEEDS.items() if sum(channels[name] for name in need.channels) >= need.least}
        assert (choice.plan in able) if able else choice.plan is None
        assert not able.intersection(choice.gave_way)
        assert set(choice.gave_way) == set(NEEDS) if choice.plan is None else len(choice.gave_way) < len(NEEDS)
        assert choice.graph == channels["graph"]


def test_one_channel_more_never_takes_the_last_plan_away() -> None:
    for signals, budget, there in product(SIGNALS, BUDGET_NAMES, CAPABILITIES):
        if choose(signals, budget, there).plan is not None:
            for name in there._fields:
                assert choose(signals, budget, there._replace(**{name: True})).plan is not None


def test_fast_is_balanced_without_a_graph() -> None:
    for signals, there in product(SIGNALS, CAPABILITIES):
        without = there._replace(graph=False)
        assert choose(signals, "fast", there) == choose(signals, "balanced", without)


def test_the_tables_are_about_the_same_plans() -> None:
    names = set(get_args(PlanName))
    assert names == set(NEEDS) == set(PLANS) == {rule.plan for rule in RULES}
    assert set(BUDGETS) == set(BUDGET_NAMES)
    assert RULES[-1].signals == {}
    assert RULES[-1].channel is None
