"""Peak memory of `seedrank build` and `seedrank score`, beside the formula that each should follow.

    python benchmarks/memory.py
    python benchmarks/memory.py --only score --score-scale 14 --score-edges 100000 --queries 50

The data is synthetic (benchmarks/generate.py). Needs a POSIX system (``wait4``). Nothing is asserted. What was measured
goes to ``results/memory.json``, unless it is one of the two only.

This process imports no NumPy and generates nothing itself: a child's peak starts from the memory of the
process that it was forked from. Small jobs that do not count come first, so that kernels are compiled: that takes about
100 MB more, once.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measure import write_results

GENERATOR = Path(__file__).with_name("generate.py")

# What `build` may hold for one edge while it sorts, reduces and relabels, and for one int64 id.
BUILD_BYTES_PER_EDGE = 60
BUILD_BYTES_PER_ID = 8

# What `score` may hold beside graph and blocks: interpreter, libraries, Arrow buffers, one part of output.
SCORE_OVERHEAD_BYTES = 500 * 10**6


@dataclass(frozen=True)
class Usage:
    """What one finished child process took."""

    peak_bytes: int
    seconds: float


@dataclass(frozen=True)
class RunFacts:
    """What the formula of `score` needs to know about a run."""

    nodes: int
    edges: int
    store_bytes: int
    block_size: int
    block_bytes: int


def run_facts(run: Path) -> RunFacts:
    """Read the facts of a run from its manifest; the one place that knows the manifest's keys.

    ``block_bytes`` is everything that a block takes, so both vectors: the current one and its successor.
    """
    manifest = json.loads((run / "run.json").read_text(encoding="utf-8"))
    graph, backend = manifest["graph"], manifest["backend"]
    return RunFacts(
        nodes=graph["nodes"],
        edges=graph["edges"],
        store_bytes=graph["store_bytes"],
        block_size=backend["block_size"],
        block_bytes=backend["block_bytes"],
    )


def measure(command: list[str]) -> Usage:
    """Run a command and return its peak resident memory and wall time; a failure ends this script."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    # getrusage(RUSAGE_CHILDREN) gives the largest child so far; wait4 gives this one.
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"exit code {process.returncode} from: {' '.join(command)}")
    unit = 1 if sys.platform == "darwin" else 1024
    return Usage(usage.ru_maxrss * unit, time.perf_counter() - begin)


def generate(what: str, out: Path, **options: int | str) -> None:
    """Have generate.py write one input."""
    flags = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    subprocess.run([sys.executable, str(GENERATOR), what, *flags, "--out", str(out)], check=True)


def seedrank(*arguments: str | Path) -> Usage:
    """Run one seedrank command in a process of its own."""
    return measure([sys.executable, "-m", "seedrank", *map(str, arguments), "--quiet"])


def show(title: str, usage: Usage, formula: int, explanation: str) -> dict[str, Any]:
    """Print one measurement beside its formula, in MB (10**6 bytes), and return both."""
    ratio = usage.peak_bytes / formula
    print(f"{title}: peak {usage.peak_bytes / 1e6:,.0f} MB in {usage.seconds:.1f} s")
    print(f"    formula {formula / 1e6:,.0f} MB = {explanation}; measured / formula = {ratio:.2f}", flush=True)
    return {
        "what": title,
        "peak_bytes": usage.peak_bytes,
        "seconds": round(usage.seconds, 2),
        "formula_bytes": formula,
        "formula": explanation,
        "ratio": round(ratio, 3),
    }


def bench_build(folder: Path, *, scale: int, edges: int) -> dict[str, Any]:
    """Measure `seedrank build` on an RMAT edge list of int64 ids without weights."""
    # A build of next to nothing has the fixed part: interpreter, libraries, buffers of the Parquet reader.
    generate("edges", folder / "few-edges.parquet", scale=1, rows=2)
    fixed = seedrank("build", folder / "few-edges.parquet", "--out", folder / "few-graph").peak_bytes
    generate("edges", folder / "build-edges.parquet", scale=scale, rows=edges)
    usage = seedrank("build", folder / "build-edges.parquet", "--out", folder / "build-graph")
    ids = 1 << scale
    formula = BUILD_BYTES_PER_EDGE * edges + BUILD_BYTES_PER_ID * ids + fixed
    return show(
        f"build, {edges:,} edges",
        usage,
        formula,
        f"{BUILD_BYTES_PER_EDGE} B x {edges:,} edges + {BUILD_BYTES_PER_ID} B x {ids:,} ids + {fixed / 1e6:,.0f} MB",
    )


def bench_score(folder: Path, *, scale: int, edges: int, queries: int, memory_limit: str) -> dict[str, Any]:
    """Measure `seedrank score`, ten iterations without early stop, on a graph with exactly 2**scale nodes."""
    generate("edges", folder / "edges.parquet", scale=scale, rows=edges)
    generate("nodes", folder / "nodes.parquet", scale=scale)
    generate("hits", folder / "hits.parquet", scale=scale, queries=queries)
    graph, run = folder / "graph", folder / "run"
    seedrank("build", folder / "edges.parquet", "--nodes", folder / "nodes.parquet", "--out", graph)
    usage = seedrank(
        *("score", graph, "--queries", folder / "hits.parquet", "--out", run),
        *("--tolerance", "0", "--max-iterations", "10", "--memory-limit", memory_limit),
    )
    facts = run_facts(run)
    blocks = facts.block_bytes
    return show(
        f"score, {queries:,} queries, {facts.nodes:,} nodes, {facts.edges:,} edges",
        usage,
        facts.store_bytes + blocks + SCORE_OVERHEAD_BYTES,
        f"graph {facts.store_bytes / 1e6:,.0f} MB + 2 blocks of {facts.block_size} queries "
        f"{blocks / 1e6:,.0f} MB + {SCORE_OVERHEAD_BYTES / 1e6:,.0f} MB",
    )


def compile_kernels(folder: Path, *, memory_limit: str) -> None:
    """Run both commands on little, so that the measured ones find their kernels compiled."""
    folder.mkdir()
    with redirect_stdout(io.StringIO()):
        # Fewer edges are sorted without compiled kernels.
        bench_build(folder, scale=20, edges=1_500_000)
        bench_score(folder, scale=16, edges=200_000, queries=64, memory_limit=memory_limit)


def main() -> None:
    """Measure both commands."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-scale", type=int, default=20, help="2**N ids (default: %(default)s)")
    parser.add_argument("--build-edges", type=int, default=16_000_000, help="(default: %(default)s)")
    parser.add_argument("--score-scale", type=int, default=21, help="2**N nodes (default: %(default)s)")
    parser.add_argument("--score-edges", type=int, default=10_000_000, help="(default: %(default)s)")
    parser.add_argument("--queries", type=int, default=5_000, help="(default: %(default)s)")
    parser.add_argument("--memory-limit", default="4GiB", help="of score (default: %(default)s)")
    parser.add_argument("--only", choices=["build", "score"], help="measure one of the two")
    parser.add_argument("--work-dir", type=Path, help="existing folder for data (default: a temporary one)")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="seedrank-memory-", dir=chosen.work_dir) as name:
        folder = Path(name)
        compile_kernels(folder / "small", memory_limit=chosen.memory_limit)
        found = {}
        if chosen.only != "score":
            found["build"] = bench_build(folder, scale=chosen.build_scale, edges=chosen.build_edges)
        if chosen.only != "build":
            found["score"] = bench_score(
                folder,
                scale=chosen.score_scale,
                edges=chosen.score_edges,
                queries=chosen.queries,
                memory_limit=chosen.memory_limit,
            )
    if not chosen.only:
        parameters = {
            name: getattr(chosen, name)
            for name in ("build_scale", "build_edges", "score_scale", "score_edges", "queries", "memory_limit")
        }
        write_results("memory", parameters, found)


if __name__ == "__main__":
    main()
