"""Options of `score` about the result."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from seedrank.config.model import OptionModel
from seedrank.config.names import option


class OutputOptions(OptionModel):
    """Which candidates a query returns, and what is written of them."""

    top_k: Annotated[int, option("Output", "candidates")] = Field(
        100, ge=1, le=2**31 - 1, description="Candidates per query."
    )
    node_type: Annotated[tuple[str, ...], option("Output")] = Field(
        (), description="Return only nodes of these types (repeatable)."
    )
    include_seeds: Annotated[bool, option("Output")] = Field(
        False, description="Whether the hits of a query may be among its candidates; yes by default with fusion."
    )
    min_score: Annotated[float, option("Output", "score")] = Field(
        0.0, ge=0, le=1e9, description="Return only candidates with at least this score."
    )
    paths: Annotated[bool, option("Output")] = Field(
        False, description="Return the shortest path from a seed with every candidate."
    )
    part_size: Annotated[int, option("Output", "queries")] = Field(
        4096, ge=1, le=10_000_000, description="Queries per output file."
    )
