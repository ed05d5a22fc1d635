"""``njit`` with a cache on disk where there can be one, and threads that do not fight over the processor."""

from __future__ import annotations

import os
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from numba import config, njit

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
    changes of the file that holds a function, not of what it calls. Where no folder can be written, one warning is
    given and everything is compiled in memory: slower to start, the same result.

    Parameters
    ----------
    parallel : bool
        Whether ``prange`` runs on threads.
    inline : bool
        Whether callers get a copy of the body instead of a call.
    """

    def decorate(function: FunctionT) -> FunctionT:
        options: dict[str, Any] = {"nogil": True, "parallel": parallel, "inline": "always" if inline else "never"}
        if _FOLDER is None:
            made: FunctionT = njit(**options)(function)
            return made
        before = config.CACHE_DIR  # type: ignore[attr-defined]
        config.CACHE_DIR = str(_FOLDER)  # type: ignore[attr-defined]
        try:
            made = njit(cache=True, **options)(function)
        finally:
            config.CACHE_DIR = before  # type: ignore[attr-defined]
        return made

    return decorate


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


_FOLDER = _cache_folder()
