"""Many inputs that should not be there, through the command line; see tests/fuzzing.py for what each has to end with.

Every process takes some thousand inputs, each its own by another seed. One that ends the process itself (a fault in a
library that reads Parquet) is counted and kept in the work folder, and the other processes go on.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from measure import write_results

PROGRAM = Path(__file__).parents[1] / "tests" / "fuzzing.py"


def main() -> int:
    """Run all processes, one after the other; returns 1 if any input did not end as it should."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=20_000, help="(default: %(default)s)")
    parser.add_argument("--of-a-process", type=int, default=2_000, help="(default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the first process (default: %(default)s)")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-failures"), help="folder of inputs that failed")
    parser.add_argument("--quick", action="store_true", help="few inputs")
    chosen = parser.parse_args()
    inputs = 200 if chosen.quick else chosen.inputs
    codes: Counter[str] = Counter()
    failures: list[str] = []
    seconds = slowest = 0.0
    seed = chosen.seed
    while codes.total() < inputs and len(failures) < 20:
        count = min(chosen.of_a_process, inputs - codes.total())
        with tempfile.TemporaryDirectory(prefix="seedrank-fuzz-") as name:
            ended = subprocess.run(
                [sys.executable, PROGRAM, name, "--inputs", str(count), "--seed", str(seed)],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            if ended.returncode:
                chosen.keep.mkdir(exist_ok=True)
                for file in (*Path(name).glob("input.*"), Path(name) / "command.json"):
                    shutil.copy(file, chosen.keep / f"seed-{seed}{file.suffix}")
                failures.append(f"seed {seed}: {(ended.stdout or ended.stderr)[:300]}")
                print(failures[-1])
            else:
                found = json.loads(ended.stdout)
                codes.update(found["by_exit_code"])
                seconds, slowest = seconds + found["seconds"], max(slowest, found["slowest_s"])
                print(f"seed {seed}: {found['inputs']} inputs, {found['by_exit_code']}, {found['seconds']} s")
        seed += 1
    print(f"{codes.total()} inputs ended as they should, {len(failures)} processes did not")
    write_results(
        "fuzz-quick" if chosen.quick else "fuzz",
        {"inputs": inputs, "of_a_process": chosen.of_a_process, "first_seed": chosen.seed},
        {
            "inputs": codes.total(),
            "by_exit_code": dict(sorted(codes.items())),
            "failures": failures,
            "seconds": round(seconds, 1),
            "slowest_s": slowest,
        },
    )
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
