"""``seedrank evaluate``."""

from __future__ import annotations

import click

from seedrank.jobs.cli.console import console_options, set_up_logging
from seedrank.jobs.cli.options import GroupedCommand, GroupedOption, input_option
from seedrank.jobs.cli.render import echo_json, echo_table
from seedrank.jobs.cli.score import one_or_many
from seedrank.jobs.evaluate import DEFAULT_METRICS, Evaluation, evaluate


@click.command(
    "evaluate",
    cls=GroupedCommand,
    epilog="Example: seedrank evaluate run --gold gold.parquet --metrics recall@5,ndcg@10,mrr",
)
@click.argument("run", type=click.Path())
@input_option(
    "--gold", help="Nodes that should be found: (query_id, node_id[, relevance]) (repeatable).", required=True
)
@click.option(
    "--metrics",
    default=",".join(DEFAULT_METRICS),
    metavar="LIST",
    show_default=True,
    help="Metrics by commas: recall, all, hit, precision, mrr, map, ndcg, each with @K.",
)
@click.option(
    "--per-query",
    cls=GroupedOption,
    group="Output",
    type=click.Path(),
    help="Parquet file for the values of every query.",
)
@click.option("--overwrite", is_flag=True, help="Replace an earlier file of --per-query.")
@click.option("--gold-query-column", default="query_id", metavar="TEXT", help="Query id column of the gold.")
@click.option("--gold-node-column", default="node_id", metavar="TEXT", help="Node id column of the gold.")
@click.option("--gold-relevance-column", default="relevance", metavar="TEXT", help="Relevance column of the gold.")
@click.option("--json", "as_json", is_flag=True, help="Print the evaluation as JSON.")
@console_options
def command(
    run: str,
    gold: tuple[str, ...],
    metrics: str,
    per_query: str | None,
    gold_query_column: str,
    gold_node_column: str,
    gold_relevance_column: str,
    *,
    overwrite: bool,
    as_json: bool,
    log_format: str,
    verbose: bool,
    quiet: bool,
) -> None:
    """Say how many of the nodes of --gold the candidates of RUN have, and where. Values lie between 0 and 1."""
    set_up_logging(log_format=log_format, verbose=verbose, quiet=quiet)
    found = evaluate(
        run,
        gold=one_or_many(gold),
        metrics=[name.strip() for name in metrics.split(",")],
        per_query=per_query,
        overwrite=overwrite,
        query_column=gold_query_column,
        node_column=gold_node_column,
        relevance_column=gold_relevance_column,
    )
    if as_json:
        echo_json(found.to_dict())
    else:
        _echo_text(run, found)


def _echo_text(run: str, found: Evaluation) -> None:
    for one in found.results:
        title = f"evaluation of {run}" + ("" if one.restart is None else f", restart {one.restart:g}")
        echo_table(
            title,
            {
                "queries": found.queries,
                "queries_without_gold": found.queries_without_gold,
                "gold_queries_not_in_run": found.gold_queries_not_in_run,
                "gold": found.gold,
                **{name: f"{value:.4f}" for name, value in one.metrics.items()},
            },
        )
    for warning in found.warnings:
        click.echo(f"warning: {warning}", err=True)
