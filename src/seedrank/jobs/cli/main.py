"""The ``seedrank`` group, and the one place where exceptions become exit codes."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import FrameType

import click

from seedrank._version import __version__
from seedrank.errors import SeedrankError, Terminated, is_thread_shortage
from seedrank.jobs.cli.printable import printable
from seedrank.redaction import redacted

#: Command → one line of help. Modules are imported when their command is used: ``--help`` stays fast.
COMMANDS = {
    "build": "Build a graph store from an edge list.",
    "score": "Score seed sets and write candidate tables: the job.",
    "plan": "Say what score would do; reads footers and query ids only.",
    "check": "Validate every input fully; compute nothing.",
    "explain": "Say why a node is where it is among the candidates of a query.",
    "evaluate": "Compare a run with the nodes that should be found.",
    "info": "Show versions, machine, backends and the decision.",
    "demo": "Score questions on the graph of Python's own standard library.",
}

#: What the context of the group holds where the process does nothing but run the command.
OWN_PROCESS = "own process"

BUG, USAGE, OUT_OF_MEMORY, STORAGE, NOTHING_TO_DO, INTERRUPTED, TERMINATED = 1, 2, 4, 5, 99, 130, 143


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"seedrank.jobs.cli.{cmd_name}").command
        if ctx.obj == OWN_PROCESS:
            _leave_pandas_out()
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


HELP = """Personalized PageRank for many weighted seed sets at once, from Parquet to Parquet.

\b
seedrank build edges.parquet --out graph
seedrank score graph --queries hits.parquet --out run
"""


@click.group(
    cls=_LazyGroup,
    help=HELP,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "auto_envvar_prefix": "SEEDRANK",
        "max_content_width": 100,
    },
    epilog="Exit codes: 0 done, 1 bug, 2 usage, 3 input data, 4 missing resource, 5 storage, 6 incomplete, "
    "99 nothing to do under --skip-code, 130 interrupted, 143 terminated.",
)
@click.version_option(__version__, prog_name="seedrank")
def cli() -> None:
    """Group of all commands; what it prints is `HELP`."""


def run(arguments: Sequence[str], *, own_process: bool = False) -> int:  # noqa: PLR0911  # a return per failure
    """Run the command line; returns the exit code and never raises.

    ``own_process``: nothing else runs in this process, before or after.

    Codes: 0 done, 1 bug (with traceback), 2 usage or configuration, 3 input data, 4 missing resource or memory,
    5 storage, 6 incomplete run, 99 nothing to do under ``--skip-code``, 130 interrupted (SIGINT), 143
    terminated (SIGTERM).
    """
    _open_missing_streams()
    try:
        with _sigterm_raises():
            # A command returns nothing, unless it leaves with a code (`Context.exit`), as --help does.
            left = cli.main(
                args=list(arguments),
                prog_name="seedrank",
                standalone_mode=False,
                obj=OWN_PROCESS if own_process else None,
            )
    except SeedrankError as error:
        _say(f"error: {error.found}", error.expected, error.fix)
        return error.exit_code
    except click.UsageError as error:
        context = error.ctx.command_path if error.ctx else "seedrank"
        _say(f"error: {error.format_message()}", "", f"see `{context} --help`")
        return USAGE
    except click.ClickException as error:
        _say(f"error: {error.format_message()}", "", "")
        return USAGE
    except (KeyboardInterrupt, click.Abort):
        _say("interrupted; a run folder keeps the parts that were finished", "", "")
        return INTERRUPTED
    except Terminated:
        _say("terminated; a run folder keeps the parts that were finished", "", "")
        return TERMINATED
    except MemoryError as error:
        _say(
            f"error: out of memory ({error})",
            "the graph and one query to fit",
            "a smaller --block-size or graph",
        )
        return OUT_OF_MEMORY
    except BrokenPipeError:
        # The reader of stdout went away (`seedrank info | head -1`): not an error of ours.
        sys.stderr.close()
        return 0
    except OSError as error:
        # What no step has a better word for: a name that is too long, a folder that may not be searched, /dev/full.
        _say(
            f"error: {error.strerror or error}" + (f" ({error.filename})" if error.filename else ""),
            "files and folders that can be read and written",
            "check the path, its permissions and the space that is left",
        )
        return STORAGE
    except Exception as error:
        if is_thread_shortage(error):
            _say(f"error: {error}", "room for a thread", "raise `ulimit -u` or `ulimit -v`, or lower --threads")
            return OUT_OF_MEMORY
        click.echo(printable(redacted(traceback.format_exc())), err=True)
        _say(
            f"error: this is a bug in seedrank {__version__}",
            "",
            "report it with the lines above; a run folder keeps the parts that were finished",
        )
        return BUG
    return left if isinstance(left, int) else 0


def _leave_pandas_out() -> None:
    """Let PyArrow find no pandas, whether it is installed or not: no command uses it.

    PyArrow imports it when it makes its first array, half a second of a processor, and does not look for it again.
    """
    if "pandas" not in sys.modules:
        sys.meta_path.insert(0, _NoPandas)
        try:
            import_module("pyarrow").array([])
        finally:
            sys.meta_path.remove(_NoPandas)


class _NoPandas:
    """A finder of modules that says of one that it is not there."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


def _open_missing_streams() -> None:
    """Give a process that was started without standard streams (``2>&-``) some that lead nowhere."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115  # as long as we live


@contextmanager
def _sigterm_raises() -> Iterator[None]:
    """Let SIGTERM unwind the stack as an interrupt from the keyboard does, so that the manifest is closed."""
    if threading.current_thread() is not threading.main_thread():
        # Python lets only the main thread set handlers.
        yield
        return

    def terminate(signum: int, frame: FrameType | None) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _say(headline: str, expected: str, fix: str) -> None:
    lines = [headline, *(f"  {label}: {text}" for label, text in (("expected", expected), ("fix", fix)) if text)]
    for line in lines:
        # What a name of a file says after a line feed must not look like a line of ours.
        click.echo(printable(redacted(line)).replace("\n", "\n  "), err=True)
