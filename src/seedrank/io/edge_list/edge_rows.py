"""Which columns an edge list has, and which of its rows are good."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seedrank.errors import InputDataError
from seedrank.io.arrow.columns import bad_rows, null_rows, numbers_of
from seedrank.io.tables import Batch

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


def clean_batch(
    batch: Batch, columns: EdgeColumns, weighted: bool, null_weight: NullWeight, on_bad_rows: BadRows
) -> tuple[pa.RecordBatch, npt.NDArray[np.float64] | None, int]:
    """Judge one batch of an edge list.

    Parameters
    ----------
    batch : Batch
        With the columns of both endpoints, and of the weight if the list is ``weighted``.
    columns, null_weight, on_bad_rows
        See `seedrank.io.edges.read_edges`.

    Returns
    -------
    rows : pyarrow.RecordBatch
        The good rows.
    weight : ndarray, shape (good rows,), float64, or None
        Finite and not negative; None if the list has no weights.
    lost : int
        Number of rows left out.

    Raises
    ------
    InputDataError
        A bad row that no policy covers.
    """
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
