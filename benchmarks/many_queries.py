"""Peak memory and time of `seedrank score` for ten times as many queries, of hits and of ``--all-nodes``.

    python benchmarks/many_queries.py
    python benchmarks/many_queries.py --scale 12 --queries 2000 --quick

The graph is synthetic (benchmarks/generate.py), of 2**SCALE nodes; the hits are five a query. With
``--all-nodes`` the first nodes have a type of their own, so that the same graph has few and many queries. Nothing is
asserted. Needs a POSIX system (``wait4``). What was measured goes to ``results/many_queries.json``.

This process imports no NumPy and generates nothing itself: a child's peak starts from the memory of the process that it
was forked from.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from measure import write_results
from memory import generate, seedrank

#: Writes a node table whose first nodes have the type ``few``; arguments: file, nodes, how many are few.
_NODES = """
import sys, numpy as np, pyarrow as pa, pyarrow.parquet as pq
path, nodes, few = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
types = pa.DictionaryArray.from_arrays((np.arange(nodes) >= few).astype(np.int32), ["few", "many"])
pq.write_table(pa.table({"id": np.arange(nodes), "type": types}), path)
"""


def main() -> None:
    """Measure both kinds of queries, few and many."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=int, default=20, help="2**N nodes (default: %(default)s)")
    parser.add_argument("--edges", type=int, help="(default: four a node)")
    parser.add_argument("--queries", type=int, default=1_000_000, help="many; few are a tenth (default: %(default)s)")
    parser.add_argument("--method", default="neighbors", help="(default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="write no results")
    parser.add_argument("--work-dir", type=Path, help="existing folder for data (default: a temporary one)")
    chosen = parser.parse_args()
    nodes = 1 << chosen.scale
    edges = chosen.edges or 4 * nodes
    with tempfile.TemporaryDirectory(prefix="seedrank-many-", dir=chosen.work_dir) as name:
        folder = Path(name)
        few = min(chosen.queries // 10, nodes // 10)
        generate("edges", folder / "edges.parquet", scale=chosen.scale, rows=edges)
        arguments = [str(folder / "nodes.parquet"), str(nodes), str(few)]
        subprocess.run([sys.executable, "-c", _NODES, *arguments], check=True)
        seedrank("build", folder / "edges.parquet", "--nodes", folder / "nodes.parquet", "--out", folder / "graph")
        found: dict[str, Any] = {}
        for count in (chosen.queries // 10, chosen.queries):
            file = folder / f"hits-{count}.parquet"
            generate("hits", file, scale=chosen.scale, queries=count)
            found[f"hits of {count:,} queries"] = _score(folder, chosen.method, "--queries", file)
        for kind in ("few", "many"):
            measured = _score(folder, chosen.method, "--all-nodes", kind)
            found[f"--all-nodes, {measured['queries']:,} queries"] = measured
    few_hits, many_hits, few_nodes, many_nodes = found.values()
    growth = {
        "hits": many_hits["peak_bytes"] - few_hits["peak_bytes"],
        "all_nodes": many_nodes["peak_bytes"] - few_nodes["peak_bytes"],
    }
    for kind, grown in growth.items():
        print(f"{kind}: peak grows by {grown / 1e6:,.0f} MB from few to many queries", flush=True)
    if not chosen.quick:
        parameters = {"scale": chosen.scale, "edges": edges, "queries": chosen.queries, "method": chosen.method}
        write_results("many_queries", parameters, {**found, "growth_bytes": growth})


def _score(folder: Path, method: str, *queries: str | Path) -> dict[str, Any]:
    """Score in a process of its own; returns what it took."""
    run = folder / "run"
    usage = seedrank(
        *("score", folder / "graph", *queries, "--out", run, "--overwrite", "--top-k", "10", "--method", method),
        *("--memory-limit", "256MiB"),
    )
    manifest = json.loads((run / "run.json").read_text(encoding="utf-8"))
    count = manifest["queries"]["total"]
    print(f"{' '.join(map(str, queries))}: {count:,} queries, {usage.peak_bytes / 1e6:,.0f} MB, {usage.seconds:.1f} s")
    return {
        "queries": count,
        "peak_bytes": usage.peak_bytes,
        "seconds": round(usage.seconds, 2),
        "stages_s": manifest["timings_s"],
    }


if __name__ == "__main__":
    main()
