"""``seedrank check``."""

from __future__ import annotations

from typing import Any

import click

from seedrank.config import ScoreOptions
from seedrank.jobs.check import run_check
from seedrank.jobs.cli.console import set_up_logging
from seedrank.jobs.cli.options import GroupedCommand, GroupedOption, collect
from seedrank.jobs.cli.render import echo_json, echo_table
from seedrank.jobs.cli.score import job_inputs, score_arguments


@click.command("check", cls=GroupedCommand, epilog="Example: seedrank check edges.parquet --queries hits.parquet")
@score_arguments
@click.option(
    "--out",
    cls=GroupedOption,
    group="Output",
    type=click.Path(),
    help="Run folder that score would get; checked, not touched.",
)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    out: str | None,
    *,
    as_json: bool,
    log_format: str,
    verbose: bool,
    quiet: bool,
    **values: Any,
) -> None:
    """Validate every row that score would read, and every stored byte; compute nothing, keep nothing."""
    set_up_logging(log_format=log_format, verbose=verbose, quiet=quiet)
    inputs = job_inputs(values)
    options, _ = collect(ctx, ScoreOptions, values)
    report = run_check(inputs, out=out, options=options)
    if as_json:
        echo_json(report.to_dict())
        return
    rows = report.to_dict()
    warnings = rows.pop("warnings")
    echo_table("inputs are valid", {name: value for name, value in rows.items() if value is not None})
    for warning in warnings:
        click.echo(f"  warning: {warning}")
