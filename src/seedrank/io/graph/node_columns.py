"""Columns of a graph's nodes by name: the attributes of the node table, and the ids."""

from __future__ import annotations

import difflib

import pyarrow as pa

from seedrank.errors import InputDataError
from seedrank.io.graphstore import GraphStore


def node_column(store: GraphStore, name: str, *, option: str) -> pa.Array:
    """Return a column over the nodes of a graph, in the order of tie ranks.

    The ids go by the name that they have in the node table; the types are called ``type`` whatever they were.

    Parameters
    ----------
    store : the graph, of n nodes.
    name : of an attribute, or of the ids.
    option : what the user wrote the name for.

    Returns
    -------
    Array of n values; null where the node table does not have the node, or no value for it.

    Raises
    ------
    InputDataError
        The graph has no attributes, or none of this name.
    """
    attributes = store.attributes
    if attributes is not None and name in attributes.column_names:
        column = attributes.column(name)
        return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    ids = str(store.facts.options.get("node_id_column") or "id")
    if name == ids and len(store.ids):
        return store.ids
    if attributes is None:
        raise InputDataError(
            f"{option} names the node attribute {name!r}, but the graph has no node attributes",
            expected="a node table with this column",
            fix="pass --nodes NODES with the edge list (to build, for a graph store), or drop the option",
        )
    known = [ids, *attributes.column_names]
    near = difflib.get_close_matches(name, known, n=1)
    raise InputDataError(
        f"{option} {name!r}: the nodes have no such column",
        expected="one of " + ", ".join(map(repr, known[:50])),
        fix=f"did you mean {near[0]!r}?" if near else "correct the name",
    )
