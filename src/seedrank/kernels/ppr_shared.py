"""Personalized PageRank for several restart probabilities at once: the products with the graph are shared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from seedrank.errors import KernelError
from seedrank.kernels.arrays import BoolArray, Float64Array, Int64Array, Precision
from seedrank.kernels.backend import QueryBlock, Selection, StepReport, SummingBackend
from seedrank.kernels.backends.block_result import BlockResult, Stopping


def personalized_pageranks(
    backend: SummingBackend,
    block: QueryBlock,
    *,
    restarts: Sequence[float],
    max_iterations: int,
    tolerance: float,
    k: int,
    eligible: BoolArray | None = None,
    min_score: float = 0.0,
    precision: Precision,
    loses_mass: bool,
    should_stop: Callable[[], bool] | None = None,
    meanwhile: Callable[[], None] | None = None,
) -> list[BlockResult]:
    """Score a block under each of several restart probabilities λ, in one pass.

    The vectors uᵏ = (Pᵀ)ᵏ s do not depend on λ; with α = 1 - λ,

        xᵏ = λ Σ_{i<k} αⁱ uⁱ + αᵏ uᵏ

    are the iterates of x ← α Pᵀ x + λ s from s, written as a series (Berkhin, "A Survey on PageRank Computing", 2005),
    so ``e = min(2 αᵏ, (α/λ) αᵏ ‖uᵏ - uᵏ⁻¹‖₁)`` bounds their distance to the limit p. Where mass on dangling nodes is
    dropped (it would go back to the seeds), the solution is π = p / Σp: the sum is rescaled once, at the end. With
    X = Σ xᵏ and |Σp - X| <= min(e, αᵏ Σuᵏ), ``truncation = (e + |Σp - X|) / X``.

    ``error_bound = truncation + 4 ε/λ + (k + 2) ε/2``: the rounding of the vectors as in
    `seedrank.kernels.ppr.personalized_pagerank`, and half an ε for each time a sum was stored.

    A query is finished for a λ when its truncation is at most the tolerance or after `max_iterations`, and leaves the
    block when it is finished for all. No number depends on the width of the block, the other queries or the other λ.

    Parameters
    ----------
    backend : SummingBackend
        Loaded with the dangling rule ``drop`` in place of ``seeds``.
    block : QueryBlock
    restarts : sequence of float (J)
        0 < λ <= 1
    max_iterations, tolerance, k, eligible, min_score, precision, should_stop, meanwhile
        As for `personalized_pagerank`; tolerance > 0.
    loses_mass : bool
        Whether the graph has dangling nodes whose mass is dropped.

    Returns
    -------
    list of BlockResult
        One for each λ, in order.

    Raises
    ------
    KernelError
        A vector lost or gained mass that dangling nodes do not explain.
    """
    epsilon = float(np.finfo(precision).eps)
    restart = np.asarray(restarts, dtype=np.float64)[:, np.newaxis]
    damping = 1.0 - restart
    stoppings = [
        Stopping(
            _selector(backend, position, eligible, min_score),
            width=block.width,
            k=k,
            min_score=min_score,
            precision=precision,
            tolerance=tolerance,
            max_iterations=max_iterations,
            rounding=4.0 * epsilon / probability + epsilon,
            rounding_a_step=epsilon / 2.0,
            rule="tolerance",
        )
        for position, probability in enumerate(restarts)
    ]
    results = [stopping.result for stopping in stoppings]
    kept = np.flatnonzero(np.diff(block.seed_offsets))
    if not len(kept):
        return results
    backend.start(block, restart=0.0)
    if len(kept) < block.width:
        backend.keep(kept)
    state = _Vectors.at_the_seeds(len(restarts), len(kept))
    backend.accumulate(np.broadcast_to(restart, state.open.shape), np.ones(state.open.shape))
    for iteration in range(1, max_iterations + 1):
        power = damping**iteration
        if should_stop is not None and should_stop():
            # λ Σ_{i<=k} αⁱ uⁱ is there already, so what is missing to xᵏ is αᵏ⁺¹ uᵏ.
            backend.accumulate(np.where(state.open, power, 0.0), np.where(state.open, 1.0 / state.total, 1.0))
            for position, stopping in enumerate(stoppings):
                columns = np.flatnonzero(state.open[position])
                stopping.cut_short(kept[columns], iteration - 1, state.truncation[position, columns])
            break
        state.series += damping ** (iteration - 1) * state.mass
        report = backend.step()
        if meanwhile is not None:
            meanwhile()
            meanwhile = None
        _check_mass(report, state, iteration, max(1e-6, 8.0 * epsilon))
        state.mass = report.mass
        state.lost = report.dangling_mass if loses_mass else np.zeros(len(kept))
        error = power * np.minimum(2.0, damping / restart * report.difference)
        state.truncation = error
        if loses_mass:
            state.total = restart * state.series + power * state.mass
            state.truncation = (error + np.minimum(error, power * state.mass)) / state.total
        finished = state.open & stoppings[0].ends(np.full(state.open.shape, iteration), state.truncation)
        weights = np.where(finished, power, np.where(state.open, restart * power, 0.0))
        backend.accumulate(weights, np.where(finished, 1.0 / state.total, 1.0))
        for position, stopping in enumerate(stoppings):
            columns = np.flatnonzero(finished[position])
            stopping.finish(kept[columns], iteration, state.truncation[position, columns])
        state.open &= ~finished
        running = np.flatnonzero(state.open.any(axis=0))
        if not len(running):
            break
        if 2 * len(running) <= len(kept):
            kept = kept[running]
            backend.keep(kept)
            state = state.take(running)
    return results


@dataclass
class _Vectors:
    """What is known of the kept columns, beside the vectors themselves; by λ and column where it depends on λ.

    `open`: not finished yet; `series`: Σ_{i<k} αⁱ Σuⁱ; `total`: Σ xᵏ; `mass`: of uᵏ; `lost`: what the next step will
    lose of it, not a number while that is unknown.
    """

    open: BoolArray
    series: Float64Array
    total: Float64Array
    truncation: Float64Array
    mass: Float64Array
    lost: Float64Array

    @classmethod
    def at_the_seeds(cls, restarts: int, columns: int) -> _Vectors:
        shape = (restarts, columns)
        return cls(
            open=np.ones(shape, dtype=np.bool_),
            series=np.zeros(shape),
            total=np.ones(shape),
            truncation=np.full(shape, 2.0),
            mass=np.ones(columns),
            lost=np.full(columns, np.nan),
        )

    def take(self, columns: Int64Array) -> _Vectors:
        return _Vectors(**{name: values[..., columns] for name, values in vars(self).items()})


def _selector(
    backend: SummingBackend, position: int, eligible: BoolArray | None, min_score: float
) -> Callable[[Int64Array, int], Selection]:
    def select(columns: Int64Array, count: int) -> Selection:
        return backend.select_sum(position, columns, k=count, eligible=eligible, min_score=min_score)

    return select


def _check_mass(report: StepReport, before: _Vectors, iteration: int, tolerance: float) -> None:
    """What a vector loses in a step is what was on dangling nodes; NaN fails too."""
    unknown = np.isnan(before.lost)
    excess = report.mass - before.mass + np.where(unknown, 0.0, before.lost)
    # The first step may lose all that the seeds had.
    unexplained = np.where(unknown, np.maximum(excess, 0.0), np.abs(excess))
    wrong = ~(unexplained <= tolerance)
    if wrong.any():
        raise KernelError(
            f"in step {iteration}, {int(wrong.sum())} of {len(wrong)} vectors lost or gained mass that dangling nodes "
            f"do not explain; the first is off by {float(excess[wrong][0])!r}",
            expected=f"0 within {tolerance:.1e}",
            fix="report this with the output of `seedrank info`; another backend may still work",
        )
