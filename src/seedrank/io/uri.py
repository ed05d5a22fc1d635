"""Find the files behind a path, a folder, a glob, a list or a URL.

Folders are read as Spark, Hive, Delta and editors leave them: names that begin with ``_`` or ``.`` are
bookkeeping (unless they are a partition folder ``key=value``), other suffixes than Parquet's are not data,
and a zero-byte *part* is a broken write that must not pass for an empty one.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePosixPath
from typing import Any, TypeVar
from urllib.parse import unquote

import fsspec

from seedrank.errors import InputDataError, ResourceError, SeedrankError, StorageError
from seedrank.io.storage.retries import retried
from seedrank.redaction import redacted, without_credentials

PathLike = str | os.PathLike[str]
Result = TypeVar("Result")

PARQUET_SUFFIXES = frozenset({".parquet", ".parq", ".pq"})
HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"

_EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs", "az": "azure", "abfs": "azure", "abfss": "azure"}
_HIVE_FOLDER = re.compile(r"[^=]+=.*", re.DOTALL)
_GLOB_MAGIC = re.compile(r"[*?\[]")
_NAMED_IN_MESSAGE = 5


@dataclass(frozen=True)
class InputFile:
    """One file to read.

    Parameters
    ----------
    filesystem : fsspec.AbstractFileSystem
        Where the file lives.
    path : str
        Path as the file system wants it.
    uri : str
        The name for messages and manifests: the absolute path of a local file, else the URL without credentials.
    size : int
        Bytes.
    partition : dict[str, str | None]
        Hive keys of the folders above the file (``year=2024/type=cites``), percent-decoded, always strings;
        ``__HIVE_DEFAULT_PARTITION__`` is None. All folders of the path count, so that a file means the same
        whether it was named itself, or found through a folder or a glob.
    """

    filesystem: Any
    path: str
    uri: str
    size: int
    partition: dict[str, str | None] = field(default_factory=dict)

    @property
    def is_local(self) -> bool:
        """Whether the path can be given to the operating system."""
        protocol = self.filesystem.protocol
        return "file" in ((protocol,) if isinstance(protocol, str) else protocol)


def find_files(source: PathLike | Sequence[PathLike], *, what: str) -> list[InputFile]:
    """List the files of an input, sorted by name.

    Parameters
    ----------
    source : path or sequence of paths
        A file (read whatever its name), a folder (recursive), a glob, a URL that fsspec knows (``s3://``,
        ``gs://``, ``az://``, ``file://``, ``memory://``, …), or a list of these.
    what : str
        The role of the input in messages, such as ``"edges"``.

    Returns
    -------
    list[InputFile]
        At least one file, sorted by ``uri``.

    Raises
    ------
    InputDataError
        Nothing there, nothing that is data, a zero-byte part, or one file named twice.
    ResourceError
        The URL needs a package that is not installed, or its protocol is unknown.
    StorageError
        The storage refused or failed.
    """
    sources = [source] if isinstance(source, str | os.PathLike) else list(source)
    if not sources:
        raise InputDataError(
            f"{what}: an empty list of paths",
            expected="at least one file, folder, glob or URL",
            fix=f"name the {what} to read",
        )
    found = [file for entry in sources for file in _find_one(os.fspath(entry), what)]
    found.sort(key=lambda file: file.uri)
    for first, second in itertools.pairwise(found):
        if first.uri == second.uri:
            raise InputDataError(
                f"{what}: {first.uri} is named twice",
                expected="each file once; its rows would count double",
                fix="remove the repetition from the list of paths",
            )
    return found


def _find_one(source: str, what: str) -> list[InputFile]:
    filesystem, path = open_filesystem(source, what)
    # A listing cached by an earlier step would hide what was written since.
    filesystem.invalidate_cache()
    info = _guard(source, what, filesystem, lambda: _info(filesystem, path))
    if info is None and _GLOB_MAGIC.search(path):
        return _from_glob(filesystem, path, source, what)
    if info is None:
        raise InputDataError(
            f"{what}: nothing at {source}",
            expected="a file, a folder, a glob, a list of these, or a URL",
            fix="check the path (relative paths start at the working directory)",
        )
    if info["type"] == "directory" or (not info["size"] and _has_children(filesystem, path)):
        listing = _guard(source, what, filesystem, lambda: _listing(filesystem, path))
        return _keep_data(filesystem, listing, root=path, source=source, what=what)
    return [_input_file(filesystem, info, what)]


def open_filesystem(source: str, what: str) -> tuple[Any, str]:
    """Return the file system of a path or URL, and the path as it wants it.

    Raises
    ------
    InputDataError
        The name is not UTF-8.
    ResourceError
        A package is missing, or the protocol is unknown.
    StorageError
        The file system could not be made.
    """
    protocol = source.split("://", 1)[0] if "://" in source else "file"
    try:
        source.encode()
    except UnicodeEncodeError:
        raise InputDataError(
            f"{what}: the name {source!r} is not UTF-8",
            expected="names of files in UTF-8",
            fix="rename the file",
        ) from None
    try:
        filesystem, path = fsspec.core.url_to_fs(source)
    except OSError as error:
        # Some file systems connect, or open an archive, when they are made.
        raise StorageError(
            f"{what}: {source} cannot be reached ({error})",
            expected="a storage that answers",
            fix="check the URL, credentials and network, then run the same command again",
        ) from without_credentials(error)
    except ImportError as error:
        extra = _EXTRAS.get(protocol)
        raise ResourceError(
            f"{what}: {source} needs a package that is not installed ({error})",
            expected=f"a file system for {protocol}://",
            fix=f'pip install "seedrank[{extra}]"' if extra else "install the package named above",
        ) from error
    except ValueError as error:
        raise ResourceError(
            f"{what}: {source} cannot be opened ({error})",
            expected="a path or a URL that fsspec knows: s3://, gs://, az://, file://, memory://, …",
            fix='check the URL; object stores come with pip install "seedrank[s3]", "seedrank[gcs]", "seedrank[azure]"',
        ) from error
    return filesystem, str(path)


def _guard(source: str, what: str, filesystem: Any, action: Callable[[], Result]) -> Result:
    """Run a listing, on other storages than disks several times if need be; what they raise becomes a StorageError."""
    on_disk = isinstance(filesystem, fsspec.get_filesystem_class("file"))
    try:
        return action() if on_disk else retried(action, what=f"listing {source}")
    except SeedrankError:
        raise
    except Exception as error:
        # Object-store clients raise classes of their own; a local file system raises OSError only.
        if not isinstance(error, OSError) and on_disk:
            raise
        raise StorageError(
            f"{what}: {source} cannot be listed ({type(error).__name__}: {error})",
            expected="permission to list and read it, and a storage that answers",
            fix="check permissions, credentials and network, then run the same command again",
        ) from without_credentials(error)


def _info(filesystem: Any, path: str) -> dict[str, Any] | None:
    try:
        return dict(filesystem.info(path))
    except FileNotFoundError:
        return None
    except PermissionError:
        # A role that may only list and read below a prefix is refused the look at the prefix itself. Where nothing is,
        # S3 says the same to it; a listing, if the role is granted that, tells.
        if _is_absent(filesystem, path):
            return None
        if _has_children(filesystem, path):
            return {"name": path, "type": "directory", "size": 0}
        raise


def _has_children(filesystem: Any, path: str) -> bool:
    return any(name.startswith(path.rstrip("/") + "/") for name in filesystem.find(path))


def _is_absent(filesystem: Any, path: str) -> bool:
    """Whether a listing that the role is granted has nothing there; False where it is refused."""
    try:
        filesystem.ls(path, detail=False)
    except FileNotFoundError:
        return True
    except PermissionError:
        pass
    return False


def _listing(filesystem: Any, path: str) -> list[dict[str, Any]]:
    """Files below a folder: one flat listing on object stores, an own walk on disks."""
    if not isinstance(filesystem, fsspec.get_filesystem_class("file")):
        return list(filesystem.find(path, detail=True).values())
    return list(_walk(path, above=()))


def _walk(folder: str, *, above: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Walk a local folder, links included; a folder that cannot be listed is an error, not left out in silence."""
    real = os.path.realpath(folder)
    if real in above:  # a link to a folder that it is in
        return
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _walk(entry.path, above=(*above, real))
            else:
                yield {"name": entry.path, "type": "file", "size": entry.stat().st_size}


def _from_glob(filesystem: Any, pattern: str, source: str, what: str) -> list[InputFile]:
    matches = _guard(source, what, filesystem, lambda: filesystem.glob(pattern, detail=True))
    if not matches:
        raise InputDataError(
            f"{what}: no file matches {source}",
            expected="a glob that matches at least one file",
            fix="check the pattern, and quote it so that the shell leaves it alone",
        )
    root = pattern[: _GLOB_MAGIC.search(pattern).start()].rpartition("/")[0]  # type: ignore[union-attr]
    found: dict[str, dict[str, Any]] = {}
    for info in matches.values():
        inside = [info]
        if info["type"] == "directory":
            folder = str(info["name"])
            inside = _guard(source, what, filesystem, partial(_listing, filesystem, folder))
        found.update((entry["name"], entry) for entry in inside)
    # A pattern that spells the suffix (`*.data`) names its files; an open one (`run/*`) is read like a
    # folder.
    spelled = bool(re.search(r"\.[A-Za-z0-9]+$", pattern))
    return _keep_data(filesystem, list(found.values()), root=root, source=source, what=what, any_suffix=spelled)


def _keep_data(
    filesystem: Any,
    listing: Iterable[dict[str, Any]],
    *,
    root: str,
    source: str,
    what: str,
    any_suffix: bool = False,
) -> list[InputFile]:
    """Drop bookkeeping, refuse broken parts."""
    kept, ignored = [], []
    for info in sorted(listing, key=lambda entry: str(entry["name"])):
        relative = PurePosixPath(str(info["name"])[len(root.rstrip("/")) :].lstrip("/"))
        if info["type"] != "file" or str(info["name"]).endswith("/"):
            continue
        if _is_data(relative, any_suffix=any_suffix):
            kept.append(_input_file(filesystem, info, what))
        else:
            ignored.append(str(relative))
    if kept:
        return kept
    shown = ", ".join(ignored[:_NAMED_IN_MESSAGE]) + (", …" if len(ignored) > _NAMED_IN_MESSAGE else "")
    raise InputDataError(
        f"{what}: no data file in {source}" + (f" (ignored: {shown})" if ignored else " (it is empty)"),
        expected="Parquet files: *.parquet, *.parq, *.pq or part-* without a suffix; names that begin with _ or . "
        "are ignored",
        fix="check the folder, or name a file with an unusual name by itself",
    )


def _is_data(relative: PurePosixPath, *, any_suffix: bool) -> bool:
    hidden = any(part.startswith(("_", ".")) and not _HIVE_FOLDER.fullmatch(part) for part in relative.parts[:-1])
    if hidden or relative.name.startswith(("_", ".")) or relative.suffix == ".crc":
        return False
    bare_part = relative.name.startswith("part-") and not relative.suffix
    return any_suffix or bare_part or relative.suffix.lower() in PARQUET_SUFFIXES


def _input_file(filesystem: Any, info: dict[str, Any], what: str) -> InputFile:
    path = str(info["name"])
    file = InputFile(filesystem, path, path, int(info["size"] or 0), _partition(path))
    if not file.is_local:
        name = redacted(str(filesystem.unstrip_protocol(path)))
        file = InputFile(filesystem, path, name, file.size, file.partition)
    if file.size == 0:
        raise InputDataError(
            f"{what}: {file.uri} has zero bytes",
            expected="a Parquet file; even a table without rows has a footer",
            fix="its writer died: write it again, or remove the file if it was never meant to hold rows",
        )
    return file


def _partition(path: str) -> dict[str, str | None]:
    keys: dict[str, str | None] = {}
    for part in PurePosixPath(path).parts[:-1]:
        if _HIVE_FOLDER.fullmatch(part):
            key, _, value = part.partition("=")
            keys[unquote(key)] = None if value == HIVE_NULL else unquote(value)
    return keys
