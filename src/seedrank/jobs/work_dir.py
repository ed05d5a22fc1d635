"""The local folder for what cannot be used where it stands: graph stores of URLs, parts on their way to a URL."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from seedrank.io.storage.files import storage_errors


def work_folder(given: str | None) -> Path:
    """Return the work folder, made if need be.

    Parameters
    ----------
    given : ``--work-dir``; by default ``seedrank`` in the user's cache folder (``XDG_CACHE_HOME``, else ``~/.cache``),
        or a folder of the user's in the system's temporary one where that cannot be written.

    Raises
    ------
    StorageError
        It cannot be made.
    """
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
