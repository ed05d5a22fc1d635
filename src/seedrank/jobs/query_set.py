"""From hits and exclusions to arrays: every query of a job with its seeds and what it must not return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seedrank.config import ScoreOptions
from seedrank.errors import ConfigError, InputDataError
from seedrank.io.exclusions import read_exclusions
from seedrank.io.fingerprint import content_fingerprint
from seedrank.io.graphstore import GraphStore
from seedrank.io.ids import match_ids
from seedrank.io.queries import HitColumns, HitTable, read_hits
from seedrank.io.records import InputRecord
from seedrank.kernels.backend import QueryBlock
from seedrank.kernels.seeds import SeedSets, build_seeds

_HIT_ROLES = ("query", "node", "weight", "source", "seeds")


@dataclass(frozen=True)
class QuerySet:
    """All queries of a job, sorted by query id; q of them.

    Attributes
    ----------
    query_ids : (q,) Arrow array, sorted.
    seeds_given : int64 (q,), -1 where the query's seed list itself is null.
    seeds_missing : int64 (q,), hits that are null or not in the graph.
    seeds : seed distribution of every query; an empty range has no valid seed.
    exclude_offsets, exclude_nodes : int64 (q + 1,), int32: nodes that a query must not return, internal, sorted.
    eligible : bool (nodes,) over internal nodes, or None: nodes that any query may return.
    records : what was read, by input name.
    """

    query_ids: pa.Array
    seeds_given: npt.NDArray[np.int64]
    seeds_missing: npt.NDArray[np.int64]
    seeds: SeedSets
    exclude_offsets: npt.NDArray[np.int64]
    exclude_nodes: npt.NDArray[np.int32]
    eligible: npt.NDArray[np.bool_] | None
    records: Mapping[str, InputRecord]

    def __len__(self) -> int:
        return len(self.query_ids)

    @property
    def valid(self) -> npt.NDArray[np.bool_]:
        """Bool (q,): the query has at least one valid seed."""
        return np.diff(self.seeds.offsets) > 0

    def block(self, queries: npt.NDArray[np.int64]) -> QueryBlock:
        """Return the arrays of some queries, in the order given."""
        seed_offsets, seed_entries = gather(self.seeds.offsets, queries)
        exclude_offsets, exclude_entries = gather(self.exclude_offsets, queries)
        return QueryBlock(
            seed_offsets=seed_offsets,
            seed_nodes=self.seeds.nodes[seed_entries],
            seed_weights=self.seeds.weights[seed_entries],
            exclude_offsets=exclude_offsets,
            exclude_nodes=self.exclude_nodes[exclude_entries],
        )


def load_query_set(store: GraphStore, *, queries: Any, exclude: Any, options: ScoreOptions) -> QuerySet:
    """Read hits (or make a query of every node of a type), match them with the graph, normalise the seeds.

    Raises
    ------
    ConfigError
        Neither or both of ``queries`` and ``all_nodes`` are given; options that need hits without hits.
    InputDataError
        Bad hits or exclusions, ids of another kind than the graph's, unknown sources or node types.
    """
    check_query_options(queries, options)
    records: dict[str, InputRecord] = {}
    if options.all_nodes is not None:
        query_ids, query, rank, weight, source, names, given, missing = _every_node(store, options.all_nodes)
    else:
        hits = read_hits(queries, hit_columns(options), sources=options.source)
        records["queries"] = InputRecord(files=hits.records, fingerprint=_fingerprint_hits(hits))
        rank = _resolve(
            match_ids(hits.node_ids, store.ids, wanted_place="node_id of the hits", known_place=_place(store)),
            hits.node,
        )
        query_ids, query, weight, source, names = (
            hits.query_ids,
            hits.query,
            hits.weight,
            hits.source,
            hits.source_names,
        )
        given = np.bincount(query, minlength=len(query_ids))
        given[hits.null_list & (given == 0)] = -1
        missing = np.bincount(query[rank < 0], minlength=len(query_ids))
    seeds = build_seeds(
        query,
        rank,
        weight,
        source,
        queries=len(query_ids),
        normalization=options.source_normalization,
        source_weights=_source_weights(options.seed_source_weight, names),
        inverse_order=store.inverse_order,
    )
    known = rank >= 0
    pairs = [] if options.include_seeds else [(query[known], rank[known])]
    everywhere = np.zeros(0, dtype=np.int32)
    if exclude is not None:
        table = read_exclusions(
            exclude, query_id_column=options.hit_query_column, node_id_column=options.hit_node_column
        )
        parts = {
            "query_ids": table.query_ids,
            "query": table.query,
            "node_ids": table.node_ids,
            "node": table.node,
        }
        records["exclude"] = InputRecord(files=table.records, fingerprint=content_fingerprint(parts))
        excluded = _resolve(
            match_ids(table.node_ids, store.ids, wanted_place="node_id of the exclusions", known_place=_place(store)),
            table.node,
        )
        if table.query is None or table.query_ids is None:
            everywhere = excluded[excluded >= 0]
        else:
            of_query = match_ids(
                table.query_ids,
                query_ids,
                wanted_place="query_id of the exclusions",
                known_place="query_id of the hits",
            )[table.query]
            usable = (excluded >= 0) & (of_query >= 0)
            pairs.append((of_query[usable], excluded[usable]))
    exclude_offsets, exclude_nodes = _exclusion_lists(pairs, len(query_ids), store)
    return QuerySet(
        query_ids=query_ids,
        seeds_given=given.astype(np.int64),
        seeds_missing=missing.astype(np.int64),
        seeds=seeds,
        exclude_offsets=exclude_offsets,
        exclude_nodes=exclude_nodes,
        eligible=_eligible(store, options.node_type, everywhere),
        records=records,
    )


def hit_columns(options: ScoreOptions) -> HitColumns:
    """Return the column names of hits, and which of them the user named."""
    names = {"query": "query_id", "node": "node_id", "weight": "weight", "source": "source", "seeds": "seeds"}
    return HitColumns(
        **{names[role]: getattr(options, f"hit_{role}_column") for role in _HIT_ROLES},
        explicit=frozenset(names[role] for role in _HIT_ROLES if f"hit_{role}_column" in options.model_fields_set),
    )


def check_query_options(queries: Any, options: ScoreOptions) -> None:
    """Refuse neither or both ways of giving queries."""
    if (queries is None) == (options.all_nodes is None):
        raise ConfigError(
            "neither --queries nor --all-nodes is given"
            if queries is None
            else "--queries and --all-nodes are both given",
            expected="exactly one of them",
            fix="--queries HITS reads seed sets, --all-nodes TYPE makes every node of a type a query",
        )
    if options.all_nodes is not None and (options.source or options.seed_source_weight):
        raise ConfigError(
            "--source and --seed-source-weight choose among hits, but --all-nodes has none",
            expected="these options together with --queries",
            fix="drop them",
        )


def _every_node(store: GraphStore, node_type: str) -> tuple[Any, ...]:
    ranks = np.flatnonzero(store.nodes_of_types((node_type,), option="--all-nodes")).astype(np.int32)
    count = len(ranks)
    query = np.arange(count, dtype=np.int32)
    ones = np.ones(count, dtype=np.int64)
    return (
        store.ids.take(pa.array(ranks)),
        query,
        ranks,
        np.ones(count),
        None,
        (),
        ones,
        np.zeros(count, dtype=np.int64),
    )


def _place(store: GraphStore) -> str:
    return f"the graph {store.path}"


def _resolve(position: npt.NDArray[np.int32], code: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Position of each row's id; -1 for null ids (code -1) and unknown ids."""
    if len(position) == 0:
        return np.full(len(code), -1, dtype=np.int32)
    return np.where(code >= 0, position[code], -1).astype(np.int32)


def _source_weights(weights: Mapping[str, float], names: tuple[str | None, ...]) -> npt.NDArray[np.float64] | None:
    if not weights:
        return None
    unknown = sorted(set(weights) - set(names))
    if unknown:
        raise InputDataError(
            f"--seed-source-weight {unknown[0]!r}: no hit has this source",
            expected="one of " + ", ".join(repr(name) for name in names[:20]) if names else "hits with a source column",
            fix="correct the name",
        )
    return np.array([weights.get(name, 1.0) if name is not None else 1.0 for name in names])


def _exclusion_lists(
    pairs: list[tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]], queries: int, store: GraphStore
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Sorted, distinct (query, internal node) pairs as offsets and nodes."""
    nodes = max(len(store.ids), 1)
    keys = [query.astype(np.int64) * nodes + store.inverse_order[rank] for query, rank in pairs]
    distinct = np.unique(np.concatenate(keys)) if keys else np.zeros(0, dtype=np.int64)
    offsets = np.zeros(queries + 1, dtype=np.int64)
    np.cumsum(np.bincount(distinct // nodes, minlength=queries), out=offsets[1:])
    return offsets, (distinct % nodes).astype(np.int32)


def _eligible(
    store: GraphStore, node_type: tuple[str, ...], everywhere: npt.NDArray[np.int32]
) -> npt.NDArray[np.bool_] | None:
    """Output mask over internal nodes; None when every node may be returned."""
    if not node_type and not len(everywhere):
        return None
    by_rank = (
        store.nodes_of_types(node_type, option="--node-type").copy()
        if node_type
        else np.ones(len(store.ids), dtype=np.bool_)
    )
    by_rank[everywhere] = False
    return by_rank[store.order]


def gather(
    offsets: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Offsets and entry positions of some rows of a CSR."""
    lengths = offsets[rows + 1] - offsets[rows]
    gathered = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum(lengths, out=gathered[1:])
    entries = np.arange(gathered[-1]) + np.repeat(offsets[rows] - gathered[:-1], lengths)
    return gathered, entries


def _fingerprint_hits(hits: HitTable) -> str:
    return content_fingerprint(
        {
            "query_ids": hits.query_ids,
            "query": hits.query,
            "node_ids": hits.node_ids,
            "node": hits.node,
            "weight": hits.weight,
            "source": hits.source,
            "source_names": hits.source_names,
            "null_list": hits.null_list,
        }
    )
