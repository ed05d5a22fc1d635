"""End runs of 20 parts at random moments by SIGKILL and SIGTERM, and see whether the same command gives the same bytes.

One run is left alone and timed. Others get a signal at moments drawn evenly over its length, from the start of the
process on, and the same command is given again. Compared are all files of both tables, byte by byte.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from measure import write_results

PARTS = 20
#: Exit codes of a process that a signal ended, before it could listen to it and after.
ENDED = {signal.SIGKILL: (-9,), signal.SIGTERM: (-15, 143)}


def main() -> int:
    """Kill and compare; returns 1 if a run was not whole, or ended in another way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=50, help="of each signal (default: %(default)s)")
    parser.add_argument("--nodes", type=int, default=20_000, help="(default: %(default)s)")
    parser.add_argument("--queries", type=int, default=2_000, help="(default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the moments (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="two of each signal, few queries")
    chosen = parser.parse_args()
    times, nodes, queries = (2, 200, 200) if chosen.quick else (chosen.times, chosen.nodes, chosen.queries)
    generator = np.random.default_rng(7)
    moments = random.Random(chosen.seed)  # noqa: S311
    found: dict[str, Any] = {}
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="seedrank-kills-") as name:
        folder = Path(name)
        edges = {column: generator.integers(0, nodes, 10 * nodes) for column in ("src", "dst")}
        pq.write_table(pa.table(edges), folder / "edges.parquet")
        hits = {"query_id": np.arange(queries), "node_id": generator.integers(0, nodes, queries)}
        pq.write_table(pa.table(hits), folder / "hits.parquet")
        score(folder, "warm", queries).wait()
        alone = time.perf_counter()
        assert score(folder, "alone", queries).wait() == 0
        alone = time.perf_counter() - alone
        for number in (signal.SIGKILL, signal.SIGTERM):
            found[number.name] = {"times": times, **struck(folder, number, times, alone, queries, moments)}
            print(number.name, found[number.name])
    wrong = sum(len(what["wrong"]) for what in found.values())
    write_results(
        "kills-quick" if chosen.quick else "kills",
        {"nodes": nodes, "queries": queries, "parts": PARTS, "seed": chosen.seed},
        {"uninterrupted_s": round(alone, 2), "signals": found, "seconds": round(time.perf_counter() - begin, 1)},
    )
    return int(wrong > 0)


def struck(
    folder: Path, number: signal.Signals, times: int, alone: float, queries: int, moments: random.Random
) -> dict[str, Any]:
    """Let a signal end so many runs, give each command again, and say what there was and what was wrong."""
    codes: Counter[int] = Counter()
    parts: list[int] = []
    wrong: list[str] = []
    for turn in range(times):
        out = f"{number.name}-{turn}"
        moment = moments.uniform(0, alone)
        process = score(folder, out, queries)
        time.sleep(moment)
        process.send_signal(number)
        code = process.wait()
        codes[code] += 1
        parts.append(finished_parts(folder / out))
        again = score(folder, out, queries).wait()
        whole = tables(folder / out) == tables(folder / "alone") and (folder / out / "_SUCCESS").exists()
        left = [child.name for child in folder.iterdir() if child.name.startswith(f".{out}")]
        if code not in (0, *ENDED[number]) or again != 0 or not whole or left:
            wrong.append(f"after {moment:.3f} s: exit code {code}, then {again}, same bytes: {whole}, left: {left}")
    return {
        "by_exit_code": {str(code): count for code, count in sorted(codes.items())},
        "between_first_and_last_part": sum(0 < count < PARTS for count in parts),
        "wrong": wrong,
    }


def score(folder: Path, out: str, queries: int) -> subprocess.Popen[bytes]:
    """Start the command."""
    arguments = [sys.executable, "-m", "seedrank", "score", "edges.parquet", "--queries", "hits.parquet", "--out", out]
    arguments += ["--part-size", str(-(-queries // PARTS)), "--top-k", "50", "--quiet"]
    return subprocess.Popen(arguments, cwd=folder, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def finished_parts(run: Path) -> int:
    """How many parts run.json lists; 0 if it is not there yet."""
    try:
        return len(json.loads((run / "run.json").read_text(encoding="utf-8"))["parts"])
    except FileNotFoundError:
        return 0


def tables(run: Path) -> dict[str, bytes]:
    """Both tables, file by file."""
    return {f"{file.parent.name}/{file.name}": file.read_bytes() for file in run.glob("*/part-*.parquet")}


if __name__ == "__main__":
    sys.exit(main())
