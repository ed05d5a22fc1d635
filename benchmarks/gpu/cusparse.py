"""The product of the graph with a block by NVIDIA's cuSPARSE, to compare with; nothing of the package uses it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
from own import Kernels

_ROW_MAJOR_ALGORITHM = 6
"""CUSPARSE_SPMM_CSR_ALG2, NVIDIA's advice for blocks in row-major order; CuPy has no name for it."""


def upload(graph: Kernels) -> Any:
    """The matrix of the steps as a ``csr_matrix`` on the device, float32, columns sorted within rows."""
    cupy, sparse = importlib.import_module("cupy"), importlib.import_module("cupyx.scipy.sparse")
    (rows,) = graph.transition.products
    nodes = graph.transition.nodes
    values = graph.transition.inverse_out_weight[rows.columns].astype(np.float32)
    offsets = rows.offsets.astype(np.int32)
    matrix = sparse.csr_matrix(
        (cupy.asarray(values), cupy.asarray(np.asarray(rows.columns)), cupy.asarray(offsets)), shape=(nodes, nodes)
    )
    matrix.sum_duplicates()  # also sorts; CuPy does it before its first product, otherwise
    return matrix


def column_major(matrix: Any, width: int, steps: int) -> Callable[[], None]:
    """Products in a row as CuPy offers them: columns one after the other in memory."""
    cupy = importlib.import_module("cupy")
    block = cupy.ones((matrix.shape[1], width), np.float32, order="F")

    def run() -> None:
        result = block
        for _ in range(steps):
            result = matrix @ result
        result[:1, :1].get()

    return run


def row_major(matrix: Any, width: int, steps: int) -> Callable[[], None]:
    """The same with rows one after the other, which only the functions below CuPy's own offer."""
    cupy = importlib.import_module("cupy")
    library = importlib.import_module("cupy_backends.cuda.libs.cusparse")
    handle, single = cupy.cuda.device.get_cusparse_handle(), cupy.cuda.runtime.CUDA_R_32F
    nodes, plain = matrix.shape[0], library.CUSPARSE_OPERATION_NON_TRANSPOSE
    blocks = [cupy.ones((nodes, width), np.float32) for _ in range(2)]
    one, zero = np.array(1, np.float32), np.array(0, np.float32)
    sparse = library.createCsr(
        nodes, nodes, matrix.nnz, matrix.indptr.data.ptr, matrix.indices.data.ptr, matrix.data.data.ptr,
        library.CUSPARSE_INDEX_32I, library.CUSPARSE_INDEX_32I, library.CUSPARSE_INDEX_BASE_ZERO, single,
    )  # fmt: skip
    dense = [
        library.createDnMat(nodes, width, width, block.data.ptr, single, library.CUSPARSE_ORDER_ROW) for block in blocks
    ]
    asked = (handle, plain, plain, one.ctypes.data, sparse, dense[0], zero.ctypes.data, dense[1], single)
    room = cupy.empty(max(1, library.spMM_bufferSize(*asked, _ROW_MAJOR_ALGORITHM)), np.int8)

    def run() -> None:
        for step in range(steps):
            source, target = dense[step % 2], dense[(step + 1) % 2]
            library.spMM(
                handle, plain, plain, one.ctypes.data, sparse, source, zero.ctypes.data, target, single,
                _ROW_MAJOR_ALGORITHM, room.data.ptr,
            )  # fmt: skip
        blocks[steps % 2][:1, :1].get()

    return run
