"""Shortest paths from anchors to candidates: the chain of edges that explains why a node was found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seedrank.kernels.arrays import BoolArray, Float64Array, Int32Array, Int64Array
from seedrank.kernels.recall.forms import StopFlags
from seedrank.kernels.recall.recall_graph import FollowedRows, RecallGraph
from seedrank.kernels.runs import offsets_of


@dataclass(frozen=True)
class PathTable:
    """One path for each of T targets, all steps in one table.

    Attributes
    ----------
    offsets : int64 (T + 1)
        Target t has the steps ``offsets[t]`` to ``offsets[t + 1]``, from the anchor on.
    source, target : int32
        Internal nodes at the ends of the edge as it is stored.
    types : int32 or None
        Type codes; None: untyped.
    weights : float64
        As stored, without type weights; 1 where the graph has none.
    reversed : bool
        Whether the step goes from `target` to `source`.
    hops : int32 (T)
        Length of the path; -1: the target cannot be reached, and has no steps.
    anchors : int32 (T)
        Internal node where the path begins; -1: none.
    ended : bool (B)
        Whether the query was ended before all its targets were looked for; those that were left count as not reached.
    """

    offsets: Int64Array
    source: Int32Array
    target: Int32Array
    types: Int32Array | None
    weights: Float64Array
    reversed: BoolArray
    hops: Int32Array
    anchors: Int32Array
    ended: BoolArray


def shortest_paths(
    graph: RecallGraph,
    anchor_offsets: Int64Array,
    anchors: Int32Array,
    target_offsets: Int64Array,
    targets: Int32Array,
    *,
    from_anchors: Int32Array | None = None,
    threads: int,
    flags: StopFlags | None = None,
) -> PathTable:
    """Find, for every target, the smallest of the shortest paths from its query's anchors.

    Paths of one length are compared node by node from the anchor on; the lower tie rank is smaller. So of several
    nearest anchors it is the lowest that counts. Of parallel edges between two nodes the path names the one of largest
    stored weight, then of the lowest type code (codes follow the order of type names), then one along its direction.

    Each target is searched for from both ends, always from the one that is cheaper to go on from; the search from the
    anchors is shared by all targets of a query. The result does not depend on where they meet.

    Parameters
    ----------
    graph : RecallGraph
    anchor_offsets, anchors : int64 (B + 1), int32
        Anchors of each query, internal nodes by ascending tie rank, each once.
    target_offsets, targets : int64 (B + 1), int32 (T)
        Internal nodes to which each query wants a path.
    from_anchors : int32 (T), optional
        For each target the anchor (an internal node) from which its path has to come; None: any anchor of its query.
    threads : int
        >= 1; results do not depend on it.
    flags : StopFlags, optional
        End the search for the targets of single queries.

    Returns
    -------
    PathTable
        In the order of `targets`.
    """
    # Numba is loaded when the first path is wanted.
    from seedrank.kernels._cpu import arguments  # noqa: PLC0415
    from seedrank.kernels._cpu.chunks import Work, run_in_chunks  # noqa: PLC0415
    from seedrank.kernels._cpu.paths import find_paths, new_search  # noqa: PLC0415

    wanted, width = np.arange(len(targets)), len(target_offsets) - 1
    query_of = np.arange(width)
    if from_anchors is not None:
        query = np.repeat(query_of, np.diff(target_offsets))
        wanted = np.lexsort((from_anchors, query))
        anchor_offsets, anchors, target_offsets = _by_anchor(query[wanted], from_anchors[wanted])
        query_of = query[wanted][target_offsets[:-1]]
    targets = targets[wanted]
    rows, incoming = arguments.row_arguments(graph.rows), arguments.row_arguments(graph.incoming)
    ranks = arguments.read_only(graph.order)
    stop, started = arguments.flag_arguments(flags, width)
    ended = np.zeros(width, dtype=np.bool_)
    hops = np.zeros(len(targets), dtype=np.int32)
    nodes = [np.zeros(0, dtype=np.int32)] * (len(target_offsets) - 1)

    def begin() -> Work:
        searches = new_search(graph.nodes), new_search(graph.nodes)

        def find(first: int, last: int) -> None:
            for group in range(first, last):
                sources = anchors[anchor_offsets[group] : anchor_offsets[group + 1]]
                part = slice(target_offsets[group], target_offsets[group + 1])
                query = query_of[group]
                started[query] = 1
                hops[part], nodes[group], left_out = find_paths(
                    rows, incoming, ranks, sources, targets[part], *searches, stop, query
                )
                if left_out:
                    ended[query] = True

        return find

    run_in_chunks(len(nodes), begin, threads=threads)
    return _table(graph, wanted, hops, np.concatenate([*nodes, np.zeros(0, dtype=np.int32)]), ended)


def _by_anchor(query: Int64Array, anchor: Int32Array) -> tuple[Int64Array, Int32Array, Int64Array]:
    """Groups of targets of one query and anchor, from sorted rows: anchor offsets, anchors, target offsets."""
    new = np.ones(len(query), dtype=np.bool_)
    new[1:] = (query[1:] != query[:-1]) | (anchor[1:] != anchor[:-1])
    starts = np.flatnonzero(new)
    return np.arange(len(starts) + 1), anchor[starts], np.append(starts, len(query))


def _table(graph: RecallGraph, wanted: Int64Array, hops: Int32Array, nodes: Int32Array, ended: BoolArray) -> PathTable:
    """Bring paths into the order of the targets, and name the edges between their nodes."""
    place = np.empty_like(wanted)
    place[wanted] = np.arange(len(wanted))
    lengths = (hops + 1).astype(np.int64)
    starts = np.cumsum(lengths) - lengths
    hops, lengths, starts = hops[place], lengths[place], starts[place]
    ends = np.cumsum(lengths)
    moved = nodes[np.repeat(starts - (ends - lengths), lengths) + np.arange(len(nodes))]
    anchors = np.full(len(hops), -1, dtype=np.int32)
    anchors[lengths > 0] = nodes[starts[lengths > 0]]
    offsets = offsets_of(np.maximum(hops, 0))
    step = np.ones(len(moved), dtype=np.bool_)
    step[ends[lengths > 0] - 1] = False
    leaving = np.flatnonzero(step)
    return PathTable(offsets, *_edges(graph, moved[leaving], moved[leaving + 1]), hops, anchors, ended)


def _edges(
    graph: RecallGraph, leaving: Int32Array, entering: Int32Array
) -> tuple[Int32Array, Int32Array, Int32Array | None, Float64Array, BoolArray]:
    """The edge of each step: stored source, stored target, type code, weight, reversed."""
    weight, kind = _heaviest(graph, graph.rows[0], leaving, entering)
    against = np.full(len(leaving), graph.rows[0].reversed)
    for side in graph.rows[1:]:
        other_weight, other_kind = _heaviest(graph, side, leaving, entering)
        better = (other_weight > weight) | ((other_weight == weight) & (other_kind < kind))
        weight, kind = np.where(better, other_weight, weight), np.where(better, other_kind, kind)
        against[better] = side.reversed
    source, target = np.where(against, entering, leaving), np.where(against, leaving, entering)
    return source, target, None if graph.rows[0].types is None else kind, weight, against


def _heaviest(
    graph: RecallGraph, side: FollowedRows, leaving: Int32Array, entering: Int32Array
) -> tuple[Float64Array, Int32Array]:
    """Weight and type code of the best edge of each step in one direction; weight -1 where there is none."""
    from seedrank.kernels._cpu import arguments  # noqa: PLC0415
    from seedrank.kernels._cpu.paths import heaviest_entries  # noqa: PLC0415

    entry = np.empty(len(leaving), dtype=np.int64)
    heaviest_entries(
        arguments.read_only(side.offsets),
        arguments.read_only(side.neighbors),
        arguments.read_only(np.zeros(0) if side.weights is None else side.weights),
        arguments.read_only(graph.order),
        leaving,
        entering,
        entry,
    )
    there = entry >= 0
    weight = np.where(there, 1.0, -1.0)
    if side.weights is not None:
        weight[there] = side.weights[entry[there]]
    kind = np.zeros(len(leaving), dtype=np.int32)
    if side.types is not None:
        kind[there] = side.types[entry[there]]
    return weight, kind
