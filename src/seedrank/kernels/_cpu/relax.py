"""Successive over-relaxation in place: Gauss-Seidel sweeps over a block, every strip of columns on its own thread."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from seedrank.kernels._cpu import gather
from seedrank.kernels._cpu.compiled import compiled
from seedrank.kernels._cpu.product import SEGMENT, SUMMED_ROWS

relax_row_16, relax_row_32, relax_row_64 = gather.relax_row_16, gather.relax_row_32, gather.relax_row_64
relax_total_16, relax_total_32, relax_total_64 = gather.relax_total_16, gather.relax_total_32, gather.relax_total_64
add_strip_segment_16, add_strip_segment_32, add_strip_segment_64 = (
    gather.add_strip_segment_16,
    gather.add_strip_segment_32,
    gather.add_strip_segment_64,
)


@compiled()
def _add_segments(
    columns: Any, values: Any, first: int, last: int, block: Any, total: Any, left: int, is64: Any, is32: Any
) -> None:
    stride = block.shape[1]
    for begin in range(first, last, SEGMENT):
        end = min(begin + SEGMENT, last)
        if is64 is not None:
            add_strip_segment_64(columns, values, begin, end, block, total, left, stride)
        elif is32 is not None:
            add_strip_segment_32(columns, values, begin, end, block, total, left, stride)
        else:
            add_strip_segment_16(columns, values, begin, end, block, total, left, stride)


@compiled(parallel=True)
def relax_rows(  # noqa: PLR0912  # a branch per width is what makes it compile to registers
    offsets: Any,
    columns: Any,
    values: Any,
    first_entry: int,
    first_row: int,
    last_row: int,
    block: Any,
    scale: Any,
    unscale: Any,
    gain: Any,
    damping: Any,
    relaxation: Any,
    seed_rows: Any,
    seed_columns: Any,
    seed_amounts: Any,
    first_seed: int,
    active: int,
    sweeps: int,
    strip_width: int,
    unfinished: Any,
    sums: Any,
    is64: Any,
    is32: Any,
) -> None:
    """Go over a range of active rows in order, in place: v ← v + gain · ω · (damping · row @ block + restart - v).

    A sweep is a call for each range of rows, from the first row to the last; several sweeps may be one call for all
    rows. A column is swept by one thread, so its numbers depend on nothing but itself.

    Parameters
    ----------
    offsets, columns, values, first_entry, scale, unscale
        As for `fused_step`.
    first_row, last_row : int
        Range of rows; a sweep begins with row 0.
    block : float32 or float64 (n, B)
        Changed in place; dangling rows (from `active` on) are left alone.
    gain : float (n)
        1 / (1 - α · probability of staying): a row solves for its own self loop.
    damping : float
        α, in the precision of the block.
    relaxation : float (B)
        ω by column; 0 leaves a column as it is, to the last bit.
    seed_rows, seed_columns, seed_amounts : int64, int64, float
        λ s, ascending by row, then column.
    first_seed : int
        The first of them at `first_row` or after it.
    active : int
    sweeps : int
        >= 1; 1 unless the range is all active rows.
    strip_width : int
        Columns a thread: 16, 32 or 64, a divisor of B.
    unfinished : float (B)
        Sums of rows that the next range of rows goes on with, in the precision of the block.
    sums : float64 (B)
        After the last range, the sums over the active rows.
    is64, is32
        `width_markers` of the strip.
    """
    stride = block.shape[1]
    for strip in prange(stride // strip_width):
        left = strip * strip_width
        omega = relaxation[left : left + strip_width]
        total = np.empty(strip_width, np.float64)
        restart = np.zeros(strip_width, block.dtype)
        # Of its own, not a part of the argument: kernels are faster where nothing else can be the same memory.
        row_sums = np.empty(strip_width, block.dtype)
        row_sums[:] = unfinished[left : left + strip_width]
        for _ in range(sweeps):
            if first_row == 0:
                sums[left : left + strip_width] = 0
            seed = first_seed
            for group in range(first_row // SUMMED_ROWS, (last_row + SUMMED_ROWS - 1) // SUMMED_ROWS):
                begin, end = max(group * SUMMED_ROWS, first_row), min((group + 1) * SUMMED_ROWS, last_row)
                if begin % SUMMED_ROWS == 0:
                    row_sums[:] = 0
                for row in range(begin, end):
                    seeded = False
                    while seed < seed_rows.shape[0] and seed_rows[seed] == row:
                        column = seed_columns[seed] - left
                        if 0 <= column < strip_width:
                            restart[column] = seed_amounts[seed]
                            seeded = True
                        seed += 1
                    first, last = offsets[row] - first_entry, offsets[row + 1] - first_entry
                    factor, back, own = scale[row], unscale[row], gain[row]
                    if last - first <= SEGMENT:
                        if is64 is not None:
                            relax_row_64(
                                columns, values, first, last, block, omega, restart, row_sums, row, left, stride,
                                damping, factor, back, own,
                            )  # fmt: skip
                        elif is32 is not None:
                            relax_row_32(
                                columns, values, first, last, block, omega, restart, row_sums, row, left, stride,
                                damping, factor, back, own,
                            )  # fmt: skip
                        else:
                            relax_row_16(
                                columns, values, first, last, block, omega, restart, row_sums, row, left, stride,
                                damping, factor, back, own,
                            )  # fmt: skip
                    else:
                        total[:] = 0
                        _add_segments(columns, values, first, last, block, total, left, is64, is32)
                        if is64 is not None:
                            relax_total_64(
                                total, block, omega, restart, row_sums, row, left, stride, damping, factor, back,
                                own,
                            )  # fmt: skip
                        elif is32 is not None:
                            relax_total_32(
                                total, block, omega, restart, row_sums, row, left, stride, damping, factor, back,
                                own,
                            )  # fmt: skip
                        else:
                            relax_total_16(
                                total, block, omega, restart, row_sums, row, left, stride, damping, factor, back,
                                own,
                            )  # fmt: skip
                    if seeded:
                        restart[:] = 0
                if end % SUMMED_ROWS == 0 or end == active:
                    for j in range(strip_width):
                        sums[left + j] += row_sums[j]
        unfinished[left : left + strip_width] = row_sums
