"""What a driver delivers for a block of queries, and the check that it is not nonsense."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seedrank.errors import KernelError
from seedrank.kernels.arrays import BoolArray, Float64Array, Int32Array, Int64Array, Precision, ScoreArray
from seedrank.kernels.backend import Selection


@dataclass(frozen=True)
class BlockResult:
    """What became of the B queries of a block.

    Attributes
    ----------
    nodes : int32 (B, k)
        Internal nodes by falling score, ties by tie rank; -1 after the last.
    scores : float32 or float64 (B, k)
        0 after the last.
    counts : int32 (B)
        Number of nodes found.
    iterations : int32 (B)
        Steps made; 0 for a query without seeds.
    error_bound : float64 (B)
        Bound on the L1 distance between the computed and the exact vector, before the cut to k.
    converged : bool (B)
    stopped : bool (B)
        `should_stop` ended the query early; its result is that of the steps made so far.
    """

    nodes: Int32Array
    scores: ScoreArray
    counts: Int32Array
    iterations: Int32Array
    error_bound: Float64Array
    converged: BoolArray
    stopped: BoolArray


@dataclass(frozen=True)
class StepProgress:
    """What `on_step` is told.

    Attributes
    ----------
    iteration : int
        From 1.
    running : int
        Queries that go on.
    largest_truncation : float
        Worst truncation bound among the queries of this step.
    """

    iteration: int
    running: int
    largest_truncation: float


class Collected:
    """The result under construction; queries without seeds stay as initialised."""

    def __init__(self, width: int, k: int, precision: Precision, rounding: float) -> None:
        self._rounding = rounding
        self.result = BlockResult(
            nodes=np.full((width, k), -1, dtype=np.int32),
            scores=np.zeros((width, k), dtype=precision),
            counts=np.zeros(width, dtype=np.int32),
            iterations=np.zeros(width, dtype=np.int32),
            error_bound=np.zeros(width, dtype=np.float64),
            converged=np.ones(width, dtype=np.bool_),
            stopped=np.zeros(width, dtype=np.bool_),
        )

    def add(
        self, columns: Int64Array, selection: Selection, iterations: int | Int64Array, truncation: Float64Array
    ) -> None:
        """Store what was selected for these columns after this many iterations; converged is set by the caller."""
        self.result.nodes[columns] = selection.nodes
        self.result.scores[columns] = selection.scores
        self.result.counts[columns] = selection.counts
        self.result.iterations[columns] = iterations
        self.result.error_bound[columns] = truncation + self._rounding
        self.result.converged[columns] = False


def check_mass(mass: Float64Array, iteration: int, tolerance: float) -> None:
    """Every vector must have mass 1 after every step; NaN fails too."""
    wrong = ~(np.abs(mass - 1.0) <= tolerance)
    if wrong.any():
        raise KernelError(
            f"after step {iteration}, {int(wrong.sum())} of {len(mass)} score vectors lost or gained mass; "
            f"the first sums to {float(mass[wrong][0])!r}",
            expected=f"1 within {tolerance:.1e}",
            fix="report this with the output of `seedrank info`; another backend may still work",
        )
