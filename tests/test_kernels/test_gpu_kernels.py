"""The CUDA kernels on a CPU: against NumPy, in shuffled orders, with AddressSanitizer, and broken on purpose."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from types import ModuleType

import pytest
import shim
from fake_device import FAKE

from seedrank.kernels._gpu.source import OPTIONS, kernel_source

#: (what is taken away or turned round, the source, what stands there instead). Each has to be noticed.
MUTATIONS: dict[str, tuple[str, str]] = {
    "no barrier before the sums of a chunk are added": (
        "    __syncthreads();\n    if (stripe >= 3) return;",
        "    if (stripe >= 3) return;",
    ),
    "no barrier before sums are folded": (
        "    __syncthreads();\n    if (threadIdx.y != 0 || column >= width) return;",
        "    if (threadIdx.y != 0 || column >= width) return;",
    ),
    "no barrier after counters are cleared": (
        "__syncthreads();\n    if (place < count && wanted[place] > 0)",
        "if (place < count && wanted[place] > 0)",
    ),
    "no barrier before counters are read": (
        "    __syncthreads();\n    if (place >= count) return;\n    for (int digit",
        "    if (place >= count) return;\n    for (int digit",
    ),
    "a stretch replaces the one before": ("total[j] += (double)part[j]", "total[j] = (double)part[j]"),
    "the last piece of a long row is forgotten": (
        "piece < long_pieces[low + 1]",
        "piece < long_pieces[low + 1] - 1",
    ),
    "every node keeps its mass, not only dangling ones": ("rule == RULE_SELF && hangs", "rule == RULE_SELF"),
    "a seed counts for all columns": ("if (seed_column[at] == place)", "if (seed_column[at] >= 0)"),
    "the warp's running total lacks a lane": ("if (lane >= distance) upto", "if (lane > distance) upto"),
    "one node too few is wanted": ("wanted[column] = needed - before", "wanted[column] = needed - before - 1"),
    "nodes whose higher digits differ are counted, too": (
        "if (key >> shift >> 8 == so_far >> shift >> 8)",
        "if (key >= so_far)",
    ),
    "ties are broken the other way": ("return 0xffffffffu - (unsigned)rank", "return (unsigned)rank"),
    "an exclusion takes its whole word away": ("~(1u << place[at] % LANES)", "0u"),
    "another column is kept": ("width + positions[at % kept]]", "width + positions[kept - 1 - at % kept]]"),
}  # fmt: skip


@pytest.fixture(name="use_kernels")
def _use_kernels(gpu_device: None, monkeypatch: pytest.MonkeyPatch) -> Callable[[shim.Kernels], ModuleType]:
    """Run the scenario's kernels from another source, on the stand-in for CuPy only."""
    cupy = importlib.import_module("cupy")
    if not cupy.__version__.endswith("fake"):
        pytest.skip("there is a real GPU here: the shim is not in use")

    def use(kernels: shim.Kernels) -> ModuleType:
        scenario = importlib.import_module("scenario")
        device = importlib.import_module("seedrank.kernels._gpu.device")
        module = cupy.RawModule(code=kernel_source(), options=OPTIONS)
        module.kernels = kernels
        monkeypatch.setattr(device, "_kernel", module.get_function)
        return scenario

    return use


@pytest.mark.parametrize("seed", range(3))
def test_kernels_compute_what_numpy_computes(use_kernels: Callable[[shim.Kernels], ModuleType], seed: int) -> None:
    kernels = shim.Kernels(kernel_source(), seed=seed)
    assert list(use_kernels(kernels).failures()) == []
    assert kernels.launched == kernels.names, "a kernel that nothing launches"


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_broken_kernel_is_noticed(use_kernels: Callable[[shim.Kernels], ModuleType], mutation: str) -> None:
    whole, broken = MUTATIONS[mutation]
    # Half the kernels compile in half the time.
    text = re.sub(r"^[A-Z]+_KERNELS\(double.*\n", "", kernel_source(), flags=re.MULTILINE)
    assert text.count(whole) == 1
    kernels = shim.Kernels(text.replace(whole, broken), seed=1, quick=True)
    scenario = use_kernels(kernels)

    def first(failures: Iterator[str]) -> str | None:
        try:
            return next(failures, None)
        except (IndexError, shim.LaunchError) as error:
            return repr(error)

    assert first(scenario.failures("float32")) is not None


def test_kernels_touch_only_their_own_memory() -> None:
    shim.require_compiler()
    environment = shim.sanitized_environment() | {"FAKE_CUPY_SANITIZED": "1", "FAKE_CUPY_SEED": "5"}
    environment["PYTHONPATH"] = os.pathsep.join([str(FAKE), environment["PYTHONPATH"]])
    command = [sys.executable, "-m", "scenario"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr
