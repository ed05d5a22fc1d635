"""Hits of many queries, in files by segment: read once, checked, and put aside, so that one segment is in memory.

A segment is a fixed number of consecutive queries. Kept in memory for all of them are the sorted distinct query ids (8
bytes an integer, the text of strings) and a byte each; everything of the hits is in one file a segment, and read back
as the `HitTable` that these queries alone would give, with the names of sources and the types of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.ipc

from seedrank.errors import InputDataError
from seedrank.io.edge_list.encoders import without_unused
from seedrank.io.hits.fingerprints import HitFingerprint, UInt64Array, bits_of, hashed_ids, hashed_names
from seedrank.io.ids import IdEncoder, match_ids
from seedrank.io.names import name_dictionary
from seedrank.io.queries import CheckedHits, HitColumns, HitForm, HitTable, scan_hits, sorted_hits
from seedrank.io.records import InputFileRecord, InputRecord
from seedrank.io.storage.files import storage_errors
from seedrank.io.tables import TableSource

#: Files that are open at a time.
MOST_SEGMENTS = 128


@dataclass(frozen=True)
class StagedHits:
    """Hits of many queries, in files.

    Attributes
    ----------
    folder : of the files; they are whoever's who made it.
    query_ids : all distinct query ids, sorted; some may have no hit.
    size : queries of a segment.
    hits : how many hits there are.
    record : what was read, and what identifies its content.
    """

    folder: Path
    query_ids: pa.Array
    size: int
    hits: int
    record: InputRecord
    _form: HitForm
    _names: tuple[str | None, ...]
    _name_order: npt.NDArray[np.int32]
    _null_list: npt.NDArray[np.bool_]
    _places: npt.NDArray[np.int32]

    def load(self, first: int, last: int) -> HitTable:
        """Return the hits of the queries ``first`` … ``last - 1``, which are one segment, or none.

        Raises
        ------
        StorageError
            Its file cannot be read.
        """
        layout = self._form.layout
        nodes = IdEncoder(self._form.node_type, columns=2, what="node ids of the hits")
        table = _schema(self._form).empty_table()
        if last > first:
            file = _file(self.folder, first // self.size)
            with storage_errors(f"reading {file}"), pa.OSFile(str(file)) as stream:
                table = pa.ipc.open_stream(stream).read_all()
        for batch in table.to_batches():
            node = batch.column("node")
            nodes.append(node, batch.column("fallback") if layout.fallback is not None else node.slice(0, 0))
        (node_codes, fallback), node_ids = nodes.finish()
        own = slice(*np.searchsorted(self._places, [first, last]))
        null_list = np.zeros(last - first, dtype=np.bool_)
        null_list[self._places[own] - first] = self._null_list[own]
        return sorted_hits(
            HitTable(
                query_ids=self.query_ids.slice(first, last - first),
                query=(self._places[_numbers(table, "query")] - first).astype(np.int32),
                node_ids=node_ids,
                node=node_codes,
                weight=_numbers(table, "weight"),
                rank=None if layout.rank is None else _numbers(table, "rank"),
                retriever_weight=None if layout.retriever_weight is None else _numbers(table, "retriever_weight"),
                fallback=None if layout.fallback is None else fallback,
                source=None if layout.source is None else self._name_order[_numbers(table, "source")],
                source_names=self._names,
                null_list=null_list,
                records=self.record.files,
            )
        )


def stage_hits(
    source: TableSource,
    columns: HitColumns,
    folder: Path,
    *,
    query_ids: pa.Array,
    size: int,
    wanted: range,
    every: pa.Array | None = None,
    sources: Sequence[str] = (),
    signed: bool = False,
    what: str = "queries",
) -> StagedHits:
    """Read and validate hits in one streaming pass, and write them to a file a segment.

    Parameters
    ----------
    source, columns, sources, signed, what : see `seedrank.io.queries.read_hits`; the source can be read again.
    folder : where the files are made; it exists.
    query_ids : all distinct query ids of the source, sorted, as `seedrank.io.hits.query_ids.read_query_ids` finds them.
    size : queries of a segment; at most `MOST_SEGMENTS` segments.
    wanted : positions of the queries that will be asked for; segments without any of them are read, but not written.
    every : all query ids, sorted: those of queries without a hit, too; None: there are none of these.

    Raises
    ------
    InputDataError
        What `read_hits` refuses.
    StorageError
        The files cannot be written.
    """
    with ExitStack() as files:

        def make_sink(form: HitForm) -> _Staging:
            return _Staging(form, folder, query_ids, query_ids if every is None else every, size, wanted, files)

        staging, records = scan_hits(source, columns, make_sink, sources=sources, signed=signed, what=what)
        staging.finish()
    return staging.staged(records)


class _Staging:
    """Writes hits to the files of their segments."""

    def __init__(
        self,
        form: HitForm,
        folder: Path,
        query_ids: pa.Array,
        every: pa.Array,
        size: int,
        wanted: range,
        files: ExitStack,
    ) -> None:
        self._form, self._folder, self._query_ids, self._every, self._size = form, folder, query_ids, every, size
        self._places = match_ids(query_ids.cast(every.type), every)
        self._hits = 0
        self._schema = _schema(form)
        self._names: dict[str | None, int] = {}
        self._null_list = np.full(len(query_ids), form.layout.nested)
        optional = ("rank", "retriever_weight", "source", "fallback")
        columns = [name for name in optional if getattr(form.layout, name) is not None]
        self._fingerprint = HitFingerprint(query_ids.type, form.node_type, ("weight", *columns))
        self._segments = range(wanted.start // size, -(-min(wanted.stop, len(every)) // size))
        with storage_errors(f"writing to {folder}"):
            # Files of segments without a hit are there, too.
            self._writers = {
                segment: files.enter_context(
                    pa.ipc.new_stream(files.enter_context(pa.OSFile(str(_file(folder, segment)), "wb")), self._schema)
                )
                for segment in self._segments
            }

    def take(self, found: CheckedHits) -> None:
        """See `seedrank.io.queries.HitSink`."""
        hits, layout = found.hits, self._form.layout
        rows = self._positions(found.rows)
        query = rows if found.every_row else rows[hits.parents]
        self._hits += len(query)
        self._null_list[rows[~hits.is_null]] = False
        values: dict[str, Any] = {
            "query": query,
            "node": _plain(hits.node, self._form.node_type),
            "weight": found.weight,
        }
        hashes = {"weight": bits_of(found.weight)}
        for name, numbers in (("rank", found.rank), ("retriever_weight", found.retriever_weight)):
            if numbers is not None:
                values[name], hashes[name] = numbers, bits_of(numbers)
        if layout.source is not None:
            assert hits.source is not None
            values["source"], hashes["source"] = self._sources(hits.source)
        if layout.fallback is not None:
            assert hits.fallback is not None
            values["fallback"] = _plain(hits.fallback, self._form.node_type)
            hashes["fallback"] = hashed_ids(values["fallback"])
        self._fingerprint.add("hit", hashed_ids(found.queries), hashed_ids(values["node"]), *hashes.values())
        arrays = [pa.array(values[name]) for name in self._schema.names]
        self._write(query, pa.RecordBatch.from_arrays(arrays, schema=self._schema))

    def finish(self) -> None:
        """Add the queries to the fingerprint."""
        self._fingerprint.add("query", hashed_ids(self._query_ids), bits_of(self._null_list))

    def staged(self, records: list[InputFileRecord]) -> StagedHits:
        """Return what was written."""
        names = sorted(name for name in self._names if name is not None)
        ordered: tuple[str | None, ...] = (*names, *([None] if None in self._names else []))
        order = np.array([ordered.index(name) for name in self._names], dtype=np.int32)
        record = InputRecord(files=records, fingerprint=self._fingerprint.hexdigest())
        return StagedHits(
            folder=self._folder,
            query_ids=self._every,
            size=self._size,
            hits=self._hits,
            record=record,
            _form=self._form,
            _names=ordered,
            _name_order=order,
            _null_list=self._null_list,
            _places=self._places,
        )

    def _sources(self, source: pa.Array) -> tuple[npt.NDArray[np.int32], UInt64Array]:
        """Number the names of sources by their first appearance, and hash them; null is a name, too."""
        codes, dictionary = without_unused(name_dictionary(source))
        names = (*dictionary.to_pylist(), None)
        number = np.zeros(len(names), np.int32)
        for code in np.unique(codes).tolist():
            number[code] = self._names.setdefault(names[code], len(self._names))
        return number[codes], hashed_names(names)[codes]

    def _positions(self, rows: pa.Array) -> npt.NDArray[np.int32]:
        """Position of the query of every row among all."""
        if pa.types.is_dictionary(rows.type):
            codes: npt.NDArray[np.int64] = np.asarray(rows.indices.to_numpy(zero_copy_only=False))
            positions = match_ids(rows.dictionary, self._query_ids)[codes]
            unknown = positions < 0
        else:
            wide = pa.uint64() if pa.types.is_unsigned_integer(self._query_ids.type) else pa.int64()
            known = np.asarray(self._query_ids.cast(wide).to_numpy())
            wanted = np.asarray(rows.cast(wide).to_numpy())
            positions = np.searchsorted(known, wanted).astype(np.int32)
            unknown = known[np.minimum(positions, len(known) - 1)] != wanted
        if unknown.any():
            raise InputDataError(
                "queries: rows have been added while they were read",
                expected="hits that stay as they are while a run reads them",
                fix="run the same command again",
            )
        return positions

    def _write(self, query: npt.NDArray[np.int32], batch: pa.RecordBatch) -> None:
        """Hand every hit to the file of its segment; those of segments that are not written are dropped first."""
        segment = self._places[query] // self._size
        written = (segment >= self._segments.start) & (segment < self._segments.stop)
        if not written.all():
            segment, batch = segment[written], batch.filter(pa.array(written))
        if len(segment) and segment.min() < segment.max():
            order = np.argsort(segment, kind="stable")
            segment, batch = segment[order], batch.take(pa.array(order))
        starts = np.flatnonzero(np.diff(segment, prepend=-1))
        with storage_errors(f"writing to {self._folder}"):
            for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(segment)], strict=False):
                self._writers[int(segment[start])].write_batch(batch.slice(start, end - start))


def _schema(form: HitForm) -> pa.Schema:
    layout = form.layout
    fields = [("query", pa.int32()), ("node", form.node_type), ("weight", pa.float64())]
    fields += [("rank", pa.int64())] if layout.rank is not None else []
    fields += [("retriever_weight", pa.float64())] if layout.retriever_weight is not None else []
    fields += [("source", pa.int32())] if layout.source is not None else []
    fields += [("fallback", form.node_type)] if layout.fallback is not None else []
    return pa.schema(fields)


def _plain(ids: pa.Array, kind: pa.DataType) -> pa.Array:
    """Ids in their common type, without a dictionary."""
    return (ids.dictionary_decode() if pa.types.is_dictionary(ids.type) else ids).cast(kind)


def _numbers(table: pa.Table, name: str) -> npt.NDArray[Any]:
    return np.array(table.column(name).to_numpy())


def _file(folder: Path, segment: int) -> Path:
    return folder / f"hits-{segment:05d}.arrow"
