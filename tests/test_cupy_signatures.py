"""What is used of CuPy exists, and takes what it is given: of the sources, of the stand-in, and of CuPy itself.

The table was read off CuPy 14.2, and holds of 14.1.1, the oldest that is allowed. Sources and stand-in
(``tests/fake_cupy``) are held against the table; where CuPy is installed, the table is held against CuPy, without a
GPU or a driver.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from inspect import Parameter
from pathlib import Path
from typing import Any

import pytest

import seedrank

TESTS = Path(__file__).parent
PACKAGE = Path(seedrank.__file__).parent
FAKE = TESTS / "fake_cupy" / "cupy"
RELEASE = "14.2"

#: Name within ``cupy`` → parameters; "" for what is not called.
CUPY = {
    "__version__": "",
    "RawKernel.__call__": "(self, grid, block, args, **kwargs)",
    "RawModule": "(code=None, *, path=None, options=(), backend='nvrtc', translate_cucomplex=False, "
    "enable_cooperative_groups=False, name_expressions=None, jitify=None)",
    "RawModule.get_function": "(self, name)",
    "asarray": "(a, dtype=None, order=None, *, copy=None, blocking=False)",
    "cuda.Device": "(device=None)",
    "cuda.Device.mem_info": "",
    "cuda.Event": "(block=False, disable_timing=False, interprocess=False)",
    "cuda.Event.done": "",
    "cuda.Event.record": "(self, stream=None)",
    "cuda.Event.synchronize": "(self)",
    "cuda.MemoryPointer.copy_from_host_async": "(self, mem, size, stream=None)",
    "cuda.MemoryPointer.copy_to_host_async": "(self, mem, size, stream=None)",
    "cuda.MemoryPool.free_all_blocks": "(self, stream=None)",
    "cuda.MemoryPool.free_bytes": "(self)",
    "cuda.Stream": "(null=False, non_blocking=False, ptds=False, priority=None)",
    "cuda.Stream.record": "(self, event=None)",
    "cuda.Stream.synchronize": "(self)",
    "cuda.Stream.wait_event": "(self, event)",
    "cuda.alloc_pinned_memory": "(size)",
    "cuda.cublas.CUBLASError": "",
    "cuda.driver.CUDADriverError": "",
    "cuda.get_current_stream": "(device_id=-1)",
    "cuda.memory.OutOfMemoryError": "",
    "cuda.runtime.CUDARuntimeError": "",
    "cuda.runtime.deviceSynchronize": "()",
    "cuda.runtime.driverGetVersion": "()",
    "cuda.runtime.getDeviceCount": "()",
    "cuda.runtime.getDeviceProperties": "(device)",
    "cuda.runtime.runtimeGetVersion": "()",
    "empty": "(shape, dtype=float, order='C')",
    "get_default_memory_pool": "()",
    "ndarray": "",
    "ndarray.T": "",
    "ndarray.__abs__": "",
    "ndarray.__array__": "",
    "ndarray.__float__": "",
    "ndarray.__getitem__": "",
    "ndarray.__len__": "",
    "ndarray.__matmul__": "",
    "ndarray.__setitem__": "",
    "ndarray.__sub__": "",
    "ndarray.astype": "(self, dtype, order='K', casting=None, subok=None, copy=True)",
    "ndarray.data": "",
    "ndarray.dtype": "",
    "ndarray.fill": "(self, value)",
    "ndarray.get": "(self, stream=None, order='C', out=None, blocking=True)",
    "ndarray.nbytes": "",
    "ndarray.set": "(self, arr, stream=None)",
    "ndarray.size": "",
    "ndarray.sum": "(self, axis=None, dtype=None, out=None, keepdims=False)",
    "zeros": "(shape, dtype=float, order='C')",
}

EXCEPTIONS = {
    "cuda.cublas.CUBLASError": RuntimeError,
    "cuda.driver.CUDADriverError": RuntimeError,
    "cuda.memory.OutOfMemoryError": MemoryError,
    "cuda.runtime.CUDARuntimeError": RuntimeError,
}

#: Called → what comes back.
RESULTS = {
    "RawModule.get_function": "RawKernel",
    "cuda.get_current_stream": "cuda.Stream",
    "get_default_memory_pool": "cuda.MemoryPool",
}

#: Names of the stand-in → theirs in CuPy, where they stand elsewhere or have none there.
ALIASES = {
    "_Function": "RawKernel",
    "_Pool": "cuda.MemoryPool",
    "cuda.OutOfMemoryError": "cuda.memory.OutOfMemoryError",
}

#: What makes the stand-in work, which no source uses; the constructors of what CuPy itself makes; a parameter.
OWN = {
    "RawKernel", "cuda.MemoryPool", "cuda.Stream.run", "cuda.Stream.start", "cuda.allocate", "cuda.as_copies_see_it",
    "cuda.cublas.check", "cuda.driver.check", "cuda.release", "cuda.runtime.check", "cuda.runtime.fault_of",
    "cuda.Stream(at_once)", "cuda.Stream.arrive_later", "cuda.Stream.has_done",
}  # fmt: skip


def arguments_of(signature: str) -> ast.arguments:
    """Parse the parameters of the table."""
    (function,) = ast.parse(f"def called{signature}: pass").body
    assert isinstance(function, ast.FunctionDef)
    return function.args


def with_defaults(arguments: ast.arguments) -> list[tuple[str, str | None]]:
    """Positional parameters and their defaults."""
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    defaults = [None] * (len(names) - len(arguments.defaults)) + [ast.unparse(value) for value in arguments.defaults]
    return list(zip(names, defaults, strict=True))


def keywords_of(arguments: ast.arguments) -> dict[str, str | None]:
    """Everything that can be given by name, and its default."""
    only = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return dict(with_defaults(arguments)) | {
        argument.arg: None if value is None else ast.unparse(value) for argument, value in only
    }


def chain_of(node: ast.expr, roots: dict[str, str]) -> str | None:
    """Name within ``cupy`` of an expression, calls replaced by what they return; None: it is no part of it."""
    if isinstance(node, ast.Name):
        return roots.get(node.id)
    if isinstance(node, ast.Call):
        called = chain_of(node.func, roots)
        return None if called is None else RESULTS.get(called, called)
    if isinstance(node, ast.Attribute):
        before = chain_of(node.value, roots)
        return None if before is None else f"{before}.{node.attr}".lstrip(".")
    return None


def roots_of(tree: ast.Module) -> dict[str, str]:
    """Names under which a source has CuPy and its modules."""
    roots: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            roots |= {alias.asname or alias.name: "" for alias in node.names if alias.name == "cupy"}
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "cupy":
            module = (node.module or "").removeprefix("cupy").lstrip(".")
            roots |= {alias.asname or alias.name: f"{module}.{alias.name}".lstrip(".") for alias in node.names}
    return roots


def used() -> Iterator[tuple[str, str, list[str]]]:
    """Place in the sources, name within ``cupy``, and keywords where it is called."""
    for file in sorted(PACKAGE.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        if "cupy" not in text:
            continue
        tree = ast.parse(text)
        roots = roots_of(tree)
        called = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and (name := chain_of(node, roots)):
                call = called.get(id(node))
                keywords = [] if call is None else [keyword.arg or "**" for keyword in call.keywords]
                yield f"{file.name}:{node.lineno}", name, keywords


def test_sources_use_what_cupy_has() -> None:
    """Also lines that no test runs, which the stand-in alone would not notice."""
    seen = set()
    for place, name, keywords in used():
        if any(known.startswith(f"{name}.") for known in CUPY) and name not in CUPY:
            continue  # a module
        assert name in CUPY, f"{place} uses cupy.{name}"
        assert set(keywords) <= set(keywords_of(arguments_of(CUPY[name] or "()"))), f"{place}: {keywords}"
        seen.add(name)
    assert {"asarray", "RawModule", "cuda.Device.mem_info", "cuda.MemoryPool.free_bytes"} <= seen


def offered() -> Iterator[tuple[str, ast.arguments | list[str] | None]]:
    """What the stand-in has: names within ``cupy``, with parameters, or base classes of exceptions."""
    for file in sorted(FAKE.rglob("*.py")):
        module = ".".join(file.relative_to(FAKE).with_suffix("").parts).removesuffix("__init__").strip(".")
        module = "cuda" if module == "cuda.streams" else module  # the real one has them there
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.FunctionDef | ast.ClassDef):
                continue
            name = f"{module}.{node.name}".lstrip(".")
            name = ALIASES.get(name, name)
            if isinstance(node, ast.FunctionDef):
                yield name, node.args
                continue
            yield from offered_by(node, name)


def offered_by(node: ast.ClassDef, name: str) -> Iterator[tuple[str, ast.arguments | list[str] | None]]:
    """The same, of a class."""
    bases = [ast.unparse(base) for base in node.bases]
    if bases:
        yield name, bases
        return
    for member in node.body:
        if not isinstance(member, ast.FunctionDef):
            continue
        attribute = any(ast.unparse(each) == "property" for each in member.decorator_list)
        if member.name == "__init__":
            member.args.args.pop(0)
            yield name, member.args
        elif member.name.endswith("__") or not member.name.startswith("_"):
            yield f"{name}.{member.name}", None if attribute else member.args


def test_the_stand_in_offers_what_cupy_has() -> None:
    """With the same defaults: code that runs on the stand-in would run on CuPy."""
    for name, given in offered():
        hidden = name.rpartition(".")[2].startswith("_") and not name.endswith("__")
        if hidden or name in OWN:
            continue
        assert name in CUPY, f"CuPy has no {name}"
        if isinstance(given, list):
            assert given == [EXCEPTIONS[name].__name__], name
        if not isinstance(given, ast.arguments) or not CUPY[name]:
            continue
        real = arguments_of(CUPY[name])
        positional = with_defaults(real)
        assert len(with_defaults(given)) <= len(positional), name
        for (parameter, default), there in zip(with_defaults(given), positional, strict=False):
            assert default is None or (parameter, default) == there, f"{parameter} of {name}"
        assert all(default is not None for _, default in positional[len(with_defaults(given)) :]), name
        for argument, value in zip(given.kwonlyargs, given.kw_defaults, strict=True):
            if f"{name}({argument.arg})" not in OWN:
                default = keywords_of(real)[argument.arg]
                assert value is None or ast.unparse(value) == default, f"{argument.arg} of {name}"


@pytest.fixture(scope="module")
def real() -> Any:
    """CuPy, which may find no GPU."""
    if importlib.util.find_spec("cupy") is None:
        pytest.skip(f"CuPy is not installed; CuPy {RELEASE} was read when this was written")
    cupy = importlib.import_module("cupy")
    if cupy.__version__.endswith("fake"):
        pytest.skip("only the stand-in for CuPy is here")
    return cupy


def signature_of(called: Any) -> str:
    """Parameters without types: those of Python, else the first line of what Cython writes into the docstring."""
    try:
        signature = inspect.signature(called)
    except ValueError:
        found = re.match(r"[\w.]+\((.*)\)(?: -> .*)?$", called.__doc__.strip().splitlines()[0])
        assert found is not None, called
        listed = re.split(r", (?![^(]*\))", found[1]) if found[1] else []
        return "(" + ", ".join(" = ".join([one.split("=")[0].split()[-1], *one.split("=")[1:]]) for one in listed) + ")"
    plain = [parameter.replace(annotation=Parameter.empty) for parameter in signature.parameters.values()]
    return re.sub(r"<class '(\w+)'>", r"\1", str(inspect.Signature(plain)))


@pytest.mark.parametrize("name", CUPY)
def test_the_installed_cupy_has_it(real: Any, name: str) -> None:
    thing = real
    for part in name.split("."):
        thing = getattr(thing, part)
    if name in EXCEPTIONS:
        assert next(base for base in thing.__mro__ if base.__module__ == "builtins") is EXCEPTIONS[name]
    if not CUPY[name]:
        return
    found = signature_of(thing)
    assert ast.unparse(arguments_of(found)) == ast.unparse(arguments_of(CUPY[name]))


def test_nvrtc_compiles_the_kernels(real: Any) -> None:
    """With the options that CuPy gives it."""
    script = TESTS.parent / "benchmarks" / "gpu" / "compile.py"
    if not script.is_file():
        pytest.skip("needs a checkout, not only the installed package")
    command = [sys.executable, str(script), "--nvrtc", "--architectures", "sm_80"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"sm_80 +step_float32_2 .* 0 bytes spilled", done.stdout)
