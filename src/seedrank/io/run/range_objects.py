"""A range of the parts of a run on an object store, written by one of several machines (`seedrank.part_span`).

::

    PREFIX/_ranges/parts-00100-00200.json   manifest of the range
    PREFIX/_ranges/parts-00100-00200.lock   while it is written (`seedrank.io.run.range_lease`)

Its parts stand under the keys that they have in the whole run, which takes them over and removes ``_ranges``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from seedrank.io.records import RunManifest
from seedrank.io.run.lease import Lease
from seedrank.io.run.part_files import RANGES_FOLDER, part_number
from seedrank.io.run.range_lease import is_range_at_work
from seedrank.io.run.run_objects import RunObjects
from seedrank.io.storage.objects import ObjectFolder
from seedrank.part_span import PartSpan, span_of_name

log = logging.getLogger(__name__)


class RangeObjects(RunObjects):
    """Some parts of a run below a prefix that this process writes; see `seedrank.io.run.run_store.RunStore`.

    Parameters
    ----------
    lease : Lease
        Of the range.
    url, work : see `RunObjects`.
    span : PartSpan
        The parts; no other is touched.
    earlier : {"none", "resumed"}
        Whether there is something to go on with.
    """

    def __init__(
        self, lease: Lease, *, url: str, work: Path, span: PartSpan, earlier: Literal["none", "resumed"]
    ) -> None:
        super().__init__(lease, url=url, work=work, earlier=earlier, manifest_key=f"{RANGES_FOLDER}/{span.name}.json")
        self._span = span

    def parts_in(self, names: Iterable[str]) -> Iterable[str]:
        """Yield the keys of the part files of the range."""
        return (key for key in super().parts_in(names) if self._span.has(part_number(key.rpartition("/")[2])))

    def other_runs_at_work(self, run_key: str) -> list[RunManifest]:
        """Return the manifests of ranges that are being written here, of another run than the one of this key."""
        return [
            manifest
            for span, manifest in read_range_objects(self.objects).items()
            if span != self._span and manifest.run_key not in (None, run_key) and is_range_at_work(self.objects, span)
        ]

    def remove_ranges(self) -> None:
        """Leave the manifests of all ranges for the whole run."""

    def mark_success(self) -> None:
        """Look whether the parts are still there; that all are, the whole run says."""
        self.check_marks()


def read_range_objects(objects: ObjectFolder) -> dict[PartSpan, RunManifest]:
    """Read the manifests of all ranges below a prefix; one that cannot be understood is left out, with a warning."""
    found = {}
    for key in objects.names():
        folder, _, name = key.partition("/")
        span = span_of_name(name.removesuffix(".json"))
        content = objects.read(key) if folder == RANGES_FOLDER and name.endswith(".json") and span else None
        if span is None or content is None:
            continue
        try:
            found[span] = RunManifest.model_validate_json(content)
        except ValidationError as error:
            log.warning("range_not_understood", extra={"path": f"{objects.url}/{key}", "reason": type(error).__name__})
    return found
