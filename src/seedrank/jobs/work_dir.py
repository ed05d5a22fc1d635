"""The local folder for what cannot be used where it stands: graph stores of URLs, parts on their way to a URL."""

from __future__ import annotations

import logging
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from seedrank.io.run.owned import folders_below, without_owner
from seedrank.io.storage.files import remove_tree, storage_errors

log = logging.getLogger(__name__)

#: Graphs of edge lists that are kept for `explain`: of the runs at a URL that ended last.
KEPT_GRAPHS = 10


def work_folder(given: str | None) -> Path:
    """Return the work folder, made if need be, and rid of what processes left in it that were killed.

    Parameters
    ----------
    given : ``--work-dir``; by default ``seedrank`` in the user's cache folder (``XDG_CACHE_HOME``, else ``~/.cache``),
        or a folder of the user's in the system's temporary one where that cannot be written.

    Raises
    ------
    StorageError
        It cannot be made.
    """
    folder = _made(given)
    _tidy_up(folder)
    return folder


def _made(given: str | None) -> Path:
    if given is not None:
        folder = Path(given).expanduser().resolve()
        with storage_errors(f"making the work folder {folder}"):
            folder.mkdir(parents=True, exist_ok=True)
        return folder
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "seedrank"
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError:
        pass
    else:
        if os.access(cache, os.W_OK):
            return cache.resolve()
    folder = Path(tempfile.gettempdir()).resolve() / f"seedrank-{os.getuid()}"
    with storage_errors(f"making the work folder {folder}"):
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.stat().st_uid != os.getuid():
            # Everybody may make folders there: what lies in another user's is not ours.
            raise PermissionError(f"{folder} belongs to another user; pass --work-dir")
    return folder


def _tidy_up(work: Path) -> None:
    """Remove builds, unfinished runs and unfinished copies whose process is gone, and all graphs of runs but the last.

    A run whose process is gone and that has unfinished files was killed: the next attempt has a folder of its own, and
    builds its graph again.
    """
    graphs = []
    for parent in ("builds", "copies"):
        for place in folders_below(work / parent):
            _remove(place)
    for run in folders_below(work / "runs"):
        for place in folders_below(run):
            if (place / "graph").is_dir() and not (place / "staged").exists():
                graphs.append(place)
            else:
                _remove(place)
        with suppress(OSError):  # not empty
            run.rmdir()
    for place in sorted(graphs, key=_last_changed)[:-KEPT_GRAPHS]:
        _remove(place)


def _remove(place: Path) -> None:
    """Remove a folder that nobody owns; whatever goes wrong there is nothing to the command."""
    with suppress(OSError), without_owner(place) as gone:
        if gone and place.exists():
            remove_tree(place)
            log.info("leftovers_removed", extra={"path": str(place)})


def _last_changed(place: Path) -> float:
    with suppress(OSError):
        return place.stat().st_mtime
    return 0.0
