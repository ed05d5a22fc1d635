"""The graph as the options of a job want it followed: one direction or both, with the weights of edge types."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seedrank.config import ScoreOptions
from seedrank.errors import InputDataError
from seedrank.io.graph.graph_files import StoredRows
from seedrank.io.graphstore import GraphStore
from seedrank.kernels.building.adjacency import Adjacency
from seedrank.kernels.recall.recall_graph import RecallGraph, build_recall_graph


def followed_graph(store: GraphStore, options: ScoreOptions) -> RecallGraph:
    """Apply direction and edge types of the options to a store; mapped arrays are used as they are where possible.

    Raises
    ------
    InputDataError
        An edge type that no edge has.
    """
    return build_recall_graph(
        adjacency(store.by_source),
        adjacency(store.by_destination),
        np.asarray(store.order),
        direction=options.direction,
        type_weights=type_weights(options, store.facts.edge_types),
    )


def adjacency(rows: StoredRows) -> Adjacency:
    """Return one of the two CSRs of a store as kernels take it; the arrays stay mapped."""
    return Adjacency(offsets=rows.offsets, neighbors=rows.neighbors, weights=rows.weights, types=rows.types)


def type_weights(options: ScoreOptions, edge_types: list[str | None]) -> npt.NDArray[np.float64] | None:
    """Weight of every edge type of the graph, or None when the options leave all at 1.

    Raises
    ------
    InputDataError
        A name that no edge has.
    """
    if not options.edge_type and not options.type_weight:
        return None
    for option, names in (("--edge-type", options.edge_type), ("--type-weight", tuple(options.type_weight))):
        unknown = [name for name in names if name not in edge_types]
        if unknown:
            known = [repr(name) for name in edge_types if name is not None][:20]
            raise InputDataError(
                f"{option} {unknown[0]!r}: no edge has this type",
                expected="one of " + ", ".join(known) if known else "an edge list with a type column",
                fix="correct the name, or drop the option",
            )
    weights = np.array([1.0 if name is None else options.type_weight.get(name, 1.0) for name in edge_types])
    if options.edge_type:
        weights[[name not in options.edge_type for name in edge_types]] = 0.0
    return weights
