"""Versions of this process, the scheduler and the workers, compared before any work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from seedrank.errors import ResourceError, StorageError

#: What makes the bytes of a run, and what the processes speak with.
OF_WORKERS = ("python", "seedrank", "numpy", "scipy", "numba", "pyarrow", "dask", "distributed", "cloudpickle")
#: A scheduler only passes on what it does not open.
OF_SCHEDULER = ("python", "dask", "distributed")
_ABSENT = "-"


def check_versions(client: Any, address: str) -> None:
    """Refuse a scheduler or workers of other versions; of Python the patch level may differ.

    Parameters
    ----------
    client : distributed.Client
    address : of the scheduler, for the message.

    Raises
    ------
    ResourceError
        With a table of what differs.
    StorageError
        Scheduler or workers do not answer.
    """
    try:
        here = version_reader()()
        scheduler = client.run_on_scheduler(version_reader())
        workers = client.run(version_reader(), on_error="return")
    except Exception as error:
        raise StorageError(
            f"the scheduler {address} or its workers do not tell their versions ({type(error).__name__}: {error})",
            expected="a Dask scheduler and workers of the versions of this process",
            fix="start them in the environment that runs this command",
        ) from error
    table = differences(here, scheduler, workers)
    if table:
        raise ResourceError(
            "the versions of scheduler and workers differ from those of this process:\n" + table,
            expected="the same versions everywhere: parts are the same bytes whoever computes them",
            fix="start scheduler and workers in the environment that runs this command (one container image for all)",
        )


def version_reader() -> Callable[[], dict[str, str]]:
    """Return a function that tells versions, and that can be sent to a process without seedrank."""

    # A nested function travels as code; one of a module would be looked up where seedrank may be missing.
    def read(names: tuple[str, ...] = OF_WORKERS) -> dict[str, str]:
        import platform  # noqa: PLC0415
        from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415

        found = {"python": ".".join(platform.python_version_tuple()[:2])}
        for name in names[1:]:
            try:
                found[name] = version(name)
            except PackageNotFoundError:
                found[name] = "-"
        return found

    return read


def differences(here: Mapping[str, str], scheduler: Mapping[str, str], workers: Mapping[str, Any]) -> str:
    """Return a table of what differs, a line each; "" where nothing does.

    Parameters
    ----------
    here, scheduler : version by package.
    workers : address → version by package, or the error that came instead.
    """
    told = {
        "scheduler": (OF_SCHEDULER, scheduler),
        **{f"worker {name}": (OF_WORKERS, workers[name]) for name in workers},
    }
    lines = []
    for who, (names, found) in told.items():
        if not isinstance(found, Mapping):
            lines.append(f"{who}: {type(found).__name__}: {found}")
            continue
        lines += [
            f"{who}: {name} {found.get(name, _ABSENT)}, here {here[name]}"
            for name in names
            if found.get(name, _ABSENT) != here[name]
        ]
    return "\n".join(lines[:20])
