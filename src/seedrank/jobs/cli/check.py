"""``seedrank check``."""

from __future__ import annotations

from typing import Any

import click

from seedrank.config import ScoreOptions
from seedrank.jobs.check import CheckReport, run_check
from seedrank.jobs.cli.printable import printable
from seedrank.jobs.cli.render import echo_table
from seedrank.jobs.cli.without_running import job_question
from seedrank.jobs.inputs import JobInputs


def _show(report: dict[str, Any]) -> None:
    rows = dict(report)
    warnings, vectors = rows.pop("warnings"), rows.pop("vectors")
    rows |= {} if vectors is None else {"vectors": vectors}
    echo_table("inputs are valid", {name: value for name, value in rows.items() if value is not None})
    for warning in warnings:
        click.echo(printable(f"  warning: {warning}", one_line=True))


@job_question("check", example="edges.parquet --queries hits.parquet", show=_show)
def command(inputs: JobInputs, *, out: str | None, options: ScoreOptions) -> CheckReport:
    """Validate every row that score would read, and every stored byte; compute nothing, keep nothing."""
    return run_check(inputs, out=out, options=options)
