"""Which parts a job is about: all that its queries are cut into, or the range of them that ``--parts`` names."""

from __future__ import annotations

from typing import Any

from seedrank.config import ScoreOptions
from seedrank.errors import ConfigError
from seedrank.io.records import RangeRecord


def part_count(queries: int, options: ScoreOptions) -> int:
    """Return the number of parts of a run: one, empty, when there is no query, so that the schema is there."""
    return max(1, -(-queries // options.part_size))


def wanted_parts(queries: int, options: ScoreOptions) -> tuple[range, RangeRecord | None]:
    """Return the numbers of the parts that are wanted, and what the manifest says of a range; None for a whole run.

    A range may end behind the last part, as the last of equal ranges does.

    Raises
    ------
    ConfigError
        A range begins behind the last part.
    """
    count, span = part_count(queries, options), options.part_span
    if span is None:
        return range(count), None
    parts = span.of(count)
    if not parts:
        raise ConfigError(
            f"--parts {span} begins behind the last part: {queries:,} queries of --part-size {options.part_size} are "
            f"{count:,} parts, 0 to {count - 1:,}",
            expected=f"a range that begins at {count - 1:,} or before",
            fix="seedrank plan with the same arguments says how many parts there are",
        )
    return parts, RangeRecord(first=parts.start, last=parts.stop, of=count)


def check_range_options(options: ScoreOptions) -> None:
    """Refuse what would remove the parts of other ranges, where a range is asked for.

    Raises
    ------
    ConfigError
        Naming the option.
    """
    if options.parts is None:
        return
    given = "--overwrite" if options.overwrite else "--resume never" if options.resume == "never" else None
    if given is not None:
        raise ConfigError(
            f"{given} is given with --parts {options.parts}, but the folder is also that of the other ranges",
            expected="one of the two",
            fix="drop it: a range goes on where it ended; to begin anew, remove the run folder before the first range",
        )


def check_graph_of_range(graph: Any, options: ScoreOptions, *, built: bool) -> None:
    """Refuse an edge list, of which every range would build a graph of its own.

    Parameters
    ----------
    graph, options : of the job.
    built : whether the graph is a store already, or there is none.

    Raises
    ------
    ConfigError
        It is an edge list.
    """
    if options.parts is not None and not built:
        raise ConfigError(
            f"--parts {options.parts} is given with the edge list {graph}, which every range would build once more",
            expected="a graph store",
            fix="seedrank build it first, where all machines see it, and pass the store",
        )
