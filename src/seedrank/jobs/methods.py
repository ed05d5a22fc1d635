"""The one dispatch table: what each method computes, which columns it fills, which options it uses.

A new method is a line here, a runner beside `seedrank.jobs.method_ppr`, and its name in `seedrank.config.Method`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from seedrank.config import Method, ScoreOptions
from seedrank.errors import ConfigError
from seedrank.io.candidates import ScoreMeaning
from seedrank.io.graphstore import GraphStore
from seedrank.jobs.method_ppr import ppr_requirements, start_ppr
from seedrank.jobs.outcome import Requirements, Runner
from seedrank.jobs.progress import Stopwatch
from seedrank.jobs.query_set import QuerySet


@dataclass(frozen=True)
class MethodEntry:
    """A method, as the job sees it.

    Attributes
    ----------
    meaning : what a score is, for the metadata of the result.
    options : the options that this method uses and some other does not.
    candidate_columns : the columns that it adds to ``candidates``, in their order.
    requirements : (options, nodes) → who would compute, and how much a query takes.
    start : (store, query_set, options, stopwatch) → a runner, ready to score.
    """

    meaning: ScoreMeaning
    options: frozenset[str]
    candidate_columns: tuple[str, ...]
    requirements: Callable[[ScoreOptions, int], Requirements]
    start: Callable[[GraphStore, QuerySet, ScoreOptions, Stopwatch], Runner]


METHODS: Mapping[Method, MethodEntry] = {
    "ppr": MethodEntry(
        meaning=ScoreMeaning(
            "personalized PageRank of the node for the query's seeds", "probability; all nodes of a query sum to 1"
        ),
        options=frozenset(
            {"restart", "damping", "max_iterations", "tolerance", "stop", "dangling"}
            | {"source_normalization", "seed_source_weight"}
        ),
        candidate_columns=(),
        requirements=ppr_requirements,
        start=start_ppr,
    ),
}


def check_method_options(options: ScoreOptions) -> None:
    """Refuse options that were given although the method does not use them.

    Raises
    ------
    ConfigError
        Naming the methods that use the first of them.
    """
    used = METHODS[options.method].options
    for name in ScoreOptions.model_fields:
        users = [method for method, entry in METHODS.items() if name in entry.options]
        if users and name not in used and name in options.model_fields_set and getattr(options, name) is not None:
            flag = f"--{name.replace('_', '-')}"
            raise ConfigError(
                f"{flag} is given, but --method {options.method} does not use it",
                expected=f"{flag} together with --method {' or '.join(users)}",
                fix=f"drop {flag}, or choose another --method",
            )


def table_facts(options: ScoreOptions) -> dict[str, Any]:
    """Return the parameters that the metadata of both result tables names: those that make the numbers."""
    values = options.model_dump(mode="json")
    own = {name: values[name] for name in sorted(METHODS[options.method].options - {"damping"})}
    if "restart" in own:
        several = options.restart_probabilities
        own["restart"] = list(several) if len(several) > 1 else several[0]
    return {**{name: values[name] for name in ("method", "direction", "precision", "top_k")}, **own}
