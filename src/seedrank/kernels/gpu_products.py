"""Products of blocks of vectors on a GPU, by cuBLAS. Importing it imports CuPy."""

from __future__ import annotations

import cupy
import numpy as np
import numpy.typing as npt

from seedrank.errors import KernelError, ResourceError
from seedrank.kernels._gpu.device import check_alive, device_errors
from seedrank.kernels.vectors import product_error

Float32Array = npt.NDArray[np.float32]

_NO_MEMORY = (1, 3)
"""Status of cuBLAS where the device has no room: NOT_INITIALIZED, when it begins, and ALLOC_FAILED."""


class DeviceProducts:
    """Multiplies blocks of vectors for `seedrank.kernels.semantic.nearest_vectors`.

    The block of queries stays on the device while blocks of nodes pass by.
    """

    QUERIES_AT_ONCE = 1024
    """Queries for which the vectors of nodes are copied to the device once."""

    def __init__(self) -> None:
        self._queries: tuple[Float32Array, cupy.ndarray] | None = None

    def __call__(self, queries: Float32Array, nodes: Float32Array) -> Float32Array:
        """Multiply every query with every node.

        Parameters
        ----------
        queries : float32 (b, d)
            In C order.
        nodes : float32 (m, d)

        Returns
        -------
        float32 (b, m)

        Raises
        ------
        KernelError
            Some of the products, which are computed again on the host, are off by more than float32 explains: the
            kernels do nothing, or round to fewer digits (``CUPY_TF32``). Or cuBLAS refused this call only.
        ResourceError
            The device has no room, or is lost.
        """
        try:
            with device_errors():
                if self._queries is None or self._queries[0] is not queries:
                    self._queries = queries, cupy.asarray(queries)
                there = cupy.asarray(np.ascontiguousarray(nodes))
                products = _multiply(self._queries[1], there)
        except MemoryError as error:
            raise ResourceError(
                f"the GPU has no room for the products of {len(queries):,} and {len(nodes):,} vectors",
                expected="some 100 MB beside the graph",
                fix="end other processes on the GPU, or use --backend cpu",
            ) from error
        _check(queries, nodes, products)
        return products


def _multiply(queries: cupy.ndarray, nodes: cupy.ndarray) -> Float32Array:
    """Multiply on the device; errors of cuBLAS, which are none of the driver, become those that jobs know."""
    try:
        products: Float32Array = (queries @ nodes.T).get()
    except cupy.cuda.cublas.CUBLASError as error:
        if error.status in _NO_MEMORY:
            raise MemoryError(str(error)) from error
        check_alive(error)
        raise KernelError(
            f"cuBLAS refused a call: {error}",
            expected="a call that it takes",
            fix="report this with the output of `seedrank info`; --backend cpu may still work",
        ) from error
    return products


def _check(queries: Float32Array, nodes: Float32Array, products: Float32Array) -> None:
    """Compute one product of every row again, or of every column where there are fewer, in float64."""
    place = np.arange(min(products.shape))
    one, other = queries[place].astype(np.float64), nodes[place].astype(np.float64)
    exact = (one * other).sum(axis=1)
    allowed = product_error(queries.shape[1]) * np.sqrt((one * one).sum(axis=1) * (other * other).sum(axis=1))
    off = np.abs(products[place, place] - exact)
    if not (off <= allowed).all():
        raise KernelError(
            f"a product of two vectors on the GPU is off by {np.nanmax(off):.3g}",
            expected=f"at most {allowed.max():.3g}, which float32 explains",
            fix="unset CUPY_TF32, if it is set; else report this with the output of `seedrank info`, and use "
            "--backend cpu",
        )
