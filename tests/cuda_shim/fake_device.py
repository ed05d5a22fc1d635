"""Fixtures that give tests a GPU, and cuGraph: those of the machine where they work, else their stand-ins."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
import shim

from seedrank.kernels._gpu import probe
from seedrank.kernels._gpu.probe import DeviceReport, probe_cugraph, probe_device

TESTS = Path(__file__).parents[1]
FAKE = TESTS / "fake_cupy"
FAKE_CUGRAPH = TESTS / "fake_pylibcugraph"
INSTALLED = importlib.util.find_spec("cupy") is not None
_modules: dict[str, ModuleType] = {}
_usable: dict[str, bool] = {}


def _cupy_modules() -> list[str]:
    return [name for name in sys.modules if name.split(".")[0] == "cupy"]


def _is_usable(ask: Callable[[], DeviceReport]) -> bool:
    """Whether it works on this machine, which is asked once."""
    if ask.__name__ not in _usable:
        _usable[ask.__name__] = ask().usable
    return _usable[ask.__name__]


def _forget() -> None:
    """Where CuPy is installed but finds no GPU, its answer is kept, and is none of the stand-in; nor the reverse."""
    if INSTALLED:
        probe._ask_child.cache_clear()


@pytest.fixture
def gpu_device(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make ``--backend gpu`` work in this process and its children."""
    if _is_usable(probe_device):
        yield
        return
    _forget()
    shim.require_compiler()
    for name in _cupy_modules():  # a CuPy that finds no GPU
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(FAKE)
    paths = [str(FAKE), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    sys.modules.update({name: module for name, module in _modules.items() if name.split(".")[0] == "cupy"})
    importlib.import_module("cupy")
    yield
    _forget()
    for name in _cupy_modules():
        _modules[name] = sys.modules.pop(name)


@pytest.fixture
def cugraph_device(gpu_device: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make ``--backend cugraph`` work in this process and its children."""
    if _is_usable(probe_cugraph):
        yield
        return
    _forget()
    if not importlib.import_module("cupy").__version__.endswith("fake"):
        pytest.skip("there is a GPU here, but no cuGraph")
    monkeypatch.syspath_prepend(FAKE_CUGRAPH)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(FAKE_CUGRAPH), os.environ["PYTHONPATH"]]))
    name = "pylibcugraph"
    sys.modules.update({name: _modules[name]} if name in _modules else {})
    _modules[name] = importlib.import_module(name)
    yield
    del sys.modules[name]


@pytest.fixture(autouse=True)
def device_for_gpu(request: pytest.FixtureRequest) -> None:
    """Give a device to every test that has ``gpu`` or ``cugraph`` among its parameters."""
    parameters = getattr(request.node, "callspec", None)
    named = {value for value in parameters.params.values() if isinstance(value, str)} if parameters else set()
    for name, fixture in (("gpu", "gpu_device"), ("cugraph", "cugraph_device")):
        if name in named:
            request.getfixturevalue(fixture)
