"""A folder of an object store: single final puts under known keys, nothing renamed, no listing needed to find a key.

Works with every fsspec file system. Each operation is tried again while it fails for reasons that may pass
(`seedrank.io.storage.retries`); what remains is a `StorageError` (exit code 5) that names the key, never a credential.
"""

from __future__ import annotations

import errno
import inspect
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from seedrank.errors import ConfigError, SeedrankError, StorageError
from seedrank.io.storage.retries import ATTEMPTS, is_transient, retried
from seedrank.io.uri import InputFile, open_filesystem
from seedrank.redaction import redacted, without_credentials

log = logging.getLogger(__name__)

ResultT = TypeVar("ResultT")

#: Fields in which file systems tell that an object is another one than before, the surest first.
_MARKS = ("ETag", "etag", "generation", "md5Hash", "content_md5", "created", "LastModified", "mtime")


@dataclass(frozen=True)
class ObjectFolder:
    """What lies below one prefix of an object store.

    Attributes
    ----------
    filesystem : fsspec.AbstractFileSystem
    path : the prefix as the file system wants it, without a slash at its end.
    url : the prefix for messages and records, without credentials.
    """

    filesystem: Any
    path: str
    url: str

    def read(self, key: str) -> bytes | None:
        """Return the content of a small object; None if there is none."""
        whole = _one_request(self.filesystem)
        return self._if_present(key, lambda: bytes(self.filesystem.cat_file(self._of(key), **whole)), "reading")

    def write(self, key: str, content: bytes) -> None:
        """Put a small object, whole, in place of the one that may be there."""
        with self._translated("writing", key):
            retried(lambda: self.filesystem.pipe_file(self._of(key), content), what=f"writing {self.url}/{key}")

    def create(self, key: str, content: bytes) -> bool:
        """Put a small object if there is none (a conditional put where the store has it); False if there is one."""
        if self.read(key) is not None:
            return False
        with self._translated("writing", key):
            try:
                retried(
                    lambda: self.filesystem.pipe_file(self._of(key), content, mode="create"),
                    what=f"creating {self.url}/{key}",
                )
            except FileExistsError:
                # Perhaps our own: the answer to an attempt may be what was lost.
                return self.read(key) == content
            except (TypeError, NotImplementedError, ValueError) as error:
                log.debug("no_conditional_put", extra={"url": self.url, "reason": redacted(str(error))})
                self.write(key, content)
        return self.read(key) == content

    def upload(self, key: str, file: Path) -> str:
        """Put a local file by one put, and look at what arrived, past all caches; returns its `mark`."""
        size = file.stat().st_size

        def put() -> str:
            self.filesystem.put_file(str(file), self._of(key))
            found = self._mark(key)
            if found is None or found[0] != size:
                seen = "is not there" if found is None else f"has {found[0]} bytes instead of {size}"
                raise OSError(errno.EIO, f"{self.url}/{key} {seen} after it was put")
            return found[1]

        with self._translated("writing", key):
            return retried(put, what=f"writing {self.url}/{key}")

    def mark(self, key: str) -> str | None:
        """Return what changes when an object is replaced (its ETag, where there are any); None if there is none."""
        found = self._if_present(key, lambda: self._mark(key), "looking at")
        return None if found is None else found[1]

    def marks(self) -> dict[str, str]:
        """Return the `mark` of every key below the prefix, by one listing; that of some stores lags behind.

        What it does not confirm has to be looked at by its key.
        """
        return {key: _mark_of(info) for key, info in self._listing().items()}

    def download(self, key: str, file: Path) -> bool:
        """Copy an object into a local file; False if there is none."""

        def get() -> bool:
            self.filesystem.get_file(self._of(key), str(file))
            return True

        return self._if_present(key, get, "reading") is not None

    def file(self, key: str, *, size: int) -> InputFile:
        """Name an object for the readers of Parquet files; its size in bytes is known already."""
        return InputFile(self.filesystem, self._of(key), f"{self.url}/{key}", size)

    def names(self) -> list[str]:
        """List the keys below the prefix, relative to it, sorted; markers of folders left out. Never from a cache.

        What must not be missed is looked up by its key instead: listings of some stores lag behind.
        """
        return sorted(self._listing())

    def _listing(self) -> dict[str, Any]:
        """Return what the file system says of every key below the prefix."""

        def find() -> dict[str, Any]:
            self.filesystem.invalidate_cache()
            found: dict[str, Any]
            try:
                found = self.filesystem.find(self.path, detail=True)
            except PermissionError:
                # Where nothing is below it, s3fs looks at the prefix itself, as at a key, which a role for this prefix
                # only may not do; asked for what begins with it, it does not.
                parent, _, last = self.path.rpartition("/")
                found = self.filesystem.find(parent, prefix=last + "/", detail=True)
            return found

        with self._translated("listing", ""):
            found = retried(find, what=f"listing {self.url}")
        below = self.path + "/"
        return {
            name.removeprefix(below): info
            for name, info in found.items()
            if name.startswith(below) and not name.endswith("/") and info["type"] == "file"
        }

    def remove(self, key: str) -> None:
        """Remove an object; that there is none is no error."""
        with self._translated("removing", key):
            try:
                retried(lambda: self.filesystem.rm_file(self._of(key)), what=f"removing {self.url}/{key}")
            except FileNotFoundError:
                return

    def _of(self, key: str) -> str:
        return f"{self.path}/{key}"

    def _mark(self, key: str) -> tuple[int, str] | None:
        self.filesystem.invalidate_cache()
        try:
            info = self.filesystem.info(self._of(key))
        except FileNotFoundError:
            return None
        if info["type"] != "file":
            return None
        return int(info["size"]), _mark_of(info)

    def _if_present(self, key: str, action: Callable[[], ResultT], doing: str) -> ResultT | None:
        with self._translated(doing, key):
            try:
                return retried(action, what=f"{doing} {self.url}/{key}")
            except FileNotFoundError:
                return None
            except PermissionError:
                # A role that may list below its prefix only is told "denied" of a key that is not there.
                if key in self.names():
                    raise
                return None

    @contextmanager
    def _translated(self, doing: str, key: str) -> Iterator[None]:
        name = f"{self.url}/{key}".rstrip("/")
        try:
            yield
        except SeedrankError:
            raise
        except NotImplementedError as error:
            raise ConfigError(
                f"{name} is on a storage that cannot do this ({doing}: {type(error).__name__}: {error})",
                expected="a storage that can be written to: s3://, gs://, az:// or a local folder",
                fix="choose another --out",
            ) from without_credentials(error)
        except Exception as error:
            expected, fix = _advice(error)
            after = f" after {ATTEMPTS} attempts" if is_transient(error) else ""
            raise StorageError(
                f"{doing} {name} failed{after} ({type(error).__name__}: {error})", expected=expected, fix=fix
            ) from without_credentials(error)


def object_folder(url: str, *, what: str) -> ObjectFolder:
    """Open a prefix of an object store; nothing is read.

    Raises
    ------
    ResourceError, StorageError
        See `seedrank.io.uri.open_filesystem`.
    """
    filesystem, path = open_filesystem(url, what)
    path = path.rstrip("/")
    return ObjectFolder(filesystem, path, redacted(str(filesystem.unstrip_protocol(path))))


def _mark_of(info: Mapping[str, Any]) -> str:
    """Mark of what a file system says of an object; a look and a listing agree in the surest field, not in all."""
    return " ".join([str(int(info["size"])), *[str(info[name]) for name in _MARKS if info.get(name)][:1]])


def _one_request(filesystem: Any) -> dict[str, int]:
    """Return what keeps a file system from asking for the size of an object before it reads it, if it would."""
    read = getattr(filesystem, "_cat_file", filesystem.cat_file)
    return {"max_concurrency": 1} if "max_concurrency" in inspect.signature(read).parameters else {}


def _advice(error: Exception) -> tuple[str, str]:
    """Say what was expected and what helps, by the kind of error."""
    if isinstance(error, PermissionError):
        return (
            "permission to list, get, put and delete below the prefix",
            "check the policy of the role (docs/operations.md has one that suffices) and which credentials are used",
        )
    if isinstance(error, FileNotFoundError):
        return "a bucket or container that exists", "correct its name, or make it"
    if "Credential" in type(error).__name__:
        return "credentials", "set them as the storage's own tools want them, such as AWS_ACCESS_KEY_ID or AWS_PROFILE"
    return (
        "a storage that answers",
        "check the URL, the endpoint and the network, then run the same command again; finished parts are kept",
    )
