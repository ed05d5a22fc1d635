"""All rules of the planner as one value, so that a run does not go on under other rules than it began with."""

from __future__ import annotations

import xxhash

from seedrank.jobs.planning.planner import BUDGETS, NEEDS, PLANS, RULES, WITHOUT_GRAPH
from seedrank.jobs.planning.signals import TEXT_RULES


def rules_fingerprint() -> str:
    """xxh3-128 over every table that decides on a plan or on what it runs."""
    tables = (RULES, dict(NEEDS), dict(BUDGETS), dict(PLANS), WITHOUT_GRAPH, TEXT_RULES)
    return xxhash.xxh3_128_hexdigest(repr(tables).encode())
