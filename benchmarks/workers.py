"""What workers bring and cost: two against one, the price of a part, and kills at random moments.

    python benchmarks/workers.py --quick
    python benchmarks/workers.py --cache FOLDER

Speed: one run on RMAT 20 at ten iterations, restart .5, five seeds a query and the best 100 nodes, by one worker with
one thread, by two with one thread each, and by one process with two threads; in turns, the shortest counts. Scoring is
what is compared, from the first part to the last one written; start, and loading of graph and hits, stand beside it.
Price of a part: a toy graph and parts of one query; what a part takes one worker, less what one process scores and
writes it in.
Kills: a run whose workers last some seconds; at a random moment of it one of its two processes gets SIGKILL. The files
have to be those of a run by one process. Written to ``results/workers.json``.
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import psutil  # type: ignore[import-untyped]  # a dependency of distributed
import pyarrow as pa
import pyarrow.parquet as pq
from graphs import SHARED, SimpleGraph, load_graph, make_queries
from measure import write_results
from own import own_edges
from peer import ITERATIONS, RESTART, TOP_K

import seedrank

OPTIONS: dict[str, Any] = {
    "restart": RESTART,
    "max_iterations": ITERATIONS,
    "tolerance": 0.0,
    "top_k": TOP_K,
    "backend": "cpu",
}
ONE_WORKER, TWO_WORKERS, ONE_PROCESS = "1 worker, 1 thread", "2 workers, 1 thread each", "1 process, 2 threads"


class Job:
    """A graph store and hits in a folder; runs go beside them."""

    def __init__(self, graph: SimpleGraph, queries: int, folder: Path) -> None:
        source, target, direction = own_edges(graph)
        edges = pa.table({"src": source.astype(np.int64), "dst": target.astype(np.int64)})
        self._folder = folder
        self._options = {**OPTIONS, "direction": direction}
        self._store = seedrank.build(edges, out=folder / "graph")
        self._hits = folder / "hits.parquet"
        seeds = make_queries(graph, queries)
        query = np.repeat(np.arange(queries), seeds.shape[1])
        pq.write_table(pa.table({"query_id": query, "node_id": seeds.ravel().astype(np.int64)}), self._hits)

    def run(self, name: str, **options: Any) -> seedrank.Run:
        """Score into a folder of this name, which is emptied first."""
        out = self._folder / name
        shutil.rmtree(out, ignore_errors=True)
        return seedrank.score(self._store, queries=self._hits, out=out, **self._options, **options)


def content(run: seedrank.Run) -> dict[str, bytes]:
    """Bytes of all parts by name."""
    return {str(file.relative_to(run.path)): file.read_bytes() for file in run.path.rglob("*.parquet")}


def speed(graph: SimpleGraph, *, queries: int, parts: int, rounds: int, folder: Path) -> dict[str, Any]:
    """Time the three ways in turns."""
    job = Job(graph, queries, folder)
    ways: Mapping[str, dict[str, Any]] = {
        ONE_PROCESS: {"threads": 2},
        ONE_WORKER: {"threads": 1, "workers": 1},
        TWO_WORKERS: {"threads": 1, "workers": 2},
    }
    best: dict[str, dict[str, float]] = {}
    for _ in range(rounds):
        for way, options in ways.items():
            timings = dict(job.run("run", part_size=queries // parts, **options).manifest.timings_s)
            print(f"{way}: {timings}", flush=True)
            if way not in best or timings["score"] < best[way]["score"]:
                best[way] = timings
    scoring = {way: timings["score"] for way, timings in best.items()}
    return {
        "graph": graph.facts(),
        "queries": queries,
        "parts": parts,
        "seconds": best,
        "ratio": scoring[ONE_WORKER] / scoring[TWO_WORKERS],
        "ratio_of_totals": best[ONE_WORKER]["total"] / best[TWO_WORKERS]["total"],
        "against_threads": scoring[ONE_PROCESS] / scoring[TWO_WORKERS],
    }


def price(*, parts: int, rounds: int, folder: Path) -> dict[str, Any]:
    """Time parts that cost nothing by themselves."""
    job = Job(load_graph("rmat10", shared=SHARED, cache=None), parts, folder)
    best = {"process": float("inf"), "worker": float("inf")}
    for _ in range(rounds):
        for way, options in {"process": {}, "worker": {"workers": 1}}.items():
            begin = time.perf_counter()
            timings = job.run("run", part_size=1, threads=1, **options).manifest.timings_s
            print(f"{way}: {parts} parts, {time.perf_counter() - begin:.2f} s, {timings}", flush=True)
            # Of a worker the time from the first part to the last, writing included.
            best[way] = min(best[way], timings["score"] + timings.get("write", 0.0))
    each = {way: 1e3 * seconds / parts for way, seconds in best.items()}
    return {"parts": parts, "milliseconds_a_part": each, "overhead_ms": each["worker"] - each["process"]}


def kills(graph: SimpleGraph, *, queries: int, parts: int, times: int, folder: Path) -> dict[str, Any]:
    """Kill one of two workers at a random moment, so many times."""
    job = Job(graph, queries, folder)
    expected = content(job.run("alone", part_size=queries // parts))
    plain = job.run("run", part_size=queries // parts, workers=2, threads=1).manifest.timings_s
    generator, rows = random.Random(20), []  # noqa: S311  # moments, no secrets
    for _ in range(times):
        moment = generator.uniform(plain["start_workers"], plain["total"] - 0.5)
        killer = threading.Timer(moment, _kill_one, [generator])
        killer.start()
        begin = time.perf_counter()
        run = job.run("run", part_size=queries // parts, workers=2, threads=1)
        killer.join()
        rows.append(
            {
                "killed_after_s": round(moment, 2),
                "seconds": round(time.perf_counter() - begin, 2),
                "identical": content(run) == expected,
            }
        )
        print(rows[-1], flush=True)
    return {
        "graph": graph.facts(),
        "queries": queries,
        "parts": parts,
        "seconds_without": plain,
        "rows": rows,
        "identical": sum(row["identical"] for row in rows),
    }


def _kill_one(generator: random.Random) -> None:
    workers = [
        child
        for child in psutil.Process().children(recursive=True)
        if any("spawn_main" in argument for argument in child.cmdline())
    ]
    if workers:
        generator.choice(workers).kill()


def main() -> None:
    """Measure all three."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small graphs, one round, two kills")
    parser.add_argument("--cache", type=Path, help="existing folder that keeps generated graphs")
    parser.add_argument("--rounds", type=int, help="measurements of each way (default: 3; --quick: 1)")
    parser.add_argument("--queries", type=int, help="of the speed (default: 2048; --quick: 256)")
    chosen = parser.parse_args()
    scale, kill_scale = (13, 12) if chosen.quick else (20, 17)
    rounds = chosen.rounds or (1 if chosen.quick else 3)
    queries = chosen.queries or (256 if chosen.quick else 2048)
    times, parts = (2, 40) if chosen.quick else (10, 200)
    graphs = [load_graph(f"rmat{each}", shared=SHARED, cache=chosen.cache) for each in (scale, kill_scale)]
    with tempfile.TemporaryDirectory(prefix="seedrank-workers-") as name:
        folders = [Path(name) / part for part in ("speed", "price", "kills")]
        for folder in folders:
            folder.mkdir()
        found = {
            "speed": speed(graphs[0], queries=queries, parts=16, rounds=rounds, folder=folders[0]),
            "price": price(parts=parts, rounds=rounds, folder=folders[1]),
            "kills": kills(graphs[1], queries=queries, parts=32, times=times, folder=folders[2]),
        }
    parameters = {"scale": scale, "rounds": rounds, "queries": queries}
    print(write_results("workers-quick" if chosen.quick else "workers", parameters, found))


if __name__ == "__main__":
    main()
