"""The arguments that compiled walks and traversals share, as tuples of arrays and numbers of fixed types."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from seedrank.kernels.arrays import BoolArray, Precision
from seedrank.kernels.recall.forms import RecallLimits, RecallQueries, RecallResult, StopFlags
from seedrank.kernels.recall.recall_graph import FollowedRows

NO_LIMIT = np.iinfo(np.int64).max

ElementT = TypeVar("ElementT", bound=np.generic)


def read_only(array: npt.NDArray[ElementT]) -> npt.NDArray[ElementT]:
    """A plain, contiguous, read-only view: mapped and ordinary arrays then run the same compiled code."""
    view = np.ascontiguousarray(array).view(np.ndarray)
    view.flags.writeable = False
    return view


def row_arguments(rows: tuple[FollowedRows, ...]) -> tuple[Any, ...]:
    """Offsets and neighbors of both directions (of the only one twice), and whether there are two."""
    pairs = [(read_only(side.offsets), read_only(side.neighbors)) for side in (rows[0], rows[-1])]
    return (*pairs[0], *pairs[1], len(rows) == 2)


def query_arguments(queries: RecallQueries) -> tuple[Any, ...]:
    """Anchor offsets, anchors, exclusion offsets, exclusions."""
    arrays = (queries.anchor_offsets, queries.anchors, queries.exclude_offsets, queries.exclude_nodes)
    return tuple(read_only(array) for array in arrays)


def limit_arguments(limits: RecallLimits) -> tuple[int, int, int]:
    """Most hops, visited nodes and visited edges."""
    given = (limits.max_hops, limits.max_visited_nodes, limits.max_visited_edges)
    hops, nodes, edges = (NO_LIMIT if limit is None else limit for limit in given)
    return hops, nodes, edges


def filter_arguments(eligible: BoolArray | None, min_score: float, precision: Precision) -> tuple[Any, ...]:
    """Eligible nodes (of length 0: all), the lowest score that counts, and the smallest positive number."""
    kind = np.dtype(precision).type
    mask = np.zeros(0, dtype=np.bool_) if eligible is None else eligible
    smallest = np.nextafter(kind(0), kind(1))
    return read_only(mask), max(kind(min_score), smallest), smallest


def flag_arguments(flags: StopFlags | None, width: int) -> tuple[Any, ...]:
    """Stop flags and started flags."""
    used = StopFlags.none(width) if flags is None else flags
    return used.stop, used.started


def result_arguments(result: RecallResult) -> tuple[Any, ...]:
    """Where queries leave what they found: five arrays (B, k), then four (B)."""
    return (
        result.nodes,
        result.scores,
        result.hops,
        result.anchors,
        result.visit_counts,
        result.counts,
        result.visited_nodes,
        result.visited_edges,
        result.limit,
    )
