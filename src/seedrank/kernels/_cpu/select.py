"""The k best nodes of many columns at once: a threshold scan over the block, exact to the last tie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import prange

from seedrank.kernels._cpu.compiled import compiled
from seedrank.kernels.arrays import BoolArray, Int32Array, Int64Array, ScoreArray, UInt64Array

STRIP = 16
"""Columns that are scanned together."""


def select_columns(
    block: ScoreArray,
    columns: Int64Array,
    *,
    unscale: ScoreArray,
    ranks: Int32Array,
    eligible: BoolArray | None,
    excluded: Sequence[Int32Array],
    k: int,
    min_score: float,
    threads: int,
    reachable: UInt64Array | None = None,
    bits: Int64Array | None = None,
) -> tuple[Int32Array, ScoreArray, Int32Array]:
    """Select the k best rows of some columns of a block; the rules are those of `seedrank.kernels.topk`.

    Parameters
    ----------
    block : float32 or float64 (n, B)
        C order, B a multiple of 16.
    columns : int64 (c), ascending
    unscale : float (n)
        The score of row v is ``block[v] * unscale[v]``.
    ranks : int32 (n)
        Tie rank by row.
    eligible : bool (n) or None
    excluded : one int32 array of rows per wanted column
    k : int
    min_score : float
    threads : int
    reachable : uint64 (n), optional
        Rows that a column may select, by its bit; None: every row.
    bits : int64 (c), optional
        Bit of each wanted column in `reachable`.

    Returns
    -------
    rows : int32 (c, k), -1 after the last
    scores : float (c, k), 0 after the last
    counts : int32 (c)
    """
    nodes, width = block.shape
    dtype = block.dtype
    wanted = np.zeros(width, dtype=np.bool_)
    wanted[columns] = True
    offsets = np.zeros(width + 1, dtype=np.int64)
    offsets[columns + 1] = [len(rows) for rows in excluded]
    np.cumsum(offsets, out=offsets)
    excluded_rows = np.concatenate([np.sort(rows) for rows in excluded])
    most = min(k, nodes)
    bands = max(1, -(-threads // (width // STRIP)))
    shape = (bands, width, 2 * most + 256)
    candidate_scores = np.empty(shape, dtype=dtype)
    candidate_ranks, candidate_rows = np.empty(shape, dtype=np.int32), np.empty(shape, dtype=np.int32)
    candidate_counts = np.zeros(shape[:2], dtype=np.int64)
    least = max(dtype.type(min_score), np.nextafter(dtype.type(0), dtype.type(1)))
    allowed = np.zeros(0, dtype=np.bool_) if eligible is None else eligible
    near = np.zeros(0, dtype=np.uint64) if reachable is None else reachable
    bit_of = np.zeros(width, dtype=np.uint64)
    if bits is not None:
        bit_of[columns] = bits
    _scan(
        block, unscale, ranks, allowed, near, bit_of, offsets, excluded_rows, wanted, least, most, bands,
        candidate_scores, candidate_ranks, candidate_rows, candidate_counts,
    )  # fmt: skip
    rows = np.full((len(columns), k), -1, dtype=np.int32)
    scores = np.zeros((len(columns), k), dtype=dtype)
    counts = np.zeros(len(columns), dtype=np.int32)
    _merge(columns, most, candidate_scores, candidate_ranks, candidate_rows, candidate_counts, rows, scores, counts)
    return rows, scores, counts


@compiled(inline=True)
def _before(score: Any, rank: Any, other_score: Any, other_rank: Any) -> bool:
    return bool(score > other_score or (score == other_score and rank < other_rank))


@compiled()
def _keep_best(scores: Any, ranks: Any, rows: Any, count: int, k: int) -> None:
    """Bring the k best of the first `count` candidates to the front, in any order (Hoare's selection)."""
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) // 2
        pivot_score, pivot_rank = scores[middle], ranks[middle]
        i, j = low, high
        while i <= j:
            while _before(scores[i], ranks[i], pivot_score, pivot_rank):
                i += 1
            while _before(pivot_score, pivot_rank, scores[j], ranks[j]):
                j -= 1
            if i <= j:
                scores[i], scores[j] = scores[j], scores[i]
                ranks[i], ranks[j] = ranks[j], ranks[i]
                rows[i], rows[j] = rows[j], rows[i]
                i += 1
                j -= 1
        if k - 1 <= j:
            high = j
        elif k - 1 >= i:
            low = i
        else:
            return


@compiled(inline=True)
def _contains(values: Any, first: int, last: int, wanted: int) -> bool:
    end = last
    while first < last:
        middle = (first + last) // 2
        if values[middle] < wanted:
            first = middle + 1
        else:
            last = middle
    return bool(first < end and values[first] == wanted)


@compiled(parallel=True)
def _scan(
    block: Any,
    unscale: Any,
    ranks_of: Any,
    eligible: Any,
    reachable: Any,
    bit_of: Any,
    excluded_offsets: Any,
    excluded_rows: Any,
    wanted: Any,
    least: Any,
    k: int,
    bands: int,
    scores: Any,
    ranks: Any,
    rows: Any,
    counts: Any,
) -> None:
    """Collect, for every wanted column and band of rows, candidates among which are its k best.

    A candidate must reach the score of the k-th best so far; equals are kept and told apart by rank when the
    buffer is cut back, so ties are exact.

    Parameters
    ----------
    block, unscale : float (n, B), float (n)
        score of row v = block[v] · unscale[v].
    ranks_of : int32 (n)
        Tie rank by row.
    eligible : bool (n), or of length 0
        Rows that may be selected; empty: all.
    reachable, bit_of : uint64 (n), or of length 0; uint64 (B)
        Rows that a column may select, by its bit; empty: all.
    excluded_offsets, excluded_rows : int64 (B + 1), int32, ascending within a column
    wanted : bool (B)
    least : float
        Lowest score that counts, > 0.
    bands : int
        Row ranges that are scanned apart.
    scores, ranks, rows : (bands, B, capacity)
        Candidates, capacity >= 2k.
    counts : int64 (bands, B)
    """
    nodes, width = block.shape
    strips = width // STRIP
    capacity = scores.shape[2]
    everything = eligible.shape[0] == 0
    anywhere = reachable.shape[0] == 0
    for task in prange(strips * bands):
        strip, band = task % strips, task // strips
        left = strip * STRIP
        threshold = np.empty(STRIP, block.dtype)
        for j in range(STRIP):
            threshold[j] = least if wanted[left + j] else np.inf
            counts[band, left + j] = 0
        for row in range(nodes * band // bands, nodes * (band + 1) // bands):
            if not everything and not eligible[row]:
                continue
            back = unscale[row]
            hits = 0
            for j in range(STRIP):
                hits |= block[row, left + j] * back >= threshold[j]
            if not hits:
                continue
            for j in range(STRIP):
                column = left + j
                score = block[row, column] * back
                if (
                    score >= threshold[j]
                    and (anywhere or reachable[row] >> bit_of[column] & np.uint64(1) != 0)
                    and not _contains(excluded_rows, excluded_offsets[column], excluded_offsets[column + 1], row)
                ):
                    count = counts[band, column]
                    scores[band, column, count] = score
                    ranks[band, column, count] = ranks_of[row]
                    rows[band, column, count] = row
                    count += 1
                    if count == capacity:
                        _keep_best(scores[band, column], ranks[band, column], rows[band, column], count, k)
                        count = k
                        threshold[j] = scores[band, column, :k].min()
                    counts[band, column] = count


@compiled(parallel=True)
def _merge(
    wanted: Any,
    k: int,
    scores: Any,
    ranks: Any,
    rows: Any,
    counts: Any,
    best_rows: Any,
    best_scores: Any,
    best_counts: Any,
) -> None:
    """Join the bands of every wanted column, cut to k and sort: score descending, then tie rank ascending.

    ``best_*`` have one line per wanted column (int64 positions, in order): (c, k) and (c,).
    """
    bands = scores.shape[0]
    for line in prange(wanted.shape[0]):
        column = wanted[line]
        total = 0
        for band in range(bands):
            total += counts[band, column]
        joined_scores = np.empty(total, scores.dtype)
        joined_ranks = np.empty(total, ranks.dtype)
        joined_rows = np.empty(total, rows.dtype)
        at = 0
        for band in range(bands):
            for i in range(counts[band, column]):
                joined_scores[at] = scores[band, column, i]
                joined_ranks[at] = ranks[band, column, i]
                joined_rows[at] = rows[band, column, i]
                at += 1
        if total > k:
            _keep_best(joined_scores, joined_ranks, joined_rows, total, k)
            total = k
        # Stable sort by rank, then by score: equal scores stay in the order of their ranks.
        by_rank = np.argsort(joined_ranks[:total], kind="mergesort")
        by_score = np.argsort(-joined_scores[:total][by_rank], kind="mergesort")
        for i in range(total):
            source = by_rank[by_score[i]]
            best_rows[line, i] = joined_rows[source]
            best_scores[line, i] = joined_scores[source]
        best_counts[line] = total
