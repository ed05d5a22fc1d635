"""What each seed contributes to the personalized PageRank of one node."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seedrank.kernels.arrays import Float64Array, Int32Array
from seedrank.kernels.transition import Transition

ROUNDING = 4 * float(np.finfo(np.float64).eps)
"""Rounding of one product relative to the largest element; the limit amplifies it by at most 1/λ."""


@dataclass(frozen=True)
class Contributions:
    """The parts of a score.

    Attributes
    ----------
    values : float64 (seeds)
        >= 0, in the order of the seeds.
    bound : float
        Bound on the distance between ``values.sum()`` and the exact score.
    products : int
        Products with the graph that were made.
    """

    values: Float64Array
    bound: float
    products: int


def seed_contributions(
    transition: Transition,
    seeds: Int32Array,
    weights: Float64Array,
    *,
    node: int,
    restart: float,
    tolerance: float = 1e-12,
    max_products: int = 20_000,
) -> Contributions:
    """Split the score of a node into what each seed brings.

    With p(s) = λ Σ_k α^k (Pᵀ)^k s, the score is p(s)[N] / Z(s), Z(s) = Σ_v p(s)[v]. Both numerator and Z are linear
    in s, so seed i contributes ``s_i p(e_i)[N] / Z(s)``. One vector has p(e_i)[N] for all seeds at once: it is g[i]
    with g = λ e_N + α P g. Another one has Z(e_i): z = λ 1 + α P z. Under the rule ``seeds`` dangling mass is left out
    of P, and z is below 1 where it is reached; under the other rules no mass is lost and z = 1.

    Both iterations contract by α in the maximum norm, so a change of d by the last product leaves an error of at most
    (α/λ) d.

    Parameters
    ----------
    transition : Transition
    seeds : int32
        Internal nodes, each once.
    weights : float64, as long as `seeds`
        > 0, sum 1.
    node : int
        N, internal.
    restart : float
        λ, 0 < λ <= 1.
    tolerance : float
        Error of either vector at which the iteration ends.
    max_products : int
        Products after which it ends anyway; the bound says what that is worth.

    Returns
    -------
    Contributions
    """
    damping = 1.0 - restart
    start = np.zeros(transition.nodes)
    start[node] = restart
    reached, reached_error, products = _limit(transition, start, start.copy(), damping, tolerance, max_products)
    total, total_error = np.ones(transition.nodes), 0.0
    if transition.dangling == "seeds":
        constant = np.full(transition.nodes, restart)
        total, total_error, more = _limit(transition, constant, total, damping, tolerance, max_products)
        products += more
    mass = float(weights @ total[seeds])
    values = weights * reached[seeds] / mass
    error = (reached_error + float(values.sum()) * total_error) / max(mass - total_error, restart)
    return Contributions(values=values, bound=error + ROUNDING / restart, products=products)


def _limit(
    transition: Transition,
    constant: Float64Array,
    vector: Float64Array,
    damping: float,
    tolerance: float,
    max_products: int,
) -> tuple[Float64Array, float, int]:
    """Iterate x ← constant + α P x from `vector`; returns x, its error in the maximum norm, and the products made."""
    error, products = np.inf, 0
    while error > tolerance and products < max_products:
        following = constant + damping * _step(transition, vector)
        error = damping / (1.0 - damping) * float(np.abs(following - vector).max(initial=0.0))
        vector, products = following, products + 1
    return vector, error, products


def _step(transition: Transition, vector: Float64Array) -> Float64Array:
    """P x; `transition` holds the transpose of P, so entries are added up by their column."""
    result = np.zeros_like(vector)
    for rows in transition.products:
        arriving = np.repeat(vector, np.diff(rows.offsets))
        if rows.probabilities is None:
            result += transition.inverse_out_weight * np.bincount(rows.columns, arriving, minlength=len(vector))
        else:
            result += np.bincount(rows.columns, rows.probabilities * arriving, minlength=len(vector))
    if transition.dangling == "self":
        result[transition.dangling_nodes] += vector[transition.dangling_nodes]
    elif transition.dangling == "uniform":
        result[transition.dangling_nodes] += vector.mean()
    return result
