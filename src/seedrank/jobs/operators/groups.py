"""Groups of nodes in a job: a method's ranking of nodes as one of groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seedrank.config import ScoreOptions
from seedrank.io.candidates import members_type
from seedrank.io.records import BackendRecord
from seedrank.jobs.operators.outcome import Outcome, Runner
from seedrank.jobs.queries.query_set import QuerySet
from seedrank.kernels.collapse import collapse
from seedrank.kernels.runs import gather, offsets_of

#: Bytes of a node while all nodes of a query are ranked, as groups need them.
RANKED_NODE_BYTES = 64


@dataclass(frozen=True)
class Members:
    """The members of g groups, best first: int64 (g + 1), nodes and their scores."""

    offsets: npt.NDArray[np.int64]
    nodes: npt.NDArray[np.int32]
    scores: npt.NDArray[np.floating[Any]]

    def take(self, groups: npt.NDArray[np.int64]) -> Members:
        """Members of some groups, in the order given."""
        offsets, entries = gather(self.offsets, groups)
        return Members(offsets, self.nodes[entries], self.scores[entries])

    @classmethod
    def joined(cls, parts: Sequence[Members]) -> Members:
        """Members of all groups of some parts, part after part."""
        sizes = np.concatenate([np.diff(part.offsets) for part in parts])
        return cls(
            offsets=offsets_of(sizes),
            nodes=np.concatenate([part.nodes for part in parts]),
            scores=np.concatenate([part.scores for part in parts]),
        )


def group_columns(query_set: QuerySet, nodes: npt.NDArray[np.int32], members: Members | None) -> dict[str, pa.Array]:
    """Return the columns about groups, of candidates that are the best members of theirs; none without groups."""
    if members is None:
        return {}
    assert query_set.groups is not None
    scores = pa.array(members.scores)
    kind = members_type(query_set.space.id_type, scores.type)
    rows = pa.StructArray.from_arrays([query_set.space.ids(members.nodes), scores], fields=list(kind.value_type))
    return {
        "group_id": query_set.groups.keys_of(nodes),
        "members": pa.ListArray.from_arrays(pa.array(members.offsets.astype(np.int32)), rows, type=kind),
    }


@dataclass(frozen=True)
class GroupingRunner:
    """A method whose ranking of all nodes becomes one of groups; see `seedrank.jobs.operators.outcome.Runner`."""

    method: Runner
    query_set: QuerySet
    options: ScoreOptions

    @property
    def backend(self) -> BackendRecord:
        """Who computes."""
        return self.method.backend

    def on(self, query_set: QuerySet) -> GroupingRunner:
        """Return the same for other queries."""
        return replace(self, method=self.method.on(query_set), query_set=query_set)

    def score(self, queries: npt.NDArray[np.int64]) -> Outcome:
        """Score some queries together."""
        return grouped(self.method.score(queries), self.query_set, k=self.options.top_k)


def grouped(outcome: Outcome, query_set: QuerySet, *, k: int) -> Outcome:
    """Collapse every row of an outcome to its k best groups; a candidate is then the best member of its group."""
    assert query_set.groups is not None
    found = collapse(outcome.counts, query_set.groups.codes[outcome.nodes], k=k)
    best = pa.array(found.best)
    nodes = outcome.nodes[found.best]
    members = Members(found.offsets, outcome.nodes[found.members], outcome.scores[found.members])
    return replace(
        outcome,
        counts=found.counts,
        nodes=nodes,
        scores=outcome.scores[found.best],
        candidate_columns={name: column.take(best) for name, column in outcome.candidate_columns.items()}
        | group_columns(query_set, nodes, members),
    )
