"""``seedrank plan``."""

from __future__ import annotations

from typing import Any

import click

from seedrank.config import ScoreOptions
from seedrank.jobs.cli.console import set_up_logging
from seedrank.jobs.cli.options import GroupedCommand, GroupedOption, collect
from seedrank.jobs.cli.render import echo_json, echo_table
from seedrank.jobs.cli.score import job_inputs, score_arguments
from seedrank.jobs.plan import run_plan


@click.command("plan", cls=GroupedCommand, epilog="Example: seedrank plan graph --queries hits.parquet --json")
@score_arguments
@click.option(
    "--out",
    cls=GroupedOption,
    group="Output",
    type=click.Path(),
    help="Run folder that score would get; checked, not touched.",
)
@click.option(
    "--probe",
    cls=GroupedOption,
    group="Run",
    is_flag=True,
    help="For ppr: measure one product on a small random graph, some seconds, and estimate the seconds of the job.",
)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    out: str | None,
    *,
    probe: bool,
    as_json: bool,
    log_format: str,
    verbose: bool,
    quiet: bool,
    **values: Any,
) -> None:
    """Say what score with the same arguments would do: sizes, parts, block, memory, backend. Writes nothing."""
    set_up_logging(log_format=log_format, verbose=verbose, quiet=quiet)
    inputs = job_inputs(values)
    options, _ = collect(ctx, ScoreOptions, values)
    plan = run_plan(inputs, out=out, options=options, probed=probe)
    if as_json:
        echo_json(plan.to_dict())
    else:
        echo_table("plan", {name: value for name, value in plan.to_dict().items() if value is not None})
