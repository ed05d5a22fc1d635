"""The CUDA runtime of the stand-in for CuPy.

``FAKE_CUPY_LIBCUDA=1`` asks the driver library that the loader finds, as the real runtime does: a fake one then says
what is wrong. ``FAKE_CUPY_FAULT`` is a status that every call fails with as long as it is set (``memory:STATUS``; out
of memory, 2, leaves the device alive), one that launches, products or pinned memory alone fail with
(``launch:STATUS``, ``cublas:STATUS``, ``pinned:STATUS``), or what is wrong with kernels: ``kernel:wrong`` (they do
nothing), ``kernel:missing`` (no compiler) or ``kernel:broken`` (it fails). ``FAKE_CUPY_FAULTY`` is the name of a
kernel, or ``matmul``: faults of launches and kernels are then those of what is compiled together with it.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Set
from typing import Any

_BUILT_FOR = 13_000
_INSUFFICIENT_DRIVER = 35


class CUDARuntimeError(RuntimeError):
    """As CuPy's: ``status`` is the code."""

    def __init__(self, status: int) -> None:
        super().__init__(f"cudaError {status}: made up")
        self.status = status


def check(where: str) -> None:
    """Fail if this is where the fault is."""
    place, _, status = os.environ.get("FAKE_CUPY_FAULT", "").partition(":")
    if place == where:
        raise CUDARuntimeError(int(status))


def fault_of(names: Set[str]) -> str:
    """What is wrong with the kernels of these names; "" where nothing is."""
    faulty = os.environ.get("FAKE_CUPY_FAULTY")
    return os.environ.get("FAKE_CUPY_FAULT", "") if faulty is None or faulty in names else ""


def deviceSynchronize() -> None:  # noqa: N802
    """Wait for the device: an error that cannot be recovered from comes back here."""
    if os.environ.get("FAKE_CUPY_FAULT") != "memory:2":
        check("memory")


def _driver() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None


def runtimeGetVersion() -> int:  # noqa: N802
    """CUDA version that it was built for."""
    return _BUILT_FOR


def driverGetVersion() -> int:  # noqa: N802
    """CUDA version of the driver; 0: there is none."""
    if "FAKE_CUPY_LIBCUDA" not in os.environ:
        return _BUILT_FOR
    driver, version = _driver(), ctypes.c_int(0)
    if driver is not None:
        driver.cuDriverGetVersion(ctypes.byref(version))
    return version.value


def getDeviceCount() -> int:  # noqa: N802
    """Count the devices."""
    if "FAKE_CUPY_LIBCUDA" not in os.environ:
        return 1
    if driverGetVersion() < _BUILT_FOR:
        raise CUDARuntimeError(_INSUFFICIENT_DRIVER)
    driver, count = _driver(), ctypes.c_int(0)
    assert driver is not None
    status = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    if status:
        raise CUDARuntimeError(status)
    return count.value


def getDeviceProperties(device: int) -> dict[str, Any]:  # noqa: N802
    """Describe a device."""
    return {"name": b"stand-in for a GPU"}
