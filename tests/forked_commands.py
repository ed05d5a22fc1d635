"""Commands in processes of their own that start at once, for tests: a server (`tests/fork_server.py`) forks them.

Tests of the start itself, and of variables that are read at the start, use processes of the ordinary kind:
``python -m seedrank``.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from fork_client import Request

HERE = Path(__file__).parent


class ForkedCommands:
    """The client: starts the server, and asks it for commands.

    Attributes
    ----------
    program : str
        A ``seedrank`` for shells and for `subprocess`. Signals do not reach the command: `start` knows its number.
    """

    def __init__(self, folder: Path) -> None:
        self._socket = str(folder / "socket")
        command = [sys.executable, str(HERE / "fork_server.py"), self._socket]
        self._server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._server.stdout is not None
        if self._server.stdout.readline() != "ready\n":
            self.close()
            raise RuntimeError(f"{command} ended, which should wait for commands: {self._server.returncode}")
        client = shlex.join([sys.executable, "-IS", str(HERE / "fork_client.py"), self._socket])
        program = folder / "bin" / "seedrank"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec {client} "$@"\n', encoding="utf-8")
        program.chmod(0o700)
        self.program = str(program)

    def start(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
        output: int | None = None,
        timeout_s: int = 120,
    ) -> Request:
        """Start ``seedrank COMMAND``; with ``FAULT`` in its environment as `tests/faulty.py` does.

        ``environment`` is added to that of the tests. Output and error go to one descriptor. A command that takes
        longer than ``timeout_s`` is ended by SIGALRM.
        """
        with open(os.devnull, "r+b") as nowhere:  # noqa: PTH123  # as a descriptor
            taken = nowhere.fileno() if output is None else output
            return self._request(command, environment, folder, timeout_s, (nowhere.fileno(), taken, taken))

    def start_until(self, event: str, command: Sequence[str], *, timeout_s: int = 120) -> Request:
        """Start a command, and return when its log names an event."""
        with tempfile.TemporaryFile() as log:
            process = self.start(command, output=log.fileno(), timeout_s=timeout_s)
            while event.encode() not in os.pread(log.fileno(), 1 << 20, 0):
                if not process.is_running():
                    raise RuntimeError(f"no {event}: {os.pread(log.fileno(), 1 << 20, 0).decode()}")
                time.sleep(0.01)
        return process

    def run(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
        timeout_s: int = 120,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command as `start` does; output and error are kept apart."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, Path(os.devnull).open("rb") as nothing:
            streams = (nothing.fileno(), out.fileno(), err.fileno())
            code = self._request(command, environment, folder, timeout_s, streams).ended()
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read().decode(errors="replace"))
        return subprocess.CompletedProcess(list(command), code, *texts)

    def close(self) -> None:
        """End the server."""
        self._server.communicate()

    def _request(
        self,
        command: Sequence[str],
        environment: Mapping[str, str] | None,
        folder: Path | None,
        timeout_s: int,
        streams: tuple[int, int, int],
    ) -> Request:
        return Request(
            self._socket,
            command,
            streams=streams,
            environment={**os.environ, **(environment or {})},
            folder=str(folder or Path.cwd()),
            timeout_s=timeout_s,
        )


@pytest.fixture(scope="session")
def forked_commands() -> Iterator[ForkedCommands]:
    """Runs commands in processes that start at once."""
    # Not below pytest's folder: paths of sockets are short.
    with tempfile.TemporaryDirectory(prefix="seedrank-") as folder:
        commands = ForkedCommands(Path(folder))
        yield commands
        commands.close()
