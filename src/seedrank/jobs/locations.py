"""Keeping outputs away from inputs, before anything is created or deleted."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import fsspec

from seedrank.errors import ConfigError
from seedrank.io.matrix import is_pair
from seedrank.io.storage.objects import ObjectFolder
from seedrank.io.uri import open_filesystem

#: Characters of patterns.
MAGIC = frozenset("*?[")
_LOCAL_PROTOCOLS = ("file", "local")


def local_path(source: str | os.PathLike[str]) -> Path | None:
    """Return the absolute path that a path or a URL of this machine names; None for a URL of another storage."""
    text = os.fspath(source)
    protocol, separator, _ = text.partition("://")
    if separator and protocol not in _LOCAL_PROTOCOLS:
        return None
    # The rules of the readers (file://, ~), so that what they will read is what is compared with the output.
    return Path(fsspec.core.url_to_fs(text)[1])


def remote_url(source: str | os.PathLike[str]) -> str | None:
    """Return the URL that names something on another storage; None for a path or URL of this machine."""
    return os.fspath(source) if local_path(source) is None else None


def local_output(out: str | os.PathLike[str]) -> Path:
    """Return the output path of this machine. Links are followed: the folder itself may be moved aside.

    Raises
    ------
    ConfigError
        ``out`` is a URL of another storage, or its name is not UTF-8, which run.json could not tell.
    """
    text = os.fspath(out)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ConfigError(
            f"--out {text!r} is not UTF-8", expected="a name in UTF-8", fix="choose another --out"
        ) from None
    path = Path(text).expanduser() if "://" not in text else local_path(text)
    if path is None:
        raise ConfigError(f"--out {text} is a URL", expected="a local folder", fix="write locally and copy the folder")
    return path.resolve() if path.is_symlink() or path.name in ("", "..") else path


def check_output_apart(out: Path, inputs: Mapping[str, Any]) -> None:
    """Refuse an output that is, contains or lies inside an input, also through links and relative paths.

    Parameters
    ----------
    out : the output folder; it need not exist.
    inputs : what each input is called → a path, glob, URL, list of these, or an in-memory table (ignored).

    Raises
    ------
    ConfigError
        With both paths named; nothing has been touched.
    """
    target = Path(os.path.realpath(out))
    for name, source in inputs.items():
        for path, recursive in _local_paths(source):
            real = Path(os.path.realpath(path))
            inside = real in target.parents and (recursive or real.is_dir())
            if target == real or target in real.parents or inside:
                raise ConfigError(
                    f"--out {out} and {name} {path} overlap ({target} and {real})",
                    expected="an output that is apart from every input",
                    fix="choose another --out; nothing was changed",
                )


def _local_paths(source: Any) -> Iterator[tuple[Path, bool]]:
    """Yield (path, whether everything below it is read) of each local path in a source."""
    if isinstance(source, (list, tuple)):
        if is_pair(source):  # of ids, which may look like paths, and an array
            return
        for item in source:
            yield from _local_paths(item)
    elif isinstance(source, (str, os.PathLike)):
        path = local_path(source)
        if path is None:
            return
        parts = path.parts
        fixed = next((i for i, part in enumerate(parts) if MAGIC & set(part)), len(parts))
        if fixed == len(parts) or path.exists():
            yield path, False
        elif "**" in parts[fixed:]:
            yield Path(*parts[:fixed]), True
        else:
            # A flat pattern reads files of one level: only those files count, not their folder.
            for match in Path(*parts[:fixed]).glob("/".join(parts[fixed:])):
                yield match, False


def check_objects_apart(out: ObjectFolder, inputs: Mapping[str, Any]) -> None:
    """Refuse an output prefix that is, contains or lies inside an input of the same storage.

    Raises
    ------
    ConfigError
        With both named; nothing has been touched.
    """
    if not out.path:
        raise ConfigError(
            f"--out {out.url} names no bucket",
            expected="a bucket or container and a prefix, such as s3://bucket/runs/tonight",
            fix="complete --out",
        )
    for name, source in inputs.items():
        for path, recursive in _remote_paths(source, out):
            inside = out.path.startswith(path + "/") and recursive
            if path == out.path or path.startswith(out.path + "/") or inside:
                raise ConfigError(
                    f"--out {out.url} and {name} {out.filesystem.unstrip_protocol(path)} overlap",
                    expected="an output that is apart from every input",
                    fix="choose another --out; nothing was changed",
                )


def _remote_paths(source: Any, out: ObjectFolder) -> Iterator[tuple[str, bool]]:
    """Yield (path, whether everything below it is read) of each path of a source on the storage of the output."""
    if isinstance(source, (list, tuple)):
        for item in source:
            yield from _remote_paths(item, out)
    elif isinstance(source, (str, os.PathLike)) and (url := remote_url(source)) is not None:
        filesystem, path = open_filesystem(url, "--out")
        if type(filesystem) is not type(out.filesystem):
            return
        parts = path.rstrip("/").split("/")
        fixed = next((i for i, part in enumerate(parts) if MAGIC & set(part)), len(parts))
        yield "/".join(parts[:fixed]), fixed == len(parts) or "**" in parts[fixed:]
