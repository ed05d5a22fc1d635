"""How many queries are scored together."""

from __future__ import annotations

from seedrank.errors import ResourceError


def choose_block_size(bytes_per_query: int, budget_bytes: int, queries: int, maximum: int = 64) -> int:
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

    Returns
    -------
    int
        1 … maximum

    Raises
    ------
    ResourceError
        Not even one column fits.
    """
    fitting = budget_bytes // max(bytes_per_query, 1)
    if fitting < 1:
        raise ResourceError(
            f"one query needs {bytes_per_query / 1e6:,.1f} MB, {budget_bytes / 1e6:,.1f} MB are left beside the graph",
            expected="memory for at least one query",
            fix="raise --memory-limit or run on a machine with more memory",
        )
    return max(1, min(fitting, queries, maximum))
