"""``seedrank build``."""

from __future__ import annotations

from typing import Any

import click

from seedrank.config import BuildOptions
from seedrank.jobs.build import run_build
from seedrank.jobs.cli.console import console_options, set_up_logging
from seedrank.jobs.cli.options import GroupedCommand, GroupedOption, collect, input_option, model_options
from seedrank.jobs.cli.render import echo_json, echo_table
from seedrank.jobs.progress import Stopwatch


@click.command(
    "build",
    cls=GroupedCommand,
    epilog="Example: seedrank build edges.parquet --nodes nodes.parquet --out graph",
)
@click.argument("edges", nargs=-1, required=True)
@click.option(
    "--out",
    cls=GroupedOption,
    group="Output",
    required=True,
    type=click.Path(),
    help="Folder of the graph store.",
)
@input_option("--nodes", help="Node table: file, folder, glob or URL (repeatable).")
@click.option("--json", "as_json", is_flag=True, help="Print graph.json instead of a table.")
@model_options(BuildOptions)
@console_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    edges: tuple[str, ...],
    out: str,
    nodes: tuple[str, ...],
    *,
    as_json: bool,
    log_format: str,
    verbose: bool,
    quiet: bool,
    **values: Any,
) -> None:
    """Build a graph store from EDGES: rows (src, dst[, weight][, type]), directed src -> dst.

    EDGES is a file, folder, glob or URL of Parquet, or several of them.
    """
    set_up_logging(log_format=log_format, verbose=verbose, quiet=quiet)
    options, _ = collect(ctx, BuildOptions, values)
    watch = Stopwatch()
    store = run_build(list(edges), out=out, nodes=list(nodes) or None, options=options, stopwatch=watch)
    facts = store.facts.model_dump(mode="json")
    if as_json:
        echo_json(facts)
        return
    shown = ("nodes", "edges", "rows", "merged_duplicates", "zero_weight_rows", "dropped_rows", "self_loops")
    rows = {
        name: facts[name]
        for name in (*shown, "dangling", "isolated", "nodes_without_attributes", "weighted", "id_type")
    }
    echo_table(
        f"graph store {store.path}",
        {**rows, "edge_types": len(facts["edge_types"]), "seconds": watch.total()["total"]},
    )
