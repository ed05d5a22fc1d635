"""Whether there is a GPU that works, and cuGraph on it, found out in a child process; and what to do where not."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from seedrank.errors import ResourceError

Work = Literal["steps", "recall", "products"]

TIMEOUT_S = 60.0
"""A driver that has not answered by then hangs; compiling the kernels takes some seconds of it, once a machine."""

_EXTRAS = "pip install 'seedrank[gpu-cu13]' (driver 580 or newer) or 'seedrank[gpu-cu12]' (535 or newer), never both"
_CPU = "use --backend cpu, or auto"
_CUGRAPH_EXTRAS = (
    "pip install 'seedrank[cugraph-cu13]' (driver 580 or newer) or 'seedrank[cugraph-cu12]' (535 or newer), never both"
)

#: Code → (what is wrong, what was expected, how to fix it). The detail follows the first.
_MESSAGES: dict[str, tuple[str, str, str]] = {
    "not-installed": ("CuPy is not installed", "the extra for GPUs", f"{_EXTRAS}; or {_CPU}"),
    "import-failed": ("CuPy is installed, but cannot be imported", "an import that works", f"reinstall: {_EXTRAS}"),
    "no-driver": (
        "there is no NVIDIA driver", "libcuda.so.1, as the driver brings it",
        f"install the driver; in a container, start it with the NVIDIA runtime (docker run --gpus all); or {_CPU}",
    ),
    "no-device": (
        "the driver has no GPU for this process", "at least one",
        f"look at nvidia-smi and at CUDA_VISIBLE_DEVICES; in a container, pass the device on; or {_CPU}",
    ),
    "device-busy": (
        "the GPU is busy or in exclusive mode", "a GPU that takes one more process",
        f"wait for the process that nvidia-smi shows, or name another with CUDA_VISIBLE_DEVICES; or {_CPU}",
    ),
    "driver-mismatch": (
        "the driver's library and its kernel module are of different versions", "one version of both",
        f"reboot after a driver update, or load the module again; or {_CPU}",
    ),
    "compat-unsupported": (
        "the CUDA compatibility package does not support this GPU", "a driver that needs no such package",
        f"remove cuda-compat from LD_LIBRARY_PATH, or update the driver; or {_CPU}",
    ),
    "system-not-ready": (
        "the GPUs are not ready", "a running fabric manager, where GPUs are joined by NVSwitch",
        f"systemctl status nvidia-fabricmanager; or {_CPU}",
    ),
    "driver-stub": (
        "the driver found is a stub, as the toolkit brings it for linking", "the library of a real driver",
        f"take the toolkit's stubs folder out of LD_LIBRARY_PATH; or {_CPU}",
    ),
    "driver-broken": ("the driver reports an error", "a driver that starts", f"see dmesg for Xid errors; or {_CPU}"),
    "driver-hang": (
        f"the driver did not answer within {TIMEOUT_S:.0f} s", "an answer in a few seconds",
        f"see whether nvidia-smi hangs, too; a reboot may be needed; or {_CPU}",
    ),
    "crashed": (
        "trying the GPU ended the process that tried",
        "a process that ends by itself",
        f"reinstall: {_EXTRAS}; or {_CPU}",
    ),
    "out-of-memory": (
        "the GPU has no memory left", "some hundred MB at least",
        f"end other processes on it (nvidia-smi), or name another with CUDA_VISIBLE_DEVICES; or {_CPU}",
    ),
    "toolkit-missing": (
        "CuPy does not find CUDA's compiler or libraries", "CuPy with its extra ctk, as seedrank's extras install it",
        f"{_EXTRAS}; or {_CPU}",
    ),
    "kernels-failed": (
        "the kernels do not run on this GPU", "a small run on a graph of three nodes",
        f"report this with the output of `seedrank info`; or {_CPU}",
    ),
    "kernels-wrong": (
        "the kernels compute nonsense on this GPU", "exact answers",
        f"report this with the output of `seedrank info`; {_CPU}",
    ),
    "cugraph-not-installed": (
        "pylibcugraph is not installed", "the extra for cuGraph", f"{_CUGRAPH_EXTRAS}; or use --backend gpu",
    ),
    "cugraph-import-failed": (
        "pylibcugraph is installed, but cannot be imported", "an import that works", f"reinstall: {_CUGRAPH_EXTRAS}",
    ),
    "cugraph-failed": (
        "cuGraph does not run on this GPU", "two steps on a graph of three nodes",
        f"reinstall: {_CUGRAPH_EXTRAS}; or use --backend gpu",
    ),
    "cugraph-wrong": (
        "cuGraph computes something else than personalized PageRank by the rules of seedrank", "exact answers",
        "report this with the output of `seedrank info`; use --backend gpu or cpu",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class DeviceReport:
    """What the probe found.

    Attributes
    ----------
    code : str
        "ok", or what is wrong: a short name that does not change.
    detail : str
        What the library said.
    cupy, cugraph : str
        Versions of CuPy and pylibcugraph; "" where they were not imported.
    built_for, driver : int
        CUDA versions, 1000 × major + 10 × minor; 0: not known, or none.
    device : str
        Name of the GPU.
    free_bytes, total_bytes : int
        Its memory.
    """

    code: str
    detail: str = ""
    cupy: str = ""
    cugraph: str = ""
    built_for: int = 0
    driver: int = 0
    device: str = ""
    free_bytes: int = 0
    total_bytes: int = 0

    @property
    def usable(self) -> bool:
        """Whether kernels ran and gave the right numbers."""
        return self.code == "ok"

    @property
    def problem(self) -> str:
        """What is wrong, in one line; "" where nothing is."""
        return "" if self.usable else self.error().found

    def error(self) -> ResourceError:
        """Say what is wrong and how to fix it, as an error."""
        found, expected, fix = self._driver_message() if self.code == "driver-too-old" else _MESSAGES[self.code]
        # What CuPy says of itself adds nothing to these.
        plain = self.code in ("not-installed", "driver-too-old", "driver-hang", "cugraph-not-installed")
        plain = plain or not self.detail
        return ResourceError(found if plain else f"{found}: {self.detail}", expected=expected, fix=fix)

    def _driver_message(self) -> tuple[str, str, str]:
        """Of a driver that is too old: whether the other extra would do."""
        found = f"the driver is for CUDA {_version(self.driver)}, CuPy for CUDA {_version(self.built_for)}"
        if self.built_for >= 13_000 and self.driver >= 12_000:
            fix = "pip uninstall cupy-cuda13x, then pip install 'seedrank[gpu-cu12]'; or update the driver to 580"
            return found, "a driver of CuPy's CUDA version or newer", fix
        return found, "driver 535 or newer for CUDA 12, 580 or newer for CUDA 13", f"update the driver; or {_CPU}"


def probe_device(timeout_s: float | None = None, *, work: Work = "steps") -> DeviceReport:
    """Try the GPU in a child process, where CuPy is installed: libraries, driver, device, memory, own kernels.

    The process that asks gets no CUDA context, so it may be forked, and holds no memory of the device. An answer is
    kept for the life of the process.

    Parameters
    ----------
    timeout_s : float, optional
        By default `TIMEOUT_S`.
    work : "steps", "recall" or "products"
        Whose kernels are compiled, run and held against a known answer: those of PageRank, those of walks and
        traversals, or the products of vectors.

    Returns
    -------
    DeviceReport
    """
    if importlib.util.find_spec("cupy") is None:
        return DeviceReport("not-installed")
    return _ask_child(TIMEOUT_S if timeout_s is None else timeout_s, work)


def probe_cugraph(timeout_s: float | None = None) -> DeviceReport:
    """Try the GPU, and then cuGraph on it, as `probe_device` does: two steps through ``--backend cugraph``."""
    report = probe_device(timeout_s)
    if not report.usable:
        return report
    if importlib.util.find_spec("pylibcugraph") is None:
        return replace(report, code="cugraph-not-installed")
    return _ask_child(TIMEOUT_S if timeout_s is None else timeout_s, "cugraph")


@cache
def _ask_child(timeout_s: float, work: str) -> DeviceReport:
    command = [sys.executable, "-m", "seedrank.kernels._gpu.probe_child", work]
    try:
        done = subprocess.run(  # noqa: S603  # this interpreter, a module of this package
            command, capture_output=True, text=True, timeout=timeout_s, check=False, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        return DeviceReport("driver-hang")
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        last = (done.stderr.strip().splitlines() or [""])[-1]
        how = f"signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
        return DeviceReport("crashed", f"{how} {last}".strip()[:300])
    return DeviceReport(**json.loads(lines[-1]))


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"
