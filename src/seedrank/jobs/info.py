"""``info``: versions, machine, backends, and which one would run and why."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any

from seedrank._version import __version__
from seedrank.io.graph.graph_facts import FORMAT_VERSION
from seedrank.io.records import RUN_SCHEMA_VERSION
from seedrank.jobs.prepare import memory_budget
from seedrank.jobs.resources import available_memory
from seedrank.kernels._gpu.probe import DeviceReport, Work, probe_cugraph, probe_device
from seedrank.kernels.backends.resolver import resolve_backend


def info() -> dict[str, Any]:
    """Describe this installation and machine.

    Returns
    -------
    dict
        ``seedrank``, ``python``, ``libraries`` (base dependencies → version or None), ``machine`` (processors,
        available memory, default memory budget in bytes), ``formats``, ``backend`` (name, requested, reason) and
        ``gpu`` and ``cugraph`` (whether it is usable, what is wrong, what was learnt of it).
    """
    decision = resolve_backend("auto")
    return {
        "seedrank": __version__,
        "python": platform.python_version(),
        "executable": sys.executable,
        "platform": platform.platform(),
        "libraries": {name: _version(name) for name in _base_dependencies()},
        "machine": {
            "processors": os.cpu_count(),
            "available_memory_bytes": available_memory(),
            "memory_budget_bytes": memory_budget(None),
        },
        "formats": {"graph_store": FORMAT_VERSION, "run": RUN_SCHEMA_VERSION},
        "backend": {"name": decision.name, "requested": decision.requested, "reason": decision.reason},
        "gpu": _gpu(),
        "cugraph": _device(probe_cugraph(), "cugraph"),
    }


def _gpu() -> dict[str, Any]:
    """What PageRank would be told; where that can use the GPU, whether other methods can, too."""
    report = probe_device()
    facts = _device(report, "device", "cupy", "driver", "free_bytes", "total_bytes")
    others: dict[str, Work] = {"walk_and_bfs": "recall", "node_vectors": "products"} if report.usable else {}
    return facts | {name: probe_device(work=work).problem or "usable" for name, work in others.items()}


def _device(report: DeviceReport, *learnt: str) -> dict[str, Any]:
    """What ``--backend gpu`` or ``cugraph`` would be told: whether it is usable, else why not."""
    facts = {"usable": report.usable, "code": report.code, "problem": report.problem}
    if report.problem:
        facts["fix"] = report.error().fix
    known = {name: getattr(report, name) for name in learnt}
    return facts | {name: value for name, value in known.items() if value}


def _base_dependencies() -> list[str]:
    lines = [line for line in requires("seedrank") or [] if "extra ==" not in line]
    names = ["".join(c if c.isalnum() or c in "-_." else " " for c in line).split()[0] for line in lines]
    return sorted(names)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
