"""The driver's own interface: kernels are started through it, and their errors are of its type."""

from __future__ import annotations

from cupy.cuda import runtime


class CUDADriverError(RuntimeError):
    """As CuPy's: ``status`` is the code, and no runtime error is one."""

    def __init__(self, status: int) -> None:
        super().__init__(f"CUDA_ERROR {status}: made up")
        self.status = status


def check(where: str) -> None:
    """Fail if this is where the fault is, as `runtime.check` does."""
    try:
        runtime.check(where)
    except runtime.CUDARuntimeError as error:
        raise CUDADriverError(error.status) from None
