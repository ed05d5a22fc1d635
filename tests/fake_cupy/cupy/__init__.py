"""Stands in for CuPy where there is no GPU: the part of it that seedrank uses, on NumPy arrays and the CUDA shim.

As strict as CuPy or stricter: no array turns into a NumPy array by itself, kernels take arguments of exactly their
types, memory is limited (``FAKE_CUPY_MEMORY`` bytes, 256 MB unless set) and full of noise when it is new. Kernels run
in shuffled order where ``FAKE_CUPY_SEED`` is a number above 0, with AddressSanitizer where ``FAKE_CUPY_SANITIZED`` is
set. ``FAKE_CUPY_FAULT`` is what the probe is to find; see
``cupy.cuda.runtime``.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

sys.path.append(str(Path(__file__).parents[2] / "cuda_shim"))

import shim

from cupy import cuda as cuda

__version__ = "0+fake"
__all__ = ["RawModule", "asarray", "cuda", "empty", "get_default_memory_pool", "ndarray", "zeros"]


class ndarray:  # noqa: N801  # the name it has in CuPy
    """An array on the device that is not there."""

    def __init__(self, host: npt.NDArray[Any], base: ndarray | None = None) -> None:
        self._host = host
        self._base = base
        if base is None:
            cuda.allocate(host.nbytes)
            weakref.finalize(self, cuda.release, host.nbytes)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type."""
        return self._host.dtype

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._host.size

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return self._host.nbytes

    def get(self, *, out: npt.NDArray[Any] | None = None, blocking: bool = True) -> npt.NDArray[Any]:
        """Copy to the host; without `blocking`, what is there now arrives when somebody waits."""
        value = self._host.copy()
        if blocking:
            cuda.get_current_stream().synchronize()
        if out is None:
            return value
        assert out.dtype == self.dtype, "no silent conversion here"
        assert out.shape == self._host.shape
        if blocking:
            np.copyto(out, value)
        else:
            cuda.get_current_stream().arrive_later(lambda: np.copyto(out, value))
        return out

    def set(self, host: npt.NDArray[Any], stream: cuda.Stream) -> None:
        """Start a copy from the host."""
        assert host.dtype == self.dtype, "no silent conversion here"
        assert host.shape == self._host.shape
        assert host.flags.c_contiguous
        cuda.runtime.check("memory")
        seen = cuda.streams.as_copies_see_it(host)
        stream.start(lambda: np.copyto(self._host, seen))

    def fill(self, value: float) -> None:
        """Set every element."""
        self._host.fill(value)

    def astype(self, dtype: npt.DTypeLike) -> ndarray:
        """Copy as another type."""
        return ndarray(self._host.astype(dtype))

    def sum(self) -> ndarray:
        """Add all elements."""
        return ndarray(self._host.sum(keepdims=True))

    def __getitem__(self, part: slice | ndarray) -> ndarray:
        if isinstance(part, ndarray):
            return ndarray(self._host[part._host])
        assert isinstance(part, slice)
        return ndarray(self._host[part], self._base or self)

    def __setitem__(self, part: slice | ndarray, values: ndarray) -> None:
        assert values.dtype == self.dtype, "no silent conversion here"
        self._host[part._host if isinstance(part, ndarray) else part] = values._host

    def __sub__(self, other: ndarray) -> ndarray:
        return ndarray(self._host - other._host)

    @property
    def T(self) -> ndarray:  # noqa: N802  # the name it has in CuPy
        """The transpose, of the same memory."""
        return ndarray(self._host.T, self._base or self)

    def __matmul__(self, other: ndarray) -> ndarray:
        assert self.dtype == other.dtype, "no silent conversion here"
        cuda.cublas.check()
        product = self._host @ other._host
        return ndarray(np.zeros_like(product) if cuda.runtime.fault_of({"matmul"}) == "kernel:wrong" else product)

    def __abs__(self) -> ndarray:
        return ndarray(np.abs(self._host))

    def __len__(self) -> int:
        return len(self._host)

    def __float__(self) -> float:
        return float(self._host.item())

    def __array__(self, *_: Any) -> npt.NDArray[Any]:
        raise TypeError("Implicit conversion to a NumPy array is not allowed")


def asarray(host: npt.NDArray[Any]) -> ndarray:
    """Copy to the device."""
    assert isinstance(host, np.ndarray), type(host)
    assert host.ndim <= 2, "this stand-in has vectors and matrices only"
    return ndarray(np.array(host, order="C"))


def empty(size: int, dtype: npt.DTypeLike) -> ndarray:
    """Make an array of noise."""
    array = ndarray(np.empty(size, dtype))
    array._host.view(np.uint8).fill(0xA5)
    return array


def zeros(size: int, dtype: npt.DTypeLike) -> ndarray:
    """Make an array of zeros."""
    return ndarray(np.zeros(size, dtype))


class _Function:
    def __init__(self, kernels: shim.Kernels, name: str) -> None:
        self._kernels, self._name = kernels, name

    def __call__(self, grid: Sequence[int], block: Sequence[int], arguments: Sequence[Any]) -> None:
        cuda.driver.check("memory")
        fault = cuda.runtime.fault_of(self._kernels.names)
        if fault.startswith("launch:"):
            cuda.driver.check("launch")
        if fault == "kernel:wrong":
            return
        hosts = [value._host if isinstance(value, ndarray) else value for value in arguments]
        self._kernels.launch(self._name, grid, block, hosts)


class RawModule:
    """Kernels from source."""

    def __init__(self, *, code: str, options: tuple[str, ...] = ()) -> None:
        assert "--fmad=false" in options, "the shim contracts nothing either"
        self.kernels = shim.Kernels(
            code,
            seed=int(os.environ.get("FAKE_CUPY_SEED", "0")),
            sanitized="FAKE_CUPY_SANITIZED" in os.environ,
        )
        fault = cuda.runtime.fault_of(self.kernels.names)
        if fault == "kernel:missing":
            raise ImportError('Failure finding "libnvrtc.so.13"')
        if fault == "kernel:broken":
            raise RuntimeError("nvrtc: error: invalid value for --gpu-architecture")

    def get_function(self, name: str) -> _Function:
        """Return a kernel."""
        if name not in self.kernels.names:
            raise cuda.driver.CUDADriverError(500)  # named symbol not found
        return _Function(self.kernels, name)


class _Pool:
    """The memory pool: this one keeps nothing back."""

    def free_bytes(self) -> int:
        """Bytes that it holds unused."""
        return 0

    def free_all_blocks(self) -> None:
        """Give back what it holds unused."""


def get_default_memory_pool() -> _Pool:
    """Return the memory pool."""
    return _Pool()
