"""What a run costs whose blocks do not fit: the same job with less and less room beside the graph (case 61).

    python benchmarks/halving.py
    python benchmarks/halving.py --quick

Every run is a process of its own whose address space is limited (``RLIMIT_AS``) as soon as its graph is loaded, to what
it takes then and some room. The plan does not know of the limit; blocks that do not fit are halved until they do. Files
are compared byte by byte with those of the run without a limit. The data is random. Linux only. Written to
``results/halving.json``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from measure import write_results

import seedrank

#: The writer wants a thread of its own, so the limit goes when the first block has found room.
CHILD = """
import json, resource, sys, time
from seedrank.jobs.progress import Silent
import seedrank

class Tight(Silent):
    def start(self, queries):
        if room:
            used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + room, -1))

    def advance(self, queries, error_bound=None):
        if queries:
            resource.setrlimit(resource.RLIMIT_AS, (-1, -1))

graph, hits, warm, out, room = *sys.argv[1:5], int(sys.argv[5])
store, options = seedrank.open_graph(graph), {"threads": 1, "tolerance": 0.0, "max_iterations": 10}
for width in (16, 32, 64):  # compiles
    seedrank.score(store, queries=hits, out=warm, block_size=width, overwrite=True, **options)
begin = time.perf_counter()
run = seedrank.score(store, queries=hits, out=out, memory_limit="40GB", reporter=Tight(), **options)
backend = run.manifest.backend
print(json.dumps({
    "seconds": round(time.perf_counter() - begin, 2), "planned": backend.block_size, "final": backend.final_block_size,
}))
"""


def scored(folder: Path, room: int) -> dict[str, Any]:
    """Score with so many bytes beside the graph, 0 for any number; say what it took, and what was written."""
    out = folder / f"run-{room}"
    arguments = [folder / "graph", folder / "hits.parquet", folder / "warm", out, room]
    command = [sys.executable, "-c", CHILD, *map(str, arguments)]
    answer = subprocess.run(command, capture_output=True, check=True, text=True)
    found: dict[str, Any] = json.loads(answer.stdout)
    found["files"] = {file.relative_to(out): file.read_bytes() for file in sorted(out.glob("*/part-*.parquet"))}
    return found


def main() -> None:
    """Measure all limits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=500_000, help="(default: %(default)s)")
    parser.add_argument("--queries", type=int, default=256, help="(default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="200,000 nodes, 64 queries, one limit")
    chosen = parser.parse_args()
    nodes, queries = (200_000, 64) if chosen.quick else (chosen.nodes, chosen.queries)
    # Two blocks of 64 columns in float32 are 512 bytes a node.
    shares = [0.7] if chosen.quick else [0.9, 0.5, 0.3]
    generator = np.random.default_rng(61)
    with tempfile.TemporaryDirectory(prefix="seedrank-halving-") as name:
        folder = Path(name)
        edges = {column: generator.integers(0, nodes, 8 * nodes) for column in ("src", "dst")}
        seedrank.build(pa.table(edges), out=folder / "graph")
        seeds = {"query_id": np.arange(queries).repeat(5), "node_id": generator.integers(0, nodes, 5 * queries)}
        pq.write_table(pa.table(seeds), folder / "hits.parquet")
        free = scored(folder, 0)
        runs = []
        for room in [0, *(int(share * 512 * nodes) for share in shares)]:
            found = free if room == 0 else scored(folder, room)
            same = found["files"] == free["files"]
            runs.append({"room_bytes": room or None, **{key: found[key] for key in ("seconds", "planned", "final")}})
            runs[-1]["same_files"] = same
            print(runs[-1], flush=True)
    write_results("halving-quick" if chosen.quick else "halving", {"nodes": nodes, "queries": queries}, {"runs": runs})


if __name__ == "__main__":
    main()
