"""The real command with a fault at one of its steps; tests run it in a process of its own.

A step is a change below the folder ``FAULT_BELOW`` that the process is about to make: a file opened for writing, a
rename, a folder made, a file or a folder removed. Python announces each to audit hooks, so none is forgotten.

``FAULT`` is ``list:FILE`` (write all steps to that file, one a line) or ``KIND:NUMBER``, which strikes before the step
of that number, counted from 0 (``KIND:TEXT``: before every step with that text): ``KILL``, ``TERM``, ``INT`` and
``STOP`` send the process that signal; ``ENOSPC`` and ``EIO`` let the step fail with that error, and all later ones of a
full disk that would need space; ``BUG`` raises what no step expects.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from pathlib import Path
from typing import Any

NAMES = {"open": "open", "os.rename": "rename", "os.mkdir": "mkdir", "os.remove": "remove", "os.rmdir": "rmdir"}
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT

steps: list[str] = []
kind = argument = below = ""


def place(path: Any, folder: int = -1) -> str:
    """Absolute name of what a system call names, relative to a folder descriptor or to the working directory."""
    base = Path(f"/proc/self/fd/{folder}").readlink() if folder >= 0 else Path.cwd()
    return str(base / os.fsdecode(path))


def step_of(event: str, arguments: tuple[Any, ...]) -> str | None:
    """Name the step that an audit event announces; None for anything else."""
    if event not in NAMES or isinstance(arguments[0], int):
        return None
    if event == "open":
        if not arguments[2] & WRITES:
            return None
        where = place(arguments[0])
    elif event == "os.rename":
        where = place(arguments[1], arguments[3])
    else:
        where = place(arguments[0], arguments[-1])
    return f"{NAMES[event]} {where.removeprefix(below)}" if where.startswith(below) else None


def strike(event: str, arguments: tuple[Any, ...]) -> None:
    """Count a step; let the fault happen when its number has come."""
    step = step_of(event, arguments)
    if step is None:
        return
    steps.append(step)
    if kind == "list":
        return
    if argument.isdigit():
        now, later = len(steps) - 1 == int(argument), len(steps) > int(argument)
    else:
        now = argument in step
        later = any(argument in done for done in steps)
    if now and kind in ("KILL", "TERM", "INT", "STOP"):
        os.kill(os.getpid(), signal.Signals[f"SIG{kind}"])
    elif kind == "BUG" and now:
        raise LookupError(step)
    elif kind == "EIO" and now:
        raise OSError(errno.EIO, os.strerror(errno.EIO), step)
    elif kind == "ENOSPC" and later and step.startswith(("open", "mkdir")):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), step)


def main(command: list[str]) -> int:
    """Run a command, with the fault that the environment asks for, if any; returns its exit code."""
    global kind, argument, below  # noqa: PLW0603  # an audit hook has no arguments of its own
    from seedrank.jobs.cli.main import run  # noqa: PLC0415  # after the fork, or as the console script does

    if "FAULT" not in os.environ:
        return run(command)
    kind, _, argument = os.environ["FAULT"].partition(":")
    below = os.path.realpath(os.environ["FAULT_BELOW"]) + os.sep
    sys.addaudithook(strike)
    code = run(command)
    if kind == "list":
        Path(argument).write_text("\n".join(steps), encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
