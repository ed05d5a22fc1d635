"""Counting queries without reading hits: only the query id column is touched. What ``plan`` stands on."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from seedrank.errors import InputDataError
from seedrank.io.arrow.columns import bad_rows, id_type_of, null_rows, require_column
from seedrank.io.ids import IdEncoder
from seedrank.io.records import InputFileRecord
from seedrank.io.tables import TableInput, TableSource


class QueryIds(NamedTuple):
    """Sorted distinct query ids, how many rows carry them, and the table, whose other columns have not been read."""

    query_ids: pa.Array
    rows: int
    records: list[InputFileRecord]
    table: TableInput


def read_query_ids(source: TableSource, *, column: str, what: str = "queries") -> QueryIds:
    """Read the query id column of hits, long or nested, or of attributes of queries.

    Parameters
    ----------
    source : TableSource
        Path, folder, glob, URL, table, Arrow stream, or a list of these.
    column : str
        Name of the query id column.
    what : str
        What messages call the table.

    Raises
    ------
    InputDataError
        The column is missing, not an id, or has nulls.
    """
    table = TableInput.open(source, what=what)
    require_column(table, "query id", column)
    encoder = IdEncoder(id_type_of(table, column), what="query ids")
    rows = 0
    for batch in table.batches([column]):
        values = batch.table.column(column)
        missing = null_rows(values)
        if missing.any():
            raise InputDataError(
                bad_rows(batch, missing, column, "is null", show=[column]),
                expected="a query id in every row",
                fix="remove these rows, or write the id",
            )
        rows += len(values)
        encoder.include(values)
    return QueryIds(encoder.finish()[1], rows, table.records, table)
