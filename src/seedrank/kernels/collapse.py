"""A ranking of nodes as a ranking of groups of them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from seedrank.kernels.arrays import Int32Array, Int64Array
from seedrank.kernels.runs import offsets_of


@dataclass(frozen=True)
class Collapsed:
    """Groups of B rankings, g in total, query after query, best first.

    Attributes
    ----------
    counts : int32 (B)
        Groups of each ranking.
    best : int64 (g)
        Row of the best member.
    offsets : int64 (g + 1)
        Group i has the rows ``members[offsets[i]]`` to ``members[offsets[i + 1]]``.
    members : int64
        Rows of the members, within a group in the order of the ranking.
    """

    counts: Int32Array
    best: Int64Array
    offsets: Int64Array
    members: Int64Array


def collapse(counts: Int32Array, groups: Int32Array, *, k: int) -> Collapsed:
    """Rank groups by their best member, and keep the k best of every ranking.

    Parameters
    ----------
    counts : int32 (B)
        Rows of each ranking; c in total, ranking after ranking, best first.
    groups : int32 (c)
        Group of each row, >= 0; -1 is a group of its own.
    k : int
        >= 1.

    Returns
    -------
    Collapsed
    """
    bounds = offsets_of(counts)
    named = int(groups.max(initial=-1)) + 1
    scratch = np.empty(named + int(counts.max(initial=0)), dtype=np.int64)
    found = [_collapsed(groups[first:last], named, scratch, k) for first, last in itertools.pairwise(bounds)]
    nothing = np.zeros(0, dtype=np.int64)
    sizes = np.concatenate([nothing, *(sizes for _, sizes, _ in found)])
    return Collapsed(
        counts=np.array([len(best) for best, _, _ in found], dtype=np.int32),
        best=np.concatenate([nothing, *(best + first for (best, _, _), first in zip(found, bounds, strict=False))]),
        offsets=offsets_of(sizes),
        members=np.concatenate([nothing, *(rows + first for (_, _, rows), first in zip(found, bounds, strict=False))]),
    )


def _collapsed(
    groups: Int32Array, named: int, scratch: Int64Array, k: int
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Best rows, sizes and member rows of the k best groups of one ranking, in time linear in its rows.

    Groups are numbered below `named`; `scratch` holds a number for each of them and for every row, whatever they are.
    """
    row = np.arange(len(groups))
    own = np.where(groups >= 0, groups, named + row)
    # Of several values for one place the last one stays, here that of the first row.
    scratch[own[::-1]] = row[::-1]
    first = scratch[own]
    leads = first == row
    best = np.flatnonzero(leads)[:k]
    members = np.flatnonzero(first <= best[-1]) if len(best) else best
    rank = (np.cumsum(leads) - 1)[first[members]]
    return best, np.bincount(rank, minlength=len(best)), members[np.argsort(rank, kind="stable")]
