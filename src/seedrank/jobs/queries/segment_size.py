"""How many queries are in memory at a time."""

from __future__ import annotations

from seedrank.config import ScoreOptions

#: Most queries of a segment, and most hits that they have on the average, unless a single part has more.
SEGMENT_QUERIES = 65_536
SEGMENT_HITS = 8_000_000


def segment_size(options: ScoreOptions, *, queries: int = 0, rows: int = 0) -> int:
    """Return the most queries of a segment: whole parts, at least one.

    Parameters
    ----------
    options : of the job.
    queries, rows : how many queries there are, and how many rows of hits they have.
    """
    most = SEGMENT_QUERIES
    if rows > queries:
        most = min(most, SEGMENT_HITS * queries // rows)
    return max(most // options.part_size, 1) * options.part_size
