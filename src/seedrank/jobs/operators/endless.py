"""Whether a search may take practically for ever: what ``score`` warns of, and ``plan`` and ``check`` say."""

from __future__ import annotations

from seedrank.config import ScoreOptions


def endless_search(options: ScoreOptions) -> str | None:
    """Return a sentence about a search that nothing bounds but nodes times edges; None for any other.

    ``dfs`` expands a node again whenever it comes by on a shorter way: up to once for every depth. These are few within
    ``--max-hops``; without it, as many as there are nodes. A limit of visited nodes that is not met ends nothing.
    """
    limits = (options.max_hops, options.max_visited_edges, options.timeout_s, options.deadline_s)
    if options.method != "dfs" or any(limit is not None for limit in limits):
        return None
    return (
        "--method dfs without --max-hops, --max-visited-edges or a time limit may follow every edge as often as there "
        "are nodes: on a dense graph that does not end"
    )
