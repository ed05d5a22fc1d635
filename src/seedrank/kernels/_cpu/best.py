"""The k best of many candidates that come one by one: a heap of k with the worst on top."""

from __future__ import annotations

from typing import Any

from seedrank.kernels._cpu.borrowed import borrowed
from seedrank.kernels._cpu.compiled import compiled


@compiled(inline=True)
def is_worse(score: Any, rank: Any, other_score: Any, other_rank: Any) -> bool:
    """Lower score, or the same and a higher tie rank."""
    return bool(score < other_score or (score == other_score and rank > other_rank))


@compiled()
def offer(scores: Any, ranks: Any, items: Any, count: int, score: Any, rank: int, item: int) -> int:
    """Add a candidate to the heap, or let it replace the worst, or forget it.

    Parameters
    ----------
    scores, ranks, items : float, int32, int64 (k)
        The heap: score, tie rank (distinct) and what the candidate is.
    count : int
        Candidates in the heap.
    score, rank, item
        The new candidate.

    Returns
    -------
    int
        Candidates in the heap now, at most k.
    """
    scores, ranks, items = borrowed((scores, ranks, items))
    if count < scores.shape[0]:
        at = count
        while at > 0:
            above = (at - 1) // 2
            if not is_worse(score, rank, scores[above], ranks[above]):
                break
            scores[at], ranks[at], items[at] = scores[above], ranks[above], items[above]
            at = above
        scores[at], ranks[at], items[at] = score, rank, item
        return count + 1
    if is_worse(scores[0], ranks[0], score, rank):
        _sink(scores, ranks, items, count, score, rank, item)
    return count


@compiled()
def sort_best(scores: Any, ranks: Any, items: Any, count: int) -> None:
    """Turn the heap into a ranking: score descending, then tie rank ascending."""
    scores, ranks, items = borrowed((scores, ranks, items))
    for last in range(count - 1, 0, -1):
        score, rank, item = scores[last], ranks[last], items[last]
        scores[last], ranks[last], items[last] = scores[0], ranks[0], items[0]
        _sink(scores, ranks, items, last, score, rank, item)


@compiled()
def _sink(scores: Any, ranks: Any, items: Any, count: int, score: Any, rank: int, item: int) -> None:
    """Put a candidate in the place of the first of `count`, and restore the order of the heap."""
    scores, ranks, items = borrowed((scores, ranks, items))
    at = 0
    while True:
        below = 2 * at + 1
        if below >= count:
            break
        if below + 1 < count and is_worse(scores[below + 1], ranks[below + 1], scores[below], ranks[below]):
            below += 1
        if not is_worse(scores[below], ranks[below], score, rank):
            break
        scores[at], ranks[at], items[at] = scores[below], ranks[below], items[below]
        at = below
    scores[at], ranks[at], items[at] = score, rank, item
