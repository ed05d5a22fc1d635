"""``--lineage-file``: events of OpenLineage, so that a catalogue knows which data a run read and wrote.

Each event is one line of JSON, added to the file as a whole. Written by hand: the events are small, the specification
is fixed, and a client would bring its own connections and configuration into a batch job.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit
from uuid import UUID

from seedrank._version import __version__
from seedrank.errors import InterruptedRunError, SeedrankError, Terminated
from seedrank.io.graphstore import GraphStore
from seedrank.io.records import RunManifest
from seedrank.jobs.inputs import JobInputs
from seedrank.jobs.locations import local_path
from seedrank.jobs.results import ResultTable, Run
from seedrank.redaction import redacted_values

log = logging.getLogger(__name__)

PRODUCER = f"urn:seedrank:{__version__}"
_SPECIFICATION = "https://openlineage.io/spec"
_EVENT = f"{_SPECIFICATION}/2-0-2/OpenLineage.json#/$defs/RunEvent"
#: Variable by which programs that emit events agree on where their jobs belong.
_NAMESPACE = "OPENLINEAGE_NAMESPACE"

EventType = Literal["START", "COMPLETE", "FAIL", "ABORT"]


class LineageFile:
    """The events of one run, added to a file. Whatever goes wrong with that is a warning: no run ends for want of it.

    Parameters
    ----------
    path : str or None
        None: nothing is written.
    job : str
        Name of the job, the same every night.
    run_id : str
        32 hexadecimal digits.
    inputs, out : what the run reads and writes. Tables in memory have no name that others know, and are left out.
    """

    def __init__(
        self, path: str | None, *, job: str, run_id: str, inputs: JobInputs, out: str | os.PathLike[str]
    ) -> None:
        self._path = path
        self._job = job
        self._run_id = str(UUID(run_id))
        self._inputs = inputs
        self._out = out

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Tell that the run begins, and of an error that ends it."""
        self._add("START", {}, {})
        try:
            yield
        except BaseException as error:
            interrupted = isinstance(error, (KeyboardInterrupt, Terminated, InterruptedRunError))
            message = str(error) or type(error).__name__
            facet = _facet("ErrorMessageRunFacet", "1-0-1", message=message, programmingLanguage="PYTHON")
            self._add("ABORT" if interrupted else "FAIL", {"errorMessage": facet}, {})
            raise

    def complete(self, run: Run) -> None:
        """Tell that the run is whole, with columns and rows of its tables."""
        self._add("COMPLETE", {}, {"candidates": run.candidates, "queries": run.queries}, run)

    def _add(
        self,
        event_type: EventType,
        facets: Mapping[str, Any],
        tables: Mapping[str, ResultTable],
        run: Run | None = None,
    ) -> None:
        if self._path is None:
            return
        try:
            manifest = None if run is None else run.manifest
            engine = _facet("ProcessingEngineRunFacet", "1-1-1", name="seedrank", version=__version__)
            event = {
                "eventType": event_type,
                "eventTime": datetime.now(UTC).isoformat(timespec="milliseconds"),
                "run": {"runId": self._run_id, "facets": {"processing_engine": engine, **facets}},
                "job": {"namespace": os.environ.get(_NAMESPACE) or "default", "name": self._job},
                "inputs": [_dataset(place) for place in _places(self._inputs)],
                "outputs": [_output(self._out, name, tables.get(name), manifest) for name in ("candidates", "queries")],
                "producer": PRODUCER,
                "schemaURL": _EVENT,
            }
            line = json.dumps(redacted_values(event), ensure_ascii=False) + "\n"
            # One write at the end of the file: other runs may add to it at the same time.
            descriptor = os.open(Path(self._path), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            try:
                os.write(descriptor, line.encode())
            finally:
                os.close(descriptor)
        except (OSError, SeedrankError) as error:
            log.warning("lineage_not_written", extra={"path": self._path, "reason": str(error)})


def _places(inputs: JobInputs) -> Iterator[str]:
    """Yield what the inputs are called outside: paths and URLs."""
    for source in inputs.by_description().values():
        for entry in source if isinstance(source, list) else [source]:
            if isinstance(entry, GraphStore):
                yield entry.origin or str(entry.path)
            elif isinstance(entry, (str, os.PathLike)):
                yield os.fspath(entry)


def _dataset(place: str) -> dict[str, Any]:
    """Name a data set as the specification does: by storage, and by what it is called there."""
    local = local_path(place)
    if local is not None:
        return {"namespace": "file", "name": os.path.realpath(local), "facets": {}}
    url = urlsplit(place)
    return {"namespace": f"{url.scheme}://{url.netloc}", "name": url.path.strip("/"), "facets": {}}


def _output(
    out: str | os.PathLike[str], name: str, table: ResultTable | None, manifest: RunManifest | None
) -> dict[str, Any]:
    """One of the tables of the run; its columns and rows where it is finished."""
    dataset = _dataset(f"{os.fspath(out).rstrip('/')}/{name}")
    if table is None or manifest is None or not manifest.parts:
        return dataset
    fields = [
        {
            "name": field.name,
            "type": str(field.type),
            "description": (field.metadata or {}).get(b"description", b"").decode(),
        }
        for field in table.schema
    ]
    dataset["facets"]["schema"] = _facet("SchemaDatasetFacet", "1-2-0", fields=fields)
    files = [part.candidates_file if name == "candidates" else part.queries_file for part in manifest.parts]
    rows = [part.candidates if name == "candidates" else sum(part.by_status.values()) for part in manifest.parts]
    statistics = {"rowCount": sum(rows), "size": sum(file.bytes for file in files), "fileCount": len(files)}
    dataset["outputFacets"] = {"outputStatistics": _facet("OutputStatisticsOutputDatasetFacet", "1-0-2", **statistics)}
    return dataset


def _facet(name: str, revision: str, /, **content: Any) -> dict[str, Any]:
    return {
        "_producer": PRODUCER,
        "_schemaURL": f"{_SPECIFICATION}/facets/{revision}/{name}.json#/$defs/{name}",
        **content,
    }
