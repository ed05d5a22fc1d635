"""``--rerank vectors``: the first candidates of a method in the order of their cosines with the query."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seedrank.config import ScoreOptions
from seedrank.io.records import BackendRecord
from seedrank.jobs.operators.outcome import Outcome, Runner
from seedrank.jobs.queries.query_set import QuerySet
from seedrank.kernels.rerank import cosines_of_pairs


def deep_options(options: ScoreOptions) -> ScoreOptions:
    """Return the options under which a method finds what is ranked again: as many candidates as that takes."""
    if options.rerank == "none":
        return options
    return options.model_copy(update={"top_k": max(options.top_k, options.rerank_depth)})


@dataclass(frozen=True)
class RerankingRunner:
    """A method whose first candidates are ranked again; see `seedrank.jobs.operators.outcome.Runner`.

    The first ``rerank_depth`` candidates of a query that have a vector come first, by falling cosine, ties by tie rank;
    those without one follow in the order of the method, then all that are beyond the depth. ``channel`` is the method,
    started with `deep_options`.
    """

    backend: BackendRecord
    channel: Runner
    query_set: QuerySet
    options: ScoreOptions

    def on(self, query_set: QuerySet) -> RerankingRunner:
        """Return the same for other queries."""
        return replace(self, channel=self.channel.on(query_set), query_set=query_set)

    def score(self, queries: npt.NDArray[np.int64]) -> Outcome:
        """Score some queries together."""
        found, order = self.channel.score(queries), self.query_set.space.order
        rows = len(found.counts)
        row = np.repeat(np.arange(rows), found.counts)
        place = np.arange(len(row)) - np.repeat(np.cumsum(found.counts) - found.counts, found.counts)
        # Under several restart probabilities a query has a row for each.
        asked = self._vector_of_query[queries].repeat(rows // max(len(queries), 1))[row]
        node = self._vector_of_node[found.nodes]
        within = place < self.options.rerank_depth
        compared = within & (asked >= 0) & (node >= 0)
        cosine = np.zeros(len(row))
        cosine[compared] = self._cosines(asked[compared], node[compared])
        ties = np.where(compared, order[found.nodes], place)
        ranking = np.lexsort((ties, -cosine, np.where(compared, 0, np.where(within, 1, 2)), row))
        counts = np.minimum(found.counts, self.options.top_k)
        ranking = ranking[place < self.options.top_k]
        without = np.bincount(row[within & ~compared], minlength=rows).astype(np.int32)
        values = pa.array(cosine[ranking].astype(self.options.precision), mask=~compared[ranking])
        chosen = pa.array(ranking)
        return Outcome(
            status=found.status,
            counts=counts,
            nodes=found.nodes[ranking],
            scores=found.scores[ranking],
            query_columns={**found.query_columns, "without_vector": pa.array(without)},
            candidate_columns={
                **{name: column.take(chosen) for name, column in found.candidate_columns.items()},
                "cosine": values,
            },
        )

    def _cosines(self, asked: npt.NDArray[np.int64], node: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        vectors = self.query_set.vectors
        assert vectors is not None
        return cosines_of_pairs(vectors.queries.vectors, vectors.nodes.vectors, asked, node)

    @cached_property
    def _vector_of_query(self) -> npt.NDArray[np.int64]:
        """Position of the vector of each query; -1 without."""
        vectors = self.query_set.vectors
        assert vectors is not None
        return vectors.queries.usable_at(self.query_set.query_ids, "the queries")

    @cached_property
    def _vector_of_node(self) -> npt.NDArray[np.int64]:
        """Position of the vector of each node that a candidate may be; -1 without."""
        vectors, space = self.query_set.vectors, self.query_set.space
        assert vectors is not None
        of_node = vectors.nodes.placed(space.store).of_node
        if not len(space.foreign):
            return of_node
        foreign = vectors.nodes.usable_at(space.foreign, "node_id of the hits")
        return np.concatenate((of_node, foreign))
