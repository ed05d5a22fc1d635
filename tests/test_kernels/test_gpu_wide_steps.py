"""Indices beyond 2**31 in the kernels of PageRank: blocks of more numbers than an ``int`` counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import shim
from far import NOTHING, Case, assert_wide, call, far, require_far_memory

from seedrank.kernels._gpu.source import PIECE, kernel_source

WIDTH = 64
NODES = 2**25 + 304
ENTRY = 2**31 + 9
COLUMNS = np.arange(WIDTH, dtype=np.float32)

#: Computed in 32 bits, what stands on the left is another number: each has to be noticed.
NARROW = (
    ("block + (int64)source * width", "block + (int)source * width"),
    ("const int source = sources[entry]", "const int source = sources[(int)entry]"),
    ("following[row * width + place] = stored", "following[(int)row * width + place] = stored"),
    ("total[j] += partial[piece * width", "total[j] += partial[(int)piece * width"),
    (
        "if (column + j * LANES < width) partial[piece * width",
        "if (column + j * LANES < width) partial[(int)piece * width",
    ),
    ("sums + (int64)blockIdx.z * rows * width", "sums + (int)blockIdx.z * rows * width"),
    ("block[(int64)seed_row[seed] * width", "block[(int)seed_row[seed] * width"),
    ("narrowed[at] = block[at / kept * width", "narrowed[at] = block[(int)(at / kept) * width"),
    ("fma((T)weights[at % width], block[at]", "fma((T)weights[at % width], block[(int)at]"),
    ("allowed[row * words + word] = may", "allowed[(int)row * words + word] = may"),
    ("&allowed[(int64)excluded[at] * words", "&allowed[(int)excluded[at] * words"),
    ("            const uint64 score = key_of(block[row", "            const uint64 score = key_of(block[(int)row"),
    ("\n        const T score = block[row * width", "\n        const T score = block[(int)row * width"),
)


def graph() -> dict[str, Any]:
    """Sources, factors and a block of which the last row, and the fifth before it, hold something."""
    last = NODES - 1
    return {
        "sources": far(ENTRY + PIECE + 4, np.int32, {ENTRY: [last, last - 5], ENTRY + PIECE + 1: [last, last - 5]}),
        "factors": far(NODES, np.float32, {last: 0.5, last - 5: 0.25}),
        "block": far(NODES * WIDTH, np.float32, {last * WIDTH: COLUMNS, (last - 5) * WIDTH: [8.0] * WIDTH}),
    }


def step(kernels: shim.Kernels) -> tuple[Any, Any]:
    """The last row has two entries and a seed, the one before is of two pieces."""
    rows, last, piece = graph(), NODES - 1, 2**25 + 5
    chunks = NODES // 256 + 1
    first = (chunks - 1) * 256
    offsets = far(NODES + 1, np.int64, {first: [ENTRY] * (last - first), last: [ENTRY + PIECE + 1, ENTRY + PIECE + 3]})
    partial = far((piece + 2) * WIDTH, np.float64, {piece * WIDTH: [0.25] * WIDTH + [0.5] * WIDTH})
    following, sums = far(NODES * WIDTH, np.float32), far(3 * chunks * WIDTH, np.float64)
    long_row, seed_row, seed_column = (np.array([value], np.int32) for value in (last - 1, last, 3))
    call(
        kernels, "step_float32_2", (chunks, 1), (32, 16), offsets, rows["sources"], NOTHING, rows["factors"],
        far(NODES, np.uint8), NODES, long_row, np.array([piece, piece + 2], np.int32), 1,
        partial, far(NODES, np.int32), seed_row, seed_column, np.array([0.5]), 1,
        rows["block"], following, np.zeros(WIDTH), np.float64(0.5), 0, WIDTH, sums, block=-1,
    )  # fmt: skip
    expected = 0.5 * (0.5 * COLUMNS + 0.25 * 8)
    expected[3] += 0.25
    both = np.array([0.5 * 0.75] * WIDTH), expected
    return (following[-2 * WIDTH :], sums[(chunks - 1) * WIDTH : chunks * WIDTH]), (np.concatenate(both), sum(both))


def pieces(kernels: shim.Kernels) -> tuple[Any, Any]:
    rows, count, piece = graph(), 2**25 + 16, 2**25 + 3
    first, last = far(count, np.int64, {piece: ENTRY}), far(count, np.int64, {piece: ENTRY + 2})
    partial = far(count * WIDTH, np.float64)
    call(
        kernels, "sum_pieces_float32_2", (count // 16, 1), (32, 16), first, last, count, rows["sources"], NOTHING,
        rows["factors"], rows["block"], WIDTH, partial, block=-1,
    )  # fmt: skip
    return partial[piece * WIDTH : (piece + 1) * WIDTH], 0.5 * COLUMNS + 0.25 * 8


def column_sums(kernels: shim.Kernels) -> tuple[Any, Any]:
    """Of a block that is wider than any, because there are not so many rows."""
    rows, width = 2**21, 1024
    sums = far(3 * rows * width, np.float64, {2 * rows * width + (rows - 1) * width: [7.0, 8.0]})
    folded = far(3 * rows // 256 * width, np.float64)
    call(kernels, "fold_sums", (rows // 256, 1, 3), (32, 16), sums, rows, width, folded, block=-1)
    return folded[-width : -width + 3], [7.0, 8.0, 0.0]


def seeds(kernels: shim.Kernels) -> tuple[Any, Any]:
    block = far(NODES * WIDTH, np.float32)
    seed = np.array([NODES - 1], np.int32), np.array([9], np.int32), np.array([0.5])
    call(kernels, "place_seeds_float32", (1,), (256,), *seed, 1, WIDTH, block, block=0)
    return block[-WIDTH + 9], 0.5


def kept(kernels: shim.Kernels) -> tuple[Any, Any]:
    block, narrower = graph()["block"], far(NODES * WIDTH, np.float32)
    backwards = np.arange(WIDTH, dtype=np.int32)[::-1].copy()
    grid = (NODES * WIDTH // 256,)
    call(
        kernels, "keep_columns_float32", grid, (256,), block, np.int64(NODES), WIDTH, backwards, WIDTH, narrower,
        block=-1,
    )  # fmt: skip
    return narrower[-WIDTH:], COLUMNS[::-1]


def accumulated(kernels: shim.Kernels) -> tuple[Any, Any]:
    block, total = graph()["block"], far(NODES * WIDTH, np.float32, {-WIDTH: [1.0] * WIDTH})
    grid = (NODES * WIDTH // 256,)
    call(
        kernels, "accumulate_float32", grid, (256,), block, np.int64(NODES), WIDTH, np.full(WIDTH, 2.0),
        np.full(WIDTH, 0.5), total, block=-1,
    )  # fmt: skip
    return total[-WIDTH:], 0.5 * (1 + 2 * COLUMNS)


def allowed(kernels: shim.Kernels) -> tuple[Any, Any]:
    nodes, words = 2**30 + 256, 4
    may, reachable = far(nodes * words, np.uint32), far(nodes, np.uint64, {-1: 0b1011})
    bits = np.arange(128, dtype=np.int32) % 64
    call(kernels, "allow", (nodes // 256,), (256,), nodes, 128, words, bits, NOTHING, reachable, may, block=-1)
    return may[-words:], [0b1011, 0, 0b1011, 0]


def excluded(kernels: shim.Kernels) -> tuple[Any, Any]:
    nodes, words = 2**30 + 256, 4
    may = far(nodes * words, np.uint32, {-words: [0xFF] * words})
    call(
        kernels, "exclude", (1,), (256,), np.array([nodes - 1], np.int32), np.array([37], np.int32), 1, words, may,
        block=0,
    )  # fmt: skip
    return may[-words:], [0xFF, 0xFF - (1 << 5), 0xFF, 0xFF]


def selection() -> tuple[Any, ...]:
    """What counting and gathering share: the last row holds 0.5 in every column."""
    block = far(NODES * WIDTH, np.float32, {-WIDTH: [0.5] * WIDTH})
    may, known = far(NODES * 2, np.uint32, {-16: [0xFFFFFFFF] * 16}), np.zeros(WIDTH, np.uint64)
    order, positions = far(NODES, np.int32), np.arange(WIDTH, dtype=np.int32)
    return block, NODES, WIDTH, positions, WIDTH, may, 2, np.float32(0.1), order, known, known


def digits(kernels: shim.Kernels) -> tuple[Any, Any]:
    counted = np.zeros((WIDTH, 256), np.int32)
    call(
        kernels, "count_digits_float32", (NODES // 8, 2), (32, 8), *selection(), np.ones(WIDTH, np.int32), 0, 24,
        counted, block=-1,
    )  # fmt: skip
    return counted[:, 0x3F], [0] * 32 + [1] * 32


def gathered(kernels: shim.Kernels) -> tuple[Any, Any]:
    found, node, score = np.zeros(WIDTH, np.int32), np.zeros(2 * WIDTH, np.int32), np.zeros(2 * WIDTH, np.float32)
    call(
        kernels, "gather_float32", (NODES // 8, 2), (32, 8), *selection(), 2, found, node, score, block=-1
    )  # fmt: skip
    return (found[32:], node[64::2], score[64::2]), ([1] * 32, [NODES - 1] * 32, [0.5] * 32)


CASES = (step, pieces, column_sums, seeds, kept, accumulated, allowed, excluded, digits, gathered)


@pytest.mark.parametrize("case", CASES)
def test_indices_have_64_bits(case: Case) -> None:
    require_far_memory()
    assert_wide(case, kernel_source("pagerank"), NARROW)
