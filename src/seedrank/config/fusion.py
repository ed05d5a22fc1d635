"""Options of `score` about fusion."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from seedrank.config.model import OptionModel
from seedrank.config.names import GRAPH_CHANNEL, Fallback, Fusion, option


class FusionOptions(OptionModel):
    """How several rankings become one."""

    fusion: Annotated[Fusion, option("Fusion")] = Field(
        "none",
        description="Rank the hits of the sources and what the graph brings together: by reciprocal ranks, or by "
        "weighted scores between 0 and 1. With fuse, rrf by default.",
    )
    source_weight: Annotated[dict[str, float], option("Fusion", "SOURCE=WEIGHT")] = Field(
        {},
        description=f"Weight of a source in the fusion, 1 by default; {GRAPH_CHANNEL} is what the graph brings, 0 "
        "silences (repeatable).",
    )
    rrf_k: Annotated[int, option("Fusion")] = Field(
        60, ge=0, le=1_000_000, description="k of reciprocal rank fusion, 1 / (k + rank)."
    )
    fusion_depth: Annotated[int, option("Fusion", "candidates")] = Field(
        1000, ge=1, le=2**31 - 1, description="How many of the best nodes of the graph take part in the fusion."
    )
    fallback: Annotated[Fallback, option("Fusion")] = Field(
        "none", description="What a query returns for which the graph brings nothing: its hits by reciprocal ranks."
    )
