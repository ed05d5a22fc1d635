"""How long one query takes in process, on a graph that is loaded: `seedrank.Ranker` on a public GraphRAG graph.

    python benchmarks/rerank.py
    python benchmarks/rerank.py --queries 50 --rounds 1

The task is that of `memgraphrag`: the hits of a question, 10 iterations of personalized PageRank with restart .5 in
both directions, the best 100 passages. Queries come one after another from Python, each as a list of (node id, weight);
the result is an Arrow table with ids. The MemGraphRAG paper reports 0.061 s a query on its own machine and graphs; the
ratio to that figure is printed for what it is worth. Other rows: the same to a tolerance of 1e-6, hybrid scores,
fusion, and the function `seedrank.rerank`, which loads the graph for every call. Of several rounds the fastest counts.
Nothing is asserted. Written to ``results/rerank.json``, of fewer queries than all to ``rerank-quick.json``.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from graphs import SHARED
from measure import write_results

import seedrank

GRAPH = "graphrag_2wiki1000"
SOURCE = "entity_string"
#: Seconds a query in the MemGraphRAG paper.
PAPER_S = 0.061
LOADING_QUERIES = 5

Hits = list[tuple[str, float]]


def questions(folder: Path) -> list[tuple[str, Hits]]:
    """Seed sets of every question, by id."""
    table = pq.read_table(folder / "queries.parquet")
    table = table.filter(pc.equal(table["source"], SOURCE)).sort_by("query_id")
    found: dict[str, Hits] = {}
    for row in table.select(["query_id", "node_id", "weight"]).to_pylist():
        found.setdefault(row["query_id"], []).append((row["node_id"], row["weight"]))
    return list(found.items())


def measure(rank: Callable[[str, Hits], pa.Table], queries: list[tuple[str, Hits]], rounds: int) -> dict[str, float]:
    """Milliseconds a query: mean of the fastest round, median and 95th percentile within it."""
    rank(*queries[0])
    best: list[float] = []
    for _ in range(rounds):
        times = []
        for query, hits in queries:
            begin = time.perf_counter()
            rank(query, hits)
            times.append(1000 * (time.perf_counter() - begin))
        if not best or sum(times) < sum(best):
            best = times
    return {
        "mean_ms": statistics.fmean(best),
        "median_ms": statistics.median(best),
        "p95_ms": statistics.quantiles(best, n=20)[-1] if len(best) > 1 else best[0],
    }


def rows_of(
    store: seedrank.GraphStore, queries: list[tuple[str, Hits]], rounds: int, threads: int | None
) -> list[dict[str, Any]]:
    """Measure every way of ranking."""
    passages: dict[str, Any] = {"node_type": ["passage"], "top_k": 100, "threads": threads}
    ways: dict[str, dict[str, Any]] = {
        "ppr, 10 iterations (memgraphrag)": {"preset": "memgraphrag", **passages},
        "ppr, tolerance 1e-6": {"direction": "both", "include_seeds": True, **passages},
        "hybrid, depth 1": {"method": "hybrid", "direction": "both", "include_expanded": True, **passages},
        "fuse": {"method": "fuse", "top_k": 100},
    }
    rows = []
    for name, options in ways.items():
        begin = time.perf_counter()
        ranker = seedrank.Ranker(store, **options)
        loading = time.perf_counter() - begin
        measured = measure(lambda query, hits, to=ranker: to.rank(hits, query_id=query), queries, rounds)  # type: ignore[misc]
        rows.append({"way": name, "load_s": loading, "queries": len(queries), **measured})
    options = ways["ppr, 10 iterations (memgraphrag)"]
    some = queries[:LOADING_QUERIES]
    measured = measure(lambda query, hits: seedrank.rerank(hits, store, query_id=query, **options), some, rounds)
    rows.append({"way": "the same, graph loaded by every call", "load_s": 0.0, "queries": len(some), **measured})
    return rows


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, help="questions, at most 1,000 (default: all)")
    parser.add_argument("--rounds", type=int, default=3, help="(default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="of a query (default: %(default)s)")
    parser.add_argument("--shared", type=Path, default=SHARED, help="folder of the public graphs")
    chosen = parser.parse_args()
    folder = chosen.shared / GRAPH
    if not folder.is_dir():
        print(f"left out: there is no {folder}")
        return
    queries = questions(folder)[: chosen.queries]
    with tempfile.TemporaryDirectory(prefix="seedrank-rerank-") as name:
        store = seedrank.build(folder / "edges.parquet", nodes=folder / "nodes.parquet", out=Path(name) / "graph")
        rows = rows_of(store, queries, chosen.rounds, chosen.threads)
    print(f"{GRAPH}: {store.facts.nodes:,} nodes, {store.facts.edges:,} edges; {chosen.rounds} rounds")
    print(f"{'way':<38}{'load s':>8}{'mean ms':>10}{'median':>9}{'p95':>9}{'0.061 s /':>11}")
    for row in rows:
        row["paper_over_mean"] = 1000 * PAPER_S / row["mean_ms"]
        print(
            f"{row['way']:<38}{row['load_s']:>8.2f}{row['mean_ms']:>10.2f}{row['median_ms']:>9.2f}{row['p95_ms']:>9.2f}"
            f"{row['paper_over_mean']:>10.0f}x"
        )
    parameters = {
        "graph": GRAPH,
        "queries": len(queries),
        "rounds": chosen.rounds,
        "threads": chosen.threads,
        "paper_seconds": PAPER_S,
    }
    print(write_results("rerank" if chosen.queries is None else "rerank-quick", parameters, {"rows": rows}))


if __name__ == "__main__":
    main()
