"""Do blocks of threads disturb each other? Runs every kernel with its blocks on threads of the CPU.

    python benchmarks/gpu/races.py

Needs no GPU, but g++ with ThreadSanitizer, which reports two accesses of different blocks to one place of memory of
which one writes and one is not atomic, whether or not they met this time. NVIDIA's racecheck looks at shared memory
alone. Fails where there is such a pair that is not one of `HARMLESS`. Takes some 30 s.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2] / "tests"
sys.path.insert(0, str(TESTS / "cuda_shim"))

import shim  # noqa: E402  # its folder is no package

HARMLESS = {
    ("Read", "entered", "atomic write", "entered"): "a place that looks free is decided by the exchange that follows",
    ("Atomic write", "entered", "read", "entered"): "the same, the other way round",
    ("Read", "count_ways", "atomic write", "count_ways"): "an older number makes the exchange that follows fail",
    ("Atomic write", "count_ways", "read", "count_ways"): "the same, the other way round",
    ("Write", "has_edges", "write", "has_edges"): "all write 1",
}

#: The selection gives a block so many rows that one would do for the small graphs here.
PROGRAM = """
from seedrank.kernels._gpu import selection
import {scenario}
selection.ROWS_A_BLOCK = 64
print(list({scenario}.failures()))
"""

REPORT = re.compile(
    r"WARNING: ThreadSanitizer: data race.*?\n  (?P<one>[\w ]+?) of size.*?\n(?P<frames>.*?)\n\n"
    r"  Previous (?P<other>[\w ]+?) of size.*?\n(?P<before>.*?)\n\n",
    re.DOTALL,
)
FRAME = re.compile(r"#\d+ (?:[\w ]+ )?(\w+)(?:<.*?>)?(?:\(.*?\))? \S*kernels\.cu:(\d+)")


def found_in(said: str) -> set[tuple[str, str, str, str]]:
    """Pairs of accesses in what ThreadSanitizer says: how, in which function of the kernels, and of the earlier one."""
    pairs = set()
    for report in REPORT.finditer(said):
        here, before = FRAME.search(report["frames"]), FRAME.search(report["before"])
        names = (here[1] if here else "?", before[1] if before else "?")
        pairs.add((report["one"], names[0], report["other"], names[1]))
    return pairs


def run(scenario: str) -> str:
    """Run a scenario on the stand-in for CuPy; returns what ThreadSanitizer says."""
    environment = shim.sanitized_environment("tsan") | {"FAKE_CUPY_THREADED": "1"}
    environment["PYTHONPATH"] = os.pathsep.join([str(TESTS / "fake_cupy"), environment["PYTHONPATH"]])
    command = [sys.executable, "-c", PROGRAM.format(scenario=scenario)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode or done.stdout != "[]\n":
        sys.exit(f"{scenario} went wrong: {done.stdout}{done.stderr[-2000:]}")
    return done.stderr


def main() -> None:
    """Run both scenarios."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    if shim.compiler() is None:
        sys.exit("no g++ is here")
    unknown = False
    for scenario in ("scenario", "recall_scenario"):
        said = run(scenario)
        pairs = found_in(said)
        print(f"{scenario}: {said.count('data race')} reports")
        for pair in sorted(pairs):
            print("  ", *pair, "-", HARMLESS.get(pair, "NOT EXPECTED"))
        unknown |= bool(pairs - set(HARMLESS)) or bool("data race" in said and not pairs)
    sys.exit(unknown)


if __name__ == "__main__":
    main()
