"""Workers for a run: processes of this machine that are started for it, or those of a Dask scheduler that is there."""

from __future__ import annotations

import importlib.util
import logging
import multiprocessing
import os
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask
from distributed import Client, Nanny, Scheduler, SpecCluster

from seedrank.config import ScoreOptions
from seedrank.errors import ResourceError, SeedrankError, StorageError
from seedrank.jobs.scaleout.devices import visible_devices
from seedrank.jobs.scaleout.share import options_of_one

#: Seconds in which a scheduler has to answer.
CONNECT_S = 15.0
#: Seconds for which a run waits for a first worker, and goes on hoping when the last one is gone.
WORKERS_S = 60.0
#: How often a scheduler that hangs up is told of a run.
TELL_TIMES = 3
#: Seconds in which workers have to leave before they are killed.
LEAVE_S = 2.0
#: What a worker process is started with. Numba and Arrow are told their threads by `--threads`; of others there is one.
#: What workers have to say is sent home (`seedrank.jobs.scaleout.logs`).
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "DASK_LOGGING__DISTRIBUTED": "error",
}
#: Settings of Dask for workers that are started here.
SETTINGS: dict[str, Any] = {
    # A part whose worker dies is done once more by another, then it is looked at (`seedrank.jobs.scaleout.split`).
    "distributed.scheduler.allowed-failures": 1,
    # A task for which no worker will do is an error, and not waited for.
    "distributed.scheduler.no-workers-timeout": f"{WORKERS_S:.0f}s",
    "distributed.nanny.pre-spawn-environ": _ENVIRONMENT,
    # After compiled kernels have run on several threads, a fork of this process would hang.
    "distributed.worker.multiprocessing-method": "spawn",
}


@dataclass(frozen=True)
class Workers:
    """A client of a scheduler.

    Attributes
    ----------
    client : distributed.Client
    own : whether the workers were started for this run, and end with it.
    options : what the run's options are for a worker.
    resources : what a task has to ask for, so that workers which cannot run it do not get it.
    """

    client: Any
    own: bool
    options: ScoreOptions
    resources: dict[str, int]

    def addresses(self) -> dict[str, str]:
        """Address → host of every worker that the scheduler knows now."""
        found = self.client.scheduler_info(n_workers=-1)["workers"]
        return {address: info["host"] for address, info in found.items()}

    def wait_for_first(self) -> dict[str, str]:
        """Return `addresses` as soon as there is one.

        Raises
        ------
        ResourceError
            There is none in time.
        """
        begun = time.monotonic()
        while not (found := self.addresses()):
            if time.monotonic() - begun > WORKERS_S:
                raise no_worker(WORKERS_S)
            time.sleep(0.1)
        return found

    def tell(self, plugin: Any) -> None:
        """Register a plugin with every worker, also with those that come later.

        A worker that dies just then makes the scheduler hang up on who asked, though it lives itself.

        Raises
        ------
        OSError
            The scheduler is lost.
        """
        for attempt in range(TELL_TIMES):
            try:
                self.client.register_plugin(plugin)
            except OSError:
                if attempt + 1 == TELL_TIMES or self.client.status != "running":
                    raise
                time.sleep(0.2)
            else:
                return


@contextmanager
def connected(options: ScoreOptions, scratch: Path) -> Iterator[Workers]:
    """Start workers, or find them, for the length of a ``with`` block.

    Parameters
    ----------
    options : with ``workers`` or ``scheduler``.
    scratch : local folder for what workers of this machine put down.

    Raises
    ------
    ResourceError
        Processes cannot be started from this one; there is no GPU.
    StorageError
        The scheduler does not answer.
    """
    if options.scheduler is not None:
        with _remote(options.scheduler) as client:
            yield Workers(client, own=False, options=options, resources={})
        return
    _check_may_start_processes()
    devices = visible_devices() if options.workers == "gpu" else None
    count = len(devices) if devices is not None else int(options.workers or 1)
    with local_cluster(count, devices, scratch) as client:
        resources = {} if devices is None else {"GPU": 1}
        yield Workers(client, own=True, options=options_of_one(options, count), resources=resources)


def no_worker(seconds: float) -> ResourceError:
    """Return the error for a scheduler without workers."""
    return ResourceError(
        f"the scheduler has had no worker for {seconds:.0f} s",
        expected="at least one worker",
        fix="start workers (`dask worker ADDRESS --nthreads 1`), or see in their logs why they end; finished parts are "
        "kept, the same command goes on from there",
    )


def no_scheduler(address: str, reason: str) -> StorageError:
    """Return the error for a scheduler that does not answer, or not any more."""
    return StorageError(
        f"the scheduler {address} cannot be reached: {reason}",
        expected="a Dask scheduler that answers",
        fix="see whether it runs and whether address, firewalls and TLS are right; then run the same command again: "
        "finished parts are kept",
    )


@contextmanager
def answering(address: str) -> Iterator[None]:
    """Turn what a lost connection raises into `StorageError` (exit code 5).

    Parameters
    ----------
    address : of the scheduler, for the message.
    """
    try:
        yield
    except SeedrankError:
        raise
    except (CancelledError, OSError) as error:
        raise no_scheduler(address, f"the connection was lost ({type(error).__name__}: {error})") from error


def _check_may_start_processes() -> None:
    if multiprocessing.current_process().daemon:
        raise ResourceError(
            "--workers is given in a daemonic process, which Python lets have no children",
            expected="a process that may start others",
            fix="run the job as a process of its own (`seedrank score …`), start this one with daemon=False, or drop "
            "--workers",
        )


@contextmanager
def local_cluster(count: int, devices: list[str] | None, scratch: Path) -> Iterator[Client]:
    """Start workers on this machine, reachable from it alone, for the length of a ``with`` block.

    Parameters
    ----------
    count : how many.
    devices : what each has for `CUDA_VISIBLE_DEVICES`; None for workers without a GPU of their own.
    scratch : folder for what they put down.

    Raises
    ------
    ResourceError
        They cannot be started.
    """
    with dask.config.set(SETTINGS), _environment_restored():
        cluster = _cluster(count, devices, scratch)
        try:
            client = Client(cluster, timeout=CONNECT_S, set_as_default=False)
            try:
                yield client
            finally:
                _close(client)
        finally:
            with _nothing_logged():  # of workers that were just about to start
                _close(cluster)


def _cluster(count: int, devices: list[str] | None, scratch: Path) -> Any:
    common: dict[str, Any] = {
        "host": "127.0.0.1",  # nobody else is to reach them
        "local_directory": str(scratch.absolute()),
        "memory_limit": None,  # what is resident counts mapped files, the whole graph: the kernel decides instead
        "dashboard": False,
        "dashboard_address": "127.0.0.1:0",  # without pages, and on a port that is free
    }
    if devices is not None and importlib.util.find_spec("dask_cuda") is not None:
        from dask_cuda import LocalCUDACluster  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415

        return LocalCUDACluster(
            CUDA_VISIBLE_DEVICES=",".join(devices),
            threads_per_worker=1,
            resources={"GPU": 1},
            dashboard_address=None,
            **{name: common[name] for name in ("host", "local_directory", "memory_limit")},
        )
    of_each: list[dict[str, Any]] = [{}] * count
    if devices is not None:
        of_each = [{"env": {"CUDA_VISIBLE_DEVICES": name}, "resources": {"GPU": 1}} for name in devices]
    own = {name: common[name] for name in ("host", "dashboard", "dashboard_address")}
    try:
        return SpecCluster(
            workers={
                place: {"cls": Nanny, "options": {"nthreads": 1, **common, **each}}
                for place, each in enumerate(of_each)
            },
            scheduler={"cls": Scheduler, "options": {**own, "port": 0}},
        )
    except (RuntimeError, OSError) as error:
        raise ResourceError(
            f"the {count} processes of --workers could not be started ({type(error).__name__}: {error})",
            expected="processes that import the program they were started from",
            fix='in a script, call seedrank.score below `if __name__ == "__main__":`; a script on stdin cannot start '
            "workers",
        ) from error


@contextmanager
def _remote(address: str) -> Iterator[Client]:
    try:
        client = Client(address, timeout=CONNECT_S, set_as_default=False)
    except Exception as error:
        raise no_scheduler(address, f"{type(error).__name__}: {error}") from error
    try:
        yield client
    finally:
        with _nothing_logged():  # of a scheduler that was lost
            _close(client)


@contextmanager
def _environment_restored() -> Iterator[None]:
    """Take back what Dask sets in the environment of this process, for workers to inherit."""
    names = (*dask.config.get("distributed.nanny.pre-spawn-environ"), "PYTHONHASHSEED")
    before = {name: os.environ.get(name) for name in names}
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _nothing_logged() -> Iterator[None]:
    logger = logging.getLogger("distributed")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)


def _close(what: Any) -> None:
    # A scheduler that is gone, or a worker that is busy, must not keep a run from ending.
    with suppress(Exception):
        what.close(timeout=LEAVE_S)
