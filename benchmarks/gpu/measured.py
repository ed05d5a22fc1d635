"""What the scripts of this folder share: shortest times, and a result file that is written after every figure."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measure import write_results

COPIED_BYTES = 1 << 30


def fastest(run: Callable[[], object], rounds: int = 5) -> float:
    """Shortest time of a run, in seconds, after one that does not count. A run ends with a result on the host."""
    times = []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times[1:])


def is_real(cupy: Any) -> bool:
    """Whether this is CuPy, not the stand-in of the tests, on which the scripts can be tried out."""
    return not cupy.__version__.endswith("fake")


class Figures:
    """Results of one script, as ``results/NAME.json`` from the first figure on: who is stopped keeps what there is.

    Parameters
    ----------
    name : str
        Of the file.
    parameters : dict
    cupy : module
    """

    def __init__(self, name: str, parameters: dict[str, Any], cupy: Any) -> None:
        runtime = cupy.cuda.runtime
        self._name = name
        self._parameters = parameters
        self._content: dict[str, Any] = {
            "complete": False,
            "device": runtime.getDeviceProperties(0)["name"].decode(),
            "cuda_of_driver": runtime.driverGetVersion(),
            "cuda": runtime.runtimeGetVersion(),
            "cupy": cupy.__version__,
        }
        self.failed = False

    def put(self, value: Any, *place: str) -> None:
        """Write a figure down, at a place such as ``"rmat20", "64", "step_s"``, and print it."""
        table = self._content
        for part in place[:-1]:
            table = table.setdefault(part, {})
        table[place[-1]] = value
        print(" ".join(place), f"{value:.6g}" if isinstance(value, float) else value, flush=True)
        self._write()

    def attempt(self, measure: Callable[[], Any], *place: str) -> None:
        """Measure and write down; what goes wrong is written instead, and the script goes on to end with a failure."""
        try:
            value = measure()
        except Exception as error:  # of whatever library is compared with
            self.failed = True
            value = f"failed: {type(error).__name__}: {error}"[:500]
        self.put(value, *place)

    def end(self) -> int:
        """Mark the file as complete; returns the exit status."""
        self._content["complete"] = not self.failed
        print(self._write())
        return int(self.failed)

    def _write(self) -> Path:
        return write_results(self._name, self._parameters, self._content)


def copied_bytes_per_second(cupy: Any) -> float:
    """Bytes read and written by a copy within the device: what no product can be faster than."""
    one, two = (cupy.zeros(COPIED_BYTES // 4, np.float32) for _ in range(2))

    def copy() -> None:
        for _ in range(10):
            two[:] = one
        two[:1].get()

    return 10 * 2 * COPIED_BYTES / fastest(copy)
