"""``seedrank demo``."""

from __future__ import annotations

from pathlib import Path

import click

from seedrank.jobs.cli.console import console_options, set_up_logging
from seedrank.jobs.demo import demo


@click.command("demo", epilog="Example: seedrank demo /tmp/demo --top-k 10")
@click.argument("folder", default="seedrank-demo", type=click.Path(path_type=Path), metavar="[DIR]")
@click.option("--top-k", default=5, show_default=True, type=click.IntRange(min=1), help="Candidates per question.")
@console_options
def command(folder: Path, *, top_k: int, log_format: str, verbose: bool, quiet: bool) -> None:
    """Ask ten questions of the graph of Python's own standard library; files go to DIR (seedrank-demo).

    Nodes are modules and packages, typed edges are imports, from-imports and containment. No network.
    """
    set_up_logging(log_format=log_format, verbose=verbose, quiet=quiet or not verbose)
    result = demo(folder, top_k=top_k)
    facts = result.facts
    click.echo(
        f"Python {result.python_version} standard library: {facts.nodes:,} modules, {facts.edges:,} edges "
        f"({', '.join(str(name) for name in facts.edge_types)})\n"
    )
    for answer in result.answers:
        click.echo(f"{answer.question.query_id}: {answer.question.description}")
        click.echo(f"  seeds: {', '.join(answer.question.seeds)}")
        for rank, (module, value) in enumerate(answer.candidates, start=1):
            click.echo(f"  {rank:>3}  {value:.4f}  {module}")
        click.echo()
    click.echo("seconds: " + ", ".join(f"{step} {seconds:.2f}" for step, seconds in result.timings_s.items()))
    click.echo(f"inputs:  {folder}/edges.parquet, nodes.parquet, hits.parquet")
    click.echo(f"result:  {result.run.path}/candidates, queries, run.json")
