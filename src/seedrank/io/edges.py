"""Edge lists: rows (src, dst[, weight][, type]) in, 32-bit positions among the sorted ids out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seedrank.errors import InputDataError
from seedrank.io.columns import (
    bad_rows,
    files_of,
    has_column,
    id_type_of,
    null_rows,
    numbers_of,
    require_column,
)
from seedrank.io.ids import IdEncoder, common_id_type
from seedrank.io.names import NameEncoder, check_name_type
from seedrank.io.nodes import NodeTable
from seedrank.io.records import InputFileRecord
from seedrank.io.tables import Batch, TableInput, TableSource

NullWeight = Literal["error", "drop", "one"]
BadRows = Literal["error", "drop"]


@dataclass(frozen=True, kw_only=True)
class EdgeColumns:
    """Column names of an edge list.

    Parameters
    ----------
    src, dst : str
        Endpoints; must be there.
    weight, type : str
        Optional: if no file has the column, the graph is unweighted or untyped.
    explicit : frozenset of str
        The roles (``"weight"``, ``"type"``) that the user named; a named column must be there.
    """

    src: str = "src"
    dst: str = "dst"
    weight: str = "weight"
    type: str = "type"
    explicit: frozenset[str] = field(default_factory=frozenset)


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
    columns = columns or EdgeColumns()
    table = TableInput.open(source, what="edges")
    require_column(table, "source node", columns.src)
    require_column(table, "destination node", columns.dst)
    weighted = has_column(table, "weight", columns.weight, explicit="weight" in columns.explicit)
    typed = has_column(table, "edge type", columns.type, explicit="type" in columns.explicit)
    if typed:
        check_name_type(table, "edge type", columns.type)
    id_type = id_type_of(table, columns.src, columns.dst)
    if nodes is not None:
        first = table.filled_parts[0].place(columns.src)
        id_type = common_id_type([(id_type, first), (nodes.ids.type, nodes.place)])

    encoder = IdEncoder(id_type, columns=2, what="node ids")
    types = NameEncoder()
    weights: list[npt.NDArray[np.float64]] = []
    total = 0.0
    rows = dropped = zeros = 0
    wanted = [columns.src, columns.dst]
    wanted += [columns.weight] if weighted else []
    wanted += [columns.type] if typed else []
    if nodes is not None:
        encoder.include(nodes.ids)
    for batch in table.batches(wanted):
        rows += batch.table.num_rows
        clean, weight, lost = _clean(batch, columns, weighted, null_weight, on_bad_rows)
        dropped += lost
        if weight is not None:
            without_edge = weight == 0
            if without_edge.any():
                unlinked = clean.filter(pa.array(without_edge))
                encoder.include(unlinked.column(columns.src), unlinked.column(columns.dst))
                zeros += unlinked.num_rows
                clean, weight = clean.filter(pa.array(~without_edge)), weight[~without_edge]
            with np.errstate(over="ignore"):
                total += float(weight.sum())
            weights.append(weight)
        encoder.append(clean.column(columns.src), clean.column(columns.dst))
        if typed:
            types.append(clean.column(columns.type))
    if not np.isfinite(total):
        raise InputDataError(
            f"edges: the sum of all weights in column {columns.weight!r} is not a finite number ({files_of(table)})",
            expected="weights whose sum fits a float64 (about 1.8e308)",
            fix="divide all weights by one constant; only their ratios matter",
        )
    (source_ranks, target_ranks), ids = encoder.finish()
    codes, names = types.finish() if typed else (None, ())
    # Arrow keeps what the batches took for batches to come; there are none.
    pa.default_memory_pool().release_unused()
    return EdgeList(
        ids=ids,
        source=source_ranks,
        target=target_ranks,
        weight=np.concatenate(weights or [np.empty(0)]) if weighted else None,
        edge_type=codes,
        type_names=names,
        rows=rows,
        dropped_rows=dropped,
        zero_weight_rows=zeros,
        records=table.records,
    )


def _clean(
    batch: Batch, columns: EdgeColumns, weighted: bool, null_weight: NullWeight, on_bad_rows: BadRows
) -> tuple[pa.RecordBatch, npt.NDArray[np.float64] | None, int]:
    """Judge one batch; returns its good rows, their weights and the number of rows left out."""
    show = batch.table.schema.names
    bad = np.zeros(batch.table.num_rows, np.bool_)
    for column in (columns.src, columns.dst):
        missing = null_rows(batch.table.column(column))
        if on_bad_rows == "error" and missing.any():
            raise InputDataError(
                bad_rows(batch, missing, column, "is null", show=show),
                expected="two endpoints in every row",
                fix="remove these rows, or have them dropped and counted (--on-bad-rows drop)",
            )
        bad |= missing
    weight = None
    if weighted:
        array = numbers_of(batch.table.column(columns.weight), batch.part.place(columns.weight))
        missing = null_rows(array) & ~bad
        if null_weight == "error" and missing.any():
            raise InputDataError(
                bad_rows(batch, missing, columns.weight, "is null", show=show),
                expected="a weight in every row",
                fix="write the weights, or say what null means (--null-weight drop: no row, one: weight 1)",
            )
        # A row whose null weight is to be dropped is marked by `missing`; the filled value is never seen.
        weight = np.asarray(array.fill_null(1.0).to_numpy(zero_copy_only=False))
        impossible = ~((weight >= 0) & np.isfinite(weight)) & ~bad
        if on_bad_rows == "error" and impossible.any():
            raise InputDataError(
                bad_rows(batch, impossible, columns.weight, "is negative, NaN or infinite", show=show),
                expected="weights that are finite and not negative",
                fix="correct these rows, or have them dropped and counted (--on-bad-rows drop)",
            )
        bad |= impossible
        if null_weight == "drop":
            bad |= missing
    lost = int(np.count_nonzero(bad))
    if not lost:
        return batch.table, weight, 0
    return batch.table.filter(pa.array(~bad)), None if weight is None else weight[~bad], lost
