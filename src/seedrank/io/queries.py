"""Hits: which nodes other stores returned for each query, with which weight; they become the seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seedrank.errors import InputDataError
from seedrank.io.arrow.columns import bad_rows, files_of, id_type_of, null_rows
from seedrank.io.edge_list.encoders import without_unused
from seedrank.io.hits.layout import FlatHits, HitColumns, HitLayout, find_layout, flatten, id_types
from seedrank.io.hits.order import hit_order
from seedrank.io.hits.values import HitPlace, ranks_of, retriever_weights_of, weights_of
from seedrank.io.ids import IdEncoder, common_id_type, is_string
from seedrank.io.names import NameEncoder, check_name, name_dictionary
from seedrank.io.records import InputFileRecord
from seedrank.io.tables import Batch, TableInput, TableSource

__all__ = ["HitColumns", "HitTable", "read_hits"]

SinkT = TypeVar("SinkT", bound="HitSink")


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
        return sorted_hits(replace(self, node=node, fallback=None))

    @property
    def name(self) -> str:
        """Name the hits in messages, by their first file."""
        # Hits that a search among vectors found are read from nowhere.
        return "the hits" + (f" in {self.records[0].uri}" if self.records else "")

    def place(self, column: str) -> str:
        """Name a column of the hits in messages."""
        return f"{column} of {self.name}"


class HitForm(NamedTuple):
    """What is known of hits before their rows are read: the columns, and the types of query and node ids."""

    layout: HitLayout
    query_type: pa.DataType
    node_type: pa.DataType


class CheckedHits(NamedTuple):
    """The hits of one batch of rows, checked.

    Attributes
    ----------
    rows : query id of every row, a dictionary if it is a string.
    hits : the hits of the rows, but for their numbers.
    weight : float64 (h,)
    rank, retriever_weight : int64 (h,), float64 (h,); None without such a column.
    """

    rows: pa.Array
    hits: FlatHits
    weight: npt.NDArray[np.float64]
    rank: npt.NDArray[np.int64] | None
    retriever_weight: npt.NDArray[np.float64] | None

    @property
    def every_row(self) -> bool:
        """Whether the hits are the rows: they have no lists then, and none is left out."""
        parents = self.hits.parents
        return len(parents) == len(self.rows) and bool((parents == np.arange(len(parents))).all())

    @property
    def queries(self) -> pa.Array:
        """Query id of every hit."""
        return self.rows if self.every_row else self.rows.take(pa.array(self.hits.parents))


class HitSink(Protocol):
    """Takes hits batch by batch."""

    def take(self, found: CheckedHits) -> None:
        """Take the hits of the next rows."""


def scan_hits(
    source: TableSource,
    columns: HitColumns,
    make_sink: Callable[[HitForm], SinkT],
    *,
    sources: Sequence[str],
    signed: bool,
    what: str,
) -> tuple[SinkT, list[InputFileRecord]]:
    """Read and validate hits in one streaming pass; see `read_hits` for the arguments and what is refused.

    Returns the sink, which has taken every batch, and what was read.
    """
    table = TableInput.open(source, what=what)
    layout = find_layout(table, columns)
    if sources and layout.source is None:
        raise InputDataError(
            f"queries: sources {', '.join(map(repr, sources))} were named, but there is no column {columns.source!r} "
            f"in {files_of(table)}",
            expected="a source column in the hits",
            fix="name the column that holds the source (--hit-source-column), or leave the sources out",
        )
    query_type = id_type_of(table, columns.query_id)
    sink = make_sink(HitForm(layout, query_type, common_id_type(id_types(table, layout, columns))))
    seen: set[str | None] = set()
    for batch in table.batches(layout.columns(columns), fields=layout.fields(columns)):
        query = _queries_of(batch, columns.query_id)
        hits = flatten(batch, layout, columns)
        place = HitPlace(batch, hits, query, layout, columns)
        if hits.source is not None:
            check_name(hits.source.type, "source", batch.part.place(place.home(columns.source)))
            if sources:
                hits = _only(hits, sources, seen)
                place = place._replace(hits=hits)
        weight = weights_of(place, signed=signed)
        rank = None if hits.rank is None else ranks_of(place)
        factor = None if hits.retriever_weight is None else retriever_weights_of(place)
        sink.take(CheckedHits(query, hits, weight, rank, factor))
    _check_sources(table, sources, seen)
    return sink, table.records


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
    collected, records = scan_hits(
        source, columns or HitColumns(), _Collected, sources=sources, signed=signed, what=what
    )
    return collected.table(records)


class _Collected:
    """All hits in memory."""

    def __init__(self, form: HitForm) -> None:
        self._form = form
        # Two columns of queries: of every hit, and of every row whose list is not null (for `null_list`).
        self._queries = IdEncoder(form.query_type, columns=2, what="query ids")
        # The second column is of nodes that stand in for others; it stays empty without them.
        self._nodes = IdEncoder(form.node_type, columns=2, what="node ids of the hits")
        self._names = NameEncoder()
        self._weights: list[npt.NDArray[np.float64]] = []
        self._ranks: list[npt.NDArray[np.int64]] = []
        self._factors: list[npt.NDArray[np.float64]] = []

    def take(self, found: CheckedHits) -> None:
        """See `HitSink`."""
        rows, hits, nested = found.rows, found.hits, self._form.layout.nested
        self._queries.append(found.queries, rows.filter(pa.array(~hits.is_null)) if nested else rows.slice(0, 0))
        if hits.is_null.any() or not (nested or len(hits.parents) == len(rows)):
            self._queries.include(rows)
        self._nodes.append(hits.node, hits.node.slice(0, 0) if hits.fallback is None else hits.fallback)
        if hits.source is not None:
            self._names.append(hits.source)
        self._weights.append(found.weight)
        if found.rank is not None:
            self._ranks.append(found.rank)
        if found.retriever_weight is not None:
            self._factors.append(found.retriever_weight)

    def table(self, records: list[InputFileRecord]) -> HitTable:
        """Sort what was taken."""
        layout = self._form.layout
        (query_codes, listed), query_ids = self._queries.finish()
        (node_codes, fallback_codes), node_ids = self._nodes.finish()
        source_codes, source_names = self._names.finish() if layout.source is not None else (None, ())
        null_list = np.full(len(query_ids), layout.nested)
        null_list[listed] = False
        return sorted_hits(
            HitTable(
                query_ids=query_ids,
                query=query_codes,
                node_ids=node_ids,
                node=node_codes,
                weight=np.concatenate(self._weights or [np.empty(0)]),
                rank=None if layout.rank is None else np.concatenate(self._ranks or [np.empty(0, np.int64)]),
                retriever_weight=None
                if layout.retriever_weight is None
                else np.concatenate(self._factors or [np.empty(0)]),
                fallback=None if layout.fallback is None else fallback_codes,
                source=source_codes,
                source_names=source_names,
                null_list=null_list,
                records=records,
            )
        )


def sorted_hits(hits: HitTable) -> HitTable:
    """Bring hits into the order that a `HitTable` promises."""
    values = (hits.weight, hits.rank, hits.retriever_weight, hits.fallback)
    order = hit_order(hits.query, hits.source, hits.node, values)
    return replace(
        hits,
        query=hits.query[order],
        node=hits.node[order],
        weight=hits.weight[order],
        rank=None if hits.rank is None else hits.rank[order],
        retriever_weight=None if hits.retriever_weight is None else hits.retriever_weight[order],
        fallback=None if hits.fallback is None else hits.fallback[order],
        source=None if hits.source is None else hits.source[order],
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
