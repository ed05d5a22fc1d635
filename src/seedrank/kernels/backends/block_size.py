"""How many queries are scored together."""

from __future__ import annotations

from collections.abc import Callable

from seedrank.errors import ResourceError


def choose_block_size(
    bytes_per_query: int,
    budget_bytes: int,
    queries: int,
    maximum: int = 64,
    *,
    stored_columns: Callable[[int], int] = lambda width: width,
) -> int:
    """Choose the widest block that fits the budget, at most `maximum` and at most the number of queries.

    The width changes speed and memory only, never a bit of the result.

    Parameters
    ----------
    bytes_per_query : int
        Memory of one column.
    budget_bytes : int
        Memory that blocks may use.
    queries : int
        Number of queries; for 0 the width is 1.
    maximum : int
        >= 1
    stored_columns : callable
        Columns in memory of a block of so many queries: at least as many.

    Returns
    -------
    int
        1 … maximum

    Raises
    ------
    ResourceError
        Not even one column fits.
    """
    for width in range(max(1, min(queries, maximum)), 0, -1):
        if stored_columns(width) * bytes_per_query <= budget_bytes:
            return width
    needed = stored_columns(1) * bytes_per_query
    raise ResourceError(
        f"one query needs {needed / 1e6:,.1f} MB, {budget_bytes / 1e6:,.1f} MB are left beside the graph",
        expected="memory for at least one query",
        fix="raise --memory-limit or run on a machine with more memory",
    )
