"""What walks and traversals are given, and what they return: one form for every method of recall."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seedrank.kernels.arrays import BoolArray, Int32Array, Int64Array, Precision, ScoreArray, UInt64Array

UInt8Array = npt.NDArray[np.uint8]

LIMITS = ("", "max_hops", "max_visited_nodes", "max_visited_edges", "timeout_s")
"""Names of the limits; `RecallResult.limit` holds positions in here. The first is: none was met."""


@dataclass(frozen=True)
class RecallQueries:
    """B queries: the nodes they start from, the keys of their random numbers, and what they may not return.

    Attributes
    ----------
    anchor_offsets : int64 (B + 1)
        Query q starts from ``anchors[anchor_offsets[q]:anchor_offsets[q + 1]]``; none is fine.
    anchors : int32
        Internal nodes, within a query by ascending tie rank, each once.
    query_keys : uint64 (B)
        Hashes of the query ids. Only walks use them.
    anchor_keys : uint64, as long as `anchors`
        Hashes of the anchors' ids. Only walks use them.
    exclude_offsets : int64 (B + 1)
    exclude_nodes : int32
        Internal nodes that may be visited but not returned for a query (repeats are harmless).
    """

    anchor_offsets: Int64Array
    anchors: Int32Array
    query_keys: UInt64Array
    anchor_keys: UInt64Array
    exclude_offsets: Int64Array
    exclude_nodes: Int32Array

    @property
    def width(self) -> int:
        """Number of queries B."""
        return len(self.anchor_offsets) - 1


@dataclass(frozen=True)
class RecallLimits:
    """How far a query may go; None: as far as there is.

    A limit is checked before each step and strikes only if a step is not made because of it, so exactly enough is
    enough.

    Attributes
    ----------
    max_hops : int or None
        >= 0. Steps from an anchor. Meeting it does not truncate a result.
    max_visited_nodes : int or None
        >= 0. Distinct nodes other than the anchors that a query may visit.
    max_visited_edges : int or None
        >= 0. Steps along edges that a query may make. Parallel edges between two nodes are one edge here.
    """

    max_hops: int | None = None
    max_visited_nodes: int | None = None
    max_visited_edges: int | None = None


@dataclass(frozen=True)
class StopFlags:
    """How somebody else's clock talks to a running kernel.

    Attributes
    ----------
    stop : uint8 (B)
        Another thread may set an element to 1 at any time: that query ends at its next check, with what it has; one
        that has not begun has its anchors at most. A query that has ended already does not notice.
    started : uint8 (B)
        The kernel sets an element to 1 when it begins the query, and may set it to 2 when it has ended it.
    """

    stop: UInt8Array
    started: UInt8Array

    @classmethod
    def none(cls, width: int) -> StopFlags:
        """Flags that nobody sets."""
        return cls(stop=np.zeros(width, dtype=np.uint8), started=np.zeros(width, dtype=np.uint8))


@dataclass(frozen=True)
class RecallResult:
    """The k best nodes of B queries, and what finding them took.

    Attributes
    ----------
    nodes : int32 (B, k)
        Internal nodes by falling score, ties by tie rank; -1 after the last.
    scores : float32 or float64 (B, k)
        > 0; 0 after the last.
    counts : int32 (B)
        Number of nodes returned.
    hops : int32 (B, k)
        Steps from the anchor, as the method counts them; -1 after the last.
    anchors : int32 (B, k)
        Internal node of the anchor that the score comes from; -1 after the last.
    visit_counts : int64 (B, k)
        As the method counts them; 0 after the last.
    visited_nodes : int64 (B)
        Distinct nodes visited, other than anchors.
    visited_edges : int64 (B)
        Steps made along edges.
    limit : uint8 (B)
        Position in `LIMITS` of the limit that was met; the one that ended the query goes before ``max_hops``.
    """

    nodes: Int32Array
    scores: ScoreArray
    counts: Int32Array
    hops: Int32Array
    anchors: Int32Array
    visit_counts: Int64Array
    visited_nodes: Int64Array
    visited_edges: Int64Array
    limit: UInt8Array

    @property
    def truncated(self) -> BoolArray:
        """Whether a limit other than ``max_hops`` ended the query early (B)."""
        return self.limit > LIMITS.index("max_hops")

    @property
    def timed_out(self) -> BoolArray:
        """Whether the stop flag ended the query early (B)."""
        timed_out: BoolArray = self.limit == LIMITS.index("timeout_s")
        return timed_out

    @classmethod
    def empty(cls, width: int, k: int, precision: Precision) -> RecallResult:
        """Room for the result of so many queries: nothing visited, nothing found."""
        return cls(
            nodes=np.full((width, k), -1, dtype=np.int32),
            scores=np.zeros((width, k), dtype=precision),
            counts=np.zeros(width, dtype=np.int32),
            hops=np.full((width, k), -1, dtype=np.int32),
            anchors=np.full((width, k), -1, dtype=np.int32),
            visit_counts=np.zeros((width, k), dtype=np.int64),
            visited_nodes=np.zeros(width, dtype=np.int64),
            visited_edges=np.zeros(width, dtype=np.int64),
            limit=np.zeros(width, dtype=np.uint8),
        )
