"""Row groups of any size: one of 50 million edges, and a thousand of a hundred.

    python benchmarks/row_groups.py
    python benchmarks/row_groups.py --quick

A reader that takes row groups whole holds the first file decoded; one that opens each anew is slow on the second. Peak
memory of `seedrank build` stands beside the bytes of the graph store; every file has a column of text that is not
needed.

This process imports no NumPy, as a child's peak starts from the memory of the process that it was forked from.
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
from memory import seedrank

WRITE = """
import sys
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
out, rows, group, ids = sys.argv[1], *map(int, sys.argv[2:])
generator = np.random.default_rng(57)
ends = {name: generator.integers(0, ids, rows) for name in ("src", "dst")}
note = pa.DictionaryArray.from_arrays(np.arange(rows, dtype=np.int32) % 3, pa.array([c * 200 for c in "abc"]))
pq.write_table(pa.table({**ends, "note": note}), out, row_group_size=group)
"""


def built(folder: Path, *, rows: int, group: int, ids: int) -> dict[str, Any]:
    """Write an edge list, build its store, and say what that took."""
    edges, graph = folder / f"{rows}-{group}.parquet", folder / f"graph-{rows}-{group}"
    subprocess.run([sys.executable, "-c", WRITE, str(edges), str(rows), str(group), str(ids)], check=True)
    usage = seedrank("build", edges, "--out", graph)
    facts = json.loads((graph / "graph.json").read_text(encoding="utf-8"))
    stored = sum(file["bytes"] for file in facts["files"].values())
    found = {
        "rows": rows,
        "row_groups": -(-rows // group),
        "edges": facts["edges"],
        "store_bytes": stored,
        "peak_bytes": usage.peak_bytes,
        "ratio": round(usage.peak_bytes / stored, 2),
        "seconds": round(usage.seconds, 2),
    }
    print(found, flush=True)
    return found


def main() -> None:
    """Measure both files, and the rows of the second in one row group."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000_000, help="of the large row group (default: %(default)s)")
    parser.add_argument("--ids", type=int, default=2_000_000, help="nodes at most (default: %(default)s)")
    parser.add_argument("--work-dir", type=Path, help="existing folder for data (default: a temporary one)")
    parser.add_argument("--quick", action="store_true", help="200,000 rows")
    chosen = parser.parse_args()
    rows, ids = (200_000, 10_000) if chosen.quick else (chosen.rows, chosen.ids)
    with tempfile.TemporaryDirectory(prefix="seedrank-row-groups-", dir=chosen.work_dir) as name:
        folder = Path(name)
        one = built(folder, rows=rows, group=rows, ids=ids)
        many = built(folder, rows=100_000, group=100, ids=10_000)
        same = built(folder, rows=100_000, group=100_000, ids=10_000)
    write_results(
        "row_groups-quick" if chosen.quick else "row_groups",
        {"rows": rows, "ids": ids},
        {"one": one, "thousand": many, "thousand_in_one": same},
    )


if __name__ == "__main__":
    main()
