"""The accelerated iteration: over-relaxed sweeps, and steps that verify what they are worth."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from seedrank.kernels.arrays import Int64Array
from seedrank.kernels.backend import Backend, RelaxingBackend
from seedrank.kernels.backends.block_result import StepProgress, Stopping, check_mass
from seedrank.kernels.relaxation import Relaxation

STALLED = 0.9
"""A query whose bound shrinks by less than this from one verification to the next is not swept any more."""

LOST = 0.01
"""A query that stalls above this bound starts again from its seeds; below it, only rounding stands in the way."""


def iterate_relaxed(
    backend: Backend,
    running: Int64Array,
    stopping: Stopping,
    relaxation: Relaxation,
    *,
    restart: float,
    max_iterations: int,
    mass_tolerance: float,
    on_step: Callable[[StepProgress], None] | None,
    should_stop: Callable[[], bool] | None,
) -> None:
    """Iterate a started block until every query is finished; results go into `stopping`.

    Sweeps bring the vectors close to the solution of (I - α Pᵀ) y = λ s, which is π but for its sum when the mass of
    dangling nodes returns to the seeds. Nothing is believed of them: the step that follows is the recurrence's own,
    F(x) = α Pᵀ x + α·dangling(x) s + λ s, a contraction by α, so from any x whatever
    ``‖π - F(x)‖₁ <= (α/λ)·‖F(x) - x‖₁``, and F(x) is what is delivered. The schedule of sweeps and steps is fixed by
    `relaxation`, and columns do not touch each other, so the result of a query does not depend on its block.

    A query that sweeps do not bring on goes on with plain steps, each of which shrinks its bound by α at least: from
    where it is, or from its seeds again (bound 2) when the sweeps led it astray, as they may on directed graphs. What
    was spent on the sweeps stays counted, so a query never takes more than `max_iterations` products.

    Parameters
    ----------
    backend : RelaxingBackend
        Started, all of `running` kept and no other column.
    running : int64
        Columns with seeds.
    stopping : Stopping
        Says when a query is finished, with a tolerance > 0, and keeps the results.
    relaxation : Relaxation
    restart, max_iterations
        As for `personalized_pagerank`. An iteration is a product with the graph: a sweep or a step.
    mass_tolerance : float
        How far the sum of a delivered vector may be from 1.
    on_step, should_stop : callable, optional
        As for `personalized_pagerank`; called once for the sweeps and the step that verifies them.

    Raises
    ------
    KernelError
        A delivered vector does not sum to 1.
    """
    assert isinstance(backend, RelaxingBackend)
    damping = 1.0 - restart
    width = len(stopping.result.counts)
    relaxed = np.ones(width, dtype=np.bool_)
    iterations = np.zeros(width, dtype=np.int64)
    # Of the vector as it is: the seeds are at most 2 from the solution.
    bound = np.full(width, 2.0)
    kept, sweeps = running, relaxation.first_sweeps
    while len(running):
        if should_stop is not None and should_stop():
            stopping.cut_short(running, iterations[running], bound[running])
            return
        swept = running[relaxed[running]]
        if len(swept):
            # Columns that are still swept have all come the same way.
            sweeps = min(sweeps, max_iterations - int(iterations[swept[0]]) - 1)
        if len(swept) and sweeps > 0:
            backend.relax(sweeps, np.where(relaxed[kept], relaxation.factor, 0.0))
            iterations[swept] += sweeps
        sweeps = relaxation.further_sweeps
        report = backend.step()
        iterations[running] += 1
        place = np.searchsorted(kept, running)
        truncation = damping / restart * report.difference[place]
        shrunk = np.minimum(truncation, damping * bound[running])
        truncation = np.where(relaxed[running], truncation, shrunk)
        finished = stopping.finish(running, iterations[running], truncation)
        check_mass(report.mass[place][finished], int(iterations[running].max()), mass_tolerance)
        # Also not a number: a column that overflowed is as stuck as one that stands still.
        stuck = relaxed[running] & ~finished & ~(truncation <= np.minimum(STALLED * bound[running], 1.0))
        relaxed[running[stuck]] = False
        bound[running] = truncation
        lost = running[stuck & ~(truncation <= LOST)]
        if len(lost):
            backend.reset(lost)
            bound[lost] = 2.0
        if on_step is not None:
            on_step(StepProgress(int(iterations[running].max()), int((~finished).sum()), float(truncation.max())))
        running = running[~finished]
        if len(running) and 2 * len(running) <= len(kept):
            backend.keep(running)
            kept = running
