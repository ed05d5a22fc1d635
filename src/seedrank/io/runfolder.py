"""The run folder: where a job's parts, its manifest and its success marker appear, each completely or not at all.

::

    RUN/run.json                         the manifest, replaced atomically
    RUN/candidates/part-00000.parquet    nothing but parts in here
    RUN/queries/part-00000.parquet
    RUN/graph/                           the graph store, when the job was given an edge list
    RUN/_SUCCESS                         empty, written last
    RUN/_tmp/                            staging; removed on success
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pydantic import ValidationError

from seedrank.errors import ConfigError, InputDataError
from seedrank.io.candidates import write_table
from seedrank.io.files import publish, remove_tree, storage_errors, synchronise, write_text_atomically
from seedrank.io.records import RunManifest

MANIFEST_FILE = "run.json"
SUCCESS_FILE = "_SUCCESS"
#: What an interrupted build of the run's own graph store leaves.
_STAGED_GRAPH = ".graph.staged-"
_OWN = frozenset({MANIFEST_FILE, SUCCESS_FILE, "candidates", "queries", "graph", "_tmp", f".{MANIFEST_FILE}.staged"})


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

    def write_part(self, part: int, *, candidates: pa.Table, queries: pa.Table) -> tuple[int, int]:
        """Write both files of a part: staged, flushed, renamed; the candidates first.

        Returns the sizes of the two files in bytes.
        """
        name = f"part-{part:05d}.parquet"
        sizes = []
        for folder, table in ((self.candidates, candidates), (self.queries, queries)):
            staged = self.staging / f"{folder.name}-{name}"
            sizes.append(write_table(staged, table))
            with storage_errors(f"publishing {folder / name}"):
                publish(staged, folder / name)
        return sizes[0], sizes[1]

    def write_manifest(self, manifest: RunManifest) -> None:
        """Replace ``run.json``."""
        with storage_errors(f"writing {self.path / MANIFEST_FILE}"):
            write_text_atomically(self.path / MANIFEST_FILE, manifest.model_dump_json(indent=2) + "\n")

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
            remove_tree(self.path)
            publish(self.replaced, self.path)
        return True

    def remove_staging(self) -> None:
        """Remove ``_tmp``."""
        with storage_errors(f"removing {self.staging}"):
            remove_tree(self.staging)

    def remove_unfinished(self) -> None:
        """Remove what a part left that was not finished: staged files, and candidates without their queries."""
        self.remove_staging()
        with storage_errors(f"removing unfinished parts of {self.path}"):
            for part in self.candidates.glob("part-*.parquet"):
                if not (self.queries / part.name).exists():
                    part.unlink()

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
        if _has_parts(path):
            folder = RunFolder(path, replaced=path.with_name(f".{path.name}.replaced-{os.getpid()}"))
            assert folder.replaced is not None
            remove_tree(folder.replaced)
            path.rename(folder.replaced)
        elif path.exists():
            _clear(path)
        for needed in (path, folder.candidates, folder.queries, folder.staging):
            needed.mkdir(parents=True, exist_ok=True)
    return folder


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
        raise InputDataError(
            f"{path} is not a run folder ({type(error).__name__} at {MANIFEST_FILE})",
            expected="a folder that `seedrank score` wrote with this version",
            fix="pass the --out of a score run",
        ) from None


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
    present = {child.name for child in path.iterdir()}
    foreign = sorted(name for name in present if not _is_ours(path / name, begun=MANIFEST_FILE in present))
    if foreign:
        raise ConfigError(
            f"--out {path} holds {foreign[0]!r}, which is not part of a run",
            expected="an empty folder, a run folder, or a path that does not exist",
            fix="choose another --out; seedrank never deletes what it did not write",
        )
    if _has_parts(path) and not overwrite:
        raise ConfigError(
            f"--out {path} already holds the parts of a run",
            expected="an empty folder, or a path that does not exist",
            fix="pass --overwrite to replace the run, or choose another --out",
        )


def _is_ours(child: Path, *, begun: bool) -> bool:
    """Whether an entry of a folder is a run's; before its manifest is there a run has left nothing but these."""
    if child.name.startswith(_STAGED_GRAPH) or (begun and child.name in _OWN):
        return True
    empty = child.is_dir() and not any(child.iterdir())
    return child.name in ("_tmp", f".{MANIFEST_FILE}.staged") or (child.name in ("candidates", "queries") and empty)


def _has_parts(path: Path) -> bool:
    return any((path / "queries").glob("part-*.parquet"))


def _clear(path: Path) -> None:
    for child in path.iterdir():
        if child.is_dir() and not child.is_symlink():
            remove_tree(child)
        else:
            child.unlink()
