"""What a job reads, in one place: ``score``, ``plan`` and ``check`` take the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: What messages call every input.
DESCRIPTIONS = {
    "graph": "the graph",
    "queries": "the hits",
    "query_info": "the query attributes",
    "nodes": "the node table",
    "exclude": "the exclusions",
}
#: The inputs that make a query set; a run records each under this name.
QUERY_INPUTS = ("queries", "query_info", "exclude")


@dataclass(frozen=True)
class JobInputs:
    """The inputs of a job, as the user names them; None where there is none.

    Attributes
    ----------
    graph : graph store, or an edge list.
    queries, query_info, nodes, exclude : hits, attributes of queries, node table and exclusions.
    """

    graph: Any = None
    queries: Any = None
    query_info: Any = None
    nodes: Any = None
    exclude: Any = None

    def by_description(self) -> Mapping[str, Any]:
        """Return every input by what messages call it."""
        return {description: getattr(self, name) for name, description in DESCRIPTIONS.items()}
