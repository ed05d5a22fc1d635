"""Exact vector search: the k nodes whose vectors point most in the direction of a query's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seedrank.kernels.arrays import BoolArray, Float64Array, Int64Array
from seedrank.kernels.rerank import cosines_of_pairs
from seedrank.kernels.runs import offsets_of, places_in_runs, run_starts
from seedrank.kernels.vectors import Vectors, product_error

QUERIES_AT_ONCE = 256
NUMBERS_AT_ONCE = 1 << 22
"""Numbers of node vectors that are multiplied with a block of queries at a time, in float32."""
MOST_NODES_AT_ONCE = 1 << 14

Multiply = Callable[[npt.NDArray[np.float32], npt.NDArray[np.float32]], npt.NDArray[np.float32]]

#: Lengths between which products in float32 neither overflow nor vanish.
_SAFE_NORMS = (1e-12, 1e12)


@dataclass(frozen=True)
class NearestVectors:
    """The vectors nearest to each of B queries, c in total.

    Attributes
    ----------
    offsets : int64 (B + 1)
        Query ``b`` has the entries ``offsets[b]`` to ``offsets[b + 1]``, best first.
    nodes : int64 (c)
        Positions among the node vectors.
    cosines : float64 (c)
        -1 to 1.
    """

    offsets: Int64Array
    nodes: Int64Array
    cosines: Float64Array


def nearest_vectors(
    queries: Vectors,
    nodes: Vectors,
    asked: Int64Array,
    *,
    k: int,
    eligible: BoolArray | None = None,
    exclude_offsets: Int64Array | None = None,
    exclude_nodes: Int64Array | None = None,
    min_score: float = -1.0,
    multiply: Multiply | None = None,
    queries_at_once: int = QUERIES_AT_ONCE,
) -> NearestVectors:
    """Find the k nodes of largest cosine for each query; ties by position. All filters apply before the cut.

    Products of blocks in float32, whose rounding has a bound, only leave out what cannot be among the k best. What is
    left has its cosine computed by `seedrank.kernels.rerank`, by which it is ranked: the result is exact, and depends
    neither on the blocks nor on the library that multiplies, to the last bit.

    Parameters
    ----------
    queries, nodes : Vectors
        Of one width. Vectors of length 0 are left out.
    asked : int64 (B)
        Positions of the queries; those of length 0 find nothing.
    k : int
        >= 1.
    eligible : bool (v), optional
        Node vectors that may be found; None: all.
    exclude_offsets, exclude_nodes : int64 (B + 1), int64, optional
        Positions of node vectors that a query must not find.
    min_score : float
        Lowest cosine that counts.
    multiply : callable, optional
        (queries (b, d), nodes (m, d)) → products (b, m), all float32, in any order of sums; None: on the CPU.
    queries_at_once : int
        Queries that are multiplied together, at most.

    Returns
    -------
    NearestVectors
    """
    searched = np.flatnonzero(nodes.norms > 0 if eligible is None else eligible & (nodes.norms > 0))
    excluded = _Excluded.of(exclude_offsets, exclude_nodes, len(asked))
    parts = [
        _search(queries, nodes, asked, np.arange(first, min(first + queries_at_once, len(asked))), searched, excluded,
                k, min_score, _on_cpu if multiply is None else multiply)
        for first in range(0, len(asked), queries_at_once)
    ]  # fmt: skip
    query = np.concatenate([np.zeros(0, np.int64), *(part.query for part in parts)])
    return NearestVectors(
        offsets=offsets_of(np.bincount(query, minlength=len(asked))),
        nodes=np.concatenate([np.zeros(0, np.int64), *(part.node for part in parts)]),
        cosines=np.concatenate([np.zeros(0), *(part.cosine for part in parts)]),
    )


@dataclass(frozen=True)
class _Excluded:
    """Pairs that must not be found, sorted by query, then by node."""

    query: Int64Array
    node: Int64Array

    @classmethod
    def of(cls, offsets: Int64Array | None, nodes: Int64Array | None, queries: int) -> _Excluded:
        if offsets is None or nodes is None:
            return cls(np.zeros(0, np.int64), np.zeros(0, np.int64))
        return cls(np.repeat(np.arange(queries), np.diff(offsets)), nodes.astype(np.int64))

    def of_queries(self, block: Int64Array) -> _Excluded:
        """Those of a range of queries."""
        first, last = np.searchsorted(self.query, (block[0], block[-1] + 1))
        return _Excluded(self.query[first:last] - block[0], self.node[first:last])


@dataclass(frozen=True)
class _Found:
    """The best so far, by query, best first."""

    query: Int64Array
    node: Int64Array
    cosine: Float64Array

    def better(self, query: Int64Array, node: Int64Array, cosine: Float64Array, k: int) -> _Found:
        """Merge with more, and keep the k best of each query."""
        query = np.concatenate((self.query, query))
        node, cosine = np.concatenate((self.node, node)), np.concatenate((self.cosine, cosine))
        ranking = np.lexsort((node, -cosine, query))
        ranking = ranking[places_in_runs(run_starts(query[ranking]), len(ranking)) < k]
        return _Found(query[ranking], node[ranking], cosine[ranking])


def _search(
    queries: Vectors,
    nodes: Vectors,
    asked: Int64Array,
    block: Int64Array,
    searched: Int64Array,
    excluded: _Excluded,
    k: int,
    min_score: float,
    multiply: Multiply,
) -> _Found:
    """Search for a block of queries, some nodes at a time."""
    found = _Found(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    block = block[queries.norms[asked[block]] > 0] if len(block) else block
    if not len(block) or not len(searched):
        return found
    positions = asked[block]
    directions = queries.units(positions).astype(np.float32)
    banned = excluded.of_queries(np.array([block[0], block[-1]]))
    row_of = np.full(int(block[-1] - block[0]) + 1, -1)
    row_of[block - block[0]] = np.arange(len(block))
    error = product_error(nodes.width)
    at_least = np.full(len(block), min_score)
    step = min(max(NUMBERS_AT_ONCE // max(nodes.width, 1), 1), MOST_NODES_AT_ONCE)
    for first in range(0, len(searched), step):
        here = searched[first : first + step]
        products = multiply(directions, _directions(nodes, here))
        _scale(products, nodes, here)
        column = np.searchsorted(here, banned.node).clip(max=len(here) - 1)
        hit = (here[column] == banned.node) & (row_of[banned.query] >= 0)
        products[row_of[banned.query[hit]], column[hit]] = -np.inf
        query, chosen = _promising(products, at_least - error, k, 2 * error)
        if not len(query):
            continue
        cosine = cosines_of_pairs(queries, nodes, positions[query], here[chosen])
        enough = cosine >= min_score
        found = found.better(query[enough], here[chosen][enough], cosine[enough], k)
        counts = np.bincount(found.query, minlength=len(block))
        full = np.flatnonzero(counts == k)
        at_least[full] = found.cosine[np.cumsum(counts)[full] - 1]
    return _Found(block[found.query], found.node, found.cosine)


def _on_cpu(queries: npt.NDArray[np.float32], nodes: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    products: npt.NDArray[np.float32] = queries @ nodes.T
    return products


def _promising(
    products: npt.NDArray[np.float32], floor: Float64Array, k: int, margin: float
) -> tuple[Int64Array, Int64Array]:
    """Row and column of the products that may be among the k best of their row and reach the floor."""
    wanted = products >= floor[:, np.newaxis]
    crowded = np.flatnonzero(np.count_nonzero(wanted, axis=1) > k)
    if len(crowded):
        kth = np.partition(products[crowded], products.shape[1] - k, axis=1)[:, products.shape[1] - k]
        wanted[crowded] &= products[crowded] >= (kth.astype(np.float64) - margin)[:, np.newaxis]
    row, column = np.nonzero(wanted)
    return row, column


def _safe(nodes: Vectors, here: Int64Array) -> bool:
    norms = nodes.norms[here]
    return bool(norms.min() >= _SAFE_NORMS[0] and norms.max() <= _SAFE_NORMS[1])


def _directions(nodes: Vectors, here: Int64Array) -> npt.NDArray[np.float32]:
    """Vectors of some nodes in float32: as they are where lengths allow it, else of length 1."""
    if not _safe(nodes, here):
        return nodes.units(here).astype(np.float32)
    places = nodes.places[here]
    # Rows that follow each other are read as they lie.
    together = len(places) == places[-1] - places[0] + 1 and bool((np.diff(places) == 1).all())
    rows = nodes.rows[places[0] : places[-1] + 1] if together else nodes.rows[places]
    return np.asarray(rows, dtype=np.float32)


def _scale(products: npt.NDArray[np.float32], nodes: Vectors, here: Int64Array) -> None:
    """Divide products by the lengths of the nodes' vectors, where `_directions` left them."""
    if _safe(nodes, here):
        products *= (1.0 / nodes.norms[here]).astype(np.float32)
