"""A run on an object store: the keys of a run folder below a prefix, put one by one, nothing ever renamed.

::

    PREFIX/run.json                         the manifest, put again as parts are finished
    PREFIX/candidates/part-00000.parquet    nothing but parts in here
    PREFIX/queries/part-00000.parquet
    PREFIX/_SUCCESS                         empty, put last
    PREFIX/_lock                            of the run that writes (`seedrank.io.run.lease`); removed at its end
    PREFIX/_ranges/                         of ranges that machines compute (`seedrank.io.run.range_objects`)

Every part is written to a local file first, hashed, and put under its final key by one put. The graph store that is
built from an edge list stays in a local folder, as it has to be mapped into memory.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Literal

import pyarrow as pa
import xxhash
from pydantic import ValidationError

from seedrank.errors import ConfigError, InputDataError, StorageError
from seedrank.io.candidates import write_table
from seedrank.io.graphstore import GraphStore
from seedrank.io.records import PartRecord, RunManifest, StoredFile
from seedrank.io.run.lease import LOCK_KEY, Lease
from seedrank.io.run.owned import Ownership, folders_below
from seedrank.io.run.part_files import RANGES_FOLDER, file_damage, files_of, part_name
from seedrank.io.run.part_writers import FOLDERS, ObjectParts
from seedrank.io.run.runfolder import MANIFEST_FILE, SUCCESS_FILE, not_a_run
from seedrank.io.storage.files import remove_tree, storage_errors
from seedrank.io.storage.objects import ObjectFolder

log = logging.getLogger(__name__)

_OWN = frozenset({MANIFEST_FILE, SUCCESS_FILE, LOCK_KEY, RANGES_FOLDER, *FOLDERS})


class RunObjects:
    """A run below a prefix that this process writes; see `seedrank.io.run.run_store.RunStore`.

    Parameters
    ----------
    lease : Lease
        Of the prefix; it is looked at before every put.
    url : str
        The prefix as the user named it.
    work : Path
        Local folder for graph stores and unfinished parts; this run has one of its own in it.
    earlier : {"none", "replaced", "resumed"}
        What becomes of the run that stands there. It is left alone until `discard_replaced` or `unmark_success`.
    manifest_key : str
        Where the manifest is put.
    """

    def __init__(
        self,
        lease: Lease,
        *,
        url: str,
        work: Path,
        earlier: Literal["none", "replaced", "resumed"],
        manifest_key: str = MANIFEST_FILE,
    ) -> None:
        self.objects = lease.objects
        self.path = Path(lease.objects.path)
        self.url: str | None = url
        self._lease = lease
        self._manifest_key = manifest_key
        place = self.objects.url if manifest_key == MANIFEST_FILE else f"{self.objects.url}/{manifest_key}"
        self._runs = work / "runs" / xxhash.xxh3_64_hexdigest(place.encode())
        self._own = self._runs / lease.holder[:16]
        #: Whether this run has not taken its place yet.
        self._waits = earlier != "none"
        self._replaces = earlier == "replaced"
        self._waiting_manifest: bytes | None = None
        self._marks: dict[str, str] = {}
        self._found: dict[str, str] | None = None
        self._unrecorded: set[str] = set()
        self._ownership = Ownership(self._own)
        with storage_errors(f"preparing the work folder {self._own}"):
            (self._own / "staged").mkdir(parents=True, exist_ok=True)

    @property
    def name(self) -> str:
        """The prefix as messages call it."""
        return self.objects.url

    @property
    def graph(self) -> Path:
        """Local folder of the graph store of a run that was given an edge list."""
        return self._own / "graph"

    @property
    def scratch(self) -> Path:
        """Local folder for what this process needs for a while; it goes with the unfinished files."""
        return self._own / "staged"

    @property
    def successful(self) -> bool:
        """Whether the success marker is there."""
        return self.objects.read(SUCCESS_FILE) is not None

    def graph_place(self, *, resuming: bool) -> Path:  # every attempt has a folder of its own
        """Local folder where a graph store is built: its final place."""
        return self.graph

    def adopt_graph(self, store: GraphStore) -> GraphStore:
        """Return the store, which stands where it stays."""
        return store

    def write_part(self, part: int, *, candidates: pa.Table, queries: pa.Table) -> tuple[StoredFile, StoredFile]:
        """Put both files of a part, the candidates first; returns what identifies their content."""
        files = [self._own / "staged" / f"{folder}-{part_name(part)}" for folder in FOLDERS]
        try:
            written = [write_table(file, table) for file, table in zip(files, (candidates, queries), strict=True)]
        except StorageError:
            self._lease.check()  # whoever has taken the prefix over has cleared this folder: that is the news
            raise
        self._lease.check()
        for folder, file in zip(FOLDERS, files, strict=True):
            key = f"{folder}/{part_name(part)}"
            self._unrecorded.add(key)
            self._marks[key] = self.objects.upload(key, file)
            with storage_errors(f"removing {file}"):
                file.unlink()
        return written[0], written[1]

    def writer_elsewhere(self) -> ObjectParts:
        """Return what puts parts of this run in other processes; it stops where the lease does.

        Raises
        ------
        ConfigError
            Other processes cannot reach this storage.
        """
        if self.objects.url.startswith("memory:"):
            raise ConfigError(
                f"--out {self.name} is in the memory of this process, where workers cannot write",
                expected="a folder or an object store that workers reach",
                fix="choose another --out, or drop --workers and --scheduler",
            )
        assert self.url is not None
        return ObjectParts(self.url, self._lease.holder, self._lease.key)

    def adopt_part(self, part: int) -> None:
        """Take a part that another process put; what is there now has to be there in the end.

        Raises
        ------
        StorageError
            It is not there.
        """
        for folder in FOLDERS:
            key = f"{folder}/{part_name(part)}"
            mark = self.objects.mark(key)
            if mark is None:
                raise StorageError(
                    f"{self.name}/{key} is not there, although a worker has put it",
                    expected="one storage, seen by all workers under the same URL",
                    fix="compare the endpoint and the credentials of this process and of the workers",
                )
            self._unrecorded.add(key)
            self._marks[key] = mark

    def damage(self, record: PartRecord) -> str:
        """Say what is wrong with the files of a part, which are fetched completely; "" if they are what was written."""
        for folder, written, rows in files_of(record):
            key = f"{folder}/{part_name(record.part)}"
            fetched = self._own / "staged" / f"fetched-{folder}-{part_name(record.part)}"
            mark = self._found_mark(key)
            self.objects.download(key, fetched)
            with storage_errors(f"verifying {fetched}"):
                found = file_damage(fetched, written, rows=rows, name=f"{self.name}/{key}")
                fetched.unlink(missing_ok=True)
            if found:
                return found
            self._marks[key] = mark or ""
        return ""

    def _found_mark(self, key: str) -> str | None:
        """Return the mark that an object had when this run first looked at the parts of an earlier attempt."""
        if self._found is None:
            self._found = self.objects.marks()
        return self._found.get(key) or self.objects.mark(key)

    def other_runs_at_work(self, run_key: str) -> list[RunManifest]:  # ranges ask
        """Return nothing: nobody writes beside a whole run."""
        return []

    def keep_parts(self, parts: Iterable[int]) -> None:
        """Remove the files of all other parts."""
        kept = {part_name(part) for part in parts}
        self._lease.check()
        # In no moment rows of queries without their candidates.
        for key in sorted(self.parts_in(self.objects.names()), reverse=True):
            if key.rpartition("/")[2] not in kept:
                self.objects.remove(key)

    def parts_in(self, names: Iterable[str]) -> Iterable[str]:
        """Yield the keys of the part files that are this run's."""
        return _parts_in(names)

    def remove_ranges(self) -> None:
        """Remove what ranges left, whose parts this run has recorded."""
        self._lease.check()
        for key in self.objects.names():
            if key.startswith(f"{RANGES_FOLDER}/"):
                self.objects.remove(key)

    def write_manifest(self, manifest: RunManifest) -> None:
        """Put ``run.json``, unless an earlier run still stands there."""
        content = manifest.to_json().encode()
        if self._waits:
            self._waiting_manifest = content
            return
        self._lease.check()
        self.objects.write(self._manifest_key, content)
        recorded = {part_name(record.part) for record in manifest.parts}
        self._unrecorded = {key for key in self._unrecorded if key.rpartition("/")[2] not in recorded}

    def discard_replaced(self) -> None:
        """Let this run take the place of the earlier one: its marker goes first, then its manifest, then its parts."""
        if self._replaces:
            self.unmark_success()
            if self._waiting_manifest is not None:
                self.objects.write(self._manifest_key, self._waiting_manifest)
            self.keep_parts(())
            self.remove_ranges()
        if not self._waits:
            self._remove_other_attempts()

    def restore_replaced(self) -> bool:
        """Leave the earlier run as it is, which nothing has touched yet; False if there is none."""
        if not self._waits:
            return False
        self.remove_staging()
        return True

    def remove_staging(self) -> None:
        """Remove unfinished local files, and all of them if this run never took its place."""
        with storage_errors(f"removing {self._own}"):
            remove_tree(self._own if self._waits else self._own / "staged")
            with suppress(OSError):  # not empty, or gone
                self._own.rmdir()

    def remove_unfinished(self) -> None:
        """Remove the files of a part that was not recorded; where that fails, the next attempt does it."""
        self.remove_staging()
        for key in sorted(self._unrecorded, reverse=True):
            self._lease.check()
            self.objects.remove(key)

    def leave(self) -> None:
        """Give the work folder back, whatever the run ended by; that of one that never took its place is removed."""
        try:
            if self._waits:
                self.remove_staging()
        finally:
            self._ownership.give_back()
            with suppress(OSError):  # not empty, or gone
                self._runs.rmdir()

    def unmark_success(self) -> None:
        """Remove ``_SUCCESS`` before anything else changes; from here on the place is this run's."""
        self._lease.check()
        self.objects.remove(SUCCESS_FILE)
        self._waits = False

    def mark_success(self) -> None:
        """Put ``_SUCCESS``, the last thing that happens to a run, if all parts are still those that this run knows.

        Raises
        ------
        StorageError
            Somebody has replaced or removed a part meanwhile.
        """
        self.check_marks()
        self._lease.check()
        self.objects.write(SUCCESS_FILE, b"")
        self._remove_other_attempts()

    def check_marks(self) -> None:
        """Look whether all parts are still those that this run knows.

        Raises
        ------
        StorageError
            Naming one that is not.
        """
        listed = self.objects.marks() if self._marks else {}
        for key, mark in self._marks.items():
            # A listing may lag behind: what it does not confirm is looked at by itself.
            if listed.get(key) != mark and self.objects.mark(key) != mark:
                raise StorageError(
                    f"{self.name}/{key} is not the object that this run has put there",
                    expected="nobody else to write below the prefix of a run",
                    fix="end the other writer, then run the same command again: it verifies every part",
                )

    def _remove_other_attempts(self) -> None:
        """Remove what earlier attempts left in the work folder; the graph store of this one stays for `explain`."""
        with storage_errors(f"cleaning up {self._runs}"):
            for other in folders_below(self._runs):
                if other != self._own:
                    remove_tree(other)


def check_objects_replaceable(objects: ObjectFolder, *, overwrite: bool) -> None:
    """Refuse a prefix that may not be written to; nothing is touched.

    Raises
    ------
    ConfigError
        It holds something that no run wrote, or the parts of a run where ``overwrite`` is False.
    """
    names = objects.names()
    begun = objects.read(MANIFEST_FILE) is not None or any(name.startswith(f"{RANGES_FOLDER}/") for name in names)
    own = _OWN if begun else frozenset({LOCK_KEY})
    foreign = min((name.partition("/")[0] for name in names if name.partition("/")[0] not in own), default=None)
    if foreign is not None:
        raise ConfigError(
            f"--out {objects.url} holds {foreign!r}, which is not part of a run",
            expected="a prefix without objects, or that of a run",
            fix="choose another --out; seedrank never deletes what it did not write",
        )
    if not overwrite and any(_parts_in(names)):
        raise ConfigError(
            f"--out {objects.url} already holds the parts of a run",
            expected="a prefix without objects",
            fix="pass --overwrite to replace the run, or choose another --out",
        )


def read_objects_manifest(objects: ObjectFolder) -> RunManifest | None:
    """Read ``run.json`` below a prefix; None if there is none.

    Raises
    ------
    InputDataError
        It cannot be understood.
    """
    content = objects.read(MANIFEST_FILE)
    if content is None:
        return None
    try:
        return RunManifest.model_validate_json(content)
    except ValidationError as error:
        raise not_a_run(objects.url, type(error).__name__) from None


def has_objects_parts(objects: ObjectFolder) -> bool:
    """Whether a run delivered at least one part; its manifest counts, too, as listings may lag behind."""
    with_manifest = False
    try:
        manifest = read_objects_manifest(objects)
        with_manifest = manifest is not None and bool(manifest.parts)
    except InputDataError:
        log.info("manifest_not_understood", extra={"url": objects.url})
    return with_manifest or any(_parts_in(objects.names()))


def _parts_in(names: Iterable[str]) -> Iterable[str]:
    return (name for name in names if name.startswith(("candidates/part-", "queries/part-")))
