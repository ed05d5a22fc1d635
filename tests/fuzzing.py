"""The command line on many inputs that should not be there, in one warm process.

``python tests/fuzzing.py FOLDER --inputs 500 --seed 0`` prints one JSON document: how many inputs there were, and how
often each exit code. Every input has to end with 0, 2 or 3 within `LIMIT_S` and `LIMIT_BYTES`; where it is 3, the
message names the file, and never is there a traceback or a control character. The first that does not is kept in
FOLDER/input.parquet (or input.npy) and printed with its command; if the process dies, that file is what killed it.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import io
import json
import re
import resource
import shutil
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import seedrank
from seedrank.jobs.cli.main import run
from seedrank.testing.odd_tables import ODD_NAMES, array_files, damaged_files, odd_files

#: Seconds that an input may take.
LIMIT_S = 20
#: Address space that the process may take beyond what it has when it begins.
LIMIT_BYTES = 3 << 30

QUERIES, NODES = ["q0", "q1", "q2", "q3"], [0, 1, 2, 3]
GOOD: dict[str, pa.Table] = {
    "edges": pa.table({"src": [0, 1, 2, 3, 0, 5], "dst": [1, 2, 3, 0, 2, 1], "weight": [1.0, 2, 0.5, 1, 1, 3]}),
    "nodes": pa.table({"id": [0, 1, 2, 3, 5, 9], "type": ["x", "y", "x", "x", "y", "x"], "path": list("abcdef")}),
    "hits": pa.table({"query_id": QUERIES, "node_id": NODES, "weight": [1.0, 2, 0.5, 1], "source": list("abab")}),
    "lists": pa.table({"query_id": QUERIES, "seeds": [[0, 1], [], None, [2, None]]}),
    "exclusions": pa.table({"query_id": QUERIES, "node_id": NODES}),
    "query_info": pa.table({"query_id": QUERIES, "text": list("abcd"), "budget": ["fast", None, "balanced", "fast"]}),
    "vectors": pa.table({"id": NODES, "vector": pa.array([[0.0, 1], [1, 0], None, [2, 1]], pa.list_(pa.float32()))}),
}
QUERY_VECTORS = pa.table({"query_id": QUERIES, "vector": [[1.0, 0]] * 4})
TYPED = GOOD["edges"].append_column("type", pa.array(["x", "y", "x", None, "y", "x"]).dictionary_encode())


class Hung(BaseException):
    """An input took too long."""


def commands(folder: Path, role: str) -> list[list[str]]:
    """What an input of a role is given to: commands with the options that read most of it."""
    file = str(folder / ("input.npy" if role == "arrays" else "input.parquet"))
    out = ["--out", str(folder / "out"), "--overwrite"]
    score = ["score", "--backend", "scipy", "--max-iterations", "3", "--tolerance", "0", *out]
    names = ("graph", "hits.parquet", "edges.parquet", "vectors.parquet", "queries.parquet", "ids.parquet")
    graph, hits, edges, nodes, vectors, ids = (str(folder / name) for name in names)
    by_id = ["--vector-query-column", "id"]
    search = ["--method", "fuse", "--query-vectors", vectors, *out]
    odd = ODD_NAMES[-2]
    return {
        "edges": [
            ["build", file, *out],
            ["build", file, *out, "--on-bad-rows", "drop", "--null-weight", "one", "--duplicate-edges", "max"],
            ["build", file, *out, "--weight-column", odd],
            [*score, file, "--queries", hits],
        ],
        "nodes": [
            ["build", edges, "--nodes", file, *out],
            ["build", edges, "--nodes", file, *out, "--node-id-column", odd],
        ],
        "hits": [
            [*score, graph, "--queries", file],
            ["score", "--method", "fuse", "--queries", file, *out],
            ["check", graph, "--queries", file, "--fusion", "rrf"],
            ["plan", graph, "--queries", file],
            [*score, graph, "--queries", file, "--source", "a", "--hit-weight-column", odd],
        ],
        "query_info": [
            [*score, graph, "--queries", hits, "--method", "auto", "--source-role", "a=dense", "--query-info", file],
            ["check", graph, "--queries", hits, "--query-info", file],
            [*score, graph, "--queries", hits, "--query-info", file],
            ["plan", graph, "--queries", hits, "--method", "auto", "--source-role", "a=dense", "--query-info", file],
        ],
        "vectors": [
            ["score", *search, "--node-vectors", file],
            ["score", graph, *search, "--node-vectors", file, "--queries", hits],
            ["check", graph, "--node-vectors", file, "--query-vectors", vectors],
            ["check", graph, "--node-vectors", nodes, "--query-vectors", file, *by_id],
            ["plan", graph, "--node-vectors", file, "--query-vectors", vectors],
        ],
        "arrays": [
            ["score", *search, "--node-vectors", file, "--node-vectors", ids],
            ["check", graph, "--node-vectors", file, "--node-vectors", ids, "--query-vectors", vectors],
            ["check", graph, "--node-vectors", nodes, "--query-vectors", file, "--query-vectors", ids, *by_id],
        ],
        "lists": [[*score, graph, "--queries", file], ["score", "--method", "fuse", "--queries", file, *out]],
        "exclusions": [
            [*score, graph, "--queries", hits, "--exclude", file],
            ["check", graph, "--queries", hits, "--exclude", file],
        ],
    }[role]


@st.composite
def inputs(draw: st.DrawFn) -> tuple[str, int, bytes]:
    """A role, the number of a command, and the bytes of a file."""
    role = draw(st.sampled_from([*sorted(GOOD), "arrays"]))
    if role == "arrays":
        return role, draw(st.integers(0, 4)), draw(array_files())
    good = TYPED if role == "edges" and draw(st.booleans()) else GOOD[role]
    data = draw(st.one_of(odd_files(role), damaged_files(good)))
    return role, draw(st.integers(0, 4)), data


def ended(arguments: list[str]) -> tuple[int, str]:
    """Exit code and standard error of a command."""
    with contextlib.redirect_stderr(io.StringIO()) as err, contextlib.redirect_stdout(io.StringIO()):
        signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
        faulthandler.dump_traceback_later(3 * LIMIT_S, exit=True, file=2)  # should it hang in compiled code
        try:
            code = run(arguments)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            faulthandler.cancel_dump_traceback_later()
    return code, err.getvalue()


def complaint(code: int, err: str) -> str:
    """What is wrong with the way a command ended; "" for nothing."""
    if code not in (0, 2, 3):
        return f"exit code {code}"
    if "Traceback" in err:
        return "a traceback"
    if code == 3 and not re.search(r"input\.(parquet|npy)", err):
        return "the message does not name the file"
    if code and not ("error: " in err and "expected: " in err and "fix: " in err):
        return "the message lacks a part"
    if re.search(r"[^\n\t -~\u00a0-\U0010ffff]", err) or re.search("[\u202a-\u202e\u2066-\u2069]", err):
        return "a control character in the message"
    return ""


def main() -> None:
    """Run the inputs; leave with 1 at the first that does not end as it should."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--inputs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    folder: Path = chosen.folder
    others = {"queries": QUERY_VECTORS, "ids": pa.table({"id": range(6)})}
    for name, table in {**GOOD, **others}.items():
        pq.write_table(table, folder / f"{name}.parquet")
    seedrank.build(folder / "edges.parquet", nodes=GOOD["nodes"], out=folder / "graph", overwrite=True)

    def late(*_: Any) -> None:
        raise Hung

    signal.signal(signal.SIGALRM, late)
    counts: Counter[int] = Counter()
    slowest, begin = 0.0, time.perf_counter()

    @seed(chosen.seed)
    @settings(
        max_examples=chosen.inputs,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(inputs())
    def try_one(case: tuple[str, int, bytes]) -> None:
        nonlocal slowest
        role, number, data = case
        possible = commands(folder, role)
        arguments = possible[number % len(possible)]
        shutil.rmtree(folder / "out", ignore_errors=True)
        (folder / ("input.npy" if role == "arrays" else "input.parquet")).write_bytes(data)
        (folder / "command.json").write_text(json.dumps(arguments), encoding="utf-8")
        since = time.perf_counter()
        try:
            code, err = ended(arguments)
        except Hung:
            code, err = -1, f"took longer than {LIMIT_S} s"
        wrong = complaint(code, err) if code != -1 else err
        if wrong:
            report = {"wrong": wrong, "arguments": arguments, "inputs": counts.total() + 1, "said": err}
            sys.stdout.write(json.dumps(report) + "\n")
            raise SystemExit(1)
        counts[code] += 1
        slowest = max(slowest, time.perf_counter() - since)

    used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + LIMIT_BYTES, resource.RLIM_INFINITY))
    try_one()
    by_code = {str(code): count for code, count in sorted(counts.items())}
    found = {
        "inputs": counts.total(),
        "seed": chosen.seed,
        "by_exit_code": by_code,
        "seconds": round(time.perf_counter() - begin, 1),
        "slowest_s": round(slowest, 2),
    }
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
