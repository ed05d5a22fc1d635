"""From hits and exclusions to arrays: every query of a job with its seeds and what it must not return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seedrank.config import ScoreOptions
from seedrank.errors import ConfigError, InputDataError
from seedrank.io.exclusions import read_exclusions
from seedrank.io.fingerprint import content_fingerprint
from seedrank.io.graphstore import GraphStore
from seedrank.io.ids import common_id_type, match_ids
from seedrank.io.no_graph import NoGraph
from seedrank.io.queries import HitColumns, HitTable, read_hits
from seedrank.io.records import InputRecord
from seedrank.jobs.hit_lists import HitLists, build_hit_lists, check_source_names, source_names
from seedrank.jobs.inputs import JobInputs
from seedrank.jobs.node_space import NodeSpace
from seedrank.kernels.backend import QueryBlock
from seedrank.kernels.runs import gather
from seedrank.kernels.seeds import SeedSets, build_seeds

_HIT_ROLES = ("query", "node", "weight", "source", "seeds", "rank")
#: What the node ids of hits are called in messages.
_HIT_NODES = "node_id of the hits"


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
    space : the nodes that candidates may be.
    hit_lists : the hits as ranked lists, under fusion or fallback; else None.
    records : what was read, by input name.
    """

    query_ids: pa.Array
    seeds_given: npt.NDArray[np.int64]
    seeds_missing: npt.NDArray[np.int64]
    seeds: SeedSets
    exclude_offsets: npt.NDArray[np.int64]
    exclude_nodes: npt.NDArray[np.int32]
    eligible: npt.NDArray[np.bool_] | None
    space: NodeSpace
    hit_lists: HitLists | None
    records: Mapping[str, InputRecord]

    def __len__(self) -> int:
        return len(self.query_ids)

    @property
    def seeded(self) -> npt.NDArray[np.bool_]:
        """Bool (q,): the query has at least one valid seed in the graph."""
        return np.diff(self.seeds.offsets) > 0

    @property
    def valid(self) -> npt.NDArray[np.bool_]:
        """Bool (q,): there is something to score, a valid seed, or hits that are ranked themselves."""
        return self.seeded if self.hit_lists is None else self.seeded | self.hit_lists.usable

    @property
    def components(self) -> tuple[str, ...]:
        """Names of the lists that a fusion fuses."""
        return () if self.hit_lists is None else self.hit_lists.names

    def on(self, store: GraphStore) -> QuerySet:
        """Return the same queries on the same graph that has been opened elsewhere."""
        return replace(self, space=replace(self.space, store=store))

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


def load_query_set(store: GraphStore, inputs: JobInputs, options: ScoreOptions) -> QuerySet:
    """Read hits (or make a query of every node of a type), match them with the graph, normalise the seeds.

    Raises
    ------
    ConfigError
        Neither or both of ``queries`` and ``all_nodes`` are given; options that need hits without hits; weights of
        sources, or a threshold, under which nothing can be returned.
    InputDataError
        Bad hits or exclusions, ids of another kind than the graph's, unknown sources or node types.
    """
    check_query_options(inputs, options)
    records: dict[str, InputRecord] = {}
    hits = None
    if options.all_nodes is not None:
        found = _every_node(store, options.all_nodes)
    else:
        hits = read_hits(inputs.queries, hit_columns(options), sources=options.source, signed=options.method == "fuse")
        records["queries"] = InputRecord(files=hits.records, fingerprint=_fingerprint_hits(hits))
        found = _match(hits, store)
    exclusions = None if inputs.exclude is None else _read_exclusions(inputs.exclude, found.query_ids, options)
    known = found.rank >= 0
    pairs = [] if options.include_seeds else [(found.query[known], found.rank[known])]
    everywhere = np.zeros(0, dtype=np.int32)
    if exclusions is not None:
        records["exclude"] = exclusions.record
        of_query, excluded = exclusions.among(store.ids, _place(store))
        if of_query is None:
            everywhere = excluded
        else:
            pairs.append((of_query, excluded))
    exclude_offsets, exclude_nodes = _exclusion_lists(pairs, len(found.query_ids), store)
    space, hit_lists = NodeSpace.of_graph(store), None
    if hits is not None and options.ranks_hits:
        space, nodes = _space_with_hits(hits, store)
        returnable = _returnable(hits, found.rank, exclusions, store, options)
        hit_lists = build_hit_lists(hits, nodes, returnable, options)
    return QuerySet(
        query_ids=found.query_ids,
        seeds_given=found.given,
        seeds_missing=found.missing,
        seeds=_seeds(found, store, options),
        exclude_offsets=exclude_offsets,
        exclude_nodes=exclude_nodes,
        eligible=_eligible(store, options.node_type, everywhere),
        space=space,
        hit_lists=hit_lists,
        records=records,
    )


def hit_columns(options: ScoreOptions) -> HitColumns:
    """Return the column names of hits, and which of them the user named; ranks are read where they matter."""
    names = {"query": "query_id", "node": "node_id"} | {role: role for role in _HIT_ROLES[2:]}
    roles = [role for role in _HIT_ROLES if role != "rank" or options.uses_ranks]
    return HitColumns(
        **{names[role]: getattr(options, f"hit_{role}_column") for role in roles},
        explicit=frozenset(names[role] for role in roles if f"hit_{role}_column" in options.model_fields_set),
    )


def check_query_options(inputs: JobInputs, options: ScoreOptions) -> None:
    """Refuse neither or both ways of giving queries."""
    if (inputs.queries is None) == (options.all_nodes is None):
        raise ConfigError(
            "neither --queries nor --all-nodes is given"
            if inputs.queries is None
            else "--queries and --all-nodes are both given",
            expected="exactly one of them",
            fix="--queries HITS reads seed sets, --all-nodes TYPE makes every node of a type a query",
        )
    if options.all_nodes is None:
        return
    if options.ranks_hits:
        raise ConfigError(
            f"{'--fusion' if options.fusion != 'none' else '--fallback'} ranks hits, but --all-nodes has none",
            expected="this option together with --queries",
            fix="drop it",
        )
    if options.source or options.seed_source_weight or options.lower_is_better:
        raise ConfigError(
            "--source, --seed-source-weight and --lower-is-better speak of hits, but --all-nodes has none",
            expected="these options together with --queries",
            fix="drop them",
        )


class _Found(NamedTuple):
    """Hits, or what takes their place, against the graph; see `HitTable`. ``rank`` is a tie rank, -1 if unknown."""

    query_ids: pa.Array
    query: npt.NDArray[np.int32]
    rank: npt.NDArray[np.int32]
    weight: npt.NDArray[np.float64]
    source: npt.NDArray[np.int32] | None
    source_names: tuple[str | None, ...]
    given: npt.NDArray[np.int64]
    missing: npt.NDArray[np.int64]


def _every_node(store: GraphStore, node_type: str) -> _Found:
    ranks = np.flatnonzero(store.nodes_of_types((node_type,), option="--all-nodes")).astype(np.int32)
    count = len(ranks)
    return _Found(
        query_ids=store.ids.take(pa.array(ranks)),
        query=np.arange(count, dtype=np.int32),
        rank=ranks,
        weight=np.ones(count),
        source=None,
        source_names=(),
        given=np.ones(count, dtype=np.int64),
        missing=np.zeros(count, dtype=np.int64),
    )


def _match(hits: HitTable, store: GraphStore) -> _Found:
    rank = _resolve(_positions(hits, store), hits.node)
    queries = len(hits.query_ids)
    given = np.bincount(hits.query, minlength=queries)
    given[hits.null_list & (given == 0)] = -1
    lost = hits.node < 0 if isinstance(store, NoGraph) else rank < 0
    return _Found(
        query_ids=hits.query_ids,
        query=hits.query,
        rank=rank,
        weight=hits.weight,
        source=hits.source,
        source_names=hits.source_names,
        given=given.astype(np.int64),
        missing=np.bincount(hits.query[lost], minlength=queries).astype(np.int64),
    )


def _positions(hits: HitTable, store: GraphStore) -> npt.NDArray[np.int32]:
    """Tie rank in the graph of every distinct node id of the hits; -1 if unknown."""
    return match_ids(hits.node_ids, store.ids, wanted_place=_HIT_NODES, known_place=_place(store))


def _place(store: GraphStore) -> str:
    return "no graph" if isinstance(store, NoGraph) else f"the graph {store.path}"


def _resolve(position: npt.NDArray[np.integer[Any]], code: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Position of each row's id; -1 for null ids (code -1) and unknown ids."""
    if len(position) == 0:
        return np.full(len(code), -1, dtype=np.int32)
    return np.where(code >= 0, position[code], -1).astype(np.int32)


def _seeds(found: _Found, store: GraphStore, options: ScoreOptions) -> SeedSets:
    """Personalization vectors; empty ones where the graph has no part in the method."""
    names = source_names(found.source_names)
    check_source_names("--lower-is-better", options.lower_is_better, names)
    if options.method == "fuse":
        return SeedSets(np.zeros(len(found.query_ids) + 1, np.int64), np.zeros(0, np.int32), np.zeros(0))
    distance = np.array([name in options.lower_is_better for name in names], dtype=np.bool_)
    weight = found.weight
    if options.method != "ppr" and distance.any():
        # An anchor only has to have a positive weight, and 0 is the best distance.
        weight = np.where(distance[0 if found.source is None else found.source], 1.0, weight)
    return build_seeds(
        found.query,
        found.rank,
        weight,
        found.source,
        queries=len(found.query_ids),
        normalization=options.source_normalization,
        source_weights=_source_weights(options.seed_source_weight, found.source_names),
        lower_is_better=distance,
        inverse_order=store.inverse_order,
    )


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


def _space_with_hits(hits: HitTable, store: GraphStore) -> tuple[NodeSpace, npt.NDArray[np.int32]]:
    """Nodes of the graph and ids that only hits have, and the node of every hit, -1 without a node id."""
    kind = common_id_type([(store.ids.type, _place(store)), (hits.node_ids.type, _HIT_NODES)])
    positions = _positions(hits, store)
    unknown = positions < 0
    space = NodeSpace(store, hits.node_ids.filter(pa.array(unknown)).cast(kind))
    nodes = space.graph_nodes + np.cumsum(unknown) - 1
    nodes[~unknown] = store.inverse_order[positions[~unknown]]
    return space, _resolve(nodes, hits.node)


def _returnable(
    hits: HitTable,
    rank: npt.NDArray[np.int32],
    exclusions: _Exclusions | None,
    store: GraphStore,
    options: ScoreOptions,
) -> npt.NDArray[np.bool_]:
    """Mask of the hits that their query may return: those of the right type that are not excluded."""
    allowed = np.ones(len(rank), dtype=np.bool_)
    if options.node_type:
        # One entry more, addressed as -1: what the graph does not know has no type.
        allowed = np.append(store.nodes_of_types(options.node_type, option="--node-type"), False)[rank]
    if exclusions is None:
        return allowed
    of_query, excluded = exclusions.among(hits.node_ids, _HIT_NODES)
    if of_query is None:
        return allowed & ~np.isin(hits.node, excluded)
    ids = max(len(hits.node_ids), 1)
    pairs = hits.query.astype(np.int64) * ids + hits.node
    return allowed & ~np.isin(pairs, of_query.astype(np.int64) * ids + excluded)


class _Exclusions(NamedTuple):
    """Nodes that a query must not return; ``query`` is a position among the queries of the job, None: every one."""

    query: npt.NDArray[np.int32] | None
    node_ids: pa.Array
    node: npt.NDArray[np.int32]
    record: InputRecord

    def among(self, ids: pa.Array, place: str) -> tuple[npt.NDArray[np.int32] | None, npt.NDArray[np.int32]]:
        """Query, and position among some sorted ids, of the exclusions that say something of both."""
        matched = match_ids(self.node_ids, ids, wanted_place="node_id of the exclusions", known_place=place)
        position = _resolve(matched, self.node)
        if self.query is None:
            return None, position[position >= 0]
        usable = (position >= 0) & (self.query >= 0)
        return self.query[usable], position[usable]


def _read_exclusions(exclude: Any, query_ids: pa.Array, options: ScoreOptions) -> _Exclusions:
    table = read_exclusions(exclude, query_id_column=options.hit_query_column, node_id_column=options.hit_node_column)
    parts = {"query_ids": table.query_ids, "query": table.query, "node_ids": table.node_ids, "node": table.node}
    of_query = None
    if table.query is not None and table.query_ids is not None:
        of_query = match_ids(
            table.query_ids, query_ids, wanted_place="query_id of the exclusions", known_place="query_id of the hits"
        )[table.query]
    return _Exclusions(
        query=of_query,
        node_ids=table.node_ids,
        node=table.node,
        record=InputRecord(files=table.records, fingerprint=content_fingerprint(parts)),
    )


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


def _fingerprint_hits(hits: HitTable) -> str:
    return content_fingerprint(
        {
            "query_ids": hits.query_ids,
            "query": hits.query,
            "node_ids": hits.node_ids,
            "node": hits.node,
            "weight": hits.weight,
            "rank": hits.rank,
            "source": hits.source,
            "source_names": hits.source_names,
            "null_list": hits.null_list,
        }
    )
