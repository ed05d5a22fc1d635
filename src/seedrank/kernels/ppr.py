"""Personalized PageRank of a block of queries, on any backend, with a bound on the error of every query."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from seedrank.kernels.arrays import BoolArray, Precision
from seedrank.kernels.backend import Backend, ForeignBackend, QueryBlock
from seedrank.kernels.backends.block_result import BlockResult, StepProgress, Stop, Stopping, check_mass
from seedrank.kernels.ppr_relaxed import iterate_relaxed
from seedrank.kernels.relaxation import Relaxation

__all__ = ["BlockResult", "StepProgress", "personalized_pagerank"]


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
    stop: Stop = "tolerance",
    relaxation: Relaxation | None = None,
    on_step: Callable[[StepProgress], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
    meanwhile: Callable[[], None] | None = None,
) -> BlockResult:
    """Iterate v ← α Pᵀ v + (λ + α·dangling mass) s from s until every query has converged; select the top k.

    With α = 1 - λ, the step is a contraction by α in the L1 norm with fixed point π. Hence after step i
    ``truncation = min(2 αⁱ, (α/λ)·‖vⁱ - vⁱ⁻¹‖₁)`` bounds the distance of the exactly computed vector to π,
    and a rounding error of e a step adds at most e/λ. ``error_bound = truncation + 4 ε/λ`` with ε the
    machine epsilon of the precision: storing a vector of mass 1 costs ε/2, which leaves a seven-fold margin
    for the arithmetic (backends add long rows in float64 whatever the precision). A `ForeignBackend` says itself what
    its steps add to that, and is measured every few steps only.

    A query is finished when tolerance > 0 and truncation <= tolerance, the last allowed step included, or
    when `max_iterations` steps were made; under the rule ``top-k`` also as soon as its set of k nodes is certain (see
    `seedrank.kernels.backends.block_result.Stopping`). It is selected at that step and never changes afterwards, so the
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
    stop : "tolerance" or "top-k"
        ``top-k`` needs a tolerance > 0.
    relaxation : Relaxation, optional
        Sweep towards the limit between verified steps (tolerance > 0 only; see `seedrank.kernels.relaxation` and
        `seedrank.kernels.ppr_relaxed`); None: steps only.
    on_step : callable, optional
        Called after every step with a `StepProgress`.
    should_stop : callable, optional
        Polled before every step, or before the sweeps that come before it; True ends the block with what was computed
        so far.
    meanwhile : callable, optional
        Called at most once, when the host is about to wait for the first step whose sums are needed.

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
    foreign = backend if isinstance(backend, ForeignBackend) else None
    stopping = Stopping(
        lambda columns, count: backend.select(columns, k=count, eligible=eligible, min_score=min_score),
        width=block.width,
        k=k,
        min_score=min_score,
        precision=precision,
        tolerance=tolerance,
        max_iterations=max_iterations,
        rounding=(4.0 * epsilon if foreign is None else 4.0 * epsilon + foreign.step_rounding(block)) / restart,
        rule=stop,
    )
    mass_tolerance = max(1e-6, 8.0 * epsilon / restart)
    running = np.flatnonzero(np.diff(block.seed_offsets))
    if not len(running):
        return stopping.result
    backend.start(block, restart=restart)
    if len(running) < block.width:
        backend.keep(running)
    if relaxation is not None:
        iterate_relaxed(
            backend,
            running,
            stopping,
            relaxation,
            restart=restart,
            max_iterations=max_iterations,
            mass_tolerance=mass_tolerance,
            on_step=on_step,
            should_stop=should_stop,
        )
        return stopping.result
    kept = running
    truncation = np.full(len(kept), 2.0)
    # With a fixed number of steps only the last two matter: for the difference, and for rows that end walks.
    always = tolerance > 0 or should_stop is not None
    ahead = 0 if foreign is None else foreign.steps_a_call if always else max_iterations
    iteration = 0
    while len(running):
        if should_stop is not None and should_stop():
            stopping.cut_short(running, iteration, truncation[np.searchsorted(kept, running)])
            return stopping.result
        unmeasured = min(ahead, max_iterations - iteration - 1)
        if foreign is not None and unmeasured:
            foreign.advance(unmeasured)
        iteration += unmeasured + 1
        measure = always or iteration >= max_iterations - 1
        report = backend.step(measure=measure)
        truncation = np.full(len(kept), 2.0 * damping**iteration)
        if measure:
            if meanwhile is not None:
                meanwhile()
                meanwhile = None
            check_mass(report.mass, iteration, mass_tolerance)
            truncation = np.minimum(truncation, damping / restart * report.difference)
        current = truncation[np.searchsorted(kept, running)]
        finished = stopping.finish(running, iteration, current)
        running = running[~finished]
        if on_step is not None:
            on_step(StepProgress(iteration, len(running), float(current.max())))
        # Finished columns ride along until half of the work would be theirs: compaction copies the block. In a library
        # that takes one vector at a time nothing is copied.
        if 0 < len(running) < len(kept) and (foreign is not None or 2 * len(running) <= len(kept)):
            backend.keep(running)
            truncation = truncation[np.searchsorted(kept, running)]
            kept = running
    return stopping.result
