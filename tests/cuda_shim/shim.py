"""Compiles CUDA C++ for the CPU (see ``cuda_shim.h``) and launches its kernels on NumPy arrays.

A launch checks what a GPU does not: that every argument has exactly the type of its parameter.
"""

from __future__ import annotations

import ctypes
import hashlib
import math
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

HEADER = Path(__file__).with_name("cuda_shim.h")
KERNEL = re.compile(r'extern "C" __global__ void\s+(?:__launch_bounds__\(([\d* ]+)\)\s*)?(\w+)\s*\(([^)]*)\)\s*\{')
SANITIZED = ("-O1", "-g1", "-fsanitize=address", "-fno-omit-frame-pointer", "--coverage", "-frandom-seed=kernels")
# Nothing is contracted that the source does not write as fma: the order of operations is what is tested.
FLAGS = ("-std=c++17", "-fPIC", "-shared", "-ffp-contract=off", "-Wall", "-Werror", "-Wno-unknown-pragmas")
TYPES = {
    "int": np.dtype(np.int32),
    "int64": np.dtype(np.int64),
    "uint64": np.dtype(np.uint64),
    "unsigned": np.dtype(np.uint32),
    "unsigned char": np.dtype(np.uint8),
    "float": np.dtype(np.float32),
    "double": np.dtype(np.float64),
}


def compiler() -> str | None:
    """Path of the C++ compiler, or None where there is none."""
    return shutil.which("g++")


def require_compiler() -> None:
    """Skip a test that compiles kernels where nothing does."""
    import pytest  # noqa: PLC0415  # not for the processes that only run kernels

    if compiler() is None:
        pytest.skip("no g++: kernels are tested without a GPU where there is one (Debian: apt-get install g++)")


@dataclass(frozen=True)
class Parameter:
    """What a kernel takes: an array or a single value of an element type."""

    element: str
    pointer: bool

    @property
    def declared(self) -> str:
        """As C++ writes it, without qualifiers that do not matter for passing it."""
        return self.element + ("*" if self.pointer else "")


@dataclass(frozen=True)
class Signature:
    """A kernel's parameters and the most threads that its launch bounds allow."""

    parameters: tuple[Parameter, ...]
    most_threads: int

    @property
    def single(self) -> bool:
        """Whether it computes in float32."""
        return any(parameter.element == "float" for parameter in self.parameters)


def signatures(source: str) -> dict[str, Signature]:
    """Find the kernels of a source, macros expanded."""
    command = [str(compiler()), "-E", "-P", "-x", "c++", "-"]
    expanded = subprocess.run(command, input=source, capture_output=True, text=True, check=True).stdout
    found = {}
    for bounds, name, parameters in KERNEL.findall(expanded):
        threads = 1
        for factor in bounds.split("*") if bounds else ["1024"]:
            threads *= int(factor)
        found[name] = Signature(tuple(map(_parameter, parameters.split(","))), threads)
    return found


def _parameter(text: str) -> Parameter:
    words = text.replace("*", " * ").split()[:-1]
    element = " ".join(word for word in words if word not in ("const", "*", "__restrict__"))
    return Parameter(element, "*" in words)


def build(source: str, *, sanitized: bool = False, quick: bool = False) -> Path:
    """Compile a source once per content: a library with ``launch_NAME`` for every kernel.

    A sanitized one also counts which lines run, see ``line_counts.py``.
    """
    launchers = [
        f"static void call_{name}(void** a) {{ {name}("
        + ", ".join(f"*({parameter.declared}*)a[{place}]" for place, parameter in enumerate(kernel.parameters))
        + ");"
        + f' }}\nextern "C" const char* launch_{name}(dim3 grid, dim3 block, uint64_t first, uint64_t last, '
        + "uint64_t seed, void** a) { return shim::launch(grid, block, first, last, seed, "
        + f"{str(kernel.single).lower()}, call_{name}, a); }}\n"
        for name, kernel in _signatures(source).items()
    ]
    # The line numbers of messages are those of the kernels' source.
    code = f'#include "{HEADER.name}"\n#line 1 "kernels.cu"\n{source}\n' + "".join(launchers)
    flags = (*FLAGS, *(SANITIZED if sanitized else ("-O0" if quick else "-O2",)))
    key = hashlib.sha256("\0".join((code, HEADER.read_text(), *flags)).encode()).hexdigest()[:24]
    folder = Path(tempfile.gettempdir()) / f"seedrank-cuda-shim-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    library = folder / f"{key}.so"
    if not library.exists():
        with tempfile.TemporaryDirectory(dir=folder) as work:
            file, made = Path(work) / "kernels.cpp", Path(work) / "kernels.so"
            file.write_text(code)
            command = [str(compiler()), *flags, f"-I{HEADER.parent}", str(file), "-o", str(made)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(f"g++ failed:\n{done.stderr}")
            for notes in Path(work).glob("*.gcno"):
                notes.replace(library.with_suffix(".gcno"))
            made.replace(library)
    return library


def sanitized_environment() -> dict[str, str]:
    """Environment of a process that may load sanitized libraries, this folder on its path."""
    command = [str(compiler()), "-print-file-name=libasan.so"]
    library = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    paths = [str(HEADER.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    # Python's own allocations at its end are no leaks of a kernel.
    options = {"LD_PRELOAD": library, "ASAN_OPTIONS": "detect_leaks=0", "PYTHONPATH": os.pathsep.join(paths)}
    return {**os.environ, **options}


class _Dim3(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint)]


class LaunchError(RuntimeError):
    """A kernel did what no kernel may do, or was launched with arguments of other types."""


class Kernels:
    """The kernels of a source.

    Parameters
    ----------
    source : str
        CUDA C++.
    seed : int
        0: threads and blocks take turns in order; else in an order drawn from this seed and the number of the launch.
    sanitized : bool
        With AddressSanitizer, whose library the process must have been started with.
    quick : bool
        Compile in less time for few launches.
    """

    def __init__(self, source: str, *, seed: int = 0, sanitized: bool = False, quick: bool = False) -> None:
        self.seed = seed
        self.launched: set[str] = set()
        self._signatures = _signatures(source)
        self._library = ctypes.CDLL(str(build(source, sanitized=sanitized, quick=quick)))
        self._launches = 0

    @property
    def names(self) -> set[str]:
        """Names of all kernels."""
        return set(self._signatures)

    def launch(
        self,
        name: str,
        grid: Sequence[int],
        block: Sequence[int],
        arguments: Sequence[Any],
        *,
        blocks: range | None = None,
    ) -> None:
        """Run a kernel to its end.

        Arrays go to pointers, NumPy scalars to values; ``np.uintp(0)`` is a null pointer. `blocks`: run these blocks of
        the grid only, numbered along x, then y, then z, as if the others had no work.
        """
        signature = self._signatures[name]
        self._check(name, signature, grid, block, arguments)
        held = (ctypes.c_uint64 * max(len(arguments), 1))(*map(_bits, arguments))
        first = ctypes.addressof(held)
        pointers = (ctypes.c_void_p * len(held))(*range(first, first + 8 * len(held), 8))
        self._launches += 1
        self.launched.add(name)
        run = getattr(self._library, f"launch_{name}")
        run.restype = ctypes.c_char_p
        run.argtypes = [_Dim3, _Dim3, *[ctypes.c_uint64] * 3, ctypes.c_void_p]
        sizes = [_Dim3(*(*size, 1, 1)[:3]) for size in (grid, block)]
        some = range(math.prod(grid)) if blocks is None else blocks
        message = run(*sizes, some.start, some.stop, self.seed and self.seed * 1_000_003 + self._launches, pointers)
        if message is not None:
            raise LaunchError(f"{name}: {message.decode()}")

    def _check(
        self, name: str, signature: Signature, grid: Sequence[int], block: Sequence[int], arguments: Sequence[Any]
    ) -> None:
        if len(arguments) != len(signature.parameters):
            raise LaunchError(f"{name}: {len(arguments)} arguments for {len(signature.parameters)} parameters")
        if min(*grid, *block) < 1 or max((*grid, 1)[1:]) > 65_535 or math.prod(block) > signature.most_threads:
            raise LaunchError(f"{name}: no GPU launches a grid of {grid} with blocks of {block}")
        for place, (parameter, value) in enumerate(zip(signature.parameters, arguments, strict=True)):
            dtype = TYPES[parameter.element]
            null = parameter.pointer and isinstance(value, np.uintp) and value == 0
            kind = isinstance(value, np.ndarray) if parameter.pointer else isinstance(value, np.generic)
            if not null and not (kind and value.dtype == dtype):
                given = getattr(value, "dtype", type(value).__name__)
                raise LaunchError(f"{name}: parameter {place} is {parameter.declared}, the argument {given}")
            if isinstance(value, np.ndarray) and not value.flags.c_contiguous:
                raise LaunchError(f"{name}: argument {place} is not in C order")


@cache
def _signatures(source: str) -> dict[str, Signature]:
    return signatures(source)


def _bits(value: Any) -> int:
    """An argument as it is passed, in the lowest bytes of a number."""
    if isinstance(value, np.ndarray):
        return int(value.__array_interface__["data"][0])
    return int.from_bytes(value.tobytes(), "little")
