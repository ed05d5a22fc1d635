"""Whole jobs on a GPU and on the CPU: from a graph store and a file of hits to the written candidates.

    python benchmarks/gpu/prepare.py --folder FOLDER --scales 20
    python benchmarks/gpu/job_times.py --folder FOLDER --scales 20 --queries 2048

Ten iterations, restart 0.5, five seeds a query, top 100. A job of 64 queries comes first, which compiles kernels where
nobody has yet. Scores and candidates of both are compared, and the script fails where they differ by more than is
promised: 1e-6 in a score, and a hundredth of a candidate in a hundred. Written to ``results/gpu_jobs_SCALE.json``.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from measured import Figures

import seedrank
from seedrank.kernels.backends.resolver import resolve_backend

MOST_SCORE_ERROR = 1e-6
LEAST_SHARED = 0.999
WARM_UP = 64


def run_job(
    store: Path, hits: pa.Table, out: Path, backend: Literal["gpu", "cpu"]
) -> tuple[float, dict[str, float], pa.Table]:
    """Wall seconds, seconds by stage, and the candidates."""
    start = time.perf_counter()
    run = seedrank.score(
        store, queries=hits, out=out, backend=backend, restart=0.5, max_iterations=10, tolerance=0.0, top_k=100
    )
    seconds = time.perf_counter() - start
    return seconds, dict(run.manifest.timings_s), run.candidates.to_arrow()


def differences(ours: pa.Table, theirs: pa.Table) -> tuple[float, float]:
    """Share of the candidates that both have, and the largest difference of a score of theirs."""
    keys = ["query_id", "node_id"]
    both = ours.select([*keys, "score"]).join(theirs.select([*keys, "score"]), keys, right_suffix="_of_cpu")
    known = pc.is_valid(both["score_of_cpu"])
    found = both.filter(known)
    errors = np.abs(found["score"].to_numpy().astype(np.float64) - found["score_of_cpu"].to_numpy())
    return found.num_rows / max(1, ours.num_rows, theirs.num_rows), float(errors.max(initial=0))


def measure(figures: Figures, folder: Path, scale: int, queries: int) -> None:
    """Both backends on one graph."""
    name = f"rmat{scale}"
    hits = pq.read_table(folder / f"{name}.hits.parquet")
    tables: dict[str, pa.Table] = {}
    backends: tuple[Literal["gpu", "cpu"], ...] = ("gpu", "cpu")
    for backend in backends:
        for label, count in (("first_s", min(WARM_UP, queries)), ("s", queries)):
            asked = hits.filter(pc.less(hits["query_id"], count))
            with tempfile.TemporaryDirectory(dir=folder) as out:
                seconds, stages, tables[backend] = run_job(folder / f"{name}.store", asked, Path(out) / "run", backend)
            figures.put(seconds, name, f"{backend}_{label}")
        figures.put({stage: round(spent, 4) for stage, spent in stages.items()}, name, f"{backend}_stages_s")
        figures.put(seconds / queries * 1e3, name, f"{backend}_ms_a_query")
    shared, error = differences(tables["gpu"], tables["cpu"])
    figures.put(shared, name, "shared_candidates")
    figures.put(error, name, "most_score_error")
    figures.failed |= shared < LEAST_SHARED or error > MOST_SCORE_ERROR


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="what prepare.py made")
    parser.add_argument("--scales", type=int, nargs="+", default=[20])
    parser.add_argument("--queries", type=int, default=2048)
    parser.add_argument("--name", default="gpu_jobs", help="of the file in benchmarks/results")
    arguments = parser.parse_args()
    resolve_backend("gpu")  # refuses with the reason where there is no GPU
    cupy: Any = importlib.import_module("cupy")
    setting = {"scales": arguments.scales, "queries": arguments.queries}
    figures = Figures(arguments.name, setting, cupy)
    for scale in arguments.scales:
        measure(figures, arguments.folder, scale, arguments.queries)
    return figures.end()


if __name__ == "__main__":
    sys.exit(main())
