"""Build of a graph whose edges do not fit into memory: dealt out into buckets that do, by external bucketing.

The arrays are those of `seedrank.kernels.building.adjacency.build_adjacency`, to the bit. In memory are one bucket of
edges, and of every node its id, its degrees and its two numbers; what grows with the edges is in temporary files:

1. the rows of the edge list, as `seedrank.io.edge_list.encoded_edges` keeps them;
2. the edges as packed keys with their weights, in buckets by ranges of the key: each is sorted and reduced, degrees are
   counted, and the nodes are renumbered by falling degree;
3. the distinct edges in buckets by ranges of the source, and in others by ranges of the destination: each is sorted by
   its rows alone, which keeps the order of step 2 within a row, and written at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seedrank.errors import ResourceError
from seedrank.io.edge_list.encoded_edges import EncodedEdges
from seedrank.io.graph.graph_files import RowPiece, RowStream
from seedrank.io.graph.record_files import RecordFile, Records
from seedrank.io.storage.spill import Spill
from seedrank.jobs.building.built_graph import BuiltGraph
from seedrank.jobs.building.edge_buckets import BATCH_ROWS, Buckets, deal_into
from seedrank.jobs.building.memory import bucket_rows
from seedrank.kernels.arrays import DuplicateRule, Int64Array
from seedrank.kernels.building.edge_keys import EdgeKeys
from seedrank.kernels.building.end_counts import EndCounts
from seedrank.kernels.building.key_buckets import choose_cuts
from seedrank.kernels.runs import offsets_of

_SAMPLE = 1 << 16


def build_in_buckets(
    edges: EncodedEdges, spill: Spill, *, duplicate_edges: DuplicateRule, memory: int, most: int
) -> BuiltGraph:
    """Reduce duplicate edges, relabel the nodes and compress the edges in both directions, in bounded memory.

    Parameters
    ----------
    edges : EncodedEdges
        Used up.
    spill : Spill
        Where the buckets are; its folder has to last until the rows of the result were written.
    duplicate_edges : "sum", "max", "min" or "mean"
    memory, most : int
        Bytes to plan with beside the ids, and bytes that there are.

    Raises
    ------
    ResourceError
        What is kept of every node takes more than there is, or an edge does not fit 63 bits.
    StorageError
        The disk has no space for the buckets.
    """
    keys = EdgeKeys(len(edges.ids), max(len(edges.type_names), 1))
    if not keys.fits:
        raise ResourceError(
            f"the edges do not fit into memory, and {keys.nodes:,} nodes with {keys.types:,} edge types are too many "
            "to sort them outside of it",
            expected="two node numbers and a type that fit 63 bits together (2^28 nodes with 128 types do)",
            fix="raise --memory-limit, or build on a machine with more memory",
        )
    buckets = Buckets(spill, keys, bucket_rows(memory, keys.nodes, most=most))
    record = 16 if edges.weighted else 8
    spill.require(record * edges.kept_rows, "sorting the edges outside of the memory")
    sources, targets, types = edges.sample(_SAMPLE)
    cuts = choose_cuts(keys.pack(sources, targets, types), buckets.wanted(edges.kept_rows))
    dealt = buckets.deal(_packed(edges, keys), cuts, weighted=edges.weighted)
    edges.close()
    counts = EndCounts(keys)
    reduced = [piece for file in dealt for piece in _reduce(buckets, file, duplicate_edges, counts)]
    return _compress(buckets, reduced, counts, rows=edges.kept_rows, typed=edges.typed)


def _packed(edges: EncodedEdges, keys: EdgeKeys) -> Iterator[Records]:
    for source, target, weight, edge_type in edges.stream():
        yield keys.pack(source, target, edge_type), weight


def _reduce(
    buckets: Buckets, file: RecordFile, duplicate_edges: DuplicateRule, counts: EndCounts
) -> Iterator[RecordFile]:
    """Write the distinct edges of a bucket to new files, and count them."""
    for key, weight in buckets.reduced(file, duplicate_edges):
        piece = buckets.new_file(weighted=weight is not None)
        piece.append(key, weight)
        for first in range(0, len(key), BATCH_ROWS):
            counts.add(key[first : first + BATCH_ROWS])
        yield piece


def _compress(buckets: Buckets, reduced: list[RecordFile], counts: EndCounts, *, rows: int, typed: bool) -> BuiltGraph:
    """Renumber the nodes and deal the distinct edges out once more, by source and by destination."""
    keys = buckets.keys
    weighted = any(file.weighted for file in reduced)
    degree = counts.out_degree + counts.in_degree
    order = np.argsort(-degree, kind="stable").astype(np.int32)
    inverse_order = np.empty(keys.nodes, dtype=np.int32)
    inverse_order[order] = np.arange(keys.nodes, dtype=np.int32)
    isolated = int(np.count_nonzero(degree == 0))
    del degree
    type_dtype = np.dtype(np.min_scalar_type(keys.types - 1)) if typed else None
    # Files go as soon as they were read: those of the distinct edges while two others take their place, then these
    # while the store does, of which an entry is no larger. Only the piece that is being moved is there twice.
    record = 8 + 8 * weighted
    moved = counts.entries + 2 * min(buckets.rows, counts.entries)
    buckets.spill.require(record * moved, "writing the edges by source and destination")
    sides = [
        _Side(buckets, lengths[order], weighted=weighted, type_dtype=type_dtype)
        for lengths in (counts.out_degree, counts.in_degree)
    ]
    for file in reduced:
        for key, weight in file.batches(BATCH_ROWS):
            for side, renamed in zip(sides, keys.renamed(key, inverse_order), strict=True):
                side.take(renamed, np.ones(len(key)) if weighted and weight is None else weight)
        file.remove()
    return BuiltGraph(
        order=order,
        inverse_order=inverse_order,
        rows=dict(zip(("by_source", "by_destination"), (side.stream() for side in sides), strict=True)),
        edges=counts.entries,
        weighted=weighted,
        merged_duplicates=rows - counts.entries,
        self_loops=counts.self_loops,
        dangling=int(np.count_nonzero(counts.out_degree == 0)),
        isolated=isolated,
    )


@dataclass
class _Side:
    """One of the two CSRs: its rows in buckets.

    Parameters
    ----------
    buckets : Buckets
    lengths : int64 (nodes)
        Entries of each internal node.
    weighted, type_dtype
        See `seedrank.io.graph.graph_files.RowStream`.
    """

    buckets: Buckets
    lengths: Int64Array
    weighted: bool
    type_dtype: np.dtype[Any] | None

    def __post_init__(self) -> None:
        self._ranges = self.buckets.row_ranges(self.lengths, 0, len(self.lengths))
        self._cuts = self.buckets.cuts_of(self._ranges)
        self._files = [self.buckets.new_file(weighted=self.weighted) for _ in self._ranges]

    def take(self, key: Int64Array, weight: npt.NDArray[np.float64] | None) -> None:
        """Deal edges out, in the order that they are to have within a row."""
        deal_into(self._files, [(key, weight)], self._cuts)

    def stream(self) -> RowStream:
        """Rows as the store takes them; files are removed as they are read."""
        return RowStream(offsets_of(self.lengths), self.weighted, self.type_dtype, self._pieces())

    def _pieces(self) -> Iterator[RowPiece]:
        keys = self.buckets.keys
        for file, (first, last) in zip(self._files, self._ranges, strict=True):
            for key, weight in self.buckets.in_rows(file, self.lengths, first, last):
                yield keys.other(key), weight, None if self.type_dtype is None else keys.edge_type(key)
