"""Options of `score` about hits: how they are read, and how they become seeds."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from seedrank.config.model import OptionModel
from seedrank.config.names import Normalization, SeedWeighting, option


class HitOptions(OptionModel):
    """Columns of the hits, or what takes their place."""

    hit_query_column: Annotated[str, option("Input")] = Field(
        "query_id", description="Query id column of the hits and exclusions."
    )
    hit_node_column: Annotated[str, option("Input")] = Field(
        "node_id", description="Node id column of the hits and exclusions."
    )
    hit_weight_column: Annotated[str, option("Input")] = Field(
        "weight", description="Weight column of the hits; without the column every hit weighs 1."
    )
    hit_source_column: Annotated[str, option("Input")] = Field("source", description="Source column of the hits.")
    hit_seeds_column: Annotated[str, option("Input")] = Field(
        "seeds", description="List column of nested hits (one row per query)."
    )
    hit_rank_column: Annotated[str, option("Input")] = Field(
        "rank",
        description="Rank column of the hits, from 1, for reciprocal rank fusion; without the column ranks follow "
        "from the weights.",
    )
    hit_retriever_weight_column: Annotated[str, option("Input")] = Field(
        "retriever_weight",
        description="Column of the factor of a hit's score, of semantic and hybrid; null or no column: 1, below 0: 0.",
    )
    fallback_node_column: Annotated[str | None, option("Input")] = Field(
        None,
        description="Column of the hits with another node id, used where the first is null or not in the graph: the "
        "document of a passage.",
    )
    all_nodes: Annotated[str | None, option("Input")] = Field(
        None, description="Make every node of this type its own query, instead of reading hits."
    )


class SeedOptions(OptionModel):
    """From hits to personalization vectors."""

    source: Annotated[tuple[str, ...], option("Seeds")] = Field(
        (), description="Use only hits of these sources (repeatable)."
    )
    source_normalization: Annotated[Normalization, option("Seeds")] = Field(
        "sum", description="How the weights of each source of a query are normalised before they are added."
    )
    seed_weighting: Annotated[SeedWeighting, option("Seeds")] = Field(
        "weight",
        description="What a hit weighs before it is normalised: its weight, 1, 1 / its rank in the list of its source, "
        "or its weight / how many neighbors of the types of --node-type the node has.",
    )
    seed_node_type: Annotated[tuple[str, ...], option("Seeds")] = Field(
        (), description="Only hits on nodes of these types are seeds (repeatable)."
    )
    seed_source_weight: Annotated[dict[str, float], option("Seeds", "SOURCE=WEIGHT")] = Field(
        {}, description="Multiply the normalised weights of a source (repeatable)."
    )
    lower_is_better: Annotated[tuple[str, ...], option("Seeds")] = Field(
        (), description="The weights of this source are distances (repeatable)."
    )
