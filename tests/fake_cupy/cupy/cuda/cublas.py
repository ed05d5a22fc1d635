"""The library of linear algebra: its errors are of its own type."""

from __future__ import annotations

from cupy.cuda import runtime


class CUBLASError(RuntimeError):
    """As CuPy's: ``status`` is the code, which is none of CUDA's."""

    def __init__(self, status: int) -> None:
        super().__init__(f"CUBLAS_STATUS {status}: made up")
        self.status = status


def check() -> None:
    """Fail where the fault is ``cublas:STATUS``, as `runtime.check` does."""
    try:
        runtime.check("cublas")
    except runtime.CUDARuntimeError as error:
        raise CUBLASError(error.status) from None
