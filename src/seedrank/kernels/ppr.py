"""Personalized PageRank of a block of queries, on any backend, with a bound on the error of every query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from seedrank.errors import KernelError
from seedrank.kernels.arrays import BoolArray, Float64Array, Int32Array, Int64Array, Precision, ScoreArray
from seedrank.kernels.backend import Backend, QueryBlock, Selection


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


def personalized_pagerank(
    backend: Backend,
    block: QueryBlock,
    *,
    restart: float,
    max_iterations: int,
    tolerance: float,
    k: int,
    eligible: BoolArray | None = None,
    min_score: float = 0.0,
    precision: Precision,
    on_step: Callable[[StepProgress], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> BlockResult:
    """Iterate v ← α Pᵀ v + (λ + α·dangling mass) s from s until every query has converged; select the top k.

    With α = 1 - λ, the step is a contraction by α in the L1 norm with fixed point π. Hence after step i
    ``truncation = min(2 αⁱ, (α/λ)·‖vⁱ - vⁱ⁻¹‖₁)`` bounds the distance of the exactly computed vector to π,
    and a rounding error of e a step adds at most e/λ. ``error_bound = truncation + 4 ε/λ`` with ε the
    machine epsilon of the precision: storing a vector of mass 1 costs ε/2, which leaves a seven-fold margin
    for the arithmetic (in float32 it is done in float64).

    A query is finished when tolerance > 0 and truncation <= tolerance, the last allowed step included, or
    when `max_iterations` steps were made. It is selected at that step and never changes afterwards, so the
    result of a query depends on neither the width of the block nor its other queries.

    Parameters
    ----------
    backend : Backend
        With the graph loaded in `precision`.
    block : QueryBlock
        Queries without seeds get an empty result (0 iterations, converged).
    restart : float
        λ, 0 < λ <= 1.
    max_iterations : int
        >= 1
    tolerance : float
        L1, absolute. 0: exactly `max_iterations` steps, which count as converged.
    k : int
        >= 1
    eligible : bool (n), optional
        Internal nodes that may be selected.
    min_score : float
        Lowest score that counts.
    precision : "float32" or "float64"
    on_step : callable, optional
        Called after every step with a `StepProgress`.
    should_stop : callable, optional
        Polled before every step; True ends the block with what was computed so far.

    Returns
    -------
    BlockResult

    Raises
    ------
    KernelError
        The mass of a vector left 1 by more than rounding explains: the backend computed nonsense.
    """
    damping = 1.0 - restart
    epsilon = float(np.finfo(precision).eps)
    collected = _Collected(block.width, k, precision, 4.0 * epsilon / restart)
    mass_tolerance = max(1e-6, 8.0 * epsilon / restart)
    running = np.flatnonzero(np.diff(block.seed_offsets))
    if not len(running):
        return collected.result
    backend.start(block, restart=restart)
    if len(running) < block.width:
        backend.keep(running)
    kept = running
    truncation = np.full(len(kept), 2.0)
    # With a fixed number of steps only the last two matter: for the difference, and for rows that end walks.
    always = tolerance > 0 or should_stop is not None
    for iteration in range(1, max_iterations + 1):
        if should_stop is not None and should_stop():
            selection = backend.select(running, k=k, eligible=eligible, min_score=min_score)
            collected.add(running, selection, iteration - 1, truncation[np.searchsorted(kept, running)])
            collected.result.stopped[running] = True
            return collected.result
        measure = always or iteration >= max_iterations - 1
        report = backend.step(measure=measure)
        truncation = np.full(len(kept), 2.0 * damping**iteration)
        if measure:
            _check_mass(report.mass, iteration, mass_tolerance)
            truncation = np.minimum(truncation, damping / restart * report.difference)
        current = truncation[np.searchsorted(kept, running)]
        converged = current <= tolerance if tolerance > 0 else np.full(len(running), iteration == max_iterations)
        finished = converged | (iteration == max_iterations)
        if finished.any():
            columns = running[finished]
            selection = backend.select(columns, k=k, eligible=eligible, min_score=min_score)
            collected.add(columns, selection, iteration, current[finished])
            collected.result.converged[columns] = converged[finished]
        running = running[~finished]
        if on_step is not None:
            on_step(StepProgress(iteration, len(running), float(current.max())))
        if not len(running):
            break
        # Finished columns ride along until half of the work would be theirs: compaction copies the block.
        if 2 * len(running) <= len(kept):
            backend.keep(running)
            truncation = truncation[np.searchsorted(kept, running)]
            kept = running
    return collected.result


class _Collected:
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

    def add(self, columns: Int64Array, selection: Selection, iteration: int, truncation: Float64Array) -> None:
        """Store what was selected for these columns after this many steps; converged is set by the caller."""
        self.result.nodes[columns] = selection.nodes
        self.result.scores[columns] = selection.scores
        self.result.counts[columns] = selection.counts
        self.result.iterations[columns] = iteration
        self.result.error_bound[columns] = truncation + self._rounding
        self.result.converged[columns] = False


def _check_mass(mass: Float64Array, iteration: int, tolerance: float) -> None:
    """Every vector must have mass 1 after every step; NaN fails too."""
    wrong = ~(np.abs(mass - 1.0) <= tolerance)
    if wrong.any():
        raise KernelError(
            f"after step {iteration}, {int(wrong.sum())} of {len(mass)} score vectors lost or gained mass; "
            f"the first sums to {float(mass[wrong][0])!r}",
            expected=f"1 within {tolerance:.1e}",
            fix="report this with the output of `seedrank info`; another backend may still work",
        )
