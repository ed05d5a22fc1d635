"""The CUDA C++ of all kernels, and the numbers that they share with Python. Needs no CuPy."""

from __future__ import annotations

from importlib.resources import files
from typing import Literal

from seedrank.kernels.recall.forms import LIMITS

Group = Literal["pagerank", "recall"]

SOURCES: dict[Group, tuple[str, ...]] = {
    "pagerank": ("common.cu", "step.cu", "columns.cu", "select.cu"),
    "recall": ("common.cu", "walk.cu", "levels.cu", "best.cu"),
}
"""Kernels that are compiled together, in this order: a job compiles only what its method runs."""

OPTIONS = ("-std=c++17", "--fmad=false")
"""Only what the source writes as fma is one: every width of a kernel rounds alike."""

LANES = 32
"""Columns that a block of threads computes side by side, at most."""

STRIPES = 16
"""Threads of a block that share a column."""

CHUNK_ROWS = 256
"""Rows that a block of threads finishes; its column sums are added in a fixed order."""

STRETCH = 16
"""Entries of a row that are added in the precision of the block before they join a float64 sum."""

PIECE = 2048
"""Longest part of a row that is added in one go; longer rows are cut, and the parts are added in order."""

FOLD = 256
"""Rows of partial column sums that become one."""

BINS = 256
"""Values of a digit of the radix select."""

SELECT_THREADS = 256
"""Threads of its blocks."""

RECALL_THREADS = 256
"""Threads of the blocks of walks and traversals, at most."""

RULES = ("seeds", "self", "uniform", "drop")
"""Dangling rules by their numbers in the kernels."""


def kernel_source(group: Group = "pagerank") -> str:
    """Return the CUDA C++ of a group of kernels."""
    return source_of(*SOURCES[group])


def source_of(*names: str) -> str:
    """Return the CUDA C++ of some files, with the constants that Python has, too."""
    constants = {
        "LANES": LANES, "STRIPES": STRIPES, "CHUNK_ROWS": CHUNK_ROWS, "STRETCH": STRETCH, "PIECE": PIECE, "FOLD": FOLD,
        "BINS": BINS, "SELECT_THREADS": SELECT_THREADS, "RECALL_THREADS": RECALL_THREADS,
        **{f"RULE_{name.upper()}": n for n, name in enumerate(RULES)},
        **{f"LIMIT_{name.upper()}": n for n, name in enumerate(LIMITS) if name},
    }  # fmt: skip
    defines = "".join(f"#define {name} {value}\n" for name, value in constants.items())
    folder = files("seedrank.kernels._gpu")
    return defines + "\n".join(folder.joinpath(name).read_text(encoding="utf-8") for name in names)
