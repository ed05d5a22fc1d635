"""What a driver delivers for a block of queries, when it delivers it, and the check that it is not nonsense."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np

from seedrank.errors import KernelError
from seedrank.kernels.arrays import BoolArray, Float64Array, Int8Array, Int32Array, Int64Array, Precision, ScoreArray
from seedrank.kernels.backend import Selection

Stop = Literal["tolerance", "top-k"]

CERTIFICATES = (None, "certified", "tied", "tolerance")
"""What `BlockResult.certificate` counts through."""

_CERTIFIED, _TIED, _TOLERANCE = 1, 2, 3

RECHECK = 0.25
"""The k-th gap is looked at again when the bound has come down to it, or to this part of what it was."""


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
    certificate : int8 (B)
        Position in `CERTIFICATES`: what is known of the selected set under the stop rule ``top-k``.
    """

    nodes: Int32Array
    scores: ScoreArray
    counts: Int32Array
    iterations: Int32Array
    error_bound: Float64Array
    converged: BoolArray
    stopped: BoolArray
    certificate: Int8Array


def interleaved(results: Sequence[BlockResult]) -> BlockResult:
    """One result in place of J for the same queries: row ``q * J + j`` is query q of result j."""
    if len(results) == 1:
        return results[0]
    stacked = {
        field.name: np.stack([getattr(result, field.name) for result in results], axis=1)
        for field in fields(BlockResult)
    }
    return BlockResult(**{name: values.reshape(-1, *values.shape[2:]) for name, values in stacked.items()})


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


class Stopping:
    """Decides when a query is finished, and keeps what it delivers; queries without seeds stay as initialised.

    A query is finished when its truncation is at most the tolerance (tolerance > 0) or after `max_iterations`. Under
    the rule ``top-k`` it is finished sooner if it can be: when the k-th score leads the next one (and `min_score`) by
    more than ``error_bound``, no exact score of the vector can change places across the cut, so the *set* of the k
    best is certified; their order is as exact as the scores. Otherwise the tolerance decides, and the certificate says
    whether rank k and its successor are ``tied`` (a gap within rounding: no number of steps would tell them apart) or
    not separated at this ``tolerance``, as where there are fewer than k candidates.

    All of it depends on the query's own numbers only.

    Parameters
    ----------
    select : callable
        (columns, k) -> Selection of the current vectors.
    width : int
        Queries of the block.
    k, min_score, precision, tolerance, max_iterations
        As for `seedrank.kernels.ppr.personalized_pagerank`.
    rounding : float or float64 (width)
        What `error_bound` is above truncation.
    rounding_a_step : float
        What each iteration adds to that.
    rule : "tolerance" or "top-k"
    """

    def __init__(
        self,
        select: Callable[[Int64Array, int], Selection],
        *,
        width: int,
        k: int,
        min_score: float,
        precision: Precision,
        tolerance: float,
        max_iterations: int,
        rounding: float | Float64Array,
        rounding_a_step: float = 0.0,
        rule: Stop,
    ) -> None:
        self._select = select
        self._k = k
        self._min_score = min_score
        self._tolerance = tolerance
        self._max_iterations = max_iterations
        self._rounding = np.broadcast_to(np.asarray(rounding, dtype=np.float64), width)
        self._rounding_a_step = rounding_a_step
        self._certify = rule == "top-k"
        # Scores sum to 1, so the k-th is at most 1/k, and so is its lead.
        self._next_check = np.full(width, 1.0 / k)
        self.result = BlockResult(
            nodes=np.full((width, k), -1, dtype=np.int32),
            scores=np.zeros((width, k), dtype=precision),
            counts=np.zeros(width, dtype=np.int32),
            iterations=np.zeros(width, dtype=np.int32),
            error_bound=np.zeros(width, dtype=np.float64),
            converged=np.ones(width, dtype=np.bool_),
            stopped=np.zeros(width, dtype=np.bool_),
            certificate=np.zeros(width, dtype=np.int8),
        )

    def ends(self, iterations: Int64Array, truncation: Float64Array) -> BoolArray:
        """Whether the tolerance or the number of iterations ends a query."""
        ends: BoolArray = iterations >= self._max_iterations
        return ends | (truncation <= self._tolerance) if self._tolerance > 0 else ends

    def finish(self, columns: Int64Array, iterations: int | Int64Array, truncation: Float64Array) -> BoolArray:
        """Select and keep the queries that are finished after so many iterations; True for these."""
        made = np.broadcast_to(iterations, columns.shape)
        finished = self.ends(made, truncation)
        converged = finished if self._tolerance == 0 else truncation <= self._tolerance
        bound = self._bound(columns, made, truncation)
        due = finished | (bound < self._next_check[columns]) if self._certify else finished
        if not due.any():
            return finished
        selection = self._select(columns[due], self._k + self._certify)
        certificate = np.zeros(len(columns), dtype=np.int8)
        if self._certify:
            lead = self._lead(selection)
            tied = lead <= self._rounding[columns[due]]
            certificate[due] = np.where(lead > bound[due], _CERTIFIED, np.where(tied, _TIED, _TOLERANCE))
            self._next_check[columns[due]] = np.fmax(lead, RECHECK * bound[due])
            converged = converged | (certificate == _CERTIFIED)
            finished = finished | (certificate == _CERTIFIED)
            certificate[~converged] = 0
        self._keep(columns[finished], selection, finished[due], made[finished], truncation[finished])
        self.result.converged[columns[finished]] = converged[finished]
        self.result.certificate[columns[finished]] = certificate[finished]
        return finished

    def cut_short(self, columns: Int64Array, iterations: int | Int64Array, truncation: Float64Array) -> None:
        """Select and keep what the queries have come to so far."""
        if not len(columns):
            return
        made = np.broadcast_to(iterations, columns.shape)
        self._keep(columns, self._select(columns, self._k), np.ones(len(columns), np.bool_), made, truncation)
        self.result.converged[columns] = False
        self.result.stopped[columns] = True

    def _lead(self, selection: Selection) -> Float64Array:
        """By how much rank k leads its successor; not a number where there is no rank k."""
        scores = selection.scores.astype(np.float64)
        following = np.maximum(scores[:, self._k], self._min_score)
        return np.where(selection.counts >= self._k, scores[:, self._k - 1] - following, np.nan)

    def _keep(
        self,
        columns: Int64Array,
        selection: Selection,
        rows: BoolArray,
        iterations: Int64Array,
        truncation: Float64Array,
    ) -> None:
        result, k = self.result, self._k
        result.nodes[columns] = selection.nodes[rows, :k]
        result.scores[columns] = selection.scores[rows, :k]
        result.counts[columns] = np.minimum(selection.counts[rows], k)
        result.iterations[columns] = iterations
        result.error_bound[columns] = self._bound(columns, iterations, truncation)

    def _bound(self, columns: Int64Array, iterations: Int64Array, truncation: Float64Array) -> Float64Array:
        return truncation + self._rounding[columns] + self._rounding_a_step * iterations


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
