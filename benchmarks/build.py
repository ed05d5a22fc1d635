"""Time and peak memory of `seedrank build`, beside what reading and numbering the ids alone take in pyarrow.

    python benchmarks/build.py
    python benchmarks/build.py --scale 14 --rows 200000 --rounds 2

The bare baseline is ``pyarrow.parquet.read_table`` and one ``ChunkedArray.dictionary_encode`` of both columns: no
sorting, no duplicates, no CSR, nothing written. Both run in turns in one process, the minimum of each counts. The
data is synthetic (benchmarks/generate.py). Needs a POSIX system (``wait4``). Nothing is asserted. Written to
``results/build.json``, of fewer rows than the default to ``build-quick.json``.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

# The children's peaks start from the memory of this process: NumPy and pyarrow are imported after them.
from memory import generate, seedrank

INT64, STRING = "int64", "string"
FULL_ROWS = 1 << 24


def bare(edges: Path) -> dict[str, float]:
    """Read and number both columns with pyarrow; returns the seconds of each."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    begin = time.perf_counter()
    table = pq.read_table(edges, columns=["src", "dst"])
    read = time.perf_counter()
    pa.chunked_array(table.column("src").chunks + table.column("dst").chunks).dictionary_encode()
    return {"read": read - begin, "dictionary_encode": time.perf_counter() - read}


def build(edges: Path, out: Path) -> dict[str, float]:
    """Build a graph store; returns the seconds by stage."""
    from seedrank.config import BuildOptions  # noqa: PLC0415
    from seedrank.io.tables import TableInput  # noqa: PLC0415
    from seedrank.jobs.build import build_store  # noqa: PLC0415
    from seedrank.jobs.progress import Stopwatch  # noqa: PLC0415

    begin = time.perf_counter()
    for _ in TableInput.open(edges, what="edges").batches(["src", "dst"]):
        pass
    read = time.perf_counter() - begin
    shutil.rmtree(out, ignore_errors=True)
    stopwatch = Stopwatch()
    build_store(out, edges=edges, nodes=None, options=BuildOptions(), stopwatch=stopwatch)
    stages = stopwatch.seconds
    return {
        "read": read,
        "ids": stages["read_graph"] - read,
        "reduce, relabel, compress": stages["build_graph"],
        "write": stages["write_graph"],
        "total": sum(stages.values()),
    }


def show(seconds: dict[str, float]) -> str:
    """Stages in one line."""
    return ", ".join(f"{stage} {value:.2f}" for stage, value in seconds.items())


def bench(folder: Path, ids: str, *, rows: int, rounds: int, peaks: tuple[int, int]) -> dict[str, Any]:
    """Print and return times, their ratio, and the peak memory of one kind of ids."""
    edges = folder / f"{ids}.parquet"
    build(edges, folder / "graph")  # loads or compiles what is compiled
    baseline, built = [], []
    for _ in range(rounds):
        baseline.append(bare(edges))
        built.append(build(edges, folder / "graph"))
    fastest_bare = min(baseline, key=lambda seconds: sum(seconds.values()))
    fastest = min(built, key=lambda seconds: seconds["total"])
    few, many = peaks
    result = {
        "ids": ids,
        "rows": rows,
        "bare": fastest_bare,
        "build": fastest,
        "ratio": fastest["total"] / sum(fastest_bare.values()),
        "peak_bytes": many,
        "bytes_an_edge": (many - few) / rows,
    }
    print(f"{ids} ids, {rows:,} rows, minimum of {rounds} in turns (seconds)")
    print(f"    bare pyarrow: {show(fastest_bare)}")
    print(f"    build: {show(fastest)}")
    print(f"    ratio {result['ratio']:.2f}")
    print(
        f"    peak {many / 1e6:,.0f} MB, {result['bytes_an_edge']:.0f} bytes an edge above a build of two edges",
        flush=True,
    )
    return result


def main() -> None:
    """Measure both kinds of ids."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=int, default=20, help="2**SCALE ids (default: %(default)s)")
    parser.add_argument("--rows", type=int, default=1 << 24, help="edges (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="(default: %(default)s)")
    parser.add_argument("--only", choices=[INT64, STRING], help="measure one of the two")
    parser.add_argument("--work-dir", type=Path, help="existing folder for data (default: a temporary one)")
    chosen = parser.parse_args()
    kinds = [chosen.only] if chosen.only else [INT64, STRING]
    with tempfile.TemporaryDirectory(prefix="seedrank-build-", dir=chosen.work_dir) as name:
        folder = Path(name)
        peaks: dict[str, tuple[int, int]] = {}
        for ids in kinds:
            few, many = folder / f"{ids}-few.parquet", folder / f"{ids}.parquet"
            generate("edges", few, scale=1, rows=2, ids=ids)
            generate("edges", many, scale=chosen.scale, rows=chosen.rows, ids=ids)
            few_peak = seedrank("build", few, "--out", folder / f"{ids}-few-graph").peak_bytes
            many_peak = seedrank("build", many, "--out", folder / f"{ids}-graph").peak_bytes
            peaks[ids] = (few_peak, many_peak)
        from measure import write_results  # noqa: PLC0415  # imports nothing big, but belongs after the children

        rows = [bench(folder, ids, rows=chosen.rows, rounds=chosen.rounds, peaks=peaks[ids]) for ids in kinds]
    parameters = {"scale": chosen.scale, "rows": chosen.rows, "rounds": chosen.rounds}
    print(write_results("build" if chosen.rows >= FULL_ROWS else "build-quick", parameters, {"rows": rows}))


if __name__ == "__main__":
    main()
