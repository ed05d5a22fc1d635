"""Where each second of a job goes, and what the memory would allow.

    pip install py-spy
    python benchmarks/profile_job.py --quick
    python benchmarks/profile_job.py --cache FOLDER      # RMAT 20, 1,024 queries: 2 minutes, 4 GB

The job of `peers.py` (ten iterations in float32, the best 100 nodes of five seeds a query) runs in a process of its own
under py-spy, which looks a hundred times a second which Python function is being executed; the seconds are those of the
innermost function of this package (a compiled kernel counts for the function that calls it). Beside it stand the bytes
that a product has to move at least (indices once, both blocks once) and at most (a row of the block for every entry),
over the rate at which all processors copy memory. Written to ``results/profile.json``.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from graphs import SHARED, load_graph, make_queries
from measure import write_results
from own import FIXED, Kernels, prepare_job

RATE = 100
SMALLEST_SHARE = 0.002


def copy_rate() -> float:
    """Bytes a second that all processors move when they copy large arrays: read and written."""
    threads = len(os.sched_getaffinity(0))
    arrays = [(np.ones(1 << 25), np.zeros(1 << 25)) for _ in range(threads)]
    best = float("inf")
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(5):
            begin = time.perf_counter()
            list(pool.map(lambda pair: np.copyto(pair[1], pair[0]), arrays))
            best = min(best, time.perf_counter() - begin)
    return 2 * threads * arrays[0][0].nbytes / best


def sampled(command: list[str], folder: Path) -> tuple[float, dict[str, float]]:
    """Run a command under py-spy; returns its wall seconds and the seconds by function."""
    profiler = shutil.which("py-spy")
    if profiler is None:
        sys.exit("py-spy is not installed: pip install py-spy")
    raw = folder / "profile.raw"
    begin = time.perf_counter()
    subprocess.run(
        [profiler, "record", "--rate", str(RATE), "--format", "raw", "--output", str(raw), "--", *command],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    seconds = time.perf_counter() - begin
    counts: Counter[str] = Counter()
    for line in raw.read_text(encoding="utf-8").splitlines():
        stack, _, samples = line.rpartition(" ")
        counts[_innermost(stack.split(";"))] += int(samples)
    return seconds, {name: count / RATE for name, count in counts.most_common()}


def _innermost(stack: list[str]) -> str:
    """The innermost function of seedrank, without its line; Python itself where there is none."""
    for frame in reversed(stack):
        if "seedrank/" in frame:
            name, _, place = frame.partition(" (")
            return f"{place.rpartition('seedrank/')[2].split(':')[0]}: {name}"
    return "Python and imports"


def bound(kernels: Kernels, width: int, rate: float) -> dict[str, Any]:
    """Seconds that one product takes at least and at most, if memory alone decided; and what it takes."""
    transition = kernels.transition
    entries, item = transition.entries, 4
    active = transition.nodes - len(transition.dangling_nodes)
    least = 4 * entries + 2 * active * width * item
    most = 4 * entries + (entries + active) * width * item
    backend, seeds = kernels.backend("float32"), np.arange(width, dtype=np.int32)[:, None]
    backend.start(kernels.block(seeds), restart=FIXED.restart)
    for _ in range(3):
        backend.step(measure=False)
    best = float("inf")
    for _ in range(5):
        begin = time.perf_counter()
        backend.step(measure=False)
        best = min(best, time.perf_counter() - begin)
    return {
        "width": width,
        "bytes_at_least": least,
        "bytes_at_most": most,
        "seconds_at_least": least / rate,
        "seconds_at_most": most / rate,
        "seconds": best,
    }


def main() -> None:
    """Profile one job."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="RMAT 14, 128 queries")
    parser.add_argument("--cache", type=Path, help="existing folder that keeps generated graphs")
    chosen = parser.parse_args()
    name, queries = ("rmat14", 128) if chosen.quick else ("rmat20", 1024)
    graph = load_graph(name, shared=SHARED, cache=chosen.cache)
    with tempfile.TemporaryDirectory(prefix="seedrank-profile-") as folder:
        place = Path(folder)
        prepare_job(graph, make_queries(graph, queries), place)()  # compiles what is not compiled yet
        seconds, by_function = sampled(
            [
                *(sys.executable, "-m", "seedrank", "score", str(place / "graph")),
                *("--queries", str(place / "hits.parquet"), "--out", str(place / "profiled")),
                *("--max-iterations", str(FIXED.max_iterations), "--tolerance", "0", "--backend", "cpu"),
            ],
            place,
        )
    rate = copy_rate()
    kernels = Kernels(graph)
    product = bound(kernels, kernels.width("float32"), rate)
    shown = {name: value for name, value in by_function.items() if value >= SMALLEST_SHARE * seconds}
    print(f"{graph.name}, {queries} queries: {seconds:.1f} s, start of Python included")
    for function, value in shown.items():
        print(f"{value:8.2f} s {value / seconds:6.1%}  {function}")
    print(
        f"copying: {rate / 1e9:.1f} GB/s; a product of {product['width']} columns: {1e3 * product['seconds']:.1f} ms,"
    )
    print(f"by memory {1e3 * product['seconds_at_least']:.1f} to {1e3 * product['seconds_at_most']:.1f} ms")
    content = {
        "graph": graph.facts(),
        "queries": queries,
        "seconds": seconds,
        "seconds_by_function": shown,
        "copy_bytes_per_second": rate,
        "product": product,
    }
    print(write_results("profile-quick" if chosen.quick else "profile", {"rate": RATE}, content))


if __name__ == "__main__":
    main()
