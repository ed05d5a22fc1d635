"""Where a run is written, as the job sees it: a local folder or a prefix of an object store."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from seedrank.io.graphstore import GraphStore
from seedrank.io.records import PartRecord, RunManifest, StoredFile
from seedrank.io.run.part_writers import SharedWriter


class RunStore(Protocol):
    """A run that this process writes; `RunFolder` on disks, `RunObjects` on object stores.

    A range of parts of a run (`RangeFolder`, `RangeObjects`) is one, too: it has a manifest of its own, touches no
    other part, and puts no ``_SUCCESS``.

    Both promise: a part is there whole or not at all, its candidates before its queries; ``run.json`` is whole at
    every moment; ``_SUCCESS`` is written last, and removed before anything else changes.
    """

    @property
    def name(self) -> str:
        """The run as messages call it."""

    @property
    def path(self) -> Path:
        """The folder; the path of a prefix on its storage."""

    @property
    def url(self) -> str | None:
        """The prefix as the user named it; None for a local folder."""

    @property
    def graph(self) -> Path:
        """Local folder of the graph store of a run that was given an edge list."""

    @property
    def scratch(self) -> Path:
        """Local folder for what this process needs for a while; it goes with the unfinished files."""

    @property
    def successful(self) -> bool:
        """Whether the success marker is there."""

    def graph_place(self, *, resuming: bool) -> Path:
        """Local folder where a graph store is built."""

    def adopt_graph(self, store: GraphStore) -> GraphStore:
        """Give a graph store that was built while resuming its final place."""

    def write_part(self, part: int, *, candidates: pa.Table, queries: pa.Table) -> tuple[StoredFile, StoredFile]:
        """Write both files of a part; returns what identifies their content."""

    def writer_elsewhere(self) -> SharedWriter:
        """Return what writes parts of this run in other processes; it ends with the run."""

    def adopt_part(self, part: int) -> None:
        """Take a part that another process wrote."""

    def damage(self, record: PartRecord) -> str:
        """Say what is wrong with the files of a part; "" if they are what was written."""

    def other_runs_at_work(self, run_key: str) -> list[RunManifest]:
        """Return the manifests of ranges that are being written here, of another run than the one of this key."""

    def keep_parts(self, parts: Iterable[int]) -> None:
        """Remove the files of all other parts."""

    def write_manifest(self, manifest: RunManifest) -> None:
        """Replace ``run.json``."""

    def discard_replaced(self) -> None:
        """Let this run take the place of the earlier one, if there is one."""

    def restore_replaced(self) -> bool:
        """Leave the earlier run in its place, as this one never started; False if there is none."""

    def remove_staging(self) -> None:
        """Remove unfinished local files."""

    def remove_unfinished(self) -> None:
        """Remove what a part left that was not finished."""

    def remove_ranges(self) -> None:
        """Remove what ranges left, whose parts this run has recorded."""

    def unmark_success(self) -> None:
        """Remove ``_SUCCESS``."""

    def mark_success(self) -> None:
        """Write ``_SUCCESS``."""
