"""Options of `score` about the result."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator

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
    exclude_neighbors: Annotated[bool, option("Output")] = Field(
        False,
        description="Do not return what an edge of a seed leads to (what is known already): the targets of its edges, "
        "with --direction in their sources.",
    )
    where: Annotated[tuple[str, ...], option("Output", "COLUMN=VALUE")] = Field(
        (),
        description="Return only nodes with this value of a node attribute; values of one column are alternatives, "
        "different columns must all hold (repeatable).",
    )
    require: Annotated[tuple[str, ...], option("Output", "COLUMN")] = Field(
        (), description="Return only nodes that have this attribute: not null, no empty text or list (repeatable)."
    )
    include_glob: Annotated[tuple[str, ...], option("Output", "COLUMN=GLOB")] = Field(
        (),
        description="Return only nodes whose path in this column matches: * and ? stay within a directory, ** crosses "
        "them (repeatable, like --where).",
    )
    exclude_glob: Annotated[tuple[str, ...], option("Output", "COLUMN=GLOB")] = Field(
        (), description="Return no node whose path in this column matches (repeatable)."
    )
    no_tests: Annotated[str | None, option("Output", "COLUMN")] = Field(
        None, description="Return no node whose path in this column is that of test code."
    )
    group_by: Annotated[str | None, option("Output", "COLUMN")] = Field(
        None,
        description="Rank groups of nodes with equal values of this node attribute, by their best member, and list "
        "their members; --top-k counts groups.",
    )
    paths: Annotated[bool, option("Output")] = Field(
        False, description="Return the shortest path from a seed with every candidate."
    )
    part_size: Annotated[int, option("Output", "queries")] = Field(
        4096, ge=1, le=10_000_000, description="Queries per output file."
    )

    @field_validator("where", "include_glob", "exclude_glob")
    @classmethod
    def _pairs_have_both_sides(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for pair in value:
            column, separator, _ = pair.partition("=")
            if not (column and separator):
                msg = f"a column and a value, joined by =; {pair!r} has {'no column' if separator else 'no ='}"
                raise ValueError(msg)
        return value
