"""A process that has imported everything and forks for each command: ``python tests/fork_server.py SOCKET``.

A forked command is a process of its own with the streams, the folder and the environment of whoever asks for it (see
`tests/fork_client.py`); it is killed, stopped, interrupted and refused memory like any other. What it does not show is
the start of the interpreter and the imports. The server scores nothing itself: after that, ``fork`` would be fatal
(GNU OpenMP). It ends with its standard input.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import selectors
import signal
import socket
import sys
import traceback
from typing import Any

#: What commands import when they need it.
IMPORTED = (
    "faulty",
    *(f"seedrank.jobs.cli.{name}" for name in ("build", "score", "plan", "check", "explain")),
    "seedrank.jobs.score",
    "seedrank.kernels.backends.scipy",
    "seedrank.kernels.backends.cpu",
    "rich",
)
#: Variables that were read when the server started: a command that has others needs a process from the start.
READ_AT_START = ("PYTHON", "NUMBA_", "OMP_", "GOMP_", "XDG_CACHE_HOME", "HOME", "LD_")


def serve(path: str) -> None:
    """Answer requests until standard input ends."""
    before = dict(os.environ)
    # As where pandas is not imported: no command uses it.
    importlib.import_module("seedrank.jobs.cli.main")._leave_pandas_out()
    for name in IMPORTED:
        importlib.import_module(name)
    # Most of what the first compiled function of a process costs.
    target = importlib.import_module("numba.core.registry").cpu_target
    for context in (target.typing_context, target.target_context):
        context.refresh()
    gc.collect()
    gc.freeze()  # what is here now is never looked at again, nor copied, by the children
    added = {name: value for name, value in os.environ.items() if name not in before}

    woken, wake = os.pipe()
    for end in (woken, wake):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    running: dict[int, socket.socket] = {}
    with socket.socket(socket.AF_UNIX) as door, selectors.DefaultSelector() as events:
        door.bind(path)
        door.listen(64)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        for file in (door, sys.stdin, woken):
            events.register(file, selectors.EVENT_READ)
        while True:
            ready = [key.fileobj for key, _ in events.select()]
            if woken in ready:
                os.read(woken, 4096)
                report(running)
            if door in ready:
                connection, request, streams = accepted(door)
                child = os.fork()
                if child == 0:
                    signal.set_wakeup_fd(-1)
                    become(request, streams, before, added)
                for stream in streams:
                    os.close(stream)
                running[child] = connection
                say(connection, "started", child)
            if sys.stdin in ready:
                return


def accepted(door: socket.socket) -> tuple[socket.socket, dict[str, Any], list[int]]:
    """Take a request: who asks, what for, and the descriptors of the three streams."""
    connection, _ = door.accept()
    _, streams, _, _ = socket.recv_fds(connection, 1, 3)
    with connection.makefile("r") as lines:
        return connection, json.loads(lines.readline()), streams


def report(running: dict[int, socket.socket]) -> None:
    """Tell those who wait which commands have ended or are stopped."""
    while running:
        child, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
        if child == 0:
            return
        if os.WIFSTOPPED(status):
            say(running[child], "stopped", os.WSTOPSIG(status))
        else:
            with running.pop(child) as connection:
                say(connection, "ended", os.waitstatus_to_exitcode(status))


def say(connection: socket.socket, word: str, number: int) -> None:
    """Answer, should anybody still listen."""
    try:
        connection.sendall(f"{word} {number}\n".encode())
    except OSError:
        return


def refuse_what_was_read(before: dict[str, str], wanted: dict[str, str], added: dict[str, str]) -> None:
    """Refuse an environment that would have made another server."""
    changed = {name for name, _ in before.items() ^ wanted.items() if name.startswith(READ_AT_START)} - added.keys()
    if changed:
        raise ValueError(f"{sorted(changed)}: read when the server started; use `python -m seedrank`")


def become(request: dict[str, Any], streams: list[int], before: dict[str, str], added: dict[str, str]) -> None:
    """Be the command, in the child; never returns."""
    code = 70
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for target, stream in enumerate(streams):
            os.dup2(stream, target)
            os.close(stream)
        wanted = request["environment"]
        refuse_what_was_read(before, wanted, added)
        os.environ.clear()
        os.environ.update({**added, **wanted})
        os.chdir(request["folder"])
        signal.alarm(request["timeout_s"])
        code = importlib.import_module("faulty").main(request["command"])
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:  # nothing may return into the server
        traceback.print_exc()
    finally:
        os._exit(code)


if __name__ == "__main__":
    serve(sys.argv[1])
