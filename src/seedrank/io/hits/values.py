"""The numbers of hits, checked: weights, given positions, retriever weights."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seedrank.errors import InputDataError
from seedrank.io.arrow.columns import bad_rows, null_rows, numbers_of
from seedrank.io.hits.layout import FlatHits, HitColumns, HitLayout
from seedrank.io.tables import Batch


class HitPlace(NamedTuple):
    """The hits of a batch, and where they stand in it."""

    batch: Batch
    hits: FlatHits
    query: pa.Array
    layout: HitLayout
    columns: HitColumns

    def refuse(self, bad: npt.NDArray[np.bool_], values: pa.Array, home: str, complaint: str, expected: str) -> None:
        """Raise if a hit is bad, naming the first ones by query, node and value."""
        if not bad.any():
            return
        shown = pa.RecordBatch.from_arrays(
            [self.query.take(pa.array(self.hits.parents)), self.hits.node, values],
            names=[self.columns.query_id, self.columns.node_id, home],
        )
        raise InputDataError(
            bad_rows(
                self.batch,
                bad,
                self.home(home),
                complaint,
                show=shown.schema.names,
                hits=shown,
                parents=self.hits.parents,
            ),
            expected=expected,
            fix="correct or remove these hits",
        )

    def home(self, name: str) -> str:
        """Column of the table that a column of the hits is in."""
        where = {
            self.columns.weight: self.layout.weight,
            self.columns.source: self.layout.source,
            self.columns.rank: self.layout.rank,
            self.columns.retriever_weight: self.layout.retriever_weight,
        }
        return self.columns.seeds if where[name] == "element" else name


def _nodeless(hits: FlatHits) -> npt.NDArray[np.bool_]:
    """Mask of the hits without any node id."""
    missing = null_rows(hits.node)
    return missing if hits.fallback is None else missing & null_rows(hits.fallback)


def weights_of(place: HitPlace, *, signed: bool) -> npt.NDArray[np.float64]:
    """Return the weights, 1 where there is no such column.

    Raises
    ------
    InputDataError
        A weight of a hit with a node that is null, NaN, infinite, or, unless ``signed``, negative.
    """
    hits, name = place.hits, place.columns.weight
    if hits.weight is None:
        return np.ones(len(hits.parents))
    array = numbers_of(hits.weight, place.batch.part.place(place.home(name)))
    weight = np.array(array.fill_null(np.nan).to_numpy(zero_copy_only=False))
    invalid = ~np.isfinite(weight) if signed else ~((weight >= 0) & np.isfinite(weight))
    if not invalid.any():
        return weight
    # A hit without a node (an outer join leaves such rows) is dropped later; its weight decides nothing.
    place.refuse(
        invalid & ~_nodeless(hits),
        hits.weight,
        name,
        f"has a weight that is null, {'' if signed else 'negative, '}NaN or infinite",
        f"weights that are finite{'' if signed else ' and not negative'}",
    )
    weight[invalid] = 0.0
    return weight


def ranks_of(place: HitPlace) -> npt.NDArray[np.int64]:
    """Return the given positions.

    Raises
    ------
    InputDataError
        One of a hit with a node that is null or no whole number from 1 up.
    """
    hits, name = place.hits, place.columns.rank
    assert hits.rank is not None
    assert name is not None
    array = numbers_of(hits.rank, place.batch.part.place(place.home(name)), what="rank")
    rank = np.array(array.fill_null(np.nan).to_numpy(zero_copy_only=False))
    # 2^53: up to here every whole number is a float64.
    invalid = ~((rank >= 1) & (rank <= 2**53) & (rank == np.floor(rank)))
    place.refuse(
        invalid & ~_nodeless(hits),
        hits.rank,
        name,
        "has a rank that is null or no whole number from 1 up",
        "positions from 1; without the column they follow from the weights",
    )
    rank[invalid] = 1
    return rank.astype(np.int64)


def retriever_weights_of(place: HitPlace) -> npt.NDArray[np.float64]:
    """Return the retriever weights, 1 where they are null.

    Raises
    ------
    InputDataError
        One of a hit with a node that is NaN or infinite.
    """
    hits, name = place.hits, place.columns.retriever_weight
    assert hits.retriever_weight is not None
    assert name is not None
    array = numbers_of(hits.retriever_weight, place.batch.part.place(place.home(name)))
    factor = np.array(array.fill_null(1.0).to_numpy(zero_copy_only=False))
    invalid = ~np.isfinite(factor)
    place.refuse(
        invalid & ~_nodeless(hits),
        hits.retriever_weight,
        name,
        "has a retriever weight that is NaN or infinite",
        "finite numbers; null means 1",
    )
    factor[invalid] = 1.0
    return factor
