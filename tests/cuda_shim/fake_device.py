"""Fixtures that give tests a GPU: the one of the machine where CuPy can use it, else the stand-in for CuPy."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import shim

from seedrank.kernels._gpu.probe import probe_device

FAKE = Path(__file__).parents[1] / "fake_cupy"
_modules: dict[str, ModuleType] = {}


def _cupy_modules() -> list[str]:
    return [name for name in sys.modules if name.split(".")[0] == "cupy"]


@pytest.fixture
def gpu_device(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make ``--backend gpu`` work in this process and its children."""
    if probe_device().usable:
        yield
        return
    shim.require_compiler()
    for name in _cupy_modules():  # a CuPy that finds no GPU
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(FAKE)
    paths = [str(FAKE), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    sys.modules.update(_modules)
    importlib.import_module("cupy")
    yield
    for name in _cupy_modules():
        _modules[name] = sys.modules.pop(name)


@pytest.fixture(autouse=True)
def device_for_gpu(request: pytest.FixtureRequest) -> None:
    """Give a device to every test that has ``gpu`` among its parameters."""
    parameters = getattr(request.node, "callspec", None)
    if parameters and any(isinstance(value, str) and value == "gpu" for value in parameters.params.values()):
        request.getfixturevalue("gpu_device")
