"""``seedrank info``."""

from __future__ import annotations

import click

from seedrank.jobs.cli.render import echo_json, echo_table
from seedrank.jobs.info import info


@click.command("info", epilog="Example: seedrank info --json")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def command(*, as_json: bool) -> None:
    """Show versions, machine, backends, and which backend would run and why."""
    facts = info()
    if as_json:
        echo_json(facts)
    else:
        echo_table("seedrank", facts)
