"""How much memory a build may take, and whether its edges fit into that."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from pathlib import Path

from seedrank.errors import ResourceError
from seedrank.io.edge_rows import EdgeColumns
from seedrank.io.encoded_edges import EncodedEdges
from seedrank.io.spill import Spill
from seedrank.io.tables import TableInput
from seedrank.jobs.resources import DEFAULT_SHARE, available_memory

log = logging.getLogger(__name__)

#: A build may always take so much: below, buckets would be too small to be worth their files.
LEAST_BYTES = 64 << 20

# What compiled code and Arrow's buffers will take, which are not there yet when the free memory is asked for.
_LIBRARIES = 256 << 20
# A stream says too late how long it is: so much of the memory holds its rows before they go to files.
_STREAM_SHARE = 0.25
# Bytes that a row of the edge list takes while all are in memory: both ends, the packed edge twice, a count, and in
# both CSRs the neighbor and a weight, which edges that are there twice get in any case; a weight as read, and twice
# with the packed edge; a type as read and in both.
_ROW, _WEIGHT, _TYPE = 4 + 4 + 8 + 8 + 4 + 2 * (4 + 8), 8 + 2 * 8, 4 + 2 * 4
# Of a bucket: the packed edges twice, a count, what is unpacked; weights twice, and those that are unpacked.
_BUCKET_ROW, _BUCKET_WEIGHT = 8 + 8 + 8 + 8, 8 + 8
# Of a node while edges are in buckets: both degrees, their sum and its order, both numbers, both offsets.
_NODE = 2 * 8 + 2 * 8 + 2 * 4 + 2 * 2 * 8


@dataclass(frozen=True, eq=False)
class BuildSpace:
    """Where the edges of one build are: all in memory, or in files where they do not fit.

    Parameters
    ----------
    table : TableInput
        The opened edge list.
    columns : EdgeColumns
    memory : int
        Bytes that the build may plan with.
    rows : int or None
        Rows of the table by its footers; None where it is a stream, whose end is not known.
    weighted, typed : bool
        Whether the table has weights and types.
    """

    table: TableInput
    columns: EdgeColumns
    memory: int
    rows: int | None
    weighted: bool
    typed: bool

    @classmethod
    def of(cls, table: TableInput, columns: EdgeColumns, memory_limit: int | None) -> BuildSpace:
        """Plan with what the footers say."""
        rows = [part.rows for part in table.parts]
        weighted, typed = (table.filled_parts[0].type_of(name) is not None for name in (columns.weight, columns.type))
        known = None if None in rows else sum(number for number in rows if number)
        return cls(table, columns, build_memory(memory_limit), known, weighted, typed)

    def spill(self, folder: Path) -> Spill:
        """Return where the rows wait while they are read.

        Raises
        ------
        StorageError
            They go to files, and the disk has no space for them.
        """
        if self.rows is None:
            return Spill(folder, memory=self.memory * _STREAM_SHARE)
        if memory_of_rows(self.rows, weighted=self.weighted, typed=self.typed) <= self.memory:
            return Spill(folder, memory=math.inf)
        spill = Spill(folder, memory=0)
        # The rows as they were read, and packed in buckets while the former are still there.
        size = self.rows * (8 + 8 + self.weighted * (8 + 8) + self.typed * 4)
        spill.require(size, "building a graph that does not fit into memory")
        return spill

    def holds(self, edges: EncodedEdges) -> bool:
        """Whether all edges fit into memory, now that they were read; logs where they do not."""
        needed = memory_of_rows(edges.kept_rows, weighted=edges.weighted, typed=edges.typed)
        if needed <= self.memory:
            return True
        log.info(
            "build_bucketed",
            extra={"rows": edges.kept_rows, "needed_bytes": needed, "memory_bytes": self.memory},
        )
        return False


def build_memory(memory_limit: int | None) -> int:
    """Bytes that a build may plan with."""
    if memory_limit is not None:
        return max(int(memory_limit), LEAST_BYTES)
    return max(int(available_memory() * DEFAULT_SHARE) - _LIBRARIES, LEAST_BYTES)


def memory_of_rows(rows: int, *, weighted: bool, typed: bool) -> int:
    """Bytes that a build of so many rows takes when all edges are in memory, beside the ids."""
    return rows * (_ROW + weighted * _WEIGHT + typed * _TYPE)


def bucket_rows(memory: int, nodes: int) -> int:
    """Edges that one bucket may have.

    Raises
    ------
    ResourceError
        What is kept of every node takes all of the memory.
    """
    # Edges that are there twice get weights even where the list has none.
    rows = (memory - _NODE * nodes) // (_BUCKET_ROW + _BUCKET_WEIGHT)
    if rows * (_BUCKET_ROW + _BUCKET_WEIGHT) < LEAST_BYTES // 8:
        raise ResourceError(
            f"{nodes:,} nodes take {_NODE * nodes / 1e6:,.0f} MB beside their ids, "
            f"the build may plan with {memory / 1e6:,.0f} MB",
            expected="memory for every node: only what grows with the edges goes to files",
            fix="raise --memory-limit, or build on a machine with more memory",
        )
    return int(rows)
