"""Exclusion lists: nodes that must not appear in the candidates, of one query or of all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seedrank.errors import InputDataError
from seedrank.io.arrow.columns import bad_rows, has_column, id_type_of, null_rows, require_column
from seedrank.io.ids import IdEncoder
from seedrank.io.records import InputFileRecord
from seedrank.io.tables import TableInput, TableSource

QUERY_ID = "query_id"


@dataclass(frozen=True, eq=False)
class ExclusionTable:
    """Distinct exclusions, sorted by (query, node).

    Parameters
    ----------
    query_ids : pyarrow.Array or None
        Distinct query ids, sorted; None if the list holds for every query.
    query : ndarray, shape (e,), int32, or None
        Position in ``query_ids``.
    node_ids : pyarrow.Array
        Distinct node ids, sorted.
    node : ndarray, shape (e,), int32
        Position in ``node_ids``.
    records : list of InputFileRecord
        What was read.
    """

    query_ids: pa.Array | None
    query: npt.NDArray[np.int32] | None
    node_ids: pa.Array
    node: npt.NDArray[np.int32]
    records: list[InputFileRecord]

    def place(self, column: str) -> str:
        """Name a column of the exclusions in messages."""
        return f"{column} of the exclusions in {self.records[0].uri}"


def read_exclusions(
    source: TableSource, *, query_id_column: str = QUERY_ID, node_id_column: str = "node_id"
) -> ExclusionTable:
    """Read rows ([query_id,] node_id).

    Parameters
    ----------
    source : TableSource
        Path, folder, glob, URL, table, Arrow stream, or a list of these.
    query_id_column : str, default "query_id"
        Column of the query; a table without it excludes its nodes everywhere. A column named otherwise must
        exist.
    node_id_column : str, default "node_id"
        Column of the node.

    Raises
    ------
    InputDataError
        A missing column, a query column in some files only, a null id.
    """
    table = TableInput.open(source, what="exclusions")
    require_column(table, "node id", node_id_column)
    by_query = has_column(table, "query id", query_id_column, explicit=query_id_column != QUERY_ID)
    wanted = [query_id_column, node_id_column] if by_query else [node_id_column]
    encoders = {column: IdEncoder(id_type_of(table, column), what=column) for column in wanted}
    for batch in table.batches(wanted):
        for column, encoder in encoders.items():
            array = batch.table.column(column)
            missing = null_rows(array)
            if missing.any():
                raise InputDataError(
                    bad_rows(batch, missing, column, "is null", show=wanted),
                    expected="an id in every row",
                    fix="remove these rows; to exclude a node everywhere, leave the query column out of the table",
                )
            encoder.append(array)
    (node,), node_ids = encoders[node_id_column].finish()
    if not by_query:
        return ExclusionTable(None, None, node_ids, np.unique(node), table.records)
    (query,), query_ids = encoders[query_id_column].finish()
    keys = np.unique(query.astype(np.int64) * max(len(node_ids), 1) + node)
    query, node = (part.astype(np.int32) for part in np.divmod(keys, max(len(node_ids), 1)))
    return ExclusionTable(query_ids, query, node_ids, node, table.records)
