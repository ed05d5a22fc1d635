"""``njit`` with a cache on disk where there can be one, and threads that do not fight over the processor."""

from __future__ import annotations

import os
import warnings
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numba import config, njit
from numba.core.caching import FunctionCache

# Between two products OpenMP's threads would spin for milliseconds: harmless alone, but on a machine that others use
# the spinning thread holds the core that the working one waits for (ten times the time was seen). Some microseconds
# of spinning bridge the gaps between products; libgomp reads this when the first parallel kernel is made.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "20000")

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


def compiled(*, parallel: bool = False, inline: bool = False) -> Callable[[FunctionT], FunctionT]:
    """Compile a function on first use, without the global lock; later processes load it from the cache.

    The cache lies in ``NUMBA_CACHE_DIR``, else beside the package, else in ``~/.cache/seedrank`` (below
    ``XDG_CACHE_HOME`` if that is set), in a folder named after the content of all kernels: Numba itself notices only
    changes of the file that holds a function, not of what it calls. Where no folder can be written, where a file in it
    is damaged or the disk is full, one warning is given and code is compiled again: slower to start, the same result.

    Parameters
    ----------
    parallel : bool
        Whether ``prange`` runs on threads.
    inline : bool
        Whether callers get a copy of the body instead of a call.
    """

    def decorate(function: FunctionT) -> FunctionT:
        made: Any = njit(nogil=True, parallel=parallel, inline="always" if inline else "never")(function)
        if _FOLDER is not None:
            before = config.CACHE_DIR  # type: ignore[attr-defined]
            config.CACHE_DIR = str(_FOLDER)  # type: ignore[attr-defined]
            try:
                made._cache = _ForgivingCache(function)  # noqa: SLF001  # what cache=True does, but for the class
            finally:
                config.CACHE_DIR = before  # type: ignore[attr-defined]
        kernel: FunctionT = made
        return kernel

    return decorate


def mapped(array: Any) -> Any:
    """View an array as mapped files are viewed, so that one compiled kernel serves both."""
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


class _ForgivingCache(FunctionCache):
    """Numba's cache of one function, with failures that cost time only.

    A file may have been cut by a copy that was interrupted or by a machine that went down, and the disk may be full:
    unpickling then raises anything. The index is emptied, so that the next process finds a sound one.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:
            _warn_once(error)
            with suppress(Exception):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except Exception as error:
            _warn_once(error)


def _warn_once(error: Exception) -> None:
    global _warned  # noqa: PLW0603
    if not _warned:
        _warned = True
        warnings.warn(
            f"compiled kernels in {_FOLDER} could not be read or written ({type(error).__name__}: {error}); "
            "they are compiled again",
            RuntimeWarning,
            stacklevel=2,
        )


def _cache_folder() -> Path | None:
    """Return the first folder that can be written, for these kernels; None with a warning."""
    here = Path(__file__).parent
    content = b"".join(file.read_bytes() for file in sorted(here.glob("*.py")))
    name = f"kernels-{zlib.crc32(content):08x}"
    given = str(config.CACHE_DIR)  # type: ignore[attr-defined]
    places = (
        [Path(given)]
        if given
        else [here / "__pycache__", Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "seedrank"]
    )
    for place in places:
        try:
            (place / name).mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(place / name, os.W_OK):
            return place / name
    warnings.warn(
        f"compiled kernels are not kept for later runs: {' and '.join(map(str, places))} cannot be written; "
        "let NUMBA_CACHE_DIR name a folder that can",
        RuntimeWarning,
        stacklevel=2,
    )
    return None


_warned = False
_FOLDER = _cache_folder()
