"""Commands in processes of their own that start at once: one process has imported everything, and forks for each.

A forked command is killed, interrupted and refused memory like any other; what it does not show is the start of the
interpreter and the imports, of which `tests/test_jobs/test_cli.py` has its own tests. The server scores nothing itself:
after that, ``fork`` would be fatal (GNU OpenMP).
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

#: What commands import when they need it, and what Arrow does where it finds pandas.
_IMPORTED = (
    "faulty",
    "seedrank.jobs.build",
    "seedrank.jobs.score",
    "seedrank.kernels.backends.scipy",
    "rich",
    "pandas",
)


class ForkedCommands:
    """The client: starts the server, and runs commands through it one after the other."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(
        self, command: Sequence[str], *, environment: Mapping[str, str] | None = None, timeout_s: int = 120
    ) -> subprocess.CompletedProcess[str]:
        """Run ``seedrank COMMAND``; with ``FAULT`` in its environment as `tests/faulty.py` does.

        A command that takes longer than ``timeout_s`` is ended by SIGALRM.
        """
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        with tempfile.TemporaryDirectory() as folder:
            out, err = Path(folder, "out"), Path(folder, "err")
            request = {
                "command": list(command),
                "environment": {**os.environ, **(environment or {})},
                "out": str(out),
                "err": str(err),
                "timeout_s": timeout_s,
            }
            self._server.stdin.write(json.dumps(request) + "\n")
            self._server.stdin.flush()
            code = int(self._server.stdout.readline())
            texts = [file.read_text(encoding="utf-8", errors="replace") for file in (out, err)]
        return subprocess.CompletedProcess(list(command), code, *texts)

    def close(self) -> None:
        """End the server."""
        self._server.communicate()


@pytest.fixture(scope="session")
def forked_commands() -> Iterator[ForkedCommands]:
    """Runs commands in processes that start at once."""
    commands = ForkedCommands()
    yield commands
    commands.close()


def _serve() -> None:
    for name in _IMPORTED:
        importlib.import_module(name)
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            _become(request)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def _become(request: Mapping[str, Any]) -> None:
    """Be the command, in the child; never returns."""
    code = 70
    try:
        signal.alarm(request["timeout_s"])
        os.environ.clear()
        os.environ.update(request["environment"])
        files = [os.open(os.devnull, os.O_RDONLY)]
        files += [os.open(request[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600) for name in ("out", "err")]
        for target, file in enumerate(files):
            os.dup2(file, target)
            os.close(file)
        faulty = importlib.import_module("faulty")
        code = faulty.main(request["command"])
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


if __name__ == "__main__":
    _serve()
