"""`seedrank build` of a graph whose edges do not fit into the memory that it may use, beside the build that has enough.

    python benchmarks/larger_build.py
    python benchmarks/larger_build.py --quick

Each build runs in a process of its own, alternately: once with as much memory as it wants, once under a limit of its
address space (``RLIMIT_AS``, what ``ulimit -v`` sets), which `seedrank build` finds by itself. The stores are compared
byte for byte. The data is synthetic (benchmarks/generate.py). Needs a POSIX system. Written to
``results/larger_build.json``, with ``--quick`` to ``larger_build-quick.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

# The children's peaks start from the memory of this process: it imports nothing big.
from measure import write_results
from memory import generate

GIB = 1 << 30


def build(edges: Path, out: Path, limit: int | None) -> None:
    """Build in this process, under a limit; print what it took as JSON."""
    if limit is not None:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    from seedrank.config import BuildOptions  # noqa: PLC0415  # only in the children
    from seedrank.jobs.build import build_store  # noqa: PLC0415
    from seedrank.jobs.progress import Stopwatch  # noqa: PLC0415
    from seedrank.jobs.resources import available_memory  # noqa: PLC0415

    stopwatch = Stopwatch()
    memory = available_memory()
    store = build_store(out, edges=edges, nodes=None, options=BuildOptions(), stopwatch=stopwatch)
    took = {
        "seconds": stopwatch.seconds,
        "total_seconds": sum(stopwatch.seconds.values()),
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024),
        "available_bytes": memory,
        "written_bytes": written(),
        "nodes": store.facts.nodes,
        "edges": store.facts.edges,
        "store_bytes": store.store_bytes,
        "files": {name: file.xxh3_128 for name, file in store.facts.files.items()},
    }
    print(json.dumps(took))


def written() -> int | None:
    """Bytes that this process wrote so far; None where the system does not count them."""
    try:
        lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next(int(line.split()[1]) for line in lines if line.startswith("wchar:"))


def run(edges: Path, out: Path, limit: int | None) -> dict[str, Any]:
    """Build in a child process and return what it took."""
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, __file__, "--child", str(edges), str(out), *([] if limit is None else [str(limit)])]
    # A limit of the address space counts what allocators and idle threads reserve without using it.
    spare = {"OPENBLAS_NUM_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "1"}
    environment = {**os.environ, **spare}
    answer = subprocess.run(command, stdout=subprocess.PIPE, check=False, text=True, env=environment)
    if answer.returncode:
        sys.exit(f"exit code {answer.returncode} from: {' '.join(command)}")
    took: dict[str, Any] = json.loads(answer.stdout)
    return took


def show(name: str, took: dict[str, Any]) -> None:
    """Print one build."""
    stages = ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in took["seconds"].items())
    print(f"{name}: {took['total_seconds']:.1f} s ({stages}), peak {took['peak_bytes'] / 1e6:,.0f} MB", end="")
    print("" if took["written_bytes"] is None else f", {took['written_bytes'] / 1e9:.2f} GB written", flush=True)


def main() -> None:
    """Measure both builds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=int, default=22, help="2**SCALE ids (default: %(default)s)")
    parser.add_argument("--rows", type=int, default=100_000_000, help="edges (default: %(default)s)")
    parser.add_argument("--ids", choices=["int64", "string"], default="int64", help="(default: %(default)s)")
    parser.add_argument("--limit-gib", type=float, default=2.0, help="address space (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=2, help="(default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="8 million edges under 1.25 GiB, one round")
    parser.add_argument("--work-dir", type=Path, help="existing folder for data (default: a temporary one)")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.scale, chosen.rows, chosen.limit_gib, chosen.rounds = 19, 8_000_000, 1.25, 1
    limit = int(chosen.limit_gib * GIB)
    with tempfile.TemporaryDirectory(prefix="seedrank-larger-build-", dir=chosen.work_dir) as name:
        folder = Path(name)
        edges = folder / "edges.parquet"
        generate("edges", edges, scale=chosen.scale, rows=chosen.rows, ids=chosen.ids)
        run(edges, folder / "graph", limit)  # compiles what is compiled, and fills the cache of files
        free, limited = [], []
        for _ in range(chosen.rounds):
            free.append(run(edges, folder / "graph", None))
            show("with all memory", free[-1])
            limited.append(run(edges, folder / "graph", limit))
            show(f"under {chosen.limit_gib} GiB", limited[-1])
    best = {
        kind: min(took, key=lambda one: one["total_seconds"]) for kind, took in (("free", free), ("limited", limited))
    }
    same = best["free"].pop("files") == best["limited"].pop("files")
    ratio = best["limited"]["total_seconds"] / best["free"]["total_seconds"]
    print(f"ratio {ratio:.2f}, {'the same' if same else 'ANOTHER'} store")
    parameters = {key: getattr(chosen, key) for key in ("scale", "rows", "ids", "limit_gib", "rounds")}
    found = {**best, "ratio": round(ratio, 3), "same_store": same}
    print(write_results("larger_build-quick" if chosen.quick else "larger_build", parameters, found))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        build(Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]) if len(sys.argv) > 4 else None)
    else:
        main()
