"""Options of `score`: all groups together, and what holds between them."""

from __future__ import annotations

import math
from typing import Any

from pydantic import field_validator, model_validator

from seedrank.config.build import BuildOptions
from seedrank.config.fusion import FusionOptions
from seedrank.config.hits import HitOptions, SeedOptions
from seedrank.config.method import MethodOptions
from seedrank.config.names import HIT_SCORES, WALK_RESTART
from seedrank.config.output import OutputOptions
from seedrank.config.planner import PlannerOptions
from seedrank.config.run import RunOptions
from seedrank.presets import preset_values


class ScoreOptions(
    RunOptions,
    OutputOptions,
    FusionOptions,
    SeedOptions,
    PlannerOptions,
    MethodOptions,
    HitOptions,
    BuildOptions,
):
    """Options of ``seedrank score``; those of an edge list (see `BuildOptions`) come first, those of the run last."""

    @model_validator(mode="before")
    @classmethod
    def _filled_in(cls, values: Any) -> Any:
        """Put in what preset and method give to options that are not given."""
        if not isinstance(values, dict):
            return values
        filled = preset_values(values)
        fused = {**filled, **values}
        if values.get("method") in ("fuse", "auto"):
            fused.setdefault("fusion", "rrf")
        if fused.get("fusion", "none") != "none" or values.get("method") in HIT_SCORES:
            fused.setdefault("include_seeds", True)
        return fused

    @field_validator("restart", "damping", mode="before")
    @classmethod
    def _one_is_a_list_of_one(cls, value: Any) -> Any:
        if value is None:
            return ()
        return value if isinstance(value, list | tuple) else (value,)

    @field_validator("type_weight", "seed_source_weight", "source_weight")
    @classmethod
    def _weights_are_not_negative(cls, value: dict[str, float]) -> dict[str, float]:
        for name, weight in value.items():
            if not (math.isfinite(weight) and weight >= 0):
                msg = f"the weight of {name!r} is {weight}, it must be a number >= 0"
                raise ValueError(msg)
        return value

    @model_validator(mode="after")
    def _one_name_for_the_restart(self) -> ScoreOptions:
        if self.damping and "restart" in self.model_fields_set:
            msg = "restart and damping are one setting (damping = 1 - restart) and both are given: give one of them"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _certificates_need_a_bound(self) -> ScoreOptions:
        if self.stop == "top-k" and self.tolerance == 0:
            msg = "--stop top-k is given with --tolerance 0, which fixes the number of iterations: give a tolerance > 0"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _several_restarts_share_their_products(self) -> ScoreOptions:
        given = self.damping or self.restart
        if not given:
            msg = "restart is given without a value: give one or more"
        elif len(set(given)) < len(given):
            msg = "a restart probability is given twice: give each once"
        elif len(given) > 1 and self.tolerance == 0:
            msg = "several restart probabilities need --tolerance > 0: each ends at its own iteration"
        elif len(given) > 1 and self.stop != "tolerance":
            msg = "several restart probabilities are given with --stop top-k: give one, or drop --stop"
        else:
            return self
        raise ValueError(msg)

    @property
    def ranks_hits(self) -> bool:
        """Whether hits are ranked, and may be candidates although the graph does not have them."""
        return self.fuses_hits or self.scores_hits

    @property
    def fuses_hits(self) -> bool:
        """Whether hits are ranked by a fusion, if only of the queries for which the graph brings nothing."""
        return self.fusion != "none" or self.fallback != "none"

    @property
    def scores_hits(self) -> bool:
        """Whether hits are ranked by what their stores say of them."""
        return self.method in HIT_SCORES

    @property
    def uses_ranks(self) -> bool:
        """Whether positions in the lists of the sources matter."""
        return self.ranks_reciprocally or self.seed_weighting == "rank"

    @property
    def ranks_reciprocally(self) -> bool:
        """Whether lists are fused by reciprocal ranks, all of them or those of some queries."""
        return "rrf" in (self.fusion, self.fallback)

    @property
    def restart_probabilities(self) -> tuple[float, ...]:
        """Every λ, whichever of the two names it was given by, ascending; each in (0, 1]. Walks default to another."""
        if self.damping:
            return tuple(sorted(1.0 - value for value in self.damping))
        if self.method == "walk" and "restart" not in self.model_fields_set:
            return (WALK_RESTART,)
        return tuple(sorted(self.restart))

    @property
    def restart_probability(self) -> float:
        """λ, where there is one; the lowest of several."""
        return self.restart_probabilities[0]
