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
from numba.core.caching import CompileResultCacheImpl, FunctionCache

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
    changes of the file that holds a function, not of what it calls. Code is written to the first of them that can be
    written; what was put before into one that cannot, as in an image with a read-only file system, is used, too. Where
    no folder can be written, where a file in it is damaged or the disk is full, one warning is given and code is
    compiled again: slower to start, the same result.

    Parameters
    ----------
    parallel : bool
        Whether ``prange`` runs on threads.
    inline : bool
        Whether callers get a copy of the body instead of a call.
    """

    def decorate(function: FunctionT) -> FunctionT:
        made: Any = njit(nogil=True, parallel=parallel, inline="always" if inline else "never")(function)
        if _FOLDERS:
            # What cache=True does, but for the class.
            made._cache = _KernelCache([_file_cache(function, folder) for folder in _FOLDERS])  # noqa: SLF001
        kernel: FunctionT = made
        return kernel

    return decorate


def mapped(array: Any) -> Any:
    """View an array as mapped files are viewed, so that one compiled kernel serves both."""
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


#: Numba's finder of the folder that ``config.CACHE_DIR`` names; its class has had several names.
_NamedPlace: Any = CompileResultCacheImpl._locator_classes[0]  # noqa: SLF001


class _Place(_NamedPlace):  # type: ignore[misc]
    """The folder that ``config.CACHE_DIR`` names, also where it can be read only."""

    def ensure_cache_path(self) -> None:
        """Try to make it; if that fails, so will writing, which says why."""
        with suppress(OSError):
            super().ensure_cache_path()


class _Files(CompileResultCacheImpl):
    """What names the files of a function; Numba's own turns to another folder where one cannot be written."""

    _locator_classes = [_Place]  # noqa: RUF012  # as Numba has it


class _FileCache(FunctionCache):
    """Numba's cache of one function in one folder."""

    _impl_class = _Files


class _KernelCache:
    """The cache of one function, in several folders, with failures that cost time only.

    A file may have been cut by a copy that was interrupted or by a machine that went down, and the disk may be full:
    unpickling then raises anything. The index is emptied, so that the next process finds a sound one.
    """

    def __init__(self, caches: list[FunctionCache]) -> None:
        self._caches = caches
        #: What Numba shows among the statistics of a function.
        self.cache_path = caches[0].cache_path

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the code for a signature, from the first folder that has it; None if none has."""
        for cache in self._caches:
            try:
                found = cache.load_overload(sig, target_context)
            except Exception as error:
                _warn_once(cache, error)
                with suppress(Exception):
                    cache.flush()
                continue
            if found is not None:
                return found
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the code for a signature in the first folder."""
        try:
            self._caches[0].save_overload(sig, data)
        except Exception as error:
            _warn_once(self._caches[0], error)

    def flush(self) -> None:
        """Forget the code of the first folder."""
        self._caches[0].flush()


def _file_cache(function: Callable[..., Any], folder: Path) -> FunctionCache:
    before = config.CACHE_DIR  # type: ignore[attr-defined]
    config.CACHE_DIR = str(folder)  # type: ignore[attr-defined]
    try:
        return _FileCache(function)
    finally:
        config.CACHE_DIR = before  # type: ignore[attr-defined]


def _warn_once(cache: FunctionCache, error: Exception) -> None:
    global _warned  # noqa: PLW0603
    if not _warned:
        _warned = True
        warnings.warn(
            f"compiled kernels in {cache.cache_path} could not be read or written ({type(error).__name__}: {error}); "
            "they are compiled again",
            RuntimeWarning,
            stacklevel=2,
        )


def _cache_folders() -> list[Path]:
    """Return folders for these kernels: the first that can be written, then those that others filled before.

    Where none can be written, the first of those others comes first; without any, there is a warning.
    """
    here = Path(__file__).parent
    content = b"".join(file.read_bytes() for file in sorted(here.glob("*.py")))
    name = f"kernels-{zlib.crc32(content):08x}"
    given = str(config.CACHE_DIR)  # type: ignore[attr-defined]
    places = (
        [Path(given)]
        if given
        else [here / "__pycache__", Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "seedrank"]
    )
    filled: list[Path] = []
    for place in places:
        folder = place / name
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
        if not folder.is_dir():
            continue
        if os.access(folder, os.W_OK):
            return [folder, *filled]
        filled.append(folder)
    if not filled:
        warnings.warn(
            f"compiled kernels are not kept for later runs: {' and '.join(map(str, places))} cannot be written; "
            "let NUMBA_CACHE_DIR name a folder that can",
            RuntimeWarning,
            stacklevel=2,
        )
    return filled


_warned = False
_FOLDERS = _cache_folders()
