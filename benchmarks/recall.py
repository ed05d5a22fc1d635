"""How fast walks, traversals and paths are.

    python benchmarks/recall.py --quick
    python benchmarks/recall.py                 # RMAT 17 and 20, and public graphs where they are

Three questions: how many steps a second a walk makes on one core; how long a breadth-first traversal to depth 2 that
visits about 10,000 nodes takes beside networkx, with the same anchors and no budget on either side; how long 10,000
queries of five anchors take with and without the paths to their 100 best nodes. Kernels only, from seed nodes to
arrays of nodes, with the graph loaded and the code compiled. Written to ``results/recall.json``.
"""

from __future__ import annotations

import argparse
import heapq
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from graphs import SEEDS_PER_QUERY, SHARED, Int32Array, SimpleGraph, available_graphs, load_graph, make_queries
from measure import alternating_minima, write_results
from own import own_edges

from seedrank.kernels.building.adjacency import build_adjacency
from seedrank.kernels.paths import shortest_paths
from seedrank.kernels.recall.forms import RecallLimits, RecallQueries, RecallResult
from seedrank.kernels.recall.recall_graph import RecallGraph, build_recall_graph
from seedrank.kernels.recall.traverse import breadth_first
from seedrank.kernels.recall.walk import random_walk
from seedrank.kernels.recall.walk_graph import WalkGraph, build_walk_graph

STEPS = 1_000
RESTART = 0.2
TOP_K = 100
BLOCK = 256
VISITED = 10_000
"""Nodes that the traversals compared with networkx visit, within a tenth."""

COMMON: dict[str, Any] = {"k": TOP_K, "eligible": None, "min_score": 0.0, "precision": "float32"}


@dataclass(frozen=True)
class Loaded:
    """A graph as the kernels have it, with and without weights for walks."""

    name: str
    graph: RecallGraph
    inverse_order: Int32Array
    walks: dict[str, WalkGraph]


def load(simple: SimpleGraph) -> Loaded:
    """Build the adjacency; weights are drawn, between 1/2 and 5."""
    source, target, direction = own_edges(simple)
    weights = np.random.default_rng(3).integers(1, 11, len(source)) / 2
    walks = {}
    for kind, weight in (("weighted", weights), ("unweighted", None)):
        pair = build_adjacency(source, target, weight, None, nodes=simple.nodes, duplicate_edges="sum")
        graph = build_recall_graph(
            pair.by_source, pair.by_destination, pair.order, direction=direction, type_weights=None
        )
        walks[kind] = build_walk_graph(graph)
    return Loaded(simple.name, graph, pair.inverse_order, walks)


def queries_of(loaded: Loaded, seeds: Int32Array) -> RecallQueries:
    """Queries from (b, s) nodes, ascending in a row, which they do not return."""
    count, size = seeds.shape
    anchors = loaded.inverse_order[seeds.ravel()]
    offsets = np.arange(0, count * size + 1, size, dtype=np.int64)
    return RecallQueries(
        anchor_offsets=offsets,
        anchors=anchors,
        query_keys=np.arange(count, dtype=np.uint64),
        anchor_keys=seeds.ravel().astype(np.uint64),
        exclude_offsets=offsets,
        exclude_nodes=anchors,
    )


def walk(walks: WalkGraph, queries: RecallQueries, threads: int) -> RecallResult:
    """Walk for a block of queries, without limits."""
    return random_walk(
        walks, queries, restart=RESTART, steps=STEPS, random_seed=0, limits=RecallLimits(), threads=threads, **COMMON
    )


def two_hops(graph: RecallGraph, queries: RecallQueries, threads: int, most: int | None = None) -> RecallResult:
    """Traverse two levels for a block of queries."""
    limits = RecallLimits(max_hops=2, max_visited_nodes=most)
    return breadth_first(graph, queries, hop_decay=0.5, limits=limits, threads=threads, **COMMON)


def bench_walks(loaded: Loaded, simple: SimpleGraph, rounds: int) -> list[dict[str, Any]]:
    """Millions of steps a second, on one thread and on all."""
    processors = os.cpu_count() or 1
    rows = []
    for anchors in (1, SEEDS_PER_QUERY):
        queries = queries_of(loaded, make_queries(simple, BLOCK)[:, :anchors])
        for kind, walks in loaded.walks.items():
            runs = {str(threads): partial(walk, walks, queries, threads) for threads in dict.fromkeys((1, processors))}
            best = alternating_minima(runs, rounds=dict.fromkeys(runs, rounds))
            rate = {threads: BLOCK * anchors * STEPS / seconds / 1e6 for threads, seconds in best.items()}
            rows.append({"graph": loaded.name, "edges": kind, "anchors": anchors, "million_steps_a_second": rate})
            shown = ", ".join(f"{value:.1f} M/s on {threads} threads" for threads, value in rate.items())
            print(f"walk, {loaded.name}, {kind}, {anchors} anchors a query: {shown}", flush=True)
    return rows


def bench_networkx(loaded: Loaded, simple: SimpleGraph, count: int, rounds: int) -> dict[str, Any]:
    """Traversals that visit about 10,000 nodes within two hops, beside networkx."""
    candidates = np.random.default_rng(4).permutation(np.flatnonzero(simple.out_degree))[:20_000, None]
    visited = np.concatenate(
        [
            two_hops(loaded.graph, queries_of(loaded, candidates[first : first + BLOCK]), 1).visited_nodes
            for first in range(0, len(candidates), BLOCK)
        ]
    )
    wanted = visited.max() if visited.max() < VISITED else VISITED
    anchors = candidates[np.abs(visited - wanted) <= wanted / 10][:count]
    queries = queries_of(loaded, anchors)
    peer: Any = nx.Graph() if simple.undirected else nx.DiGraph()
    peer.add_edges_from(zip(simple.source.tolist(), simple.target.tolist(), strict=True))
    nodes = anchors.ravel().tolist()
    threads = os.cpu_count() or 1
    peers: dict[str, Callable[[], object]] = {
        "networkx, distances": lambda: [nx.single_source_shortest_path_length(peer, node, cutoff=2) for node in nodes],
        "networkx, 100 best": lambda: [networkx_best(peer, node) for node in nodes],
    }
    own: dict[str, Callable[[], object]] = {
        "one thread": lambda: two_hops(loaded.graph, queries, 1),
        "one thread, with a budget": lambda: two_hops(loaded.graph, queries, 1, 2 * VISITED),
        f"{threads} threads": lambda: two_hops(loaded.graph, queries, threads),
    }
    best = alternating_minima(peers | own, rounds=dict.fromkeys(peers, rounds) | dict.fromkeys(own, 3 * rounds))
    found = two_hops(loaded.graph, queries, threads)
    if [loaded.graph.order[row].tolist() for row in found.nodes] != [networkx_best(peer, node) for node in nodes]:
        raise SystemExit("seedrank and networkx find different nodes")
    milliseconds = {name: seconds / len(nodes) * 1e3 for name, seconds in best.items()}
    ratios = {name: {peer: best[peer] / best[name] for peer in peers} for name in own}
    visited_nodes, visited_edges = float(found.visited_nodes.mean()), float(found.visited_edges.mean())
    print(f"two hops, {loaded.name}, {len(nodes)} anchors, {visited_nodes:,.0f} nodes and {visited_edges:,.0f} edges")
    for name, value in milliseconds.items():
        times = ", ".join(f"{ratio:.0f} x {peer}" for peer, ratio in ratios.get(name, {}).items())
        print(f"    {name}: {value:.3f} ms a query {times}", flush=True)
    return {
        "graph": loaded.name,
        "queries": len(nodes),
        "visited_nodes": visited_nodes,
        "visited_edges": visited_edges,
        "milliseconds_a_query": milliseconds,
        "ratios": ratios,
    }


def networkx_best(graph: Any, anchor: int) -> list[int]:
    """The same answer by networkx: the 100 nearest, of equally near ones the lowest ids."""
    distances = nx.single_source_shortest_path_length(graph, anchor, cutoff=2)
    del distances[anchor]
    return heapq.nsmallest(TOP_K, distances, key=lambda node: (distances[node], node))


def bench_paths(loaded: Loaded, simple: SimpleGraph, count: int) -> list[dict[str, Any]]:
    """Seconds for many queries, and for the paths to what they found, on all threads."""
    threads = os.cpu_count() or 1
    seeds = make_queries(simple, count)
    rows = []
    for method in ("walk", "bfs"):
        found_in = paths_in = 0.0
        paths = 0
        for first in range(0, count, BLOCK):
            queries = queries_of(loaded, seeds[first : first + BLOCK])
            begin = time.perf_counter()
            result = (
                walk(loaded.walks["unweighted"], queries, threads)
                if method == "walk"
                else two_hops(loaded.graph, queries, threads, VISITED)
            )
            found = time.perf_counter()
            filled = np.arange(TOP_K) < result.counts[:, None]
            table = shortest_paths(
                loaded.graph,
                queries.anchor_offsets,
                queries.anchors,
                np.concatenate(([0], np.cumsum(result.counts))),
                result.nodes[filled],
                from_anchors=result.anchors[filled],
                threads=threads,
            )
            found_in += found - begin
            paths_in += time.perf_counter() - found
            paths += len(table.hops)
        rows.append(
            {"graph": loaded.name, "method": method, "queries": count, "seconds": found_in, "paths": paths,
             "seconds_of_paths": paths_in}
        )  # fmt: skip
        print(
            f"{method}, {loaded.name}: {count:,} queries {found_in:.2f} s, {paths:,} paths {paths_in:.2f} s", flush=True
        )
    return rows


def main() -> None:
    """Measure what is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="RMAT 12 and few queries: only to see that it works")
    parser.add_argument("--walks-on", default="rmat20", help="graph for walks (default: %(default)s)")
    parser.add_argument("--traversals-on", default="rmat17", help="graph for networkx (default: %(default)s)")
    parser.add_argument("--queries", type=int, default=10_000, help="with paths (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(default: %(default)s)")
    parser.add_argument("--shared", type=Path, default=SHARED, help="folder of public graphs")
    parser.add_argument("--cache", type=Path, help="existing folder in which generated graphs are kept")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.walks_on = chosen.traversals_on = "rmat12"
        chosen.queries, chosen.rounds = 300, 1

    def graph(name: str) -> tuple[Loaded, SimpleGraph]:
        simple = load_graph(name, shared=chosen.shared, cache=chosen.cache)
        return load(simple), simple

    walks = bench_walks(*graph(chosen.walks_on), chosen.rounds)
    traversals = bench_networkx(*graph(chosen.traversals_on), 8 if chosen.quick else 256, chosen.rounds)
    public = [name for name in ("wordnet30", "graphrag_2wiki1000") if name in available_graphs(chosen.shared)]
    paths = [row for name in public or [chosen.traversals_on] for row in bench_paths(*graph(name), chosen.queries)]
    parameters = {
        "steps": STEPS, "restart": RESTART, "top_k": TOP_K, "block": BLOCK, "rounds": chosen.rounds,
        "queries": chosen.queries,
    }  # fmt: skip
    content = {"walks": walks, "traversals": traversals, "paths": paths}
    print(write_results("recall-quick" if chosen.quick else "recall", parameters, content))


if __name__ == "__main__":
    main()
