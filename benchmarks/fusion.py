"""Seconds and peak memory of fusing the lists of three sources for many queries: `seedrank score --method fuse`.

    python benchmarks/fusion.py
    python benchmarks/fusion.py --queries 2000 --rounds 1

Synthetic hits: every source has as many of a query's hits, nodes drawn from a million with ties among the weights. Each
run is a process of its own, and the minimum of its seconds counts. The bare figure is what pyarrow takes to read the
hits. Needs a POSIX system (``wait4``). Nothing is asserted. Written to ``results/fusion.json``, of fewer queries than
the default to ``fusion-quick.json``.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

# The children's peaks start from the memory of this process: NumPy and pyarrow are imported after them.
from memory import measure, seedrank

SOURCES = ("dense", "sparse", "entities")
FULL_QUERIES = 100_000
RULES = ("rrf", "weighted")
#: Writes hits; a process of its own, see above.
GENERATE = """
import sys
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
queries, hits, path, *sources = int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]
chance = np.random.default_rng(42)
query = np.repeat(np.arange(queries), hits)
tables = [
    pa.table({
        "query_id": query,
        "node_id": chance.integers(0, 1 << 20, len(query)),
        "source": pa.array([source]).take(pa.array(np.zeros(len(query), np.int32))).dictionary_encode(),
        "weight": np.round(chance.random(len(query)), 2),
    })
    for source in sources
]
pq.write_table(pa.concat_tables(tables), path)
"""
READ = "import sys, pyarrow.parquet as pq; pq.read_table(sys.argv[1])"


def bench(folder: Path, queries: int, *, hits: int, rounds: int) -> list[dict[str, Any]]:
    """Fuse the hits of some queries by every rule; one row a rule."""
    path = folder / f"hits-{queries}.parquet"
    generate = [sys.executable, "-c", GENERATE, str(queries), str(hits), str(path), *SOURCES]
    subprocess.run(generate, check=True)  # our own interpreter and text
    bare = min(measure([sys.executable, "-c", READ, str(path)]).seconds for _ in range(rounds))
    rows = []
    for rule in RULES:
        arguments = ("score", "--method", "fuse", "--fusion", rule, "--queries", path, "--top-k", "20")
        runs = [seedrank(*arguments, "--out", folder / "run", "--overwrite") for _ in range(rounds)]
        fastest = min(runs, key=lambda run: run.seconds)
        row: dict[str, Any] = {
            "rule": rule,
            "queries": queries,
            "hits": queries * hits * len(SOURCES),
            "seconds": fastest.seconds,
            "bare_read_seconds": bare,
            "peak_bytes": min(run.peak_bytes for run in runs),
        }
        print(
            f"{rule:<10}{queries:>9,} queries {row['hits']:>12,} hits  {fastest.seconds:6.2f} s "
            f"(bare read {bare:.2f} s)  peak {row['peak_bytes'] / 1e6:,.0f} MB",
            flush=True,
        )
        rows.append(row)
    return rows


def main() -> None:
    """Measure a tenth of the queries, then all: what memory and time grow by."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=FULL_QUERIES, help="(default: %(default)s)")
    parser.add_argument("--hits", type=int, default=30, help="of a query and source (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(default: %(default)s)")
    parser.add_argument("--work-dir", type=Path, help="existing folder for data (default: a temporary one)")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="seedrank-fusion-", dir=chosen.work_dir) as name:
        rows = [
            row
            for queries in (max(1, chosen.queries // 10), chosen.queries)
            for row in bench(Path(name), queries, hits=chosen.hits, rounds=chosen.rounds)
        ]
    from measure import write_results  # noqa: PLC0415  # imports nothing big, but belongs after the children

    parameters = {"queries": chosen.queries, "hits": chosen.hits, "sources": len(SOURCES), "rounds": chosen.rounds}
    quick = chosen.queries < FULL_QUERIES
    print(write_results("fusion-quick" if quick else "fusion", parameters, {"rows": rows}))


if __name__ == "__main__":
    main()
