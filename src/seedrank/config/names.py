"""Names that options take as values, and what the command line shows of an option."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

Group = Literal["Input", "Graph", "Method", "Seeds", "Fusion", "Output", "Run"]
Direction = Literal["out", "in", "both"]
Dangling = Literal["seeds", "self", "uniform"]
DuplicateEdges = Literal["sum", "max", "min", "mean"]
NullWeight = Literal["error", "drop", "one"]
BadRows = Literal["error", "drop"]
Normalization = Literal["sum", "none", "minmax", "max"]
SeedWeighting = Literal["weight", "uniform", "rank", "specificity"]
Precision = Literal["float32", "float64"]
BackendName = Literal["auto", "cpu", "cugraph", "gpu", "scipy"]
GraphForm = Literal["auto", "resident", "streamed"]
Method = Literal["ppr", "walk", "bfs", "dfs", "neighbors", "fuse", "semantic", "hybrid", "auto"]
Fusion = Literal["rrf", "weighted", "none"]
Fallback = Literal["rrf", "none"]
Stop = Literal["tolerance", "top-k"]
Rerank = Literal["vectors", "none"]
Resume = Literal["auto", "never"]
Budget = Literal["fast", "balanced", "thorough"]
SourceRole = Literal["dense", "sparse", "graph"]

#: Restart probability of a walk that is given none: walks are for going some way, PageRank for staying near.
WALK_RESTART = 0.2

#: Methods that rank hits by their own scores.
HIT_SCORES = ("semantic", "hybrid")

#: Name of the channel that brings what a method found in the graph, beside the sources of the hits.
GRAPH_CHANNEL = "graph"

#: Source of the hits that a search among vectors brings.
VECTOR_SOURCE = "vectors"

#: Sources that have a role by their name alone. One that is called as the channel of the graph is refused anyway.
ROLES_BY_NAME: Mapping[str, SourceRole] = {"dense": "dense", "sparse": "sparse", VECTOR_SOURCE: "dense"}

#: How an option's value came about, weakest first. ``argument`` is a keyword argument of the Python call.
ORIGINS = ("default", "preset", "file", "env", "flag", "argument")


class OptionInfo(NamedTuple):
    """What the command line shows of an option besides its type and range."""

    group: Group
    unit: str = ""


def option(group: Group, unit: str = "") -> OptionInfo:
    """Annotate an option with its group in the help, and its unit."""
    return OptionInfo(group, unit)
