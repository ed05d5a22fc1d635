"""Options of `score` about vectors."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from seedrank.config.model import OptionModel
from seedrank.config.names import VECTOR_SOURCE, Rerank, option


class VectorOptions(OptionModel):
    """How vectors are read, and what they are for."""

    vector_column: Annotated[str, option("Input")] = Field(
        "vector", description="Vector column of the node vectors and the query vectors; of --query-info, too."
    )
    vector_node_column: Annotated[str, option("Input")] = Field("id", description="Node id column of the node vectors.")
    vector_query_column: Annotated[str, option("Input")] = Field(
        "query_id", description="Query id column of the query vectors."
    )
    vector_depth: Annotated[int, option("Seeds", "hits")] = Field(
        100,
        ge=0,
        le=1_000_000,
        description=f"How many nodes of largest cosine become hits of a query, of the source {VECTOR_SOURCE}; 0: none, "
        "which is the default with --rerank.",
    )
    rerank: Annotated[Rerank, option("Output")] = Field(
        "none", description="Rank the first --rerank-depth candidates again by the cosines of their vectors."
    )
    rerank_depth: Annotated[int, option("Output", "candidates")] = Field(
        100, ge=1, le=1_000_000, description="How many candidates are ranked again."
    )
