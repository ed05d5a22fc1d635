"""How much memory a build may take, and whether its edges fit into that."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from pathlib import Path

from seedrank.errors import ResourceError
from seedrank.io.edge_list.edge_rows import EdgeColumns
from seedrank.io.edge_list.encoded_edges import EncodedEdges
from seedrank.io.storage.spill import Spill
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
        Bytes that the edges may plan with.
    most : int
        Bytes that there are: those that the user grants, or all that is free.
    rows : int or None
        Rows of the table by its footers; None where it is a stream, whose end is not known.
    weighted, typed : bool
        Whether the table has weights and types.
    """

    table: TableInput
    columns: EdgeColumns
    memory: int
    most: int
    rows: int | None
    weighted: bool
    typed: bool

    @classmethod
    def of(cls, table: TableInput, columns: EdgeColumns, memory_limit: int | None) -> BuildSpace:
        """Plan with what the footers say."""
        rows = [part.rows for part in table.parts]
        weighted, typed = (table.filled_parts[0].type_of(name) is not None for name in (columns.weight, columns.type))
        known = None if None in rows else sum(number for number in rows if number)
        most = available_memory() if memory_limit is None else int(memory_limit)
        memory = int(most * DEFAULT_SHARE) - _LIBRARIES if memory_limit is None else most
        return cls(table, columns, max(memory, LEAST_BYTES), max(most, LEAST_BYTES), known, weighted, typed)

    def spill(self, folder: Path) -> Spill:
        """Return where the rows wait while they are read.

        Raises
        ------
        StorageError
            They go to files, and the disk has no space for them.
        """
        if self.rows is None:
            return Spill(folder, memory=self.memory * _STREAM_SHARE)
        spill = Spill(folder, memory=math.inf if self.fits else 0)
        if not self.fits:
            spill.require(self._reading_bytes, "building a graph that does not fit into memory")
        return spill

    @property
    def fits(self) -> bool:
        """Whether all rows fit into memory; of a stream it is taken for granted."""
        rows = self.rows or 0
        return memory_of_rows(rows, weighted=self.weighted, typed=self.typed) <= self.memory

    @property
    def temporary_bytes(self) -> int:
        """Most bytes that the build has in temporary files at a time; 0 where all rows fit."""
        # Afterwards edges are there twice, with the weights that duplicates get in any case.
        return 0 if self.fits else max(self._reading_bytes, 2 * (8 + 8) * (self.rows or 0))

    @property
    def _reading_bytes(self) -> int:
        """Rows as they were read, and packed in buckets while the former are still there."""
        return (self.rows or 0) * (8 + 8 + self.weighted * (8 + 8) + self.typed * 4)

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


def memory_of_rows(rows: int, *, weighted: bool, typed: bool) -> int:
    """Bytes that a build of so many rows takes when all edges are in memory, beside the ids."""
    return rows * (_ROW + weighted * _WEIGHT + typed * _TYPE)


def bucket_rows(memory: int, nodes: int, *, most: int) -> int:
    """Edges that one bucket may have.

    Parameters
    ----------
    memory : int
        Bytes to plan with.
    nodes : int
        Nodes of the graph, whose degrees and numbers are in memory beside the bucket.
    most : int
        Bytes that there are.

    Raises
    ------
    ResourceError
        What is kept of every node takes more than there is.
    """
    if _NODE * nodes > most:
        raise ResourceError(
            f"{nodes:,} nodes take {_NODE * nodes / 1e6:,.0f} MB beside their ids, there are {most / 1e6:,.0f} MB",
            expected="memory for every node: only what grows with the edges goes to files",
            fix="raise --memory-limit, or build on a machine with more memory",
        )
    # Edges that are there twice get weights even where the list has none.
    return max(memory - _NODE * nodes, LEAST_BYTES // 8) // (_BUCKET_ROW + _BUCKET_WEIGHT)
