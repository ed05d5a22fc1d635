"""``njit`` with a cache on disk where there can be one."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

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
