"""The fused product: gather, damping, scaling, column sums and differences in one pass over the block."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from seedrank.kernels._cpu import gather
from seedrank.kernels._cpu.compiled import compiled

SEGMENT = 16
"""Entries that are added in the precision of the block; longer rows add their segments' sums in float64.

The rounding allowance of the error bound rests on it: 64 equal entries round the same way often enough to exceed it."""

SUMMED_ROWS = 32
"""Rows whose column sums are added in the precision of the block before they go into the float64 sums."""

whole_row_16, whole_row_32, whole_row_64 = gather.whole_row_16, gather.whole_row_32, gather.whole_row_64
add_segment_16, add_segment_32, add_segment_64 = gather.add_segment_16, gather.add_segment_32, gather.add_segment_64
finish_row_16, finish_row_32, finish_row_64 = gather.finish_row_16, gather.finish_row_32, gather.finish_row_64


def width_markers(width: int) -> tuple[int | None, int | None]:
    """Arguments that tell a kernel its width at compile time: (0, None) is 64 columns, (None, 0) is 32, else 16.

    Numba drops the branches of an argument that is None, so a kernel is compiled for the width that is used only.
    """
    return (0 if width == 64 else None), (0 if width == 32 else None)


@compiled()
def _add_segments(
    columns: Any, values: Any, first: int, last: int, block: Any, total: Any, is64: Any, is32: Any
) -> None:
    for begin in range(first, last, SEGMENT):
        end = min(begin + SEGMENT, last)
        if is64 is not None:
            add_segment_64(columns, values, begin, end, block, total)
        elif is32 is not None:
            add_segment_32(columns, values, begin, end, block, total)
        else:
            add_segment_16(columns, values, begin, end, block, total)


@compiled(parallel=True)
def fused_step(
    offsets: Any,
    columns: Any,
    values: Any,
    block: Any,
    following: Any,
    scale: Any,
    unscale: Any,
    damping: Any,
    everywhere: Any,
    norm: Any,
    chunks: Any,
    first_chunk: int,
    last_chunk: int,
    first_entry: int,
    sums: Any,
    differences: Any,
    measure: bool,
    stream: bool,
    threads: int,
    is64: Any,
    is32: Any,
) -> None:
    """Compute ``following = scale · (damping · rows @ block + everywhere)`` and what the driver needs to know.

    Every row is computed by one thread, in the order of its entries: ``SEGMENT`` entries are added in the precision
    of the block, the segments of longer rows in float64. Column sums are added over ``SUMMED_ROWS`` rows, then in
    float64 within a chunk; the caller adds the chunks in order. So nothing depends on the number of threads or
    columns.

    Parameters
    ----------
    offsets, columns, values : int64 (n + 1), int32 (m + AHEAD), float (m) or None
        The product, or of its entries those of the chunks to compute.
    block, following : float32 or float64 (n, B)
        Stored vectors; B is 16, 32 or 64, rows start on cache lines.
    scale, unscale : float (n)
        See `Layout`.
    damping, everywhere, norm : float (B)
        By column: α · norm, what every node gets (the ``uniform`` dangling rule), and what the stored vector is to be
        multiplied with (1 but after relaxation).
    chunks : int64 (c + 1)
    first_chunk, last_chunk : int
        Range of chunks to compute.
    first_entry : int
        Entry of the whole product at which `columns` and `values` begin.
    sums, differences : float64 (c, B)
        Per chunk: sum of the new values; with `measure`, sum of |new - old|.
    stream : bool
        Whether stores bypass the cache: pays when two blocks do not fit it.
    threads : int
    is64, is32
        See `width_markers`.
    """
    width = block.shape[1]
    for thread in prange(threads):
        total = np.empty(width, np.float64)
        row_sums = np.empty(width, block.dtype)
        row_differences = np.empty(width, block.dtype)
        for chunk in range(first_chunk + thread, last_chunk, threads):
            sums[chunk, :] = 0
            differences[chunk, :] = 0
            for begin in range(chunks[chunk], chunks[chunk + 1], SUMMED_ROWS):
                row_sums[:] = 0
                row_differences[:] = 0
                for row in range(begin, min(begin + SUMMED_ROWS, chunks[chunk + 1])):
                    first, last = offsets[row] - first_entry, offsets[row + 1] - first_entry
                    factor, back = scale[row], unscale[row]
                    if last - first <= SEGMENT:
                        if is64 is not None:
                            whole_row_64(
                                columns, values, first, last, block, following, damping, everywhere, norm, row_sums,
                                row_differences, row, factor, back, measure, stream,
                            )  # fmt: skip
                        elif is32 is not None:
                            whole_row_32(
                                columns, values, first, last, block, following, damping, everywhere, norm, row_sums,
                                row_differences, row, factor, back, measure, stream,
                            )  # fmt: skip
                        else:
                            whole_row_16(
                                columns, values, first, last, block, following, damping, everywhere, norm, row_sums,
                                row_differences, row, factor, back, measure, stream,
                            )  # fmt: skip
                        continue
                    total[:] = 0
                    _add_segments(columns, values, first, last, block, total, is64, is32)
                    if is64 is not None:
                        finish_row_64(
                            total, block, following, damping, everywhere, norm, row_sums, row_differences, row, factor,
                            back, measure, stream,
                        )  # fmt: skip
                    elif is32 is not None:
                        finish_row_32(
                            total, block, following, damping, everywhere, norm, row_sums, row_differences, row, factor,
                            back, measure, stream,
                        )  # fmt: skip
                    else:
                        finish_row_16(
                            total, block, following, damping, everywhere, norm, row_sums, row_differences, row, factor,
                            back, measure, stream,
                        )  # fmt: skip
                for j in range(width):
                    sums[chunk, j] += row_sums[j]
                    differences[chunk, j] += row_differences[j]


@compiled()
def add_seeds(
    rows: Any,
    columns: Any,
    amounts: Any,
    block: Any,
    following: Any,
    unscale: Any,
    stored_scale: Any,
    stored_unscale: Any,
    active: int,
    norm: Any,
    sums: Any,
    differences: Any,
    measure: bool,
) -> None:
    """Add the restart to the seeds' rows after a product, and correct the sums; entry by entry in the given order.

    ``unscale`` belongs to `block`, ``stored_scale`` and ``stored_unscale`` to `following`; ``sums`` and ``differences``
    are float64 (2, B): over active and over dangling rows.
    """
    for i in range(rows.shape[0]):
        row, column, amount = rows[i], columns[i], amounts[i]
        before = following[row, column] * stored_unscale[row]
        following[row, column] += amount * stored_scale[row]
        after = following[row, column] * stored_unscale[row]
        side = 0 if row < active else 1
        sums[side, column] += after - before
        if measure:
            old = block[row, column] * unscale[row] * norm[column]
            differences[side, column] += abs(after - old) - abs(before - old)


@compiled()
def add_chunks(per_chunk: Any, first: int, last: int, total: Any) -> None:
    """``total = sum of per_chunk[first:last]``, chunk after chunk."""
    total[:] = 0
    for chunk in range(first, last):
        for j in range(total.shape[0]):
            total[j] += per_chunk[chunk, j]
