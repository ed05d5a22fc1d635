"""A search among vectors as one more source of hits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seedrank.config import ScoreOptions
from seedrank.config.names import VECTOR_SOURCE
from seedrank.errors import ConfigError, InputDataError
from seedrank.io.graphstore import GraphStore
from seedrank.io.hits.order import hit_order
from seedrank.io.ids import IdEncoder, common_id_type, match_ids, resolve
from seedrank.io.queries import HitTable
from seedrank.io.vectors import VectorTable
from seedrank.jobs.inputs import JobInputs
from seedrank.jobs.queries.query_info import takes_vectors
from seedrank.jobs.queries.returnable import Exclusions
from seedrank.jobs.vectors import JobVectors
from seedrank.kernels.backends.resolver import BackendDecision, resolve_backend
from seedrank.kernels.runs import offsets_of
from seedrank.kernels.semantic import nearest_vectors

#: Methods whose candidates are hits and nothing else: filters belong into the search, before its cut.
_RANKED_ALONE = ("fuse", "semantic", "hybrid")


#: Options that speak of vectors.
_VECTOR_OPTIONS = ("vector_column", "vector_node_column", "vector_query_column", "vector_depth", "rerank_depth")


def check_vector_options(inputs: JobInputs, options: ScoreOptions) -> None:
    """Refuse vectors of one side only, options of vectors without any, and vectors that nothing uses.

    Raises
    ------
    ConfigError
        Naming what is missing.
    """
    flag = "--workers" if options.workers == "gpu" and options.backend == "auto" else "--backend"
    asks_gpu = "gpu" in (options.backend, options.workers)
    if asks_gpu and options.method in _RANKED_ALONE and inputs.node_vectors is None:
        raise ConfigError(
            f"{flag} gpu is given with --method {options.method}, but there are no vectors to search",
            expected="--node-vectors and --query-vectors, whose products a GPU computes",
            fix=f"drop {flag}, or add the vectors",
        )
    sides = {"--node-vectors": inputs.node_vectors, "--query-vectors": inputs.query_vectors}
    missing = [flag for flag, source in sides.items() if source is None]
    if takes_vectors(inputs):
        missing.remove("--query-vectors")  # whether the attributes of queries have them is seen when they are opened
    asked = [f"--{name.replace('_', '-')}" for name in _VECTOR_OPTIONS if name in options.model_fields_set]
    if options.rerank != "none":
        asked.insert(0, f"--rerank {options.rerank}")
    elif "rerank_depth" in options.model_fields_set:
        raise ConfigError(
            "--rerank-depth is given, but nothing is ranked again",
            expected="--rerank-depth together with --rerank vectors",
            fix="drop it, or pass --rerank vectors",
        )
    if len(missing) == 1 or (missing and asked):
        given = asked[0] if len(missing) == 2 else next(flag for flag in sides if flag not in missing)
        raise ConfigError(
            f"{given} is given without {' and '.join(missing)}",
            expected="vectors of nodes and of queries",
            fix=f"add {' and '.join(missing)}, or drop {given}",
        )
    if not missing and not options.vector_depth and options.rerank == "none":
        raise ConfigError(
            "vectors are given with --vector-depth 0, and nothing else uses them",
            expected="a search, or --rerank vectors",
            fix="raise --vector-depth, or drop the vectors",
        )


def hits_decision(options: ScoreOptions) -> BackendDecision:
    """Say who ranks hits: NumPy, after a search among vectors by a GPU where one was asked for.

    Raises
    ------
    ResourceError
        It was, and there is none that works.
    """
    if options.backend == "gpu":
        decision = resolve_backend("gpu", work="products")
        return replace(decision, reason=f"{decision.reason}; multiplies vectors, the rest is done with numpy")
    return BackendDecision("numpy", options.backend, f"{options.method} has this backend for its hits")


def searches_vectors(options: ScoreOptions) -> bool:
    """Whether the vectors of a job bring hits."""
    return options.vector_depth > 0 and (not options.source or VECTOR_SOURCE in options.source)


def refuse_source_of_vectors(hits: HitTable) -> None:
    """Refuse hits of a source that is called like that of the vectors.

    Raises
    ------
    InputDataError
        There are such hits.
    """
    if VECTOR_SOURCE in hits.source_names:
        raise InputDataError(
            f"queries: a source is called {VECTOR_SOURCE!r} ({hits.name}), which is what the hits of the search among "
            "vectors are called",
            expected="another name",
            fix="rename the source, or switch the search off (--vector-depth 0)",
        )


def with_vector_hits(
    hits: HitTable,
    vectors: JobVectors,
    store: GraphStore,
    filtered: npt.NDArray[np.bool_] | None,
    exclusions: Sequence[Exclusions],
    options: ScoreOptions,
) -> HitTable:
    """Add the nodes of largest cosine as hits of a source of their own, with the cosine as weight.

    Where candidates are hits and nothing else, what a query may not return is not found: filters and exclusions apply
    before the cut to ``vector_depth``. Elsewhere hits are seeds, which may be any nodes.

    Parameters
    ----------
    hits : those of other sources; all queries of the vectors are among its queries.
    vectors, store : node vectors of nodes that the graph does not have are not searched.
    filtered : mask over tie ranks, see `seedrank.jobs.queries.graph_selection.GraphSelection`.
    exclusions : those of the job.
    options : ``vector_depth``, ``method``.
    """
    ranked_alone = options.method in _RANKED_ALONE
    eligible = vectors.searched(store, filtered if ranked_alone else None)
    asked = np.arange(len(vectors.queries.ids))
    query_of = match_ids(vectors.queries.ids, hits.query_ids)
    pairs = [(np.zeros(0, np.int32), np.zeros(0, np.int32))]
    for some in exclusions if ranked_alone else ():
        of_query, excluded = some.among(vectors.nodes.ids, vectors.nodes.table.place_of_ids)
        if of_query is None:
            eligible[excluded] = False
        else:
            pairs.append((of_query, excluded))
    excluding, excluded = (np.concatenate(part) for part in zip(*pairs, strict=True))
    exclude_offsets, exclude_nodes = _by_asked(excluding, excluded, query_of, len(hits.query_ids))
    where: dict[str, Any] = {}
    if options.backend == "gpu":
        resolve_backend("gpu", work="products")  # refuses, with the reason, before CuPy is imported
        from seedrank.kernels.gpu_products import DeviceProducts  # noqa: PLC0415  # imports CuPy

        where = {"multiply": DeviceProducts(), "queries_at_once": DeviceProducts.QUERIES_AT_ONCE}
    found = nearest_vectors(
        vectors.queries.vectors,
        vectors.nodes.vectors,
        asked,
        k=options.vector_depth,
        eligible=eligible,
        exclude_offsets=exclude_offsets,
        exclude_nodes=exclude_nodes,
        **where,
    )
    counts = np.diff(found.offsets)
    places = np.arange(len(found.nodes)) - np.repeat(found.offsets[:-1], counts) + 1
    return _joined(hits, np.repeat(query_of, counts), vectors.nodes.table, found.nodes, found.cosines, places)


def points_away(
    source: npt.NDArray[np.int32] | None, names: tuple[str | None, ...], weight: npt.NDArray[np.float64]
) -> npt.NDArray[np.bool_]:
    """Mask of the hits that a search among vectors found with a negative cosine: they are no seeds."""
    if source is None:
        return np.zeros(len(weight), dtype=np.bool_)
    away: npt.NDArray[np.bool_] = (source == names.index(VECTOR_SOURCE)) & (weight < 0)
    return away


def _by_asked(
    of_query: npt.NDArray[np.int32], excluded: npt.NDArray[np.int32], query_of: npt.NDArray[np.int32], queries: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Exclusions of the queries of the job as rows of those that have a vector."""
    asked_of = np.full(queries, -1, dtype=np.int64)
    asked_of[query_of] = np.arange(len(query_of))
    asked = asked_of[of_query]
    by_asked = np.lexsort((excluded, asked))
    by_asked = by_asked[asked[by_asked] >= 0]
    return offsets_of(np.bincount(asked[by_asked], minlength=len(query_of))), excluded[by_asked].astype(np.int64)


def _joined(
    hits: HitTable,
    query: npt.NDArray[np.int32],
    vectors: VectorTable,
    position: npt.NDArray[np.int64],
    cosine: npt.NDArray[np.float64],
    place: npt.NDArray[np.int64],
) -> HitTable:
    """Put found nodes (positions among the vectors' ids), with their cosines and places, among the hits."""
    used, code = np.unique(position, return_inverse=True)
    ids = vectors.ids.take(pa.array(used))
    (old, new), node_ids = union_of_ids((hits.node_ids, hits.place("node_id")), (ids, vectors.place_of_ids))
    unnamed = hits.source is None and len(hits.query) > 0
    named = sorted({VECTOR_SOURCE, *(name for name in hits.source_names if name is not None)})
    names = (*named, None) if unnamed or None in hits.source_names else tuple(named)
    of_source = np.array([names.index(name) for name in hits.source_names or (None,) if name in names], np.int32)
    given = np.zeros(len(hits.query), np.int32) if hits.source is None else hits.source
    found = np.full(len(query), names.index(VECTOR_SOURCE), np.int32)
    queries = np.concatenate((hits.query, query))
    nodes = np.concatenate((resolve(old, hits.node), new[code]))
    sources = np.concatenate((of_source[given], found))
    weights = np.concatenate((hits.weight, cosine))
    ranks = None if hits.rank is None else np.concatenate((hits.rank, place))
    factors = hits.retriever_weight
    factors = None if factors is None else np.concatenate((factors, np.ones(len(query))))
    order = hit_order(queries, sources, nodes, (weights, ranks, factors))
    return replace(
        hits,
        query=queries[order],
        node_ids=node_ids,
        node=nodes[order],
        weight=weights[order],
        rank=None if ranks is None else ranks[order],
        retriever_weight=None if factors is None else factors[order],
        source=sources[order],
        source_names=names,
    )


def union_of_ids(
    first: tuple[pa.Array, str], second: tuple[pa.Array, str]
) -> tuple[tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]], pa.Array]:
    """Positions of two arrays of ids among the distinct ids of both, and these, sorted."""
    kind = common_id_type([(first[0].type, first[1]), (second[0].type, second[1])])
    encoder = IdEncoder(kind)
    encoder.append(first[0].cast(kind))
    encoder.append(second[0].cast(kind))
    (codes,), ids = encoder.finish()
    return (codes[: len(first[0])], codes[len(first[0]) :]), ids
