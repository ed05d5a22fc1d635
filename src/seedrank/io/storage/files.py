"""Small durable file operations: staged writes, atomic publication, content hashes."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from seedrank.errors import ResourceError, StorageError

_HASH_CHUNK = 1 << 22


@contextmanager
def storage_errors(action: str) -> Iterator[None]:
    """Turn operating system errors (disk full, permission, read-only) into `StorageError` (exit code 5)."""
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        raise StorageError(
            f"{action} failed: {error.strerror or error} ({error.filename or 'no file named'})",
            expected="a local folder that can be written, with space left",
            fix="free space or choose another --out; finished parts are kept",
        ) from error


@contextmanager
def read_errors(path: Path) -> Iterator[None]:
    """Turn errors of the operating system while a local file is read into `StorageError` (exit code 5)."""
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"reading {path} failed: {error.strerror or error}",
            expected="a disk that gives back what was written",
            fix="see what the system says of the disk, then run the same command again; finished parts are kept",
        ) from error


@contextmanager
def mapping_errors(path: Path) -> Iterator[None]:
    """Turn a file that the address space has no room for into `ResourceError` (exit code 4)."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENOMEM:
            raise
        raise ResourceError(
            f"{path} cannot be mapped: the address space has no room for it",
            expected="a limit (ulimit -v) above the size of the graph store",
            fix="raise the limit; limits of resident memory (control groups) do not count mapped files. --method ppr "
            "without paths and hops can do with --graph-memory streamed",
        ) from error


def read_fully(descriptor: int, array: npt.NDArray[Any], start: int) -> bool:
    """Fill an array from byte `start` of a file on; False when the file ends before."""
    view = array.view(np.uint8).data
    done = 0
    while done < len(view):
        # Linux reads at most 2 GiB at a time.
        count = os.preadv(descriptor, [view[done:]], start + done)
        if count == 0:
            return False
        done += count
    return True


def write_fully(descriptor: int, array: npt.NDArray[Any], start: int) -> None:
    """Write an array from byte `start` of a file on."""
    view = array.view(np.uint8).data
    done = 0
    while done < len(view):
        done += os.pwrite(descriptor, view[done:], start + done)


def synchronise(path: Path) -> None:
    """Flush a file or folder to the device, so that a later rename cannot publish something empty."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def publish(staged: Path, final: Path) -> None:
    """Move a finished file or folder into place: visible completely or not at all, also after a power cut."""
    synchronise(staged)
    staged.replace(final)
    synchronise(final.parent)


def write_text_atomically(path: Path, text: str) -> None:
    """Replace a small text file without ever showing half of it."""
    staged = path.with_name(f".{path.name}.staged")
    staged.write_text(text, encoding="utf-8")
    publish(staged, path)


def aside(path: Path) -> Path:
    """Where a folder waits until its successor has taken its place; only the holder of the lock may touch it."""
    return path.with_name(f".{path.name}.replaced")


class HashedFile:
    """A new file that is hashed while it is written; a binary stream as NumPy and Arrow want it."""

    def __init__(self, path: Path) -> None:
        self._stream = path.open("xb")
        self._digest = xxhash.xxh3_128()
        self.bytes = 0

    def __enter__(self) -> HashedFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def write(self, data: Any) -> int:
        """Append bytes, or any object with one contiguous buffer of them."""
        self._digest.update(data)
        written = self._stream.write(data)
        self.bytes += written
        return written

    def flush(self) -> None:
        """Hand what was written to the operating system."""
        self._stream.flush()

    def close(self) -> None:
        """Flush the content to the device, so that a later rename cannot publish something empty."""
        if not self._stream.closed:
            self._stream.flush()
            os.fsync(self._stream.fileno())
            self._stream.close()

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._stream.closed

    @property
    def xxh3_128(self) -> str:
        """Hash of what was written so far; `hash_file` of the file finds the same."""
        return self._digest.hexdigest()


def hash_file(path: Path) -> str:
    """xxh3-128 of a file's bytes, in hexadecimal."""
    digest = xxhash.xxh3_128()
    with path.open("rb") as stream:
        while chunk := stream.read(_HASH_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def remove_tree(path: Path) -> None:
    """Remove a folder that seedrank itself made; a link is removed, not followed."""
    if path.is_symlink():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)
