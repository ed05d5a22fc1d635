"""What a job reads, in one place: ``score``, ``plan`` and ``check`` take the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from seedrank.io.matrix import is_pair

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
    queries, query_info, nodes, exclude : hits, attributes of queries, node table and exclusions.
    node_vectors, query_vectors : vectors, both or neither; those of queries may be among their attributes.

    What is not a graph may have been read already: `HitTable`, `JobQueryInfo`, `ExclusionTable`, `VectorSide` of nodes,
    `VectorTable` of queries.
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


def held_in_memory(inputs: JobInputs) -> JobInputs:
    """Return the same inputs with streams that can be read only once as tables that can be read again."""
    return JobInputs(
        graph=inputs.graph, nodes=inputs.nodes, **{name: _held(getattr(inputs, name)) for name in QUERY_INPUTS}
    )


def _held(source: Any) -> Any:
    if isinstance(source, (list, tuple)) and not is_pair(source):
        return [_held(entry) for entry in source]
    if isinstance(source, pa.Table) or not hasattr(source, "__arrow_c_stream__"):
        return source
    return pa.RecordBatchReader.from_stream(source).read_all()
