"""Dealing packed edges out into files that each fit into memory, and taking them up again in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from seedrank.io.graph.record_files import RecordFile, Records
from seedrank.io.storage.spill import Spill
from seedrank.kernels.arrays import DuplicateRule, Int64Array
from seedrank.kernels.building.duplicates import reduce_weights
from seedrank.kernels.building.edge_keys import EdgeKeys
from seedrank.kernels.building.key_buckets import choose_cuts, split_keys
from seedrank.kernels.building.sorted_keys import reduce_keys, sort_rows
from seedrank.kernels.runs import slices_within

#: Records that are dealt out, counted or unpacked at a time.
BATCH_ROWS = 1 << 20
#: More files would each get too little of a batch; buckets that are too large are dealt out again.
MAX_BUCKETS = 256
_SAMPLE = 1 << 16


@dataclass(frozen=True)
class Buckets:
    """Buckets of one build.

    Parameters
    ----------
    spill : Spill
        Where the files are.
    keys : EdgeKeys
        How edges are packed.
    rows : int
        Records that may be in memory at a time, >= 1; a bucket of more is dealt out again.
    """

    spill: Spill
    keys: EdgeKeys
    rows: int

    def wanted(self, rows: int) -> int:
        """Number of buckets for so many records: sampled cuts are not exact, half full on average is."""
        return min(max(-(-2 * rows // self.rows), 3), MAX_BUCKETS)

    def new_file(self, *, weighted: bool) -> RecordFile:
        """Return a new, empty bucket."""
        return RecordFile(self.spill.new_file(), weighted=weighted)

    def deal(self, records: Iterable[Records], cuts: Int64Array, *, weighted: bool) -> list[RecordFile]:
        """Deal records out into one file more than there are cuts; within a file they stay in order."""
        files = [self.new_file(weighted=weighted) for _ in range(len(cuts) + 1)]
        deal_into(files, records, cuts)
        return files

    def reduced(self, file: RecordFile, duplicate_edges: DuplicateRule) -> Iterator[Records]:
        """Yield the distinct edges of a bucket, ascending, with their weights, in pieces; removes the file.

        Weights of a piece are None when all are exactly 1.
        """
        if file.rows <= self.rows:
            key, weight = file.read()
            file.remove()
            if len(key):
                bits = 2 * self.keys.node_bits + self.keys.type_bits
                yield reduce_keys(key, weight, bits=bits, duplicate_edges=duplicate_edges)
            return
        low, high, sample = _survey(file)
        if low == high:
            yield _reduce_one(file, low, duplicate_edges)
            file.remove()
            return
        # Three buckets at least: two equal quantiles isolate their key, two different ones part the keys.
        cuts = choose_cuts(sample, self.wanted(file.rows))
        files = self.deal(file.batches(BATCH_ROWS), cuts, weighted=file.weighted)
        file.remove()
        for smaller in files:
            yield from self.reduced(smaller, duplicate_edges)

    def in_rows(self, file: RecordFile, lengths: Int64Array, first: int, last: int) -> Iterator[Records]:
        """Yield the edges of a range of rows, row by row, in pieces; within a row they stay in order.

        Removes the file.

        Parameters
        ----------
        file : RecordFile
        lengths : int64 (nodes)
            Edges of each row of the graph.
        first, last : int
            The rows of the file are ``first`` to ``last - 1``.
        """
        if last - first == 1:
            yield from file.batches(BATCH_ROWS)
            file.remove()
        elif file.rows <= self.rows:
            key, weight = file.read()
            file.remove()
            low = self.keys.row_shift
            key, weight = sort_rows(key, weight, low=low, high=low + self.keys.node_bits)
            for start in range(0, len(key), BATCH_ROWS):
                piece = slice(start, start + BATCH_ROWS)
                yield key[piece], None if weight is None else weight[piece]
        else:
            ranges = self.row_ranges(lengths, first, last)
            files = self.deal(file.batches(BATCH_ROWS), self.cuts_of(ranges), weighted=file.weighted)
            file.remove()
            for smaller, (begin, end) in zip(files, ranges, strict=True):
                yield from self.in_rows(smaller, lengths, begin, end)

    def row_ranges(self, lengths: Int64Array, first: int, last: int) -> Sequence[tuple[int, int]]:
        """Cut a range of rows into at most `MAX_BUCKETS` ranges of about equally many edges, or of one row."""
        edges = int(lengths[first:last].sum())
        # A range ends before the row that would make it too long, so that two in a row hold more than this.
        most = max(self.rows, -(-2 * edges // MAX_BUCKETS))
        return [(first + begin, first + end) for begin, end in slices_within(lengths[first:last], most)]

    def cuts_of(self, ranges: Sequence[tuple[int, int]]) -> Int64Array:
        """Where the keys of the ranges but the first begin."""
        return np.array([begin for begin, _ in ranges[1:]], dtype=np.int64) << self.keys.row_shift


def deal_into(files: Sequence[RecordFile], records: Iterable[Records], cuts: Int64Array) -> None:
    """Deal records out into files; within a file they stay in order."""
    for key, weight in records:
        order, ends = split_keys(key, cuts)
        ordered = key[order]
        weights = None if weight is None else weight[order]
        begin = 0
        for file, end in zip(files, ends.tolist(), strict=True):
            if begin < end:
                file.append(ordered[begin:end], None if weights is None else weights[begin:end])
            begin = end


def _survey(file: RecordFile) -> tuple[int, int, Int64Array]:
    """Lowest and highest key of a bucket, and some of its keys."""
    stride = max(file.rows // _SAMPLE, 1)
    batches = [(int(key.min()), int(key.max()), key[::stride]) for key, _ in file.batches(BATCH_ROWS)]
    lows, highs, samples = zip(*batches, strict=True)
    return min(lows), max(highs), np.concatenate(samples)


def _reduce_one(file: RecordFile, key: int, duplicate_edges: DuplicateRule) -> Records:
    """Reduce a bucket of one edge that is there more often than a bucket may have records: its weights do fit."""
    weight = np.array([file.rows if duplicate_edges == "sum" else 1], dtype=np.float64)
    if file.weighted:
        weights = np.concatenate([some for _, some in file.batches(BATCH_ROWS) if some is not None])
        weights.sort()
        weight = reduce_weights(weights, np.zeros(1, dtype=np.int64), duplicate_edges)
    return np.array([key]), None if weight[0] == 1 else weight
