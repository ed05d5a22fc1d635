"""``njit`` with a cache on disk where there can be one, and threads that do not fight over the processor."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

# Between two products OpenMP's threads would spin for milliseconds: harmless alone, but on a machine that others use
# the spinning thread holds the core that the working one waits for (ten times the time was seen). Some microseconds
# of spinning bridge the gaps between products; libgomp reads this when the first parallel kernel is made.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "20000")

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


def compiled(*, parallel: bool = False, inline: bool = False) -> Callable[[FunctionT], FunctionT]:
    """Compile a function on first use, without the global lock; later processes load it from the cache.

    Where no cache folder can be written (read-only home and package), a warning is given once per function and the
    function is compiled in memory: slower to start, the same result.

    Parameters
    ----------
    parallel : bool
        Whether ``prange`` runs on threads.
    inline : bool
        Whether callers get a copy of the body instead of a call.
    """

    def decorate(function: FunctionT) -> FunctionT:
        options: dict[str, Any] = {"nogil": True, "parallel": parallel, "inline": "always" if inline else "never"}
        try:
            made: FunctionT = njit(cache=True, **options)(function)
        except RuntimeError as error:
            warnings.warn(
                f"compiled code is not kept for later runs ({error}); "
                "let NUMBA_CACHE_DIR name a folder that can be written",
                RuntimeWarning,
                stacklevel=2,
            )
            made = njit(**options)(function)
        return made

    return decorate
