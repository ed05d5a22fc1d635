"""What the probe runs in a process of its own: every way to the GPU, one step after the other, until one fails.

Prints one line of JSON. Nothing here is imported by a job: a driver that crashes or hangs takes this process only.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from seedrank.errors import ResourceError
from seedrank.kernels.backend import Backend, QueryBlock
from seedrank.kernels.transition import SparseRows, Transition

CODES = {
    2: "out-of-memory",
    34: "driver-stub",
    46: "device-busy",
    100: "no-device",
    802: "system-not-ready",
    803: "driver-mismatch",
    804: "compat-unsupported",
}
"""Status of the CUDA runtime → code of the report; anything else is a broken driver."""

_INSUFFICIENT_DRIVER = 35


def examine(*, cugraph: bool = False) -> dict[str, Any]:
    """Try the GPU, and cuGraph on it where that is asked for.

    Returns
    -------
    dict
        ``code`` ("ok" or what failed), ``detail``, and what was learnt before: ``cupy``, ``cugraph``, ``built_for`` and
        ``driver`` (CUDA versions as 1000 × major + 10 × minor), ``device``, ``free_bytes``, ``total_bytes``.
    """
    facts: dict[str, Any] = {}
    attempts: list[Callable[[dict[str, Any]], dict[str, Any]]] = [_import, _count_devices]
    attempts += [_import_cugraph, _run_cugraph] if cugraph else [_run_kernels]
    for attempt in attempts:
        failure = attempt(facts)
        if failure:
            return facts | failure
    return facts | {"code": "ok"}


def _import(facts: dict[str, Any]) -> dict[str, Any]:
    try:
        import cupy  # noqa: PLC0415
    except ModuleNotFoundError as error:
        return _failure("not-installed" if error.name == "cupy" else "import-failed", error)
    except Exception as error:  # whatever a broken installation raises
        return _failure("import-failed", error)
    facts |= {"cupy": cupy.__version__, "built_for": cupy.cuda.runtime.runtimeGetVersion()}
    return {}


def _count_devices(facts: dict[str, Any]) -> dict[str, Any]:
    from cupy.cuda import runtime  # noqa: PLC0415

    try:
        facts["driver"] = runtime.driverGetVersion()
        if not runtime.getDeviceCount():
            return {"code": "no-device"}
    except runtime.CUDARuntimeError as error:
        if error.status == _INSUFFICIENT_DRIVER:
            return _failure("driver-too-old" if facts.get("driver") else "no-driver", error)
        return _failure(CODES.get(error.status, "driver-broken"), error)
    return {}


def _import_cugraph(facts: dict[str, Any]) -> dict[str, Any]:
    try:
        import pylibcugraph  # noqa: PLC0415
    except Exception as error:  # whatever a broken installation raises
        return _failure("cugraph-import-failed", error)
    facts["cugraph"] = pylibcugraph.__version__
    return {}


def _run_cugraph(facts: dict[str, Any]) -> dict[str, Any]:
    from seedrank.kernels.backends.cugraph import CugraphBackend  # noqa: PLC0415  # needs CuPy and pylibcugraph

    failure = _run(facts, CugraphBackend)
    # What the kernels of this package would be blamed for is cuGraph's here.
    blamed = {"kernels-failed": "cugraph-failed", "toolkit-missing": "cugraph-failed", "kernels-wrong": "cugraph-wrong"}
    return failure | {"code": blamed.get(failure["code"], failure["code"])} if failure else {}


def _run_kernels(facts: dict[str, Any]) -> dict[str, Any]:
    def backend() -> Backend:
        from seedrank.kernels.backends.gpu import GpuBackend  # noqa: PLC0415  # needs CuPy

        return GpuBackend()

    return _run(facts, backend)


def _run(facts: dict[str, Any], make: Callable[[], Backend]) -> dict[str, Any]:
    import cupy  # noqa: PLC0415

    try:
        facts["device"] = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
        facts["free_bytes"], facts["total_bytes"] = cupy.cuda.Device().mem_info
        wrong = check_kernels(make())
    except MemoryError as error:
        return _failure("out-of-memory", error)
    except ResourceError as error:  # what the backend makes of the driver's errors
        if isinstance(error.__cause__, MemoryError):
            return _failure("out-of-memory", error.__cause__)
        return _failure(CODES.get(getattr(error.__cause__, "status", 0), "kernels-failed"), error)
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return _failure(CODES.get(error.status, "kernels-failed"), error)
    except Exception as error:  # CuPy has several for libraries that it does not find
        missing = isinstance(error, ImportError) or type(error).__name__ == "DynamicLibNotFoundError"
        return _failure("toolkit-missing" if missing else "kernels-failed", error)
    return {"code": "kernels-wrong", "detail": wrong} if wrong else {}


def check_kernels(backend: Backend) -> str:
    """Compute two steps on the cycle 0 → 1 → 2 → 0, whose answers are exact; say what is wrong, or ""."""
    offsets, one = np.arange(4, dtype=np.int64), np.ones(3)
    cycle = Transition(
        nodes=3,
        products=(SparseRows(offsets, np.array([2, 0, 1], dtype=np.int32), None),),
        outgoing=(),
        out_weight=one,
        inverse_out_weight=one,
        dangling_nodes=np.zeros(0, dtype=np.int32),
        dangling="seeds",
    )
    backend.load(cycle, precision="float32", order=np.array([0, 2, 1], dtype=np.int32))
    none = np.zeros(2, dtype=np.int64)
    seed = QueryBlock(np.array([0, 1]), np.zeros(1, dtype=np.int32), np.ones(1), none, np.zeros(0, dtype=np.int32))
    backend.start(seed, restart=0.5)
    backend.step()
    report = backend.step()
    best = backend.select(np.zeros(1, dtype=np.int64), k=2, eligible=None, min_score=0.0)
    found = [best.nodes[0].tolist(), best.scores[0].tolist(), report.mass.tolist(), report.difference.tolist()]
    expected = [[0, 2], [0.5, 0.25], [1.0], [0.5]]
    return "" if found == expected else f"two steps on a cycle of three nodes gave {found}, not {expected}"


def _failure(code: str, error: BaseException) -> dict[str, Any]:
    return {"code": code, "detail": f"{type(error).__name__}: {error}"[:300]}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(examine(cugraph="cugraph" in sys.argv[1:])) + "\n")
