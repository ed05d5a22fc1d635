"""A range of the parts of a run folder, written by one of several machines (`seedrank.part_span`).

::

    RUN/_ranges/parts-00100-00200.json   manifest of the range; what was asked for as 100: is parts-00100-end
    RUN/_ranges/parts-00100-00200.lock   while it is written (`seedrank.io.run.range_lock`)
    RUN/_tmp/parts-00100-00200/          its staging

Its parts stand under the names that they have in the whole run, which takes them over and removes ``_ranges``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from seedrank.errors import ConfigError
from seedrank.io.records import RunManifest
from seedrank.io.run.part_files import RANGES_FOLDER, part_number
from seedrank.io.run.range_lock import ranges_at_work
from seedrank.io.run.runfolder import RunFolder, check_run_replaceable
from seedrank.io.storage.files import aside, storage_errors, write_text_atomically
from seedrank.part_span import PartSpan, span_of_name

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class RangeFolder(RunFolder):
    """Some parts of a run folder that this process writes; see `seedrank.io.run.run_store.RunStore`.

    Attributes
    ----------
    span : the parts; no other is touched.
    """

    span: PartSpan

    @property
    def staging(self) -> Path:
        """Unfinished files."""
        return self.path / "_tmp" / self.span.name

    def parts_in(self, folder: Path) -> Iterator[Path]:
        """Yield the part files of the range."""
        return (file for file in super().parts_in(folder) if self.span.has(part_number(file.name)))

    def other_runs_at_work(self, run_key: str) -> list[RunManifest]:
        """Return the manifests of ranges that are being written here, of another run than the one of this key."""
        others = {
            span: manifest
            for span, manifest in read_range_manifests(self.path).items()
            if span != self.span and manifest.run_key not in (None, run_key)
        }
        living = ranges_at_work(self.path) if others else set()
        return [manifest for span, manifest in others.items() if span in living]

    def write_manifest(self, manifest: RunManifest) -> None:
        """Replace the manifest of the range."""
        file = _manifest_file(self.path, self.span)
        with storage_errors(f"writing {file}"):
            write_text_atomically(file, manifest.to_json())

    def remove_ranges(self) -> None:
        """Leave the manifests of all ranges for the whole run."""

    def mark_success(self) -> None:
        """Leave it to the whole run to say that all parts are there."""


def open_range_folder(path: Path, span: PartSpan) -> RangeFolder:
    """Open a run folder, which is made if need be, for some of its parts; their lock is held.

    Raises
    ------
    ConfigError
        The folder holds what no run wrote, or a run that was being replaced when its process was killed.
    StorageError
        It cannot be written.
    """
    check_run_replaceable(path, overwrite=True)
    if aside(path).exists():
        raise ConfigError(
            f"--out {path} was being replaced by a run that was killed; the earlier run still stands at {aside(path)}",
            expected="a run folder that is settled before ranges are written",
            fix="run the command without --parts first, or remove one of the two folders",
        )
    folder = RangeFolder(path, span=span)
    folder.remove_staging()
    with storage_errors(f"preparing the run folder {path}"):
        for needed in (folder.candidates, folder.queries, folder.staging):
            needed.mkdir(parents=True, exist_ok=True)
    return folder


def read_range_manifests(path: Path) -> dict[PartSpan, RunManifest]:
    """Read the manifests of all ranges of a run folder; one that cannot be understood is left out, with a warning."""
    found = {}
    for file in sorted((path / RANGES_FOLDER).glob("parts-*.json")):
        span = span_of_name(file.stem)
        if span is None:
            continue
        try:
            found[span] = RunManifest.model_validate_json(file.read_text(encoding="utf-8"))
        except (OSError, ValidationError) as error:
            log.warning("range_not_understood", extra={"path": str(file), "reason": type(error).__name__})
    return found


def _manifest_file(path: Path, span: PartSpan) -> Path:
    return path / RANGES_FOLDER / f"{span.name}.json"
