"""``seedrank score``, and the arguments that ``plan`` and ``check`` share with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar
from uuid import uuid4

import click

from seedrank.config import ScoreOptions
from seedrank.jobs.cli.console import console_options, make_reporter, set_up_logging
from seedrank.jobs.cli.main import NOTHING_TO_DO
from seedrank.jobs.cli.options import GroupedCommand, GroupedOption, collect, input_option, model_options
from seedrank.jobs.cli.render import echo_json, echo_table
from seedrank.jobs.inputs import DESCRIPTIONS, JobInputs
from seedrank.jobs.results import Run
from seedrank.jobs.score import run_score

CommandT = TypeVar("CommandT", bound=Callable[..., Any])


def score_arguments(command: CommandT) -> CommandT:
    """Decorate a command with what score, plan and check have in common."""
    for decorator in (
        console_options,
        model_options(ScoreOptions),
        click.option("--json", "as_json", is_flag=True, help="Print the result as JSON."),
        input_option("--query-vectors", help="Query vectors: Parquet (query_id, vector), or .npy (repeatable)."),
        input_option("--node-vectors", help="Node vectors: Parquet (id, vector), or .npy (repeatable)."),
        input_option("--exclude", help="Nodes a query must not return: ([query_id, ]node_id) (repeatable)."),
        input_option("--nodes", help="Node table, for an edge list (repeatable)."),
        input_option("--query-info", help="Attributes of queries, one row a query (repeatable)."),
        input_option("--queries", help="Hits: file, folder, glob or URL of Parquet (repeatable)."),
        click.argument("graph", nargs=-1),
    ):
        command = decorator(command)
    return command


def one_or_many(paths: tuple[str, ...]) -> str | list[str] | None:
    """Return None for none, the path for one, a list for several."""
    return None if not paths else paths[0] if len(paths) == 1 else list(paths)


def job_inputs(values: dict[str, Any]) -> JobInputs:
    """Take the inputs out of the values of a command's parameters."""
    return JobInputs(**{name: one_or_many(values.pop(name)) for name in DESCRIPTIONS})


@click.command(
    "score",
    cls=GroupedCommand,
    epilog="Example: seedrank score graph --queries hits.parquet --out run --damping 0.85 --direction both --top-k 20",
)
@score_arguments
@click.option("--out", cls=GroupedOption, group="Output", required=True, type=click.Path(), help="Run folder.")
@click.option(
    "--skip-code",
    is_flag=True,
    help="Exit with 99 instead of 0 when there was nothing to do: the run was finished before, or has no queries.",
)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    out: str,
    *,
    skip_code: bool,
    as_json: bool,
    log_format: str,
    verbose: bool,
    quiet: bool,
    **values: Any,
) -> None:
    """Score the seed sets of --queries on GRAPH and write the top-k candidates of each.

    GRAPH is a graph store, or an edge list (file, folder, glob, URL) that is built in the run folder first; only
    --method fuse, semantic and, at depth 0, hybrid do without.
    """
    run_id = uuid4().hex
    set_up_logging(log_format=log_format, verbose=verbose, quiet=quiet, run_id=run_id)
    inputs = job_inputs(values)
    options, origins = collect(ctx, ScoreOptions, values)
    run = run_score(
        inputs,
        out=out,
        options=options,
        origins=origins,
        reporter=make_reporter(log_format=log_format, quiet=quiet),
        run_id=run_id,
    )
    if as_json:
        echo_json(run.manifest.model_dump(mode="json"))
    else:
        _echo_summary(run)
    assert run.manifest.queries is not None
    if skip_code and (run.already_done or not run.manifest.queries.total):
        ctx.exit(NOTHING_TO_DO)


def _echo_summary(run: Run) -> None:
    manifest = run.manifest
    assert manifest.queries is not None
    assert manifest.backend is not None
    part_range = manifest.range
    bounds = [part.largest_error_bound for part in manifest.parts if part.largest_error_bound is not None]
    echo_table(
        f"run {run.name}",
        {
            **({} if part_range is None else {"parts": f"{part_range.first}:{part_range.last} of {part_range.of}"}),
            "queries": manifest.queries.total,
            "status": manifest.queries.by_status,
            "seeds_missing": manifest.queries.seeds_missing,
            "candidates": sum(part.candidates for part in manifest.parts),
            **({"largest_error_bound": max(bounds)} if bounds else {}),
            "backend": f"{manifest.backend.name}, {manifest.backend.precision}, block of {manifest.backend.block_size}",
            "seconds": manifest.timings_s,
        },
    )
