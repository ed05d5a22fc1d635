"""The GPUs of this machine, as one process each is to see them."""

from __future__ import annotations

import os
import shutil
import subprocess

from seedrank.kernels._gpu.probe import probe_device

_TIMEOUT_S = 30


def visible_devices() -> list[str]:
    """Return what `CUDA_VISIBLE_DEVICES` has to be for every GPU that this process may use, one after the other.

    Numbers, or whatever names the variable already holds. Where it is not set and nvidia-smi is missing or fails, the
    one GPU that the probe has tried.

    Raises
    ------
    ResourceError
        There is none that works; the message is that of the probe.
    """
    report = probe_device()
    if not report.usable:
        raise report.error()
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    if given is not None:
        return [name.strip() for name in given.split(",") if name.strip()]
    return _listed() or ["0"]


def _listed() -> list[str]:
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    command = [program, "--query-gpu=index", "--format=csv,noheader"]
    try:
        done = subprocess.run(  # noqa: S603  # a program of the driver, found on PATH
            command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=True, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError):
        return []
    return [line.strip() for line in done.stdout.splitlines() if line.strip().isdigit()]
