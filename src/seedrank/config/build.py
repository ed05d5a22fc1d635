"""Options of `build`."""

from __future__ import annotations

from typing import Annotated

from pydantic import ByteSize, Field

from seedrank.config.model import OptionModel
from seedrank.config.names import BadRows, DuplicateEdges, NullWeight, option


class BuildOptions(OptionModel):
    """Options of ``seedrank build``: how an edge list becomes a graph store."""

    src_column: Annotated[str, option("Input")] = Field("src", description="Column of the edge's source id.")
    dst_column: Annotated[str, option("Input")] = Field("dst", description="Column of the edge's target id.")
    weight_column: Annotated[str, option("Input")] = Field(
        "weight", description="Column of the edge weight; without the column every edge weighs 1."
    )
    type_column: Annotated[str, option("Input")] = Field(
        "type", description="Column of the edge type; without the column edges have no type."
    )
    node_id_column: Annotated[str, option("Input")] = Field("id", description="Id column of the node table.")
    node_type_column: Annotated[str, option("Input")] = Field("type", description="Type column of the node table.")
    duplicate_edges: Annotated[DuplicateEdges, option("Graph")] = Field(
        "sum", description="How rows with equal (src, dst, type) become one edge; unweighted rows count 1."
    )
    null_weight: Annotated[NullWeight, option("Graph")] = Field(
        "error", description="What a null edge weight means: refuse the input, drop the row, or weight 1."
    )
    on_bad_rows: Annotated[BadRows, option("Graph")] = Field(
        "error",
        description="Rows with a null endpoint or a NaN, infinite or negative weight: refuse the input, or drop "
        "and count them.",
    )
    memory_limit: Annotated[ByteSize | None, option("Run", "bytes, or 12GiB")] = Field(
        None,
        description="Memory that the edges of a graph being built, or the block of scores, may plan with, shared out "
        "among --workers; by default half of what is free. Edges that need more go through temporary files; a graph "
        "that does not fit beside its block is streamed, and then counts.",
    )
    overwrite: Annotated[bool, option("Run")] = Field(
        False, description="Replace an earlier result at the output path (never anything else)."
    )
    work_dir: Annotated[str | None, option("Run")] = Field(
        None,
        description="Local folder for graph stores of URLs and unfinished parts of runs on object stores; by default "
        "seedrank in the user's cache folder.",
    )
