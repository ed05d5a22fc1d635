"""Keeping outputs away from inputs, before anything is created or deleted."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import fsspec

from seedrank.errors import ConfigError

_MAGIC = frozenset("*?[")
_LOCAL_PROTOCOLS = ("file", "local")


def local_path(source: str | os.PathLike[str]) -> Path | None:
    """Return the absolute path that a path or a URL of this machine names; None for a URL of another storage."""
    text = os.fspath(source)
    protocol, separator, _ = text.partition("://")
    if separator and protocol not in _LOCAL_PROTOCOLS:
        return None
    # The rules of the readers (file://, ~), so that what they will read is what is compared with the output.
    return Path(fsspec.core.url_to_fs(text)[1])


def local_output(out: str | os.PathLike[str]) -> Path:
    """Return the output path, refusing URLs. Links are followed: the folder itself may be moved aside.

    Raises
    ------
    ConfigError
        ``out`` is a URL: this version writes to local folders only. Or its name is not UTF-8, which run.json could
        not tell.
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
        for item in source:
            yield from _local_paths(item)
    elif isinstance(source, (str, os.PathLike)):
        path = local_path(source)
        if path is None:
            return
        parts = path.parts
        fixed = next((i for i, part in enumerate(parts) if _MAGIC & set(part)), len(parts))
        if fixed == len(parts) or path.exists():
            yield path, False
        elif "**" in parts[fixed:]:
            yield Path(*parts[:fixed]), True
        else:
            # A flat pattern reads files of one level: only those files count, not their folder.
            for match in Path(*parts[:fixed]).glob("/".join(parts[fixed:])):
                yield match, False
