"""Hits: which nodes other stores returned for each query, with which weight; they become the seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seedrank.errors import InputDataError
from seedrank.io.columns import bad_rows, files_of, id_type_of, null_rows, numbers_of
from seedrank.io.encoders import without_unused
from seedrank.io.hit_layout import FlatHits, HitColumns, HitLayout, find_layout, flatten, id_types
from seedrank.io.ids import IdEncoder, common_id_type, is_string
from seedrank.io.names import NameEncoder, check_name, name_dictionary
from seedrank.io.records import InputFileRecord
from seedrank.io.tables import Batch, TableInput, TableSource

__all__ = ["HitColumns", "HitTable", "read_hits"]

_LARGEST_KEY = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class HitTable:
    """All hits, sorted by (query, source, node, weight, and what follows): the order of the input cannot matter.

    Parameters
    ----------
    query_ids : pyarrow.Array, length q
        Distinct query ids, sorted; queries without hits included.
    query : ndarray, shape (h,), int32
        Position in ``query_ids``.
    node_ids : pyarrow.Array
        Distinct node ids of the hits, sorted.
    node : ndarray, shape (h,), int32
        Position in ``node_ids``; -1 where the node id is null.
    weight : ndarray, shape (h,), float64
        Finite, and not negative unless signed ones were allowed; 1 without a weight column. 0 for a hit without node
        whose weight is none.
    rank : ndarray, shape (h,), int64, or None
        Position in the list of its source, from 1; None without a rank column. 1 for a hit without node whose rank is
        none.
    retriever_weight : ndarray, shape (h,), float64, or None
        Factor of the weight, finite; 1 where it is null, None without such a column.
    fallback : ndarray, shape (h,), int32, or None
        Position in ``node_ids`` of the node that stands in for one that is null or unknown; -1 where there is none,
        None if no column of them was asked for.
    source : ndarray, shape (h,), int32, or None
        Position in ``source_names``; None without sources.
    source_names : tuple of str or None
        Sorted by code point; the null source is None and last.
    null_list : ndarray, shape (q,), bool
        Queries all of whose lists are null (always False in the long form).
    records : list of InputFileRecord
        What was read.
    """

    query_ids: pa.Array
    query: npt.NDArray[np.int32]
    node_ids: pa.Array
    node: npt.NDArray[np.int32]
    weight: npt.NDArray[np.float64]
    rank: npt.NDArray[np.int64] | None
    retriever_weight: npt.NDArray[np.float64] | None
    fallback: npt.NDArray[np.int32] | None
    source: npt.NDArray[np.int32] | None
    source_names: tuple[str | None, ...]
    null_list: npt.NDArray[np.bool_]
    records: list[InputFileRecord]

    def with_nodes(self, node: npt.NDArray[np.int32]) -> HitTable:
        """Return the hits with other nodes (positions in ``node_ids``), sorted again; nothing stands in for them."""
        order = hit_order(self.query, self.source, node, (self.weight, self.rank, self.retriever_weight))
        return replace(
            self,
            query=self.query[order],
            node=node[order],
            weight=self.weight[order],
            rank=None if self.rank is None else self.rank[order],
            retriever_weight=None if self.retriever_weight is None else self.retriever_weight[order],
            fallback=None,
            source=None if self.source is None else self.source[order],
        )

    @property
    def name(self) -> str:
        """Name the hits in messages, by their first file."""
        # Hits that a search among vectors found are read from nowhere.
        return "the hits" + (f" in {self.records[0].uri}" if self.records else "")

    def place(self, column: str) -> str:
        """Name a column of the hits in messages."""
        return f"{column} of {self.name}"


def read_hits(
    source: TableSource,
    columns: HitColumns | None = None,
    *,
    sources: Sequence[str] = (),
    signed: bool = False,
    what: str = "queries",
) -> HitTable:
    """Read and validate hits in one streaming pass.

    Parameters
    ----------
    source : TableSource
        Path, folder, glob, URL, table, Arrow stream, or a list of these; one row a hit (query_id, node_id[,
        weight][, source][, rank][, retriever_weight]), or one row a list (query_id, seeds).
    columns : HitColumns, optional
        Column names.
    sources : sequence of str, optional
        Keep only the hits of these sources; their queries all stay.
    signed : bool
        Whether weights may be negative.
    what : str
        What messages call the table.

    Raises
    ------
    InputDataError
        Missing columns or a named source that does not occur, a null query id, a null, NaN, infinite or
        negative weight or a rank below 1 of a kept hit that has a node, both forms at once, ids that cannot be
        compared.
    """
    columns = columns or HitColumns()
    table = TableInput.open(source, what=what)
    layout = find_layout(table, columns)
    if sources and layout.source is None:
        raise InputDataError(
            f"queries: sources {', '.join(map(repr, sources))} were named, but there is no column {columns.source!r} "
            f"in {files_of(table)}",
            expected="a source column in the hits",
            fix="name the column that holds the source (--hit-source-column), or leave the sources out",
        )
    # Two columns of queries: of every hit, and of every row whose list is not null (for `null_list`).
    queries = IdEncoder(id_type_of(table, columns.query_id), columns=2, what="query ids")
    id_type = common_id_type(id_types(table, layout, columns))
    # The second column is of nodes that stand in for others; it stays empty without them.
    nodes = IdEncoder(id_type, columns=2, what="node ids of the hits")
    names = NameEncoder()
    seen: set[str | None] = set()
    weights: list[npt.NDArray[np.float64]] = []
    ranks: list[npt.NDArray[np.int64]] = []
    factors: list[npt.NDArray[np.float64]] = []
    for batch in table.batches(layout.columns(columns), fields=layout.fields(columns)):
        query = _queries_of(batch, columns.query_id)
        hits = flatten(batch, layout, columns)
        place = _Place(batch, hits, query, layout, columns)
        if hits.source is not None:
            check_name(hits.source.type, "source", batch.part.place(place.home(columns.source)))
            if sources:
                hits = _only(hits, sources, seen)
                place = place._replace(hits=hits)
        weights.append(_weights(place, signed=signed))
        if hits.rank is not None:
            ranks.append(_ranks(place))
        if hits.retriever_weight is not None:
            factors.append(_retriever_weights(place))
        # Without lists, as many hits as rows are the rows.
        all_rows = not layout.nested and len(hits.parents) == len(query)
        hit_queries = query if all_rows else query.take(pa.array(hits.parents))
        queries.append(hit_queries, query.filter(pa.array(~hits.is_null)) if layout.nested else query.slice(0, 0))
        if hits.is_null.any() or not (layout.nested or all_rows):
            queries.include(query)
        nodes.append(hits.node, hits.node.slice(0, 0) if hits.fallback is None else hits.fallback)
        if hits.source is not None:
            names.append(hits.source)
    _check_sources(table, sources, seen)
    (query_codes, listed), query_ids = queries.finish()
    (node_codes, fallback_codes), node_ids = nodes.finish()
    fallback = None if layout.fallback is None else fallback_codes
    source_codes, source_names = names.finish() if layout.source is not None else (None, ())
    weight = np.concatenate(weights or [np.empty(0)])
    null_list = np.full(len(query_ids), layout.nested)
    null_list[listed] = False
    rank = np.concatenate(ranks or [np.empty(0, np.int64)]) if layout.rank is not None else None
    factor = np.concatenate(factors or [np.empty(0)]) if layout.retriever_weight is not None else None
    order = hit_order(query_codes, source_codes, node_codes, (weight, rank, factor, fallback))
    return HitTable(
        query_ids=query_ids,
        query=query_codes[order],
        node_ids=node_ids,
        node=node_codes[order],
        weight=weight[order],
        rank=None if rank is None else rank[order],
        retriever_weight=None if factor is None else factor[order],
        fallback=None if fallback is None else fallback[order],
        source=None if source_codes is None else source_codes[order],
        source_names=source_names,
        null_list=null_list,
        records=table.records,
    )


def _queries_of(batch: Batch, column: str) -> pa.Array:
    query = batch.table.column(column)
    missing = null_rows(query)
    if missing.any():
        raise InputDataError(
            bad_rows(batch, missing, column, "is null", show=batch.table.schema.names),
            expected="a query id in every row",
            fix="remove these rows, or write the id",
        )
    # A row with a thousand hits then repeats a number, not its text.
    return query.dictionary_encode() if is_string(query.type) else query


def _only(hits: FlatHits, sources: Sequence[str], seen: set[str | None]) -> FlatHits:
    """Keep the hits of the named sources; ``seen`` collects every source that occurs."""
    codes, dictionary = without_unused(name_dictionary(hits.source))
    found = dictionary.to_pylist()
    seen.update(found)
    wanted = np.array([name is not None and name in sources for name in found] + [False])
    keep = wanted[codes]
    mask = pa.array(keep)
    return FlatHits(
        parents=hits.parents[keep],
        node=hits.node.filter(mask),
        weight=None if hits.weight is None else hits.weight.filter(mask),
        source=None if hits.source is None else hits.source.filter(mask),
        rank=None if hits.rank is None else hits.rank.filter(mask),
        retriever_weight=None if hits.retriever_weight is None else hits.retriever_weight.filter(mask),
        fallback=None if hits.fallback is None else hits.fallback.filter(mask),
        is_null=hits.is_null,
    )


def _check_sources(table: TableInput, sources: Sequence[str], seen: set[str | None]) -> None:
    unknown = sorted(set(sources) - {name for name in seen if name is not None})
    if unknown:
        known = ", ".join(repr(name) for name in sorted(name for name in seen if name is not None))
        raise InputDataError(
            f"queries: no hit has the source {', '.join(map(repr, unknown))} ({files_of(table)})",
            expected=f"one of the sources that occur: {known or 'none'}",
            fix="correct the name",
        )


class _Place(NamedTuple):
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


def _weights(place: _Place, *, signed: bool) -> npt.NDArray[np.float64]:
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


def _ranks(place: _Place) -> npt.NDArray[np.int64]:
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


def _retriever_weights(place: _Place) -> npt.NDArray[np.float64]:
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


def hit_order(
    query: npt.NDArray[np.int32],
    source: npt.NDArray[np.int32] | None,
    node: npt.NDArray[np.int32],
    further: Sequence[npt.NDArray[Any] | None],
) -> npt.NDArray[np.int64]:
    """Sorting permutation by (query, source, node, and further values, the first one first)."""
    values = tuple(value for value in reversed(further) if value is not None)
    sources, nodes = _span(source), _span(node)
    if _span(query) * sources * nodes <= _LARGEST_KEY:
        # One key instead of three; a stable sort of it is linear where the input is sorted already.
        key = query.astype(np.int64) * sources + (0 if source is None else source)
        key = key * nodes + (node + np.int64(1))
        order = np.argsort(key, kind="stable")
        key = key[order]
        # Only hits that agree in all three are left to be told apart by weight and the like.
        same = key[1:] == key[:-1]
        tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
        order[tied] = order[tied][np.lexsort((*(value[order[tied]] for value in values), key[tied]))]
        return order
    keys = (node,) if source is None else (node, source)
    return np.lexsort((*values, *keys, query))


def _span(codes: npt.NDArray[np.int32] | None) -> int:
    """Number of values from -1 up to the largest code."""
    return 1 if codes is None or not len(codes) else int(codes.max()) + 2
