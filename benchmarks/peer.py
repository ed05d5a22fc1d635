"""What peers.py asks of a program that it compares with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from graphs import Int32Array, SimpleGraph

RESTART = 0.5
ITERATIONS = 10
TOP_K = 100


class Peer(ABC):
    """One program with one graph loaded. Loading is not timed; `top` is.

    The constructor raises ImportError when the program is not installed.
    """

    name: ClassVar[str]
    computes: ClassVar[str]
    """Algorithm, stopping rule, precision; and what differs from personalized PageRank with dangling mass to seeds."""
    install: ClassVar[str] = ""
    goal: ClassVar[Literal["iterations", "solution"]]
    """Whether it makes the fixed number of iterations, or iterates towards the solution; decides what is compared."""
    block: ClassVar[int] = 1
    """Queries that it takes at once."""
    always_whole: ClassVar[bool] = False
    """Whether it is timed on whole blocks even where they take long."""
    most_edges: ClassVar[int | None] = None
    """Larger graphs are left out unless they are asked for."""
    too_large: ClassVar[str] = ""

    def __init__(self, graph: SimpleGraph) -> None:
        self.graph = graph

    @abstractmethod
    def scores(self, seeds: Int32Array) -> npt.NDArray[Any]:
        """Compute the vectors of a block of queries.

        Parameters
        ----------
        seeds : int32 (b, 5)
            Seed nodes of weight 1/5; b <= `block`.

        Returns
        -------
        float (b, n)
        """

    def top(self, seeds: Int32Array) -> list[Int32Array]:
        """The top 100 of any number of queries, best first, seeds excluded."""
        found: list[Int32Array] = []
        for first in range(0, len(seeds), self.block):
            block = seeds[first : first + self.block]
            found += [best(row, excluded) for row, excluded in zip(self.scores(block), block, strict=True)]
        return found

    def close(self) -> None:  # noqa: B027  # most have nothing to give up
        """Give up what outlives the object."""


def best(scores: npt.NDArray[Any], excluded: Int32Array) -> Int32Array:
    """Positions of the 100 largest scores, best first, without the excluded ones."""
    wanted = min(TOP_K + len(excluded), len(scores))
    candidates = np.argpartition(scores, -wanted)[-wanted:]
    candidates = candidates[np.argsort(-scores[candidates], kind="stable")]
    return candidates[~np.isin(candidates, excluded)][:TOP_K].astype(np.int32)
