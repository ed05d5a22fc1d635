"""How long it takes until seedrank answers: wall time of `seedrank --help` and of `import seedrank`.

    python benchmarks/startup.py --runs 20

Prints minimum and median over runs in fresh processes, and writes them to ``results/startup.json``. The bare
interpreter is the floor.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time

from measure import write_results

COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "import seedrank": [sys.executable, "-c", "import seedrank"],
    "seedrank --help": [sys.executable, "-m", "seedrank", "--help"],
}


def wall_times(command: list[str], runs: int) -> list[float]:
    """Run a command `runs` times, after one run that fills the caches; return the seconds of each."""
    seconds = []
    for _ in range(runs + 1):
        begin = time.perf_counter()
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        seconds.append(time.perf_counter() - begin)
    return seconds[1:]


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10, help="runs of each command (default: %(default)s)")
    runs = parser.parse_args().runs
    print(f"{'command':<18}{'min s':>10}{'median s':>10}   ({runs} runs, Python {sys.version.split()[0]})")
    rows = []
    for name, command in COMMANDS.items():
        seconds = wall_times(command, runs)
        print(f"{name:<18}{min(seconds):>10.3f}{statistics.median(seconds):>10.3f}")
        rows.append({"command": name, "minimum": min(seconds), "median": statistics.median(seconds)})
    write_results("startup", {"runs": runs}, {"rows": rows})


if __name__ == "__main__":
    main()
