"""The run folder: where a job's parts, its manifest and its success marker appear, each completely or not at all.

::

    RUN/run.json                         the manifest, replaced atomically
    RUN/candidates/part-00000.parquet    nothing but parts in here
    RUN/queries/part-00000.parquet
    RUN/graph/                           the graph store, when the job was given an edge list
    RUN/_SUCCESS                         empty, written last
    RUN/_tmp/                            staging; removed on success
    RUN/_ranges/                         of ranges of parts (`seedrank.io.run.range_folder`), until they are joined

Only the holder of the folder's lock (`seedrank.io.run.lock`) writes to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
from pydantic import ValidationError

from seedrank.errors import ConfigError, InputDataError
from seedrank.io.graphstore import GraphStore
from seedrank.io.records import PartRecord, RunManifest, StoredFile
from seedrank.io.run.part_files import RANGES_FOLDER, file_damage, files_of, part_name
from seedrank.io.run.part_writers import FolderParts
from seedrank.io.storage.files import (
    aside,
    publish,
    remove_tree,
    storage_errors,
    synchronise,
    write_text_atomically,
)

MANIFEST_FILE = "run.json"
SUCCESS_FILE = "_SUCCESS"
#: What an interrupted build of the run's own graph store leaves.
_STAGED_GRAPH = ".graph.staged-"
_OWN = frozenset(
    {MANIFEST_FILE, SUCCESS_FILE, "candidates", "queries", "graph", "_tmp", RANGES_FOLDER, f".{MANIFEST_FILE}.staged"}
)


@dataclass(frozen=True)
class RunFolder:
    """A run folder that this process writes.

    Attributes
    ----------
    path : Path
    replaced : Path or None
        Where an earlier run waits, moved aside, until it is certain that the new one can start.
    """

    path: Path
    replaced: Path | None = None

    @property
    def name(self) -> str:
        """The folder as messages call it."""
        return str(self.path)

    @property
    def url(self) -> None:
        """None: the run is on this machine."""
        return

    @property
    def candidates(self) -> Path:
        """Folder of the candidate parts."""
        return self.path / "candidates"

    @property
    def queries(self) -> Path:
        """Folder of the query parts."""
        return self.path / "queries"

    @property
    def graph(self) -> Path:
        """Graph store of a run that was given an edge list."""
        return self.path / "graph"

    @property
    def staging(self) -> Path:
        """Unfinished files."""
        return self.path / "_tmp"

    @property
    def scratch(self) -> Path:
        """Local folder for what this process needs for a while; it goes with the unfinished files."""
        return self.staging

    @property
    def successful(self) -> bool:
        """Whether the success marker is there."""
        return (self.path / SUCCESS_FILE).exists()

    def write_part(self, part: int, *, candidates: pa.Table, queries: pa.Table) -> tuple[StoredFile, StoredFile]:
        """Write both files of a part: staged, flushed, renamed; the candidates first.

        Returns what identifies the content of the two files.
        """
        return FolderParts(self.path, self.staging, alone=True).write_part(part, candidates=candidates, queries=queries)

    def writer_elsewhere(self) -> FolderParts:
        """Return what writes parts of this run in other processes; none is published after `remove_staging`."""
        staging = self.staging / uuid4().hex
        with storage_errors(f"making {staging}"):
            staging.mkdir(parents=True)
        return FolderParts(self.path.absolute(), staging.absolute(), alone=False)

    def adopt_part(self, part: int) -> None:
        """Take a part that another process wrote: it is where it has to be."""

    def damage(self, record: PartRecord) -> str:
        """Say what is wrong with the files of a part, which are read completely; "" if they are what was written."""
        for folder, written, rows in files_of(record):
            file = self.path / folder / part_name(record.part)
            with storage_errors(f"verifying {file}"):
                if found := file_damage(file, written, rows=rows, name=str(file)):
                    return found
        return ""

    def other_runs_at_work(self, run_key: str) -> list[RunManifest]:  # ranges ask
        """Return nothing: nobody writes beside a whole run."""
        return []

    def keep_parts(self, parts: Iterable[int]) -> None:
        """Remove the files of all other parts."""
        with storage_errors(f"removing unfinished parts of {self.path}"):
            kept = {part_name(part) for part in parts}
            for folder in (self.queries, self.candidates):  # in no moment rows of queries without their candidates
                for file in self.parts_in(folder):
                    if file.name not in kept:
                        file.unlink()

    def parts_in(self, folder: Path) -> Iterator[Path]:
        """Yield the part files of `candidates` or `queries` that are this run's."""
        yield from folder.glob("part-*.parquet")

    def graph_place(self, *, resuming: bool) -> Path:
        """Where a graph store is built: aside, where an earlier one may stand until it is known to be the same."""
        return self.staging / "graph" if resuming else self.graph

    def adopt_graph(self, store: GraphStore) -> GraphStore:
        """Move a graph store that was built in `staging` to its place, where an earlier one may stand."""
        with storage_errors(f"publishing the graph store {self.graph}"):
            remove_tree(self.graph)
            publish(store.path, self.graph)
        return GraphStore(self.graph, store.facts)

    def write_manifest(self, manifest: RunManifest) -> None:
        """Replace ``run.json``."""
        with storage_errors(f"writing {self.path / MANIFEST_FILE}"):
            write_text_atomically(self.path / MANIFEST_FILE, manifest.to_json())

    def discard_replaced(self) -> None:
        """Remove the earlier run that this one replaces."""
        if self.replaced is not None:
            with storage_errors(f"removing the replaced run {self.replaced}"):
                remove_tree(self.replaced)

    def restore_replaced(self) -> bool:
        """Put the earlier run back in place of this one, which never started; False if there was none."""
        if self.replaced is None or not self.replaced.exists():
            return False
        with storage_errors(f"restoring the earlier run {self.path}"):
            _put_back(self.path)
        return True

    def remove_staging(self) -> None:
        """Remove ``_tmp``."""
        with storage_errors(f"removing {self.staging}"):
            remove_tree(self.staging)

    def remove_unfinished(self) -> None:
        """Remove what a part left that was not finished: staged files, and candidates without their queries."""
        self.remove_staging()
        with storage_errors(f"removing unfinished parts of {self.path}"):
            for part in self.parts_in(self.candidates):
                if not (self.queries / part.name).exists():
                    part.unlink()

    def remove_ranges(self) -> None:
        """Remove what ranges left, whose parts this run has recorded."""
        with storage_errors(f"removing {self.path / RANGES_FOLDER}"):
            remove_tree(self.path / RANGES_FOLDER)

    def unmark_success(self) -> None:
        """Remove ``_SUCCESS`` before anything else changes."""
        with storage_errors(f"removing {self.path / SUCCESS_FILE}"):
            (self.path / SUCCESS_FILE).unlink(missing_ok=True)
            synchronise(self.path)

    def mark_success(self) -> None:
        """Write ``_SUCCESS``, the last thing that happens to a run folder."""
        with storage_errors(f"writing {self.path / SUCCESS_FILE}"):
            marker = self.path / SUCCESS_FILE
            marker.touch()
            synchronise(marker)
            synchronise(self.path)


def create_run_folder(path: Path, *, overwrite: bool) -> RunFolder:
    """Make an empty run folder.

    A folder whose earlier run delivered no part (it failed at the door) is taken over; one with parts needs
    ``overwrite`` and is moved aside until `RunFolder.discard_replaced`; one that seedrank did not write is always
    refused.

    Raises
    ------
    ConfigError
        The folder may not be replaced.
    StorageError
        It could not be made.
    """
    check_run_replaceable(path, overwrite=overwrite)
    folder = RunFolder(path)
    with storage_errors(f"preparing the run folder {path}"):
        if has_parts(path):
            folder = RunFolder(path, replaced=aside(path))
            path.rename(aside(path))
        elif path.exists():
            _clear(path)
        _make_folders(folder)
    return folder


def reopen_run_folder(path: Path) -> RunFolder:
    """Open a run folder to go on with its run; what an ended process left unfinished is removed.

    Raises
    ------
    StorageError
        It cannot be written.
    """
    folder = RunFolder(path)
    folder.remove_staging()
    with storage_errors(f"preparing the run folder {path}"):
        for staged in path.glob(f"{_STAGED_GRAPH}*"):
            remove_tree(staged)
        (path / f".{MANIFEST_FILE}.staged").unlink(missing_ok=True)
        _make_folders(folder)
    return folder


def recover_replaced(path: Path) -> None:
    """Settle what a killed run under ``overwrite`` left: two runs, of which one waits beside the folder.

    The earlier run is put back, unless the later one had come so far that it had taken its place.

    Raises
    ------
    StorageError
        It cannot be moved or removed.
    """
    waiting = aside(path)
    if not waiting.exists() or (path.exists() and foreign_name(path) is not None):
        return
    with storage_errors(f"settling the earlier run {waiting}"):
        try:
            begun = read_manifest(path).parts_planned is not None
        except InputDataError:
            begun = False
        if begun:
            remove_tree(waiting)
        else:
            _put_back(path)


def read_manifest(path: Path) -> RunManifest:
    """Read ``run.json`` of a run folder.

    Raises
    ------
    InputDataError
        There is none, or it is not one.
    """
    try:
        return RunManifest.model_validate_json((path / MANIFEST_FILE).read_text(encoding="utf-8"))
    except (OSError, ValidationError) as error:
        only_ranges = (path / RANGES_FOLDER).is_dir() and isinstance(error, FileNotFoundError)
        raise not_a_run(str(path), type(error).__name__, only_ranges=only_ranges) from None


def not_a_run(name: str, reason: str, *, only_ranges: bool = False) -> InputDataError:
    """Return the error for a place without a manifest that can be understood."""
    if only_ranges:
        return InputDataError(
            f"{name} holds ranges of parts that have not been joined to a run",
            expected="a run as a whole",
            fix="run the command of the ranges once more without --parts: it joins them and computes what is missing",
        )
    return InputDataError(
        f"{name} is not a run folder ({reason} at {MANIFEST_FILE})",
        expected="a folder that `seedrank score` wrote with this version",
        fix="pass the --out of a score run",
    )


def check_run_replaceable(path: Path, *, overwrite: bool) -> None:
    """Refuse a run folder that may not be written to; nothing is touched.

    Raises
    ------
    ConfigError
        See `create_run_folder`.
    """
    if not path.exists():
        return
    if not path.is_dir():
        raise ConfigError(
            f"--out {path} is a file",
            expected="a folder, or a path that does not exist",
            fix="choose another --out",
        )
    foreign = foreign_name(path)
    if foreign is not None:
        raise ConfigError(
            f"--out {path} holds {foreign!r}, which is not part of a run",
            expected="an empty folder, a run folder, or a path that does not exist",
            fix="choose another --out; seedrank never deletes what it did not write",
        )
    if has_parts(path) and not overwrite:
        raise ConfigError(
            f"--out {path} already holds the parts of a run",
            expected="an empty folder, or a path that does not exist",
            fix="pass --overwrite to replace the run, or choose another --out",
        )


def foreign_name(path: Path) -> str | None:
    """Name something in a folder that no run wrote; None if there is nothing of the kind."""
    present = {child.name for child in path.iterdir()}
    begun = MANIFEST_FILE in present or RANGES_FOLDER in present
    return min((name for name in present if not _is_ours(path / name, begun=begun)), default=None)


def has_parts(path: Path) -> bool:
    """Whether a run delivered at least one part there."""
    return any((path / "queries").glob("part-*.parquet"))


def _is_ours(child: Path, *, begun: bool) -> bool:
    """Whether an entry of a folder is a run's; before its manifest is there a run has left nothing but these."""
    if child.name.startswith(_STAGED_GRAPH) or (begun and child.name in _OWN):
        return True
    empty = child.is_dir() and not any(child.iterdir())
    return child.name in ("_tmp", f".{MANIFEST_FILE}.staged") or (child.name in ("candidates", "queries") and empty)


def _make_folders(folder: RunFolder) -> None:
    for needed in (folder.path, folder.candidates, folder.queries, folder.staging):
        needed.mkdir(parents=True, exist_ok=True)


def _put_back(path: Path) -> None:
    """Replace a run that never came to its first part by the one that waits for that."""
    if path.exists():
        _clear(path)
        path.rmdir()
    publish(aside(path), path)


def _clear(path: Path) -> None:
    """Empty a run folder; the manifest goes last, as it is what tells that the rest may be removed."""
    for child in sorted(path.iterdir(), key=lambda child: child.name == MANIFEST_FILE):
        if child.is_dir() and not child.is_symlink():
            remove_tree(child)
        else:
            child.unlink()
