"""The ``seedrank`` command as a request to `tests/fork_server.py`; standard library only, so that it starts at once.

``python -IS tests/fork_client.py SOCKET [ARGUMENT...]`` lends its streams, its folder and its environment to a forked
command, and ends as that ends.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress


class Request:
    """A command that a server has forked.

    Parameters
    ----------
    server : str
        Path of the server's socket.
    command : sequence of str
        Arguments of ``seedrank``.
    streams : sequence of int
        Descriptors of its standard input, output and error.
    environment : dict
        All of its environment.
    folder : str
        Its working directory.
    timeout_s : int
        Seconds after which SIGALRM ends it; 0 for never.
    """

    def __init__(
        self,
        server: str,
        command: Sequence[str],
        *,
        streams: Sequence[int],
        environment: dict[str, str],
        folder: str,
        timeout_s: int = 0,
    ) -> None:
        content = {"command": list(command), "environment": environment, "folder": folder, "timeout_s": timeout_s}
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(server)
            socket.send_fds(connection, [b"\0"], list(streams))
            connection.sendall(json.dumps(content).encode() + b"\n")
            self._answers = connection.makefile("r")
        self.pid = self._answer("started")[1]

    def stopped(self) -> bool:
        """Wait until a signal has stopped the process, or it has ended; True in the first case."""
        return self._answer("stopped", "ended")[0] == "stopped"

    def is_running(self) -> bool:
        """Whether the process has not ended yet."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def send_signal(self, number: int) -> None:
        """Send the process a signal, unless it has ended."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def ended(self) -> int:
        """Wait for the end; returns the exit code, negative for a signal."""
        code = self._answer("ended")[1]
        self._answers.close()
        return code

    def _answer(self, *wanted: str) -> tuple[str, int]:
        for line in self._answers:
            word, number = line.split()
            if word in wanted:
                return word, int(number)
        raise ConnectionError(f"the server of commands ended before it said {wanted}")


def main(server: str, command: Sequence[str]) -> None:
    """Be the command; never returns."""
    request = Request(server, command, streams=(0, 1, 2), environment=dict(os.environ), folder=os.getcwd())  # noqa: PTH109  # as it starts

    code = request.ended()
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
