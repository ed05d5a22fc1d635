"""What ``plan`` and ``check`` have in common: the arguments of ``score``, an answer, and nothing that is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import click

from seedrank.config import ScoreOptions
from seedrank.jobs.cli.console import set_up_logging
from seedrank.jobs.cli.options import GroupedCommand, GroupedOption, collect
from seedrank.jobs.cli.printable import printable
from seedrank.jobs.cli.render import echo_json, echo_table
from seedrank.jobs.cli.score import job_inputs, score_arguments


class Answer(Protocol):
    """What such a command returns."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, for JSON."""


def job_question(
    name: str, *, example: str, title: str, own: tuple[click.Option, ...] = ()
) -> Callable[[Callable[..., Answer]], click.Command]:
    """Make a command of a function that says something about a job.

    Parameters
    ----------
    name, example : of the command.
    title : what stands above the answer for people.
    own : options that ``score`` does not have.

    Returns
    -------
    callable
        Decorator of a function ``(inputs, *, out, options, **values of own)``, whose docstring is the help.
    """

    def decorate(answer: Callable[..., Answer]) -> click.Command:
        @click.command(name, cls=GroupedCommand, help=answer.__doc__, epilog=f"Example: seedrank {name} {example}")
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
            set_up_logging(log_format=log_format, verbose=verbose, quiet=quiet)
            inputs = job_inputs(values)
            mine = {str(option.name): values.pop(str(option.name)) for option in own}
            options, _ = collect(ctx, ScoreOptions, values)
            found = answer(inputs, out=out, options=options, **mine).to_dict()
            if as_json:
                echo_json(found)
                return
            warnings = found.pop("warnings")
            echo_table(title, {name: value for name, value in found.items() if value is not None})
            for warning in warnings:
                click.echo(printable(f"  warning: {warning}", one_line=True))

        command.params.extend(own)
        return command

    return decorate
