"""Indices beyond 2**31 in the kernels of walks and traversals: more steps and reached nodes than an ``int`` counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import shim
from far import NOTHING, Case, assert_wide, call, far, require_far_memory

from seedrank.kernels._gpu.source import kernel_source

ENTRY = 2**31 + 5
#: Walkers, the last one alone in its query, and the steps that they have made.
WALKERS, STEPS = 2**20 + 4, 2**11
#: Where the table of that query begins; the place of a number of 32 bits holds one that is empty, too.
TABLE, PLACES = 2**32 + 64, 8
#: Nodes of a graph, and queries that are traversed together.
NODES, QUERIES = 2**25 + 300, 71
NEVER = np.iinfo(np.int32).max
MOST = np.int64(2**62)

#: Computed in 32 bits, what stands on the left is another number: each has to be noticed.
NARROW = (
    ("const int64 first = offsets[node],", "const int first = offsets[node],"),
    ("const int64 event = (int64)step * walkers", "const int event = (int)step * walkers"),
    ("return start + at;\n}\n\n// The same", "return (unsigned)start + at;\n}\n\n// The same"),
    ("node) return start + at", "node) return (unsigned)start + at"),
    ("mask, nodes[event])], number)", "mask, nodes[(int)event])], number)"),
    ("number / own * walkers", "(int)(number / own) * walkers"),
    ("(int64)walker * places", "(int)walker * places"),
    ("(uint64)visits[at] << 32", "(uint64)visits[(int)at] << 32"),
    ("const int node = keys[at]", "const int node = keys[(int)at]"),
    ("(int64)(first_walker[query] + own) * places", "(int)(first_walker[query] + own) * places"),
    ("const int64 query = query_of[at];", "const int query = query_of[at];"),
    ("row[entry];", "row[(int)entry];"),
    ("base = query * nodes;\n    uint64 followed", "base = (int)query * nodes;\n    uint64 followed"),
    ("base = query * nodes;\n    for", "base = (int)query * nodes;\n    for"),
    ("found[(int64)query * nodes + at]", "found[(int)query * nodes + at]"),
    ("ways[(int64)query_of_exclusion[at] * nodes", "ways[(int)query_of_exclusion[at] * nodes"),
    ("base = query * nodes;\n    const int64 step", "base = (int)query * nodes;\n    const int64 step"),
    ("base = query * nodes;\n    const int place", "base = (int)query * nodes;\n    const int place"),
    ("const int64 first = firsts[query], last", "const int first = firsts[query], last"),
)  # fmt: skip

OWNERS = np.array([0, WALKERS - 1, WALKERS], np.int32)
STARTS = np.array([0, TABLE, TABLE + PLACES])
ENDS = np.array([0, STEPS + 3], np.int32)


def place_of(node: int) -> int:
    """Where a table holds a node that is alone in it."""
    return TABLE + ((node * 0x9E3779B97F4A7C15) % 2**64 >> 32) % PLACES


def table(node: int | None = None) -> npt.NDArray[np.int32]:
    """Keys of both tables: nothing, or one node in the last."""
    keys = far(TABLE + PLACES, np.int32, {TABLE: [-1] * PLACES, TABLE - 2**32: [-1] * PLACES})
    if node is not None:
        keys[place_of(node)] = node
    return keys


def of_walkers(value: int) -> npt.NDArray[np.int32]:
    """A number for every walker: 0, but of the last."""
    return far(WALKERS, np.int32, {-1: value})


def events(value: int, place: int = STEPS + 2) -> npt.NDArray[np.int32]:
    """A number for every step of every walker: 0, but of one of the last walker's."""
    return far((STEPS + 3) * WALKERS, np.int32, {place * WALKERS + WALKERS - 1: value})


EVENTS = np.int64((STEPS + 3) * WALKERS)
BY_EVENT = (int(-(-EVENTS // 256)),)


def walked(kernels: shim.Kernels) -> tuple[Any, Any]:
    """Three steps round a cycle whose entries stand far behind."""
    offsets, neighbors = ENTRY + np.arange(4), far(ENTRY + 3, np.int32, {ENTRY: [1, 2, 0]})
    sums = far(ENTRY + 3, np.int64, {ENTRY: [1, 1, 1]})
    nodes, hops = events(0), events(0)
    call(
        kernels, "walk_steps", (-(-WALKERS // 256),), (256,), offsets, neighbors, sums, NOTHING, NOTHING, NOTHING,
        of_walkers(0), far(WALKERS, np.uint64), of_walkers(1), np.zeros(2, np.uint64), ENDS, WALKERS, STEPS, STEPS + 3,
        np.uint64(0), MOST, of_walkers(0), of_walkers(0), nodes, hops, block=-1,
    )  # fmt: skip
    made = (STEPS + np.arange(3)) * WALKERS + WALKERS - 1
    return (nodes[made], hops[made]), ([1, 2, 0], [1, 2, 3])


def anchors_entered(kernels: shim.Kernels) -> tuple[Any, Any]:
    keys, seen = table(), far(TABLE + PLACES, np.int32)
    one = np.ones(1, np.int32)
    call(kernels, "enter_anchors", (1,), (256,), 5 * one, one, STARTS, 1, keys, seen, block=0)
    return (keys[place_of(5)], seen[place_of(5)]), (5, -1)


def nodes_entered(kernels: shim.Kernels) -> tuple[Any, Any]:
    keys, seen = table(), far(TABLE + PLACES, np.int32, {TABLE: [NEVER] * PLACES})
    call(
        kernels, "enter_nodes", BY_EVENT, (256,), events(6), of_walkers(1), OWNERS, STARTS, ENDS, WALKERS, EVENTS, keys,
        seen, block=-1,
    )  # fmt: skip
    return (keys[place_of(6)], seen[place_of(6)]), (6, STEPS + 2)


def cut(kernels: shim.Kernels) -> tuple[Any, Any]:
    seen = far(TABLE + PLACES, np.int32, {place_of(6): STEPS + 2})
    cuts, visited, edges, limits = (
        np.zeros(2, np.int32),
        np.zeros(2, np.int64),
        np.zeros(2, np.int64),
        np.zeros(2, "u1"),
    )
    call(
        kernels, "cut_walks", (2,), (32,), events(6), events(1), OWNERS, STARTS, ENDS, WALKERS, STEPS + 3, MOST, MOST,
        table(6), seen, cuts, visited, edges, limits, block=1,
    )  # fmt: skip
    return (cuts[1], visited[1], edges[1]), (STEPS + 3, 1, 1)


def visits_counted(kernels: shim.Kernels) -> tuple[Any, Any]:
    places = 2**12
    keys = far(WALKERS * places, np.int32, {-places: [-1] * places})
    visits, fewest = far(keys.size, np.int32), far(keys.size, np.int32, {-places: [NEVER] * places})
    call(
        kernels, "count_visits", BY_EVENT, (256,), events(0), events(4), of_walkers(1), OWNERS, ENDS, WALKERS, EVENTS,
        places, keys, visits, fewest, block=-1,
    )  # fmt: skip
    return (keys[-places], visits[-places], fewest[-places]), (0, 1, 4)


def best_found(kernels: shim.Kernels) -> tuple[Any, Any]:
    places = 2**12
    size = WALKERS * places
    keys = far(size, np.int32, {-places: [-1] * places, -1: 6})
    best = far(TABLE + PLACES, np.uint64)
    call(
        kernels, "best_walkers", (size // 256,), (256,), keys, far(size, np.int32, {-1: 9}), of_walkers(1), OWNERS,
        STARTS, np.int64(size), places, table(6), best, block=-1,
    )  # fmt: skip
    return best[place_of(6)], 9 << 32 | 0xFFFFFFFF


def walk_excluded(kernels: shim.Kernels) -> tuple[Any, Any]:
    best, one = far(TABLE + PLACES, np.uint64, {place_of(6): 5}), np.ones(1, np.int32)
    call(kernels, "exclude_walks", (1,), (256,), 6 * one, one, STARTS, 1, table(6), best, block=0)
    return best[place_of(6)], 0


def walks_ranked(kernels: shim.Kernels) -> tuple[Any, Any]:
    best, ranked = far(TABLE + PLACES, np.uint64, {place_of(6): 9 << 32}), far(TABLE + PLACES, np.uint64)
    order = np.arange(10, dtype=np.int32)
    call(
        kernels, "rank_walks", (1, 2), (256,), STARTS, order, table(6), best, NOTHING, 1, 10, 0, ranked, block=1
    )  # fmt: skip
    return ranked[place_of(6)], 9 << 32 | (0xFFFFFFFF - 6)


def walks_described(kernels: shim.Kernels) -> tuple[Any, Any]:
    places, place = 2**12, place_of(0)
    best = far(TABLE + PLACES, np.uint64, {place: 9 << 32 | 0xFFFFFFFF})
    own_keys, fewest = far(WALKERS * places, np.int32, {-places: [-1] * places}), far(WALKERS * places, np.int32)
    own_keys[-places], fewest[-places] = 0, 3
    out = [np.zeros(2, np.int32) for _ in range(4)]
    call(
        kernels, "describe_walks", (1, 2), (256,), np.array([0, 1], np.int32), np.array([0, place]), 1, OWNERS,
        table(0), best, places, own_keys, fewest, *out, block=1,
    )  # fmt: skip
    return [column[1] for column in out], [0, 9, 0, 3]


BASE = (QUERIES - 1) * NODES
LAST = NODES - 1


def of_nodes(values: dict[int, Any], dtype: npt.DTypeLike = np.int32) -> npt.NDArray[Any]:
    """A number for every node and query: 0, but of some of the last query's."""
    return far(QUERIES * NODES, dtype, {BASE + place: value for place, value in values.items()})


def of_queries(value: int, dtype: npt.DTypeLike = np.int32) -> npt.NDArray[Any]:
    return far(QUERIES, dtype, {-1: value})


def rows() -> tuple[Any, ...]:
    """The last node leads to the one before it."""
    offsets = far(NODES + 1, np.int64, {-2: [ENTRY, ENTRY + 1]})
    offsets[-3] = ENTRY
    return offsets, far(ENTRY + 1, np.int32, {-1: LAST - 1}), NOTHING, NOTHING, far(NODES, np.int32), NODES


def level_started(kernels: shim.Kernels) -> tuple[Any, Any]:
    hops, origins, ways, found = of_nodes({LAST: 8}), of_nodes({}), of_nodes({}, np.uint64), of_nodes({})
    call(
        kernels, "start_levels", (1,), (256,), np.array([LAST], np.int32), np.array([QUERIES - 1], np.int32),
        of_queries(0), 1, NODES, hops, origins, ways, found, block=0,
    )  # fmt: skip
    return (hops[-1], ways[-1], found[BASE]), (0, 1, LAST)


def level_reached(kernels: shim.Kernels) -> tuple[Any, Any]:
    hops, origins = of_nodes({LAST - 1: -1}), of_nodes({LAST: 2, LAST - 1: NEVER})
    found, counts, edges = of_nodes({0: LAST}), of_queries(1), of_queries(0, np.uint64)
    call(
        kernels, "reach_level", (1, QUERIES), (32, 8), *rows(), of_queries(0), of_queries(1), 1, hops, origins, found,
        counts, edges, block=-1,
    )  # fmt: skip
    return (hops[-2], origins[-2], found[BASE + 1], counts[-1], edges[-1]), (1, 2, LAST - 1, 2, 1)


def ways_counted(kernels: shim.Kernels) -> tuple[Any, Any]:
    ways = of_nodes({LAST: 3}, np.uint64)
    call(
        kernels, "count_ways", (1, QUERIES), (32, 8), *rows(), of_queries(0), of_queries(1), 1,
        of_nodes({LAST - 1: 1}), of_nodes({}), of_nodes({0: LAST}), ways, block=-1,
    )  # fmt: skip
    return ways[-2], 3


def edges_left(kernels: shim.Kernels) -> tuple[Any, Any]:
    offsets, *_ = rows()
    left = of_queries(0)
    call(
        kernels, "has_edges", (1, QUERIES), (256,), offsets, NOTHING, NODES, of_queries(0), of_queries(1),
        of_nodes({0: LAST}), left, block=-1,
    )  # fmt: skip
    return left[-1], 1


def level_excluded(kernels: shim.Kernels) -> tuple[Any, Any]:
    ways, last = of_nodes({LAST: 3}, np.uint64), np.array([LAST], np.int32)
    call(
        kernels, "exclude_levels", (1,), (256,), last, np.array([QUERIES - 1], np.int32), 1, NODES, ways, block=0
    )  # fmt: skip
    return ways[-1], 0


def levels_ranked(kernels: shim.Kernels) -> tuple[Any, Any]:
    ranked = of_nodes({}, np.uint64)
    call(
        kernels, "rank_levels", (1, QUERIES), (256,), far(NODES, np.int32, {-1: 7}), NODES, of_queries(1),
        of_nodes({0: LAST}), of_nodes({LAST: 1}), of_nodes({LAST: 3}, np.uint64), NOTHING,
        np.array([0, 4], np.int32), ranked, block=-1,
    )  # fmt: skip
    return ranked[BASE], 4 << 32 | (0xFFFFFFFF - 7)


def levels_described(kernels: shim.Kernels) -> tuple[Any, Any]:
    out = [far(QUERIES, np.int32) for _ in range(3)]
    ways = far(QUERIES, np.uint64)
    call(
        kernels, "describe_levels", (1, QUERIES), (256,), of_queries(1), of_queries(BASE, np.int64), 1, NODES,
        of_nodes({0: LAST}), of_nodes({LAST: 1}), of_nodes({LAST: 2}), of_nodes({LAST: 3}, np.uint64), *out, ways,
        block=-1,
    )  # fmt: skip
    return [column[-1] for column in (*out, ways)], [LAST, 1, 2, 3]


def best_chosen(kernels: shim.Kernels) -> tuple[Any, Any]:
    keys = far(ENTRY + 4, np.uint64, {ENTRY: [3, 9, 0, 5]})
    found, chosen = np.zeros(2, np.int32), np.zeros(4, np.int64)
    firsts, lasts = np.array([0, ENTRY]), np.array([0, ENTRY + 4])
    call(kernels, "choose_best", (2,), (256,), keys, firsts, lasts, 2, found, chosen, block=1)
    return (found[1], np.sort(chosen[2:])), (2, [ENTRY + 1, ENTRY + 3])


CASES = (
    walked, anchors_entered, nodes_entered, cut, visits_counted, best_found, walk_excluded, walks_ranked,
    walks_described, level_started, level_reached, ways_counted, edges_left, level_excluded, levels_ranked,
    levels_described, best_chosen,
)  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_indices_have_64_bits(case: Case) -> None:
    require_far_memory()
    assert_wide(case, kernel_source("recall"), NARROW)


def test_every_kernel_with_such_indices_has_a_case() -> None:
    """Kernels that index nothing but what a launch numbers, or the seeds of a block, have none."""
    names = set(shim.signatures(kernel_source("recall")))
    assert len(CASES) == len(names)
