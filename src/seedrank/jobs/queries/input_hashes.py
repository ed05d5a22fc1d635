"""Hashes of all that the result of one query depends on besides graph and options: what ``--since`` compares."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from seedrank.io.arrow.fingerprint import content_fingerprint
from seedrank.io.id_hashes import hash_ids
from seedrank.io.ids import is_string, match_ids
from seedrank.io.queries import HitTable
from seedrank.io.query_info import QueryInfoTable
from seedrank.jobs.queries.returnable import Exclusions
from seedrank.jobs.vectors import JobVectors
from seedrank.kernels.runs import offsets_of

#: Bytes of a hash: xxh3-128.
HASH_BYTES = 16
#: Entries (hits, exclusions) and queries that are laid out at a time.
_ENTRIES, _QUERIES = 1 << 18, 1 << 16
_FORMAT = "seedrank query 1"

Words = npt.NDArray[np.uint64]


class _Entries(NamedTuple):
    """Some bytes for each entry of q queries: ``offsets`` int64 (q + 1,), and the entries of a range as an array."""

    offsets: npt.NDArray[np.int64]
    rows: Callable[[slice], npt.NDArray[Any]]


def input_hashes(
    query_ids: pa.Array,
    hits: HitTable | None,
    exclusions: Sequence[Exclusions],
    info: QueryInfoTable | None,
    vectors: JobVectors | None,
    names: Sequence[str | None],
) -> npt.NDArray[np.uint8]:
    """Hash what each query brings; what is common to all queries is in every hash.

    Nothing depends on a position: ids count by their value, hits of a query in the order of their ids. So a query keeps
    its hash when others come, go or change.

    Parameters
    ----------
    query_ids : length q, sorted.
    hits : the hits, before vectors are searched; None where every node of a type is a query.
    exclusions, info, vectors : further inputs of the job.
    names : names of the lists that the job ranks, if it ranks any.

    Returns
    -------
    ndarray, shape (q, 16), uint8
        xxh3-128. Equal hashes: equal results, given the same graph, options and version.
    """
    everywhere = [some for some in exclusions if some.query is None]
    common: dict[str, Any] = {
        "format": (_FORMAT,),
        "types": (str(query_ids.type), None if hits is None else str(hits.node_ids.type)),
        "names": tuple(names),
        "given": tuple(
            name for name in ("rank", "retriever_weight", "source") if getattr(hits, name, None) is not None
        ),
        **{f"excluded {number}": some.node_ids.take(pa.array(some.node)) for number, some in enumerate(everywhere)},
        "vectors": () if vectors is None else (vectors.nodes.table.fingerprint, vectors.queries.table.rows.dtype.str),
    }
    nothing = _Entries(np.zeros(len(query_ids) + 1, dtype=np.int64), lambda _: np.zeros(0, dtype=np.uint64))
    entries = [
        nothing if hits is None else _hits(hits),
        _exclusions([some for some in exclusions if some.query is not None], len(query_ids)),
        nothing if info is None else _attributes(info, query_ids),
        nothing if vectors is None else _vectors(vectors, query_ids),
    ]
    null_list = np.zeros(len(query_ids), dtype=np.bool_) if hits is None else hits.null_list
    single = [_id_words(query_ids), null_list.astype(np.uint64)]
    single += [np.diff(some.offsets).astype(np.uint64) for some in entries]
    base = xxhash.xxh3_128(content_fingerprint(common).encode())
    return _hashed(base, np.ascontiguousarray(np.column_stack(single)), entries)


def _hashed(base: Any, single: Words, entries: Sequence[_Entries]) -> npt.NDArray[np.uint8]:
    """Hash the words of every query and the bytes of its entries, in that order."""
    found = bytearray()
    for first, last in _ranges(len(single), entries):
        pieces = [(single[first:last].data.cast("B"), np.arange(last - first + 1) * single.shape[1] * 8)]
        for some in entries:
            offsets = some.offsets[first : last + 1]
            rows = some.rows(slice(int(offsets[0]), int(offsets[-1])))
            if len(rows):
                width = rows.nbytes // len(rows)
                pieces.append((rows.view(np.uint8).data.cast("B"), (offsets - offsets[0]) * width))
        places = [(data, ends.tolist()) for data, ends in pieces]
        for query in range(last - first):
            digest = base.copy()
            for data, ends in places:
                digest.update(data[ends[query] : ends[query + 1]])
            found += digest.digest()
    return np.frombuffer(bytes(found), dtype=np.uint8).reshape(-1, HASH_BYTES)


def _ranges(queries: int, entries: Sequence[_Entries]) -> Iterator[tuple[int, int]]:
    """Cut the queries into ranges of few entries, or of one query."""
    first = 0
    while first < queries:
        last = min(first + _QUERIES, queries)
        for some in entries:
            most = int(np.searchsorted(some.offsets, some.offsets[first] + _ENTRIES, side="right")) - 1
            last = min(last, max(most, first + 1))
        yield first, last
        first = last


def _hits(hits: HitTable) -> _Entries:
    nodes = _id_words(hits.node_ids)
    sources = np.array(
        [0 if name is None else xxhash.xxh3_64_intdigest(name.encode()) for name in hits.source_names], dtype=np.uint64
    )

    def rows(which: slice) -> npt.NDArray[Any]:
        node = hits.node[which]
        columns = [node >= 0, np.append(nodes, np.uint64(0))[node], hits.weight[which].view(np.uint64)]
        if hits.rank is not None:
            columns.append(hits.rank[which])
        if hits.retriever_weight is not None:
            columns.append(hits.retriever_weight[which].view(np.uint64))
        if hits.source is not None:
            columns.append(sources[hits.source[which]])
        return np.column_stack([column.astype(np.uint64) for column in columns])

    return _Entries(offsets_of(np.bincount(hits.query, minlength=len(hits.query_ids))), rows)


def _exclusions(lists: Sequence[Exclusions], queries: int) -> _Entries:
    """Nodes that single queries must not return, whichever input says so; each once."""
    query, word = [np.zeros(0, dtype=np.int32)], [np.zeros(0, dtype=np.uint64)]
    for some in lists:
        assert some.query is not None
        there = some.query >= 0
        query.append(some.query[there])
        word.append(_id_words(some.node_ids)[some.node[there]])
    queries_of, words = np.concatenate(query), np.concatenate(word)
    order = np.lexsort((words, queries_of))
    queries_of, words = queries_of[order], words[order]
    new = np.ones(len(words), dtype=np.bool_)
    new[1:] = (queries_of[1:] != queries_of[:-1]) | (words[1:] != words[:-1])
    distinct = words[new]
    return _Entries(offsets_of(np.bincount(queries_of[new], minlength=queries)), lambda which: distinct[which])


def _vectors(vectors: JobVectors, query_ids: pa.Array) -> _Entries:
    """Vectors of the queries that have one."""
    table = vectors.queries.table
    position = match_ids(query_ids, table.ids)
    there = position >= 0
    places = table.places[position[there]]
    return _Entries(
        offsets_of(there.astype(np.int64)), lambda which: np.ascontiguousarray(np.asarray(table.rows[places[which]]))
    )


def _attributes(info: QueryInfoTable, query_ids: pa.Array) -> _Entries:
    """Attributes of the queries that have some, with the names of the columns; nodes to leave out are exclusions."""
    texts = {**({} if info.text is None else {"text": info.text}), **info.choices}
    names = xxhash.xxh3_64_intdigest(repr([*info.flags, *texts]).encode())
    columns = [np.full(len(info.query_ids), names, dtype=np.uint64)]
    columns += [values.astype(np.int64).view(np.uint64) for values in info.flags.values()]
    for text in texts.values():
        columns.append(text.is_valid().to_numpy(zero_copy_only=False).astype(np.uint64))
        columns.append(hash_ids(text.fill_null("")))
    row = match_ids(query_ids, info.query_ids)
    there = (row >= 0) & (len(columns) > 1)
    words = np.ascontiguousarray(np.column_stack(columns)[row[there]])
    return _Entries(offsets_of(there.astype(np.int64)), lambda which: words[which])


def _id_words(ids: pa.Array) -> Words:
    """Return 64 bits for every id: an integer itself, of text a hash."""
    if is_string(ids.type):
        return hash_ids(ids)
    if pa.types.is_null(ids.type):
        return np.zeros(len(ids), dtype=np.uint64)
    wide = pa.uint64() if pa.types.is_unsigned_integer(ids.type) else pa.int64()
    return np.asarray(ids.cast(wide).to_numpy(zero_copy_only=False)).view(np.uint64)
