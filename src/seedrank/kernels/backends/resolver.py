"""Which backends there are, which one a run uses and why, and how one is made.

Adding a backend
----------------
1. Write a class with the methods of `seedrank.kernels.backend.Backend` in a module of its own. The driver in
   `seedrank.kernels.ppr` runs it unchanged.
2. Add a line to ``_FACTORIES`` (the import stays inside the factory: importing this module loads no optional
   dependency) and, if ``auto`` may choose it, a rule to `resolve_backend`.
3. Add its name to the list of ``tests/test_kernels/test_backend_contract.py``; the class there states what every
   backend has to fulfil, bit for bit where the semantics say so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from seedrank.errors import ConfigError
from seedrank.kernels._gpu.probe import Work, probe_cugraph, probe_device
from seedrank.kernels.backend import Backend
from seedrank.kernels.numba_support import require_compiled, why_not_compiled


@dataclass(frozen=True)
class BackendDecision:
    """Which backend runs, what was asked for, and why this one.

    Attributes
    ----------
    name : str
    requested : str
    reason : str
    """

    name: str
    requested: str
    reason: str


def _scipy(threads: int | None) -> Backend:  # the reference runs on one thread
    from seedrank.kernels.backends.scipy import ScipyBackend  # noqa: PLC0415

    return ScipyBackend()


def _cpu(threads: int | None) -> Backend:
    from seedrank.kernels.backends.cpu import CpuBackend  # noqa: PLC0415

    return CpuBackend(threads=threads)


def _gpu(threads: int | None) -> Backend:  # the host only sorts what the device selected
    from seedrank.kernels.backends.gpu import GpuBackend  # noqa: PLC0415

    return GpuBackend()


def _cugraph(threads: int | None) -> Backend:  # the host only selects
    from seedrank.kernels.backends.cugraph import CugraphBackend  # noqa: PLC0415

    return CugraphBackend()


_FACTORIES: dict[str, Callable[[int | None], Backend]] = {
    "cpu": _cpu,
    "cugraph": _cugraph,
    "gpu": _gpu,
    "scipy": _scipy,
}


def resolve_backend(name: str, *, work: Work = "steps") -> BackendDecision:
    """Decide once which backend a run uses.

    Parameters
    ----------
    name : str
        "auto" or the name of a backend. One that is asked for by name is used or refused, never replaced.
    work : "steps", "recall" or "products"
        What a GPU would be used for; see `seedrank.kernels._gpu.probe.probe_device`.

    Returns
    -------
    BackendDecision

    Raises
    ------
    ConfigError
        No backend has this name.
    ResourceError
        The backend that was asked for by name cannot run here.
    """
    if name == "auto":
        reason = why_not_compiled()
        if reason is not None:
            return BackendDecision("scipy", name, f"{reason}; runs, but many times slower than cpu")
        # The gpu backend has been held against all others, but not run on a GPU yet: who wants it says so.
        return BackendDecision(
            "cpu", name, "the fastest backend that was measured; a GPU is used with --backend gpu only"
        )
    if name == "cpu":
        require_compiled("--backend cpu")
    if name == "gpu":
        report = probe_device(work=work)
        if not report.usable:
            raise report.error()
        return BackendDecision(name, name, f"asked for by name; {report.device}, CuPy {report.cupy}")
    if name == "cugraph":
        report = probe_cugraph()
        if not report.usable:
            raise report.error()
        return BackendDecision(name, name, f"asked for by name; {report.device}, cuGraph {report.cugraph}")
    if name in _FACTORIES:
        return BackendDecision(name, name, "asked for by name")
    raise ConfigError(
        f"backend {name!r} does not exist",
        expected="one of " + ", ".join(["auto", *sorted(_FACTORIES)]),
        fix="use --backend auto",
    )


def create_backend(name: str, *, threads: int | None = None) -> Backend:
    """Make a backend, without a graph yet.

    Parameters
    ----------
    name : str
        As `resolve_backend` accepts it.
    threads : int, optional
        Threads that it may use, where it uses any; None: one per processor. Results do not depend on it.

    Returns
    -------
    Backend

    Raises
    ------
    ConfigError
        No backend has this name.
    """
    return _FACTORIES[resolve_backend(name).name](threads)
