"""Results on stdout: JSON for programs, small tables for people."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from seedrank.jobs.cli.printable import printable


def echo_json(document: Any) -> None:
    """Print one JSON document."""
    click.echo(json.dumps(document, indent=2, default=str))


def echo_table(title: str, rows: Mapping[str, Any]) -> None:
    """Print names and values in two aligned columns, numbers grouped by thousands."""
    width = max((len(name) for name in rows), default=0)
    click.echo(printable(title))
    for name, value in rows.items():
        click.echo(f"  {name.replace('_', ' '):<{width}}  {printable(_text(value), one_line=True)}")


def echo_grid(title: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a grid with a header; without a terminal it is plain text of fixed width."""
    # As texts: what stands in brackets would be taken for markup.
    table = Table(title=Text(printable(title)), title_justify="left", title_style="bold", box=None, pad_edge=False)
    for name in header:
        table.add_column(Text(printable(name)))
    for row in rows:
        table.add_row(*(Text(printable(_text(value), one_line=True)) for value in row))
    Console(width=None if Console().is_terminal else 110, highlight=False).print(table)


def _text(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_text(item)}" for key, item in value.items()) or "-"
    return str(value)
