"""The one shape in which every method hands over a block of queries, and what it says about itself before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seedrank.config import ScoreOptions
from seedrank.io.records import BackendRecord
from seedrank.jobs.queries.query_set import QuerySet
from seedrank.kernels.backends.resolver import BackendDecision


@dataclass(frozen=True)
class Outcome:
    """What a method found for the B queries of a block; under several restart probabilities each has a row for each.

    Attributes
    ----------
    status : B values of the column ``status``.
    counts : int32 (B,), candidates of each query; c in total.
    nodes : int32 (c,), internal nodes, query after query, best first.
    scores : float32 or float64 (c,).
    query_columns : further columns of ``queries`` by name, B values each.
    candidate_columns : further columns of ``candidates`` by name, c values each.
    """

    status: npt.NDArray[np.object_]
    counts: npt.NDArray[np.int32]
    nodes: npt.NDArray[np.int32]
    scores: npt.NDArray[np.floating[Any]]
    query_columns: Mapping[str, pa.Array]
    candidate_columns: Mapping[str, pa.Array] = field(default_factory=dict)

    def row(self, position: int) -> Outcome:
        """Return one row alone."""
        count = int(self.counts[position])
        first = int(self.counts[:position].sum())
        return Outcome(
            status=self.status[position : position + 1],
            counts=self.counts[position : position + 1],
            nodes=self.nodes[first : first + count],
            scores=self.scores[first : first + count],
            query_columns={name: values.slice(position, 1) for name, values in self.query_columns.items()},
            candidate_columns={name: values.slice(first, count) for name, values in self.candidate_columns.items()},
        )

    @classmethod
    def too_late(cls, rows: int) -> Outcome:
        """Rows of queries that the deadline of the job left untouched."""
        return cls(
            status=np.full(rows, "timed_out", dtype=object),
            counts=np.zeros(rows, dtype=np.int32),
            nodes=np.zeros(0, dtype=np.int32),
            scores=np.zeros(0),
            query_columns={
                "budget_hit": pa.repeat(pa.scalar("deadline_s"), rows),
                "truncated": pa.repeat(pa.scalar(True), rows),
            },
        )


class Runner(Protocol):
    """A method that is ready to score: graph loaded, block size fixed."""

    @property
    def backend(self) -> BackendRecord:
        """Who computes, why, and how many queries at a time: what ``run.json`` records."""
        ...

    def on(self, query_set: QuerySet) -> Runner:
        """Return the same method, as it was loaded, for other queries on the same graph under the same options."""
        ...

    def score(self, queries: npt.NDArray[np.int64]) -> Outcome:
        """Score some queries that have valid seeds, at most ``backend.block_size``, by ascending position."""
        ...


@runtime_checkable
class OverlappingRunner(Runner, Protocol):
    """A method that computes a block in two parts: on a device, and then rows of what came back, on the host."""

    @property
    def overlaps(self) -> bool:
        """Whether a device computes beside the host, and nobody counts the time of single blocks."""
        ...

    def compute(self, queries: npt.NDArray[np.int64], meanwhile: Callable[[], None] | None) -> Callable[[], Outcome]:
        """Do what `score` does, but for the rows, which the callable makes that is returned.

        ``meanwhile`` is called at most once, while a device computes.
        """
        ...


@dataclass(frozen=True)
class Requirements:
    """What a block takes, known before a graph is loaded.

    Attributes
    ----------
    decision : who computes, and why.
    bytes_per_query : memory of one query of a block.
    stored_columns : columns in memory of a block of so many queries.
    widest : most queries of a block.
    """

    decision: BackendDecision
    bytes_per_query: int
    stored_columns: Callable[[int], int]
    widest: int

    def block_bytes(self, width: int) -> int:
        """Memory of a block of so many queries."""
        return self.stored_columns(width) * self.bytes_per_query

    def record(self, options: ScoreOptions, *, solver: str, width: int, budget: int) -> BackendRecord:
        """What ``run.json`` says of who computes, with blocks of so many queries planned within a budget in bytes."""
        return BackendRecord(
            name=self.decision.name,
            requested=self.decision.requested,
            reason=self.decision.reason,
            precision=options.precision,
            solver=solver,
            block_size=width,
            bytes_per_query=self.bytes_per_query,
            block_bytes=self.block_bytes(width),
            memory_budget_bytes=budget,
        )
