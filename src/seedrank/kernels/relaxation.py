"""Whether over-relaxation pays on a graph, and with which factor: decided once, by a probe of fixed seeds."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from seedrank.kernels.arrays import Float64Array, Int32Array
from seedrank.kernels.backend import Backend, QueryBlock, RelaxingBackend
from seedrank.kernels.backends.block_result import Stop
from seedrank.kernels.streamed_transition import StreamedTransition
from seedrank.kernels.transition import Transition

PROBE_QUERIES = 16
PROBE_STEPS = 8

CERTIFIED_EARLIER = 10.0
"""Times the tolerance: where the set of the k best is usually certain, so that verification begins sooner."""

SAFETY = 1.35
"""Sweeps before the first verification, over what the asymptotic rate ω - 1 would need (measured on real graphs)."""


@dataclass(frozen=True)
class Relaxation:
    """How a block is relaxed: the schedule is fixed, so that no query depends on the others of its block.

    Attributes
    ----------
    factor : float
        ω, 1 <= ω < 2.
    first_sweeps, further_sweeps : int
        Sweeps before the first verifying step, and between further ones.
    """

    factor: float
    first_sweeps: int
    further_sweeps: int = 2


def choose_relaxation(
    backend: Backend,
    transition: Transition | StreamedTransition,
    *,
    restart: float,
    tolerance: float,
    max_iterations: int,
    symmetric: bool,
    stop: Stop = "tolerance",
) -> Relaxation | None:
    """Decide between plain steps and over-relaxed sweeps for a loaded graph.

    ω = 2 / (1 + √(1 - α²)), the optimum for a symmetric Jacobi iteration of spectral radius α (Young 1950). On directed
    graphs any ω < 2 / (1 + α) is safe; beyond, the sweeps may diverge, so ω stays at four fifths of the way and the
    driver falls back to steps where they do not help. Steps win on graphs that mix fast: a probe of `PROBE_STEPS` steps
    from `PROBE_QUERIES` evenly spaced nodes measures by how much the difference shrinks a step. The decision depends on
    the graph and the options only.

    Parameters
    ----------
    backend : Backend
        With the transition loaded; any block in it is given up.
    transition : Transition or StreamedTransition
    restart, tolerance, max_iterations, stop
        As for `seedrank.kernels.ppr.personalized_pagerank`.
    symmetric : bool
        Whether edges are followed both ways.

    Returns
    -------
    Relaxation or None
        None: plain steps, also where the backend cannot relax, a number of steps is fixed, or it is too small.
    """
    damping = 1.0 - restart
    if (
        not isinstance(backend, RelaxingBackend)
        or tolerance <= 0
        or damping <= 0
        or transition.dangling == "uniform"
        or len(transition.dangling_nodes) == transition.nodes
    ):
        return None
    best = 2.0 / (1.0 + math.sqrt(1.0 - damping**2))
    factor = best if symmetric else max(1.0 + 0.8 * (best - 1.0), min(best, 1.99 / (1.0 + damping)))
    expected = tolerance * CERTIFIED_EARLIER if stop == "top-k" else tolerance
    goal = min(expected * restart / damping, 0.5)
    if goal < 1e-300 or best - 1.0 < 1e-9:
        return None
    first = max(2, math.ceil(SAFETY * math.log(goal) / math.log(best - 1.0)))
    if max_iterations < first + 5:
        return None
    passing = np.flatnonzero(transition.out_weight > 0).astype(np.int32)
    count = min(PROBE_QUERIES, len(passing))
    seeds = passing[np.linspace(0, len(passing) - 1, count).astype(np.int64)]
    needed = _steps_needed(backend, np.unique(seeds), restart=restart, goal=goal)
    return Relaxation(factor, first) if needed > first + 3 else None


def _steps_needed(backend: Backend, seeds: Int32Array, *, restart: float, goal: float) -> float:
    """Steps after which three quarters of the probe's queries would have a difference of at most `goal`."""
    count = len(seeds)
    offsets = np.arange(count + 1, dtype=np.int64)
    none = np.zeros(count + 1, dtype=np.int64)
    backend.start(QueryBlock(offsets, seeds, np.ones(count), none, seeds[:0]), restart=restart)
    differences: list[Float64Array] = [backend.step().difference for _ in range(PROBE_STEPS)]
    last, before = differences[-1], differences[-3]
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = np.sqrt(last / before)
        more = np.log(goal / last) / np.log(rate)
    # Where nothing shrinks (rounding, or mass that goes in circles), α is all that can be relied on.
    more = np.where((rate < 1) & np.isfinite(more), more, math.log(goal) / math.log(1.0 - restart))
    return PROBE_STEPS + float(np.quantile(np.where(last <= goal, 0.0, more), 0.75))
