"""What the probe runs in a process of its own: every way to the GPU, one step after the other, until one fails.

Prints one line of JSON. Nothing here is imported by a job: a driver that crashes or hangs takes this process only.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from seedrank.errors import KernelError, ResourceError
from seedrank.kernels._gpu.known_answers import check_products, check_recall, check_steps

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


def examine(work: str = "steps") -> dict[str, Any]:
    """Try the GPU, and on it what some work needs.

    Parameters
    ----------
    work : str
        One of `WORKS`.

    Returns
    -------
    dict
        ``code`` ("ok" or what failed), ``detail``, and what was learnt before: ``cupy``, ``cugraph``, ``built_for`` and
        ``driver`` (CUDA versions as 1000 × major + 10 × minor), ``device``, ``free_bytes``, ``total_bytes``.
    """
    facts: dict[str, Any] = {}
    for attempt in (_import, _count_devices, *WORKS[work]):
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
    def check() -> str:
        from seedrank.kernels.backends.cugraph import CugraphBackend  # noqa: PLC0415  # needs CuPy and pylibcugraph

        return check_steps(CugraphBackend())

    failure = _run(facts, check)
    # What the kernels of this package would be blamed for is cuGraph's here.
    blamed = {"kernels-failed": "cugraph-failed", "toolkit-missing": "cugraph-failed", "kernels-wrong": "cugraph-wrong"}
    return failure | {"code": blamed.get(failure["code"], failure["code"])} if failure else {}


def _run_steps(facts: dict[str, Any]) -> dict[str, Any]:
    def check() -> str:
        from seedrank.kernels.backends.gpu import GpuBackend  # noqa: PLC0415  # needs CuPy

        return check_steps(GpuBackend())

    return _run(facts, check)


def _run_recall(facts: dict[str, Any]) -> dict[str, Any]:
    return _run(facts, check_recall)


def _run_products(facts: dict[str, Any]) -> dict[str, Any]:
    return _run(facts, check_products)


WORKS: dict[str, tuple[Callable[[dict[str, Any]], dict[str, Any]], ...]] = {
    "steps": (_run_steps,),
    "recall": (_run_recall,),
    "products": (_run_products,),
    "cugraph": (_import_cugraph, _run_cugraph),
}
"""What is tried after driver and device: of PageRank, of walks and traversals, of vectors; of cuGraph."""


def _run(facts: dict[str, Any], check: Callable[[], str]) -> dict[str, Any]:
    import cupy  # noqa: PLC0415

    try:
        facts["device"] = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
        facts["free_bytes"], facts["total_bytes"] = cupy.cuda.Device().mem_info
        wrong = check()
    except Exception as error:  # CuPy has several for libraries that it does not find
        return _failure(_code_of(error), error)
    return {"code": "kernels-wrong", "detail": wrong} if wrong else {}


def _code_of(error: BaseException) -> str:
    """What an error means; those that our own code makes of others have them as their cause."""
    if isinstance(error, MemoryError):
        return "out-of-memory"
    if isinstance(error, (KernelError, ResourceError)) and error.__cause__ is not None:
        return _code_of(error.__cause__)
    if isinstance(error, KernelError):  # what kernels computed is impossible
        return "kernels-wrong"
    if isinstance(error, ImportError) or type(error).__name__ == "DynamicLibNotFoundError":
        return "toolkit-missing"
    return CODES.get(getattr(error, "status", 0), "kernels-failed")


def _failure(code: str, error: BaseException) -> dict[str, Any]:
    return {"code": code, "detail": f"{type(error).__name__}: {error}"[:300]}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(examine(*sys.argv[1:])) + "\n")
