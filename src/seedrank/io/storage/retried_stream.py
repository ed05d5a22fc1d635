"""Reading a file of an object store as a stream that survives a connection that breaks."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import xxhash

from seedrank.errors import StorageError
from seedrank.io.records import StoredFile
from seedrank.io.storage.retries import retried
from seedrank.io.uri import InputFile
from seedrank.redaction import without_credentials

ResultT = TypeVar("ResultT")
_HASH_CHUNK = 1 << 22


class RetriedStream(io.RawIOBase):
    """A file, opened for reading; a read that fails for a reason that may pass is repeated on a stream opened anew.

    Parameters
    ----------
    file : InputFile
        Where it is.

    Raises
    ------
    StorageError
        From every method: the storage refused, or failed until the last attempt.
    """

    def __init__(self, file: InputFile) -> None:
        super().__init__()
        self._file = file
        self._position = 0
        self._stream: Any = None
        self._again(lambda: None)

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position in bytes."""
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a position; nothing is read yet."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._file.size}[whence]
        self._position = max(base + offset, 0)
        return self._position

    def read(self, size: int | None = -1, /) -> bytes:
        """Read bytes from the position on, fewer only at the end of the file."""
        left = max(self._file.size - self._position, 0)
        wanted = left if size is None or size < 0 else min(size, left)

        def read() -> bytes:
            self._stream.seek(self._position)
            content = bytes(self._stream.read(wanted))
            if len(content) < wanted:
                told = f"{self._file.uri} ends after {self._position + len(content)} of {self._file.size} bytes"
                raise ConnectionError(told)
            return content

        content = self._again(read)
        self._position += len(content)
        return content

    def readinto(self, buffer: Any, /) -> int:
        """Read bytes into a buffer; returns their number."""
        content = self.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        """Give the stream back."""
        if self._stream is not None:
            with suppress(Exception):  # nothing was written; what reading found is known
                self._stream.close()
        super().close()

    def _again(self, action: Callable[[], ResultT]) -> ResultT:
        def attempt() -> ResultT:
            if self._stream is None:
                self._stream = self._file.filesystem.open(self._file.path, "rb")
            try:
                return action()
            except Exception:
                broken, self._stream = self._stream, None
                with suppress(Exception):
                    broken.close()
                raise

        try:
            return retried(attempt, what=f"reading {self._file.uri}")
        except Exception as error:
            raise StorageError(
                f"{self._file.uri} cannot be read ({type(error).__name__}: {error})",
                expected="permission to read it, and a storage that answers",
                fix="check permissions, credentials and network, then run the same command again",
            ) from without_credentials(error)


def object_damage(file: InputFile, written: StoredFile) -> str:
    """Say what is wrong with an object, which is read completely; "" if it is what was written.

    Raises
    ------
    StorageError
        It is not there, or the storage refused.
    """
    digest = xxhash.xxh3_128()
    with RetriedStream(file) as stream:
        while chunk := stream.read(_HASH_CHUNK):
            digest.update(chunk)
    return "" if digest.hexdigest() == written.xxh3_128 else f"{file.uri} has another content"
