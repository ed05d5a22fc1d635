"""Random walks with restart on a GPU: the twin of `seedrank.kernels.recall.walk`. Importing it imports CuPy."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import cupy
import numpy as np

from seedrank.errors import KernelError, ResourceError
from seedrank.kernels._gpu.device import blocks, device_errors, filled, free_bytes, stripes
from seedrank.kernels._gpu.recall_graph import DeviceRecallGraph
from seedrank.kernels._gpu.recall_parts import (
    MOST_QUERIES,
    NEVER,
    NO_LIMIT,
    USABLE,
    choose_places,
    launch_recall,
    owners,
    queries_of,
    write_ranked,
)
from seedrank.kernels._gpu.source import LANES, RECALL_THREADS
from seedrank.kernels.arrays import BoolArray, Int64Array, Precision
from seedrank.kernels.recall.forms import LIMITS, RecallLimits, RecallQueries, RecallResult, StopFlags, UInt8Array
from seedrank.kernels.recall.walk_numbers import largest_restart, walk_keys
from seedrank.kernels.runs import offsets_of

STRETCH = 512
"""Steps between two looks at the stop flags."""

MOST_STEPS = 1 << 28
"""Steps of a query from all its anchors: so many, numbers of steps and of places in its tables have 32 bits."""

_FREE = -1


def random_walk_on_device(
    graph: DeviceRecallGraph,
    queries: RecallQueries,
    *,
    restart: float,
    steps: int,
    random_seed: int,
    limits: RecallLimits,
    k: int,
    eligible: BoolArray | None,
    min_score: float,
    precision: Precision,
    flags: StopFlags | None = None,
) -> RecallResult:
    """Walk from every anchor of every query, and rank the nodes; `seedrank.kernels.recall.walk` states the rules.

    The result is that of the CPU, bit for bit: same random numbers, same choices, integer counts. All walkers of as
    many queries as the free memory holds walk together. Every step is written down, what a budget leaves of them is cut
    afterwards, and visits are counted in hash tables: at most 160 bytes a step of an anchor, less where steps are many
    and nodes few.

    Parameters
    ----------
    graph : DeviceRecallGraph
        Uploaded with the running sums of a `seedrank.kernels.recall.walk_graph.WalkGraph`, where edges have weights.
    queries, restart, steps, random_seed, limits, k, eligible, min_score, precision
        See `seedrank.kernels.recall.walk.random_walk`.
    flags : StopFlags, optional
        Looked at every 512 steps; all queries that walk together start together.

    Returns
    -------
    RecallResult

    Raises
    ------
    MemoryError
        The device has no room for these queries.
    KernelError
        The kernels computed nonsense, or the driver refused a call.
    ResourceError
        A single query has 2**28 steps or more, from all its anchors together; the device is lost.
    """
    result = RecallResult.empty(queries.width, k, precision)
    walkers = np.diff(queries.anchor_offsets)
    if walkers.max(initial=0) * steps >= MOST_STEPS:
        raise ResourceError(
            f"a query has {int(walkers.max()):,} anchors, of {steps:,} steps each",
            expected=f"less than {MOST_STEPS:,} steps of a query on a GPU",
            fix="lower --walk-steps, or use --backend cpu",
        )
    used = StopFlags.none(queries.width) if flags is None else flags
    kind = np.dtype(precision).type
    lowest = max(kind(min_score), np.nextafter(kind(0), kind(1)))
    setting = _Setting(
        restart=largest_restart(restart),
        steps=steps,
        random_seed=random_seed,
        limits=limits,
        # Scores grow with visits, so a lowest score is a lowest number of visits.
        least=1 + bisect_left(range(1, steps + 1), True, key=lambda visits: bool(kind(visits / steps) >= lowest)),
        precision=precision,
    )
    with device_errors():
        room = int(USABLE * free_bytes())
        tables = _Tables.of(walkers, steps, graph.nodes)
        taken = tables.bytes(walkers, steps)
        first = 0
        while first < queries.width:
            last = int(np.searchsorted(np.cumsum(taken[first : first + MOST_QUERIES]), room, side="right"))
            last = first + max(last, 1)
            _walk(graph, queries_of(queries, first, last), setting, k, eligible, used, first, result)
            first = last
    return result


@dataclass(frozen=True)
class _Setting:
    """What all queries of a run share; `least` is the lowest number of visits that counts."""

    restart: np.uint64
    steps: int
    random_seed: int
    limits: RecallLimits
    least: int
    precision: Precision


@dataclass(frozen=True)
class _Tables:
    """Hash tables, one after the other, of powers of two of places: by query and by walker.

    Attributes
    ----------
    starts : int64 (B + 1)
        Where the tables of the queries begin.
    places : int
        Of the table of each walker.
    """

    starts: Int64Array
    places: int

    @classmethod
    def of(cls, walkers: Int64Array, steps: int, nodes: int) -> _Tables:
        """At most half full, whatever the walkers do."""
        sizes = [_power(2 * min(own * (steps + 1), nodes)) for own in walkers.tolist()]
        return cls(offsets_of(sizes), _power(2 * min(steps, nodes)))

    def bytes(self, walkers: Int64Array, steps: int) -> Int64Array:
        """Memory of each query: of its tables, and of the events of its steps."""
        taken: Int64Array = 24 * np.diff(self.starts) + walkers * (12 * self.places + 8 * steps + 40)
        return taken


def _power(most: int) -> int:
    """The power of two that holds so many places, one of them free."""
    return 1 << max(1, most).bit_length()


def _walk(
    graph: DeviceRecallGraph,
    queries: RecallQueries,
    setting: _Setting,
    k: int,
    eligible: BoolArray | None,
    flags: StopFlags,
    first: int,
    result: RecallResult,
) -> None:
    """Walk for some queries, and write rows `first` and following of the result."""
    part = slice(first, first + queries.width)
    walkers, steps, single = len(queries.anchors), setting.steps, setting.precision == "float32"
    events = walkers * steps
    anchors, first_walker = cupy.asarray(queries.anchors), cupy.asarray(queries.anchor_offsets.astype(np.int32))
    query_of = cupy.asarray(owners(queries.anchor_offsets))
    nodes, hops = cupy.empty(events, np.int32), cupy.empty(events, np.int32)
    ends = _make_steps(graph, queries, setting, (anchors, query_of, nodes, hops), flags, part)
    tables = _Tables.of(np.diff(queries.anchor_offsets), steps, graph.nodes)
    starts, size, own_size = cupy.asarray(tables.starts), int(tables.starts[-1]), walkers * tables.places
    by_walker, by_event = (blocks(walkers, RECALL_THREADS),), (stripes(events, RECALL_THREADS),)

    keys, seen = filled(size, _FREE, np.int32), filled(size, NEVER, np.int32)
    launch_recall("enter_anchors", by_walker, anchors, query_of, starts, walkers, keys, seen)
    launch_recall(
        "enter_nodes", by_event, nodes, query_of, first_walker, starts, ends, walkers, np.int64(events), keys, seen
    )
    cuts, limits = cupy.empty(queries.width, np.int32), cupy.empty(queries.width, np.uint8)
    visited, edges = cupy.empty(queries.width, np.int64), cupy.empty(queries.width, np.int64)
    most = (setting.limits.max_visited_nodes, setting.limits.max_visited_edges)
    launch_recall(
        "cut_walks", (queries.width,), nodes, hops, first_walker, starts, ends, walkers, steps,
        *(np.int64(NO_LIMIT if limit is None else limit) for limit in most), keys, seen, cuts, visited, edges, limits,
        threads=LANES,
    )  # fmt: skip
    del seen
    own_keys = filled(own_size, _FREE, np.int32)
    visits, fewest = cupy.zeros(own_size, np.int32), filled(own_size, NEVER, np.int32)
    launch_recall(
        "count_visits", by_event, nodes, hops, query_of, first_walker, cuts, walkers, np.int64(events), tables.places,
        own_keys, visits, fewest,
    )  # fmt: skip
    _check(cuts, ends, limits.get(), np.diff(queries.anchor_offsets), int(visits.sum().get().item()))
    best, ranked = cupy.zeros(size, np.uint64), cupy.empty(size, np.uint64)
    launch_recall(
        "best_walkers", (stripes(own_size, RECALL_THREADS),), own_keys, visits, query_of, first_walker, starts,
        np.int64(own_size), tables.places, keys, best,
    )  # fmt: skip
    excluded = queries.exclude_nodes
    launch_recall(
        "exclude_walks", (blocks(len(excluded), RECALL_THREADS),), cupy.asarray(excluded),
        cupy.asarray(owners(queries.exclude_offsets)), starts, len(excluded), keys, best,
    )  # fmt: skip
    widest = int(np.diff(tables.starts).max())
    launch_recall(
        "rank_walks", (stripes(widest, RECALL_THREADS), queries.width), starts, graph.order, keys, best,
        graph.mask(eligible), setting.least, steps, int(single), ranked,
    )  # fmt: skip
    found, chosen, counts = choose_places(ranked, tables.starts[:-1], tables.starts[1:], k)
    described = [cupy.empty(queries.width * k, np.int32) for _ in range(4)]
    launch_recall(
        "describe_walks", (blocks(k, RECALL_THREADS), queries.width), found, chosen, k, first_walker, keys, best,
        tables.places, own_keys, fewest, *described,
    )  # fmt: skip
    node, visit, walker, hop = (column.get().reshape(queries.width, k) for column in described)
    scores = (visit / steps).astype(setting.precision)
    write_ranked(result, first, queries, graph.order_host, counts, (node, scores, hop, walker, visit))
    result.visited_nodes[part], result.visited_edges[part] = visited.get(), edges.get()
    result.limit[part] = limits.get()


def _check(cuts: cupy.ndarray, ends: cupy.ndarray, limits: UInt8Array, walkers: Int64Array, visits: int) -> None:
    """Notice kernels that did nothing: without a budget all steps count, and every step that counts is a visit."""
    counted, made = cuts.get().astype(np.int64), ends.get().astype(np.int64) * walkers
    budgets = (limits == LIMITS.index("max_visited_nodes")) | (limits == LIMITS.index("max_visited_edges"))
    if (counted > made).any() or (counted < made)[~budgets].any() or counted.sum() != visits:
        raise KernelError(
            f"the walks on the GPU made {int(made.sum()):,} steps and counted {visits:,} visits",
            expected="a visit for every step that the budget allows",
            fix="report this with the output of `seedrank info`, and use --backend cpu",
        )


def _make_steps(
    graph: DeviceRecallGraph,
    queries: RecallQueries,
    setting: _Setting,
    device: tuple[cupy.ndarray, cupy.ndarray, cupy.ndarray, cupy.ndarray],
    flags: StopFlags,
    part: slice,
) -> cupy.ndarray:
    """Make all steps, some at a time, until flags end queries; returns how many each has made."""
    anchors, query_of, nodes, hops = device
    walkers, steps = len(queries.anchors), setting.steps
    streams = cupy.asarray(queries.anchor_keys)
    keys = cupy.asarray(walk_keys(queries.query_keys, setting.random_seed))
    position, hop = cupy.asarray(queries.anchors), cupy.zeros(walkers, np.int32)
    most_hops = NO_LIMIT if setting.limits.max_hops is None else setting.limits.max_hops
    ends = np.full(queries.width, steps, dtype=np.int32)
    walking = np.diff(queries.anchor_offsets) > 0
    flags.started[part] = 1
    made = 0
    while made < steps:
        # A flag that is raised from here on ends the query before the next stretch.
        ends[(flags.stop[part] != 0) & (ends == steps)] = made
        if not (ends[walking] > made).any():
            break
        upto = min(made + STRETCH, steps)
        launch_recall(
            "walk_steps", (blocks(walkers, RECALL_THREADS),), *graph.sides[0], *graph.sides[1], anchors, streams,
            query_of, keys, cupy.asarray(ends), walkers, made, upto, setting.restart, np.int64(most_hops), position,
            hop, nodes, hops,
        )  # fmt: skip
        cupy.cuda.get_current_stream().synchronize()
        made = upto
    return cupy.asarray(ends)
