"""What every benchmark script shares: alternating minima, and result files that say where they were measured."""

from __future__ import annotations

import datetime as dt
import json
import os
import platform
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"

PACKAGES = (
    "seedrank", "numpy", "scipy", "numba", "llvmlite", "pyarrow", "igraph", "networkx", "scikit-network",
    "fast-pagerank", "torch", "torch-ppr", "sparse-dot-mkl", "mkl", "pyspark", "cupy-cuda12x", "cupy-cuda13x",
    "nvidia-cuda-nvrtc", "nvidia-cusparse",
)  # fmt: skip


def alternating_minima(
    runs: Mapping[str, Callable[[], object]], *, rounds: Mapping[str, int], warm_up: bool = True
) -> dict[str, float]:
    """Run everything in turns and return the shortest time of each, in seconds.

    In turns, because a machine that slows down or that has company should hit all alike; the minimum, because
    disturbances only ever add time.

    Parameters
    ----------
    runs : mapping from a name to what is timed
    rounds : mapping from the name to how often it is timed
    warm_up : bool
        Whether everything runs once before the first measurement.
    """
    if warm_up:
        for run in runs.values():
            run()
    best = dict.fromkeys(runs, float("inf"))
    for turn in range(max(rounds.values(), default=0)):
        for name, run in runs.items():
            if turn < rounds[name]:
                begin = time.perf_counter()
                run()
                best[name] = min(best[name], time.perf_counter() - begin)
    return best


def write_results(name: str, parameters: Mapping[str, Any], content: Mapping[str, Any]) -> Path:
    """Write ``results/NAME.json``: date, machine, versions, parameters, and what was measured."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    document = {
        "benchmark": name,
        "date": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "revision": _revision(),
        "machine": _machine(),
        "versions": _versions(),
        "parameters": parameters,
        **content,
    }
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return path


def _machine() -> dict[str, Any]:
    load = os.getloadavg()
    return {
        "processor": _first_value("/proc/cpuinfo", "model name") or platform.processor() or platform.machine(),
        "processors_usable": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "system": f"{platform.system()} {platform.release()}",
        "load_average_at_the_end": [round(value, 2) for value in load],
    }


def _first_value(file: str, key: str) -> str | None:
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(key)), None)


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _revision() -> str | None:
    git = shutil.which("git")
    if git is None:
        return None
    command = [git, "-C", str(RESULTS.parent), "describe", "--always", "--dirty"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    return answer.stdout.strip() or None
