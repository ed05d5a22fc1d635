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
    "node_vectors": "the node vectors",
    "query_vectors": "the query vectors",
}
#: The inputs that make a query set; a run records each under this name.
QUERY_INPUTS = ("queries", "query_info", "exclude", "node_vectors", "query_vectors")


@dataclass(frozen=True)
class JobInputs:
    """The inputs of a job, as the user names them; None where there is none.

    Attributes
    ----------
    graph : graph store, or an edge list.
    queries, query_info, nodes, exclude : hits (also as a `HitTable`, which has been read already), attributes of
        queries, node table and exclusions.
    node_vectors, query_vectors : vectors, both or neither.
    """

    graph: Any = None
    queries: Any = None
    query_info: Any = None
    nodes: Any = None
    exclude: Any = None
    node_vectors: Any = None
    query_vectors: Any = None

    def by_description(self) -> Mapping[str, Any]:
        """Return every input by what messages call it."""
        return {description: getattr(self, name) for name, description in DESCRIPTIONS.items()}
