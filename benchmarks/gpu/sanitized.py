"""The small runs through all kernels, for NVIDIA's compute-sanitizer: ``sanitized.py scenario|recall_scenario``.

Without CuPy's pool every array is an allocation of its own: inside the pool, memcheck takes an access beyond the end of
an array for one to its neighbour. Fails where a result is wrong.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "cuda_shim"))


def main() -> int:
    """Run one of them."""
    cupy = importlib.import_module("cupy")
    if not cupy.__version__.endswith("fake"):
        cupy.cuda.set_allocator(None)
    wrong = list(importlib.import_module(sys.argv[1]).failures())
    print(f"wrong: {wrong}" if wrong else "all right")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
