"""Personalized PageRank beside other programs: milliseconds a query, as ratios to seedrank, in one run.

    python benchmarks/peers.py --quick          # less than two minutes
    python benchmarks/peers.py                  # RMAT 17 and 20, and public graphs where they are
    python benchmarks/peers.py --graphs rmat17 --peers scipy igraph

The task: restart .5, five seeds of equal weight a query, the best 100 nodes without the seeds; the graph is loaded
and everything is warm. Every program is checked against seedrank on a few queries before it is timed. Programs that
are not installed are left out, with the line that installs them (benchmarks/requirements-peers.txt has all).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from graphs import SHARED, Int32Array, SimpleGraph, available_graphs, load_graph, make_queries
from measure import alternating_minima, write_results
from own import FIXED, TIGHT, JobRun, Kernels, prepare_job
from peer import ITERATIONS, RESTART, TOP_K, Peer, best
from peer_graphx import GraphX
from peer_programs import FastPagerank, Igraph, MklBlock, Networkx, ScikitNetwork, SciPyBlock, TorchPpr
from peer_push import FinePush, ForwardPush

PEERS: dict[str, type[Peer]] = {
    "scipy": SciPyBlock,
    "mkl": MklBlock,
    "torch-ppr": TorchPpr,
    "igraph": Igraph,
    "networkx": Networkx,
    "scikit-network": ScikitNetwork,
    "fast-pagerank": FastPagerank,
    "push": ForwardPush,
    "fine-push": FinePush,
    "graphx": GraphX,
}

OWN_FIXED, OWN_TIGHT, OWN_JOB = "seedrank, 10 iterations", "seedrank, 1e-10", "seedrank.score, the whole job"

OWN_QUERIES = {OWN_FIXED: 256, OWN_TIGHT: 64}

LARGE = 4_000_000
"""From this many edges on two queries are checked instead of four."""

TIE = 1e-5
"""Scores that differ by less than this share count as tied at the cut."""


@dataclass
class Row:
    """One program on one graph; ratios are its time over seedrank's in the same run."""

    program: str
    computes: str
    milliseconds: float
    queries: int
    rounds: int
    overlap: float | None = None
    l1: float | None = None
    l1_to_solution: float | None = None
    ratio_fixed: float = 0.0
    ratio_tight: float = 0.0


@dataclass
class Table:
    """One graph."""

    graph: dict[str, Any]
    block_sizes: dict[str, int]
    rows: list[Row] = field(default_factory=list)
    job: dict[str, Any] = field(default_factory=dict)
    skipped: list[dict[str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Reference:
    """What seedrank says about the queries on which everybody is checked."""

    seeds: Int32Array
    vectors: dict[str, npt.NDArray[np.float64]]  # by goal

    def check(self, goal: str, scores: npt.NDArray[Any], tops: list[Int32Array]) -> dict[str, float]:
        """Share of the top 100 in common (ties at the cut are hits), largest L1 distances; of the first queries."""
        mine, solution = self.vectors[goal][: len(scores)], self.vectors["solution"][: len(scores)]
        shares = []
        for vector, seeds, top in zip(mine, self.seeds, tops, strict=False):
            expected = vector[best(vector, seeds)]
            expected = expected[expected > 0]
            hits = np.count_nonzero(vector[top[: len(expected)]] >= expected[-1] * (1 - TIE))
            shares.append(hits / len(expected))
        return {
            "overlap": float(np.mean(shares)),
            "l1": float(np.abs(scores - mine).sum(axis=1).max()),
            "l1_to_solution": float(np.abs(scores - solution).sum(axis=1).max()),
        }


def measure_graph(graph: SimpleGraph, chosen: argparse.Namespace) -> Table:
    """Load, check and time every program on a graph."""
    kernels = Kernels(graph)
    seeds = make_queries(graph, max(*OWN_QUERIES.values(), chosen.job_queries))
    checked = seeds[: 2 if graph.edges >= LARGE else 4]
    reference = Reference(
        checked,
        {"iterations": kernels.vectors(checked, FIXED)[0], "solution": kernels.vectors(checked, TIGHT)[0]},
    )
    table = Table(graph.facts(), {"float32": kernels.width("float32"), "float64": kernels.width("float64")})
    runs: dict[str, Callable[[], object]] = {}
    rounds: dict[str, int] = {}
    for name, setting, goal in ((OWN_FIXED, FIXED, "iterations"), (OWN_TIGHT, TIGHT, "solution")):
        mine = seeds[: OWN_QUERIES[name]]
        runs[name] = lambda mine=mine, setting=setting: kernels.solve(mine, setting)  # type: ignore[misc]
        runs[name]()
        rounds[name] = 5
        row = Row(name, describe(name), 0.0, len(mine), rounds[name])
        check = reference.check(goal, reference.vectors[goal], kernels.top(checked, setting))
        row.overlap, row.l1_to_solution = check["overlap"], check["l1_to_solution"]
        table.rows.append(row)
    loaded: list[Peer] = []
    for key in chosen.peers:
        found = load_peer(key, graph, reference, seeds, chosen, loaded=loaded, table=table)
        if found is not None:
            peer = loaded[-1]
            runs[found.program] = lambda peer=peer, mine=seeds[: found.queries]: peer.top(mine)  # type: ignore[misc]
            rounds[found.program] = found.rounds
            table.rows.append(found)
    seconds = alternating_minima(runs, rounds=rounds, warm_up=False)  # the checks were the warm-up
    for row in table.rows:
        row.milliseconds = seconds[row.program] / row.queries * 1e3
    for peer in loaded:
        peer.close()
    if chosen.job_queries:
        measure_job(graph, seeds[: chosen.job_queries], reference, table)
    fixed, tight = (row.milliseconds for row in table.rows[:2])
    for row in table.rows:
        row.ratio_fixed, row.ratio_tight = row.milliseconds / fixed, row.milliseconds / tight
    return table


def load_peer(
    key: str,
    graph: SimpleGraph,
    reference: Reference,
    seeds: Int32Array,
    chosen: argparse.Namespace,
    *,
    loaded: list[Peer],
    table: Table,
) -> Row | None:
    """Load and check one program, and fix how many queries it is timed on; None when it is left out."""
    kind = PEERS[key]
    if kind.most_edges is not None and graph.edges > kind.most_edges and not chosen.no_limits:
        reason = f"more than {kind.most_edges:,} edges: {kind.too_large} (--no-limits runs it)"
        table.skipped.append({"program": kind.name, "reason": reason})
        return None
    begin = time.perf_counter()
    try:
        peer = kind(graph)
        blocks = np.split(reference.seeds, range(peer.block, len(reference.seeds), peer.block))
        scores, seconds = timed_scores(peer, blocks[:1])  # compiles, fills caches
        if seconds < chosen.seconds / 4:
            scores, seconds = timed_scores(peer, blocks)
    except (ImportError, OSError) as error:
        reason = f"not installed ({error}): {kind.install}"
        table.skipped.append({"program": kind.name, "reason": reason})
        return None
    except Exception as error:  # a peer that fails must not end the comparison of the others
        table.skipped.append({"program": kind.name, "reason": f"failed: {type(error).__name__}: {error}"})
        return None
    print(f"  {kind.name}: loaded and checked in {time.perf_counter() - begin:.1f} s", file=sys.stderr, flush=True)
    loaded.append(peer)
    per_query = seconds / len(scores)
    tops = [best(vector, excluded) for vector, excluded in zip(scores, reference.seeds, strict=False)]
    queries = max(1, min(int(chosen.seconds / 2 / per_query), 64, len(seeds)))
    if peer.block > 1:
        # A whole block, or the widest power of two that the time allows.
        queries = min(peer.block, 1 << max(int(np.log2(chosen.seconds / per_query)), 2))
        queries = peer.block if peer.always_whole else queries
    rounds = 3 if queries * per_query <= chosen.seconds / 3 else 2
    return Row(kind.name, kind.computes, 0.0, queries, rounds, **reference.check(kind.goal, scores, tops))


def timed_scores(peer: Peer, blocks: list[Int32Array]) -> tuple[npt.NDArray[Any], float]:
    """Vectors of some blocks, and the seconds that they took."""
    begin = time.perf_counter()
    scores = np.concatenate([peer.scores(block) for block in blocks])
    return scores, time.perf_counter() - begin


def measure_job(graph: SimpleGraph, seeds: Int32Array, reference: Reference, table: Table) -> None:
    """Time `seedrank.score` from stored graph and hits to the written table."""
    with tempfile.TemporaryDirectory(prefix="seedrank-peers-") as name:
        job = prepare_job(graph, seeds, Path(name))
        finished: list[JobRun] = [job() for _ in range(2)]
    fastest = min(finished, key=lambda run: run.seconds)
    row = Row(OWN_JOB, describe(OWN_JOB), fastest.seconds / len(seeds) * 1e3, len(seeds), len(finished))
    tops = fastest.top[: len(reference.seeds)]
    row.overlap = reference.check("iterations", reference.vectors["iterations"], tops)["overlap"]
    table.rows.insert(2, row)
    table.job = {"queries": len(seeds), "seconds": fastest.seconds, "stages": fastest.stages}


def describe(name: str) -> str:
    """What the rows of seedrank itself are."""
    return {
        OWN_FIXED: "cpu backend through the kernels: graph loaded once, 10 iterations, float32; all threads",
        OWN_TIGHT: "the same iterated to a truncation bound of 1e-10, float64",
        OWN_JOB: "from graph store and Parquet hits to the written candidate table; opening, laying out the graph, "
        "reading, 10 iterations, float32, writing",
    }[name]


def show(table: Table) -> None:
    """Print one graph's rows."""
    graph = table.graph
    print(f"\n{graph['name']}: {graph['nodes']:,} nodes, {graph['edges']:,} edges, {graph['dangling']:,} dangling")
    print(f"{'program':<32}{'ms a query':>12}{'/ 10 it.':>11}{'/ 1e-10':>11}{'top-100':>9}{'L1':>9}{'queries':>9}")
    for row in table.rows:
        overlap = "" if row.overlap is None else f"{row.overlap:.1%}"
        distance = "" if row.l1 is None else f"{row.l1:.0e}"
        print(
            f"{row.program:<32}{row.milliseconds:>12.3f}{row.ratio_fixed:>11.1f}{row.ratio_tight:>11.1f}"
            f"{overlap:>9}{distance:>9}{row.queries:>9}"
        )
    if table.job:
        stages = ", ".join(f"{name} {value:.2f}" for name, value in table.job["stages"].items())
        print(f"the job's seconds by stage: {stages}")
    for skipped in table.skipped:
        print(f"left out: {skipped['program']}: {skipped['reason']}")
    sys.stdout.flush()


def main() -> None:
    """Measure what the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="+", help="rmatSCALE or a public graph (default: all, see --quick)")
    parser.add_argument("--peers", nargs="+", choices=[*PEERS, "none"], help="(default: all)")
    parser.add_argument("--seconds", type=float, help="about how long a program is timed a round (default: 4)")
    parser.add_argument("--job-queries", type=int, help="queries of the whole job, 0: none (default: 2048)")
    parser.add_argument("--no-limits", action="store_true", help="run programs on graphs that are too large for them")
    parser.add_argument("--quick", action="store_true", help="small graphs, one second a program, without Spark")
    parser.add_argument("--shared", type=Path, default=SHARED, help="folder of the public graphs")
    parser.add_argument("--cache", type=Path, help="existing folder that keeps generated graphs")
    chosen = parser.parse_args()
    public = available_graphs(chosen.shared)
    if chosen.graphs is None:
        chosen.graphs = ["rmat14", *public[-1:]] if chosen.quick else ["rmat17", "rmat20", *public]
    if chosen.peers is None:
        chosen.peers = [name for name in PEERS if not (chosen.quick and name == "graphx")]
    chosen.peers = [name for name in chosen.peers if name != "none"]
    chosen.seconds = chosen.seconds or (1.0 if chosen.quick else 4.0)
    if chosen.job_queries is None:
        chosen.job_queries = 256 if chosen.quick else 2048
    tables = []
    for name in chosen.graphs:
        print(f"{name} …", file=sys.stderr, flush=True)
        table = measure_graph(load_graph(name, shared=chosen.shared, cache=chosen.cache), chosen)
        show(table)
        tables.append(asdict(table))
    parameters = {
        "restart": RESTART,
        "iterations": ITERATIONS,
        "top_k": TOP_K,
        "seeds_per_query": 5,
        "seconds": chosen.seconds,
        "quick": chosen.quick,
    }
    path = write_results("peers-quick" if chosen.quick else "peers", parameters, {"graphs": tables})
    print(f"\nwritten: {path}")


if __name__ == "__main__":
    main()
