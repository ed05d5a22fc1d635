"""``seedrank explain``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import click

from seedrank.jobs.cli.console import console_options, set_up_logging
from seedrank.jobs.cli.options import GroupedCommand, input_option
from seedrank.jobs.cli.render import echo_json, echo_table
from seedrank.jobs.cli.score import one_or_many
from seedrank.jobs.explain import Explanation, explain


@click.command("explain", cls=GroupedCommand, epilog="Example: seedrank explain run --query q1 --node p2")
@click.argument("run", type=click.Path())
@click.option("--query", required=True, metavar="ID", help="Id of the query.")
@click.option("--node", required=True, metavar="ID", help="Id of the node.")
@click.option("--restart", type=float, help="Which result of a run with several restart probabilities.")
@input_option("--queries", help="The hits of the run, if they have moved (repeatable).")
@input_option("--query-info", help="The query attributes of the run, if they have moved (repeatable).")
@input_option("--exclude", help="The exclusions of the run, if they have moved (repeatable).")
@click.option("--json", "as_json", is_flag=True, help="Print the explanation as JSON.")
@console_options
def command(
    run: str,
    query: str,
    node: str,
    restart: float | None,
    queries: tuple[str, ...],
    query_info: tuple[str, ...],
    exclude: tuple[str, ...],
    *,
    as_json: bool,
    log_format: str,
    verbose: bool,
    quiet: bool,
) -> None:
    """Say why a node is where it is among the candidates of a query of RUN: rank, path, what each seed brings.

    The query is computed again from the graph and the inputs that RUN names, which must not have changed.
    """
    set_up_logging(log_format=log_format, verbose=verbose, quiet=quiet)
    found = explain(
        run,
        query=query,
        node=node,
        restart=restart,
        queries=one_or_many(queries),
        query_info=one_or_many(query_info),
        exclude=one_or_many(exclude),
    )
    if as_json:
        echo_json(found.to_dict())
    else:
        _echo_text(found)


def _echo_text(found: Explanation) -> None:
    rows: dict[str, Any] = {
        "method": found.method,
        "status": found.status,
        "restart": found.restart,
        "score": found.score,
        "rank": _of(found.rank, found.returnable, "nodes that the query may return"),
        "candidate": found.candidate,
        "rank_of_all": _of(found.rank_of_all, found.scored, "nodes with a score"),
        "hops": found.hops,
        "anchor": found.anchor,
        "visit_count": found.visit_count,
        "visited_nodes": found.visited_nodes,
        "visited_edges": found.visited_edges,
        "budget_hit": found.budget_hit,
        "truncated": found.truncated,
        "iterations": found.iterations,
        "error_bound": found.error_bound,
    }
    always = ("score", "rank", "candidate")
    echo_table(
        f"query {found.query}, node {found.node}",
        {name: value for name, value in rows.items() if value is not None or name in always},
    )
    if found.path:
        _echo_lines("path", map(_edge, found.path))
    if found.contributions is not None:
        width = max(len(str(part.seed)) for part in found.contributions)
        _echo_lines(
            f"contributions of the seeds, their sum is the score within {found.contribution_bound:.1e}",
            (
                f"{part.seed!s:<{width}}  {part.contribution:.6g}  of weight {part.weight:.6g}"
                for part in found.contributions
            ),
        )


def _of(rank: int | None, count: int, what: str) -> str | None:
    return None if rank is None else f"{rank:,} of {count:,} {what}"


def _edge(edge: Mapping[str, Any]) -> str:
    """One edge in the order in which it was followed; the arrow shows how it is stored."""
    kind = f"{edge['type']} " if edge["type"] is not None else ""
    label = f"{kind}{edge['weight']:.6g}"
    if edge["reversed"]:
        return f"{edge['dst']} <-[{label}]- {edge['src']}"
    return f"{edge['src']} -[{label}]-> {edge['dst']}"


def _echo_lines(title: str, lines: Iterable[str]) -> None:
    click.echo(title)
    for line in lines:
        click.echo(f"  {line}")
