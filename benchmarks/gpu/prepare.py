"""Make what the job is measured on: RMAT graphs, their stores, and hits. Needs no GPU, and can run beside what does.

    python benchmarks/gpu/prepare.py --folder FOLDER --scales 20 22

Leaves ``rmatSCALE.npz``, ``rmatSCALE.store`` and ``rmatSCALE.hits.parquet``, and at last an empty ``rmatSCALE.ready``.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from graphs import SHARED, load_graph, make_queries

import seedrank

QUERIES = 2048


def main() -> None:
    """Generate and build, smallest first."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--scales", type=int, nargs="+", required=True)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for scale in sorted(arguments.scales):
        start = time.perf_counter()
        graph = load_graph(f"rmat{scale}", shared=SHARED, cache=arguments.folder)
        generated = time.perf_counter()
        seeds = make_queries(graph, QUERIES)
        query, node = np.repeat(np.arange(QUERIES), seeds.shape[1]), seeds.ravel().astype(np.int64)
        pq.write_table(pa.table({"query_id": query, "node_id": node}), arguments.folder / f"{graph.name}.hits.parquet")
        edges = pa.table({"src": graph.source.astype(np.int64), "dst": graph.target.astype(np.int64)})
        nodes = pa.table({"id": np.arange(graph.nodes, dtype=np.int64)})
        seedrank.build(edges, nodes=nodes, out=arguments.folder / f"{graph.name}.store")
        (arguments.folder / f"{graph.name}.ready").touch()
        print(
            f"{graph.name}: {graph.edges:,} edges generated in {generated - start:.1f} s, stored in "
            f"{time.perf_counter() - generated:.1f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
