"""Writing parts in the name of a run: what the process that owns the run does, and what it may hand to other processes.

A writer can be pickled. It writes nothing any more once its run has ended or another one has its place, however late a
process on another machine wakes up: a folder's writer stages in a folder of its own that ends with the run, an object
store's writer looks at the lock of the prefix.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from uuid import uuid4

import pyarrow as pa

from seedrank.io.candidates import write_table
from seedrank.io.records import StoredFile
from seedrank.io.run.lease import Lease
from seedrank.io.run.part_files import part_name
from seedrank.io.storage.files import publish, storage_errors
from seedrank.io.storage.objects import object_folder

FOLDERS = ("candidates", "queries")


class PartWriter(Protocol):
    """Where the files of parts go."""

    def write_part(self, part: int, *, candidates: pa.Table, queries: pa.Table) -> tuple[StoredFile, StoredFile]:
        """Write both files of a part, the candidates first; returns what identifies their content."""


class SharedWriter(PartWriter, Protocol):
    """A writer that can be pickled."""

    def missing(self) -> str:
        """Name what of the run's place this process cannot see; "" if it may write there."""


@dataclass(frozen=True)
class FolderParts:
    """Writes parts into a run folder.

    Attributes
    ----------
    path : Path
        The run folder.
    staging : Path
        Where files are written before they are renamed; on the same file system, and made by the owner of the run.
    alone : bool
        Whether no other process may write the same part at this time. Where one may, given up for dead but alive, every
        attempt stages files of its own.
    """

    path: Path
    staging: Path
    alone: bool

    def write_part(self, part: int, *, candidates: pa.Table, queries: pa.Table) -> tuple[StoredFile, StoredFile]:
        """Write both files of a part: staged, flushed, renamed.

        Raises
        ------
        StorageError
            The disk is full, or the run has ended.
        """
        name, attempt = part_name(part), "" if self.alone else f".{uuid4().hex}"
        written = []
        for folder, table in zip(FOLDERS, (candidates, queries), strict=True):
            staged, final = self.staging / f"{folder}-{name}{attempt}", self.path / folder / name
            written.append(write_table(staged, table))
            with storage_errors(f"publishing {final}"):
                publish(staged, final)
        return written[0], written[1]

    def missing(self) -> str:
        """Name the staging folder if it cannot be seen."""
        return "" if self.staging.is_dir() else str(self.staging)


@dataclass(frozen=True)
class ObjectParts:
    """Puts parts below a prefix of an object store, as long as the lock of the prefix is that of the run.

    Attributes
    ----------
    url : str
        The prefix as the user named it.
    holder, key : str
        Of the run's lease.
    """

    url: str
    holder: str
    key: str

    def write_part(self, part: int, *, candidates: pa.Table, queries: pa.Table) -> tuple[StoredFile, StoredFile]:
        """Put both files of a part, from temporary files of this process.

        Raises
        ------
        ConfigError
            The prefix is another run's now, or nobody's.
        StorageError
            The storage fails.
        """
        objects = object_folder(self.url, what="--out")
        lease = Lease(objects, self.holder, self.key)
        with tempfile.TemporaryDirectory(prefix="seedrank-part-") as folder:
            files = [Path(folder) / name for name in FOLDERS]
            written = [write_table(file, table) for file, table in zip(files, (candidates, queries), strict=True)]
            lease.check()
            for name, file in zip(FOLDERS, files, strict=True):
                objects.upload(f"{name}/{part_name(part)}", file)
        return written[0], written[1]

    def missing(self) -> str:
        """Return "": whether a storage can be reached is found out by reaching it."""
        Lease(object_folder(self.url, what="--out"), self.holder, self.key).check()
        return ""
