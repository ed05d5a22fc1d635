"""`seedrank score` on a graph that does not fit into the memory that it may use, beside runs that have enough.

    python benchmarks/larger_than_memory.py
    python benchmarks/larger_than_memory.py --quick

An RMAT graph is built, then the same queries are scored, each time in a process of its own: with all memory and the
graph in it, with all memory and the graph streamed, and under a limit, where ``--graph-memory auto`` has to decide;
last, the graph is asked for in memory under that limit, to see whether it fits. The limit is a control group (version 1
or 2) where one can be made, and counts the cached pages of files, too; elsewhere it is the address space
(``RLIMIT_AS``). Result files are compared byte for byte. The data is synthetic (benchmarks/generate.py). Linux only.
Written to ``results/larger_than_memory.json``, with ``--quick`` to ``larger_than_memory-quick.json``.
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
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# The children's peaks start from the memory of this process: it imports nothing big.
from measure import write_results
from memory import generate, seedrank

GIB = 1 << 30
GROUPS = Path("/sys/fs/cgroup")


def child(graph: str, hits: str, out: str, form: str, block_size: str) -> None:
    """Score in this process; print what it took as JSON."""
    import xxhash  # noqa: PLC0415  # only in the children

    import seedrank  # noqa: PLC0415

    begin = time.perf_counter()
    run = seedrank.score(
        graph,
        queries=hits,
        out=out,
        graph_memory=form,  # type: ignore[arg-type]
        block_size=int(block_size),
        tolerance=0,
        max_iterations=10,
        work_dir=str(Path(out).parent),
    )
    backend = run.manifest.backend
    assert backend is not None
    files = [file for table in (run.candidates, run.queries) for file in table.files]
    took = {
        "seconds": time.perf_counter() - begin,
        "stages": run.manifest.timings_s,
        "graph_memory": backend.graph_memory,
        "reason": backend.graph_memory_reason,
        "slab_bytes": backend.slab_bytes,
        "block_bytes": backend.block_bytes,
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        # Asked of the system, and what of it came from the disk.
        "bytes_read": counted("rchar"),
        "bytes_from_disk": counted("read_bytes"),
        "files": [xxhash.xxh3_128_hexdigest(file.read_bytes()) for file in files],
    }
    print(json.dumps(took))


def counted(name: str) -> int:
    """Counter of this process in ``/proc/self/io``."""
    lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    return int(dict(line.split(": ") for line in lines)[name])


@contextmanager
def limited(limit: int) -> Iterator[tuple[str, Callable[[], None]]]:
    """Name a kind of limit, with what a child has to call before it begins."""
    name = f"seedrank-{os.getpid()}"
    for place, file in ((GROUPS / "memory", "memory.limit_in_bytes"), (GROUPS, "memory.max")):
        group = place / name
        try:
            group.mkdir()
            (group / file).write_text(str(limit), encoding="ascii")
        except OSError:
            if group.is_dir():
                group.rmdir()
            continue
        try:
            yield f"control group, {file}", lambda group=group: join(group)  # type: ignore[misc]
        finally:
            group.rmdir()
        return
    yield "address space (RLIMIT_AS)", lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def join(group: Path) -> None:
    """Put this process into a control group."""
    (group / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")


def run(folder: Path, form: str, block_size: int, *, before: Callable[[], None] | None = None) -> dict[str, Any] | None:
    """Score in a child process and return what it took; None, and its exit code is shown, if it did not end well."""
    out = folder / "run"
    shutil.rmtree(out, ignore_errors=True)
    arguments = [folder / "graph", folder / "hits.parquet", out, form, block_size]
    command = [sys.executable, __file__, "--child", *map(str, arguments)]
    environment = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "1"}
    answer = subprocess.run(
        command, capture_output=True, check=False, text=True, env=environment,
        preexec_fn=before,  # this process has one thread
    )  # fmt: skip
    if answer.returncode:
        print(f"  {form}: exit code {answer.returncode} {answer.stderr.strip().splitlines()[-1:]}", flush=True)
        return None
    took: dict[str, Any] = json.loads(answer.stdout)
    return took


def show(name: str, took: dict[str, Any]) -> None:
    """Print one run."""
    print(
        f"{name}: {took['graph_memory']}, {took['seconds']:.1f} s ({took['stages']['score']:.1f} of scoring), peak "
        f"{took['peak_bytes'] / 1e6:,.0f} MB, {took['bytes_read'] / 1e9:.2f} GB read, "
        f"{took['bytes_from_disk'] / 1e9:.2f} GB from disk",
        flush=True,
    )


def main() -> None:
    """Measure all forms."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=int, default=22, help="2**SCALE ids (default: %(default)s)")
    parser.add_argument("--rows", type=int, default=100_000_000, help="edges (default: %(default)s)")
    parser.add_argument("--queries", type=int, default=128, help="of five seeds (default: %(default)s)")
    parser.add_argument("--block-size", type=int, default=32, help="queries together (default: %(default)s)")
    parser.add_argument("--limit-gib", type=float, default=2.0, help="memory (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=2, help="(default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="8 million edges under .25 GiB, one round")
    parser.add_argument("--work-dir", type=Path, help="existing folder for data (default: a temporary one)")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.scale, chosen.rows, chosen.queries, chosen.block_size = 18, 8_000_000, 32, 16
        chosen.limit_gib, chosen.rounds = 0.25, 1
    runs: dict[str, list[dict[str, Any] | None]] = {"resident": [], "streamed": [], "limited": []}
    with (
        tempfile.TemporaryDirectory(prefix="seedrank-larger-", dir=chosen.work_dir) as temporary,
        limited(int(chosen.limit_gib * GIB)) as (kind, before),
    ):
        folder = Path(temporary)
        generate("edges", folder / "edges.parquet", scale=chosen.scale, rows=chosen.rows)
        generate("hits", folder / "hits.parquet", scale=chosen.scale, queries=chosen.queries)
        built = seedrank("build", folder / "edges.parquet", "--out", folder / "graph")
        (folder / "edges.parquet").unlink()
        facts = json.loads((folder / "graph" / "graph.json").read_text(encoding="utf-8"))
        store_bytes = sum(file["bytes"] for file in facts["files"].values())
        print(f"graph of {facts['nodes']:,} nodes and {facts['edges']:,} edges, {store_bytes / 1e6:,.0f} MB, built in "
              f"{built.seconds:.0f} s; limit: {kind}", flush=True)  # fmt: skip
        run(folder, "resident", chosen.block_size)  # compiles what is compiled, and fills the cache of files
        for _ in range(chosen.rounds):
            for label, form, limit in (
                ("resident", "resident", None), ("streamed", "streamed", None), ("limited", "auto", before),
            ):  # fmt: skip
                took = run(folder, form, chosen.block_size, before=limit)
                runs[label].append(took)
                if took is not None:
                    show(f"under {chosen.limit_gib} GiB" if limit else "with all memory", took)
        fits = run(folder, "resident", chosen.block_size, before=before) is not None
    best = {
        label: min((one for one in took if one is not None), key=lambda one: one["seconds"], default=None)
        for label, took in runs.items()
    }
    files = [one.pop("files") if one is not None else None for one in best.values()]
    found = {
        "graph": {"nodes": facts["nodes"], "edges": facts["edges"], "store_bytes": store_bytes},
        "limit": kind,
        **best,
        "same_files": all(file == files[0] for file in files),
        "resident_fits_the_limit": fits,
    }
    resident, limit_run = best["resident"], best["limited"]
    if resident is not None and limit_run is not None:
        found["ratio"] = round(limit_run["stages"]["score"] / resident["stages"]["score"], 3)
        print(f"scoring takes {found['ratio']} times as long", end=", ")
    print(f"{'the same' if found['same_files'] else 'OTHER'} files, in memory it {'fits' if fits else 'does not fit'}")
    parameters = {
        key: getattr(chosen, key) for key in ("scale", "rows", "queries", "block_size", "limit_gib", "rounds")
    }
    print(write_results("larger_than_memory-quick" if chosen.quick else "larger_than_memory", parameters, found))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    else:
        main()
