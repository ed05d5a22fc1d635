"""Edge lists: rows (src, dst[, weight][, type]) in, 32-bit positions among the sorted ids out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seedrank.io.edge_list.edge_rows import BadRows, EdgeColumns, NullWeight
from seedrank.io.edge_list.encoded_edges import EncodedEdges, encode_edges
from seedrank.io.nodes import NodeTable
from seedrank.io.records import InputFileRecord
from seedrank.io.storage.spill import Spill
from seedrank.io.tables import TableInput, TableSource


@dataclass(frozen=True, eq=False)
class EdgeList:
    """A validated edge list over tie ranks (positions among the sorted ids).

    Parameters
    ----------
    ids : pyarrow.Array, length n
        Distinct ids of all endpoints and of the node table, sorted.
    source, target : ndarray, shape (m,), int32
        Tie ranks of the endpoints; duplicates are kept, in the order of the input.
    weight : ndarray, shape (m,), float64, or None
        Positive and finite, as given; None without a weight column.
    edge_type : ndarray, shape (m,), int32, or None
        Position in ``type_names``; None without a type column.
    type_names : tuple of str or None
        Sorted by code point; the null type is None and last.
    rows : int
        Rows read.
    dropped_rows : int
        Bad rows left out under a policy; they bring no endpoints.
    zero_weight_rows : int
        Rows of weight 0: no edge, but their endpoints exist.
    records : list of InputFileRecord
        What was read.
    """

    ids: pa.Array
    source: npt.NDArray[np.int32]
    target: npt.NDArray[np.int32]
    weight: npt.NDArray[np.float64] | None
    edge_type: npt.NDArray[np.int32] | None
    type_names: tuple[str | None, ...]
    rows: int
    dropped_rows: int
    zero_weight_rows: int
    records: list[InputFileRecord]


def read_edges(
    source: TableSource,
    columns: EdgeColumns | None = None,
    *,
    null_weight: NullWeight = "error",
    on_bad_rows: BadRows = "error",
    nodes: NodeTable | None = None,
) -> EdgeList:
    """Read and validate an edge list in one streaming pass.

    Parameters
    ----------
    source : TableSource
        Path, folder, glob, URL, table, Arrow stream, or a list of these.
    columns : EdgeColumns, optional
        Column names.
    null_weight : {"error", "drop", "one"}
        What a null weight means: refuse, leave the row out, or weight 1.
    on_bad_rows : {"error", "drop"}
        Null endpoints, and weights that are NaN, infinite or negative: refuse, or leave the rows out and
        count them.
    nodes : NodeTable, optional
        Nodes that exist beside the endpoints.

    Returns
    -------
    EdgeList
        The arrays depend on the order of the input only in their own order.

    Raises
    ------
    InputDataError
        Missing columns, a weight or type column in some files only, ids that cannot be compared, bad rows, a
        sum of weights that is not finite, more than 2^31 - 1 nodes.
    """
    encoded = encode_edges(
        TableInput.open(source, what="edges"),
        columns or EdgeColumns(),
        null_weight=null_weight,
        on_bad_rows=on_bad_rows,
        nodes=nodes,
        spill=Spill(Path(), memory=math.inf),  # nothing goes to files
    )
    return edge_list_of(encoded)


def edge_list_of(encoded: EncodedEdges) -> EdgeList:
    """Bring a whole edge list into memory; uses the encoded one up."""
    source, target, weight, edge_type = encoded.in_memory()
    return EdgeList(
        ids=encoded.ids,
        source=source,
        target=target,
        weight=weight,
        edge_type=edge_type,
        type_names=encoded.type_names,
        rows=encoded.rows,
        dropped_rows=encoded.dropped_rows,
        zero_weight_rows=encoded.zero_weight_rows,
        records=encoded.records,
    )
