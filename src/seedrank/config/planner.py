"""Options of `score` about the planner."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from seedrank.config.model import OptionModel
from seedrank.config.names import Budget, SourceRole, option


class PlannerOptions(OptionModel):
    """What the planner of ``--method auto`` may choose from."""

    budget: Annotated[Budget, option("Method")] = Field(
        "balanced",
        description="What a query may cost with --method auto: fast uses neither graph nor rerank, balanced and "
        "thorough differ in their depths. A budget in --query-info wins.",
    )
    source_role: Annotated[dict[str, SourceRole], option("Seeds", "SOURCE=ROLE")] = Field(
        {},
        description="What kind of store a source is, dense, sparse or graph; a source called dense or sparse has "
        "that role by default (repeatable).",
    )
