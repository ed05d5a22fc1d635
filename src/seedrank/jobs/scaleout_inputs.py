"""Inputs on their way to workers: paths and URLs go as they are, what is in memory is written down once."""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from seedrank.errors import ConfigError
from seedrank.io.files import storage_errors
from seedrank.io.matrix import is_pair
from seedrank.io.queries import HitTable
from seedrank.jobs.inputs import QUERY_INPUTS, JobInputs
from seedrank.jobs.locations import local_path


@dataclass(frozen=True)
class InMemory:
    """Something that was in the memory of the process that owns the run; ``file`` holds it, pickled."""

    file: str


@dataclass(frozen=True)
class ShippedInputs:
    """The inputs that make a query set, by name: a path, a URL, `InMemory`, or a list of these."""

    sources: Mapping[str, Any]

    def opened(self) -> JobInputs:
        """Return them as a job wants them.

        Raises
        ------
        StorageError
            A file of the run is gone.
        """
        return JobInputs(**{name: _opened(source) for name, source in self.sources.items()})


def ship_inputs(inputs: JobInputs, folder: Path) -> ShippedInputs:
    """Name what makes the query set so that other processes can read it.

    Parameters
    ----------
    inputs : as `seedrank.jobs.inputs.held_in_memory` returns them.
    folder : where what is in memory is written to; it exists.

    Raises
    ------
    ConfigError
        A URL of a storage that only this process has.
    """
    sources = {name: getattr(inputs, name) for name in QUERY_INPUTS}
    return ShippedInputs(
        {name: _shipped(source, folder / f"{name}.pickle") for name, source in sources.items() if source is not None}
    )


def _shipped(source: Any, file: Path) -> Any:
    if isinstance(source, (str, os.PathLike)):
        return _absolute(source)
    if isinstance(source, (list, tuple)) and not is_pair(source):
        return [_shipped(entry, file.with_stem(f"{file.stem}-{place}")) for place, entry in enumerate(source)]
    with storage_errors(f"writing {file}"), file.open("wb") as stream:
        pickle.dump(_plain(source), stream, protocol=pickle.HIGHEST_PROTOCOL)
    return InMemory(str(file.absolute()))


def _plain(source: Any) -> Any:
    """Leave out what a pickle need not have: a mapped array becomes one in memory, a record batch a table."""
    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source])
    if isinstance(source, Sequence) and is_pair(source):
        return source[0], np.asarray(source[1])
    assert isinstance(source, (pa.Table, HitTable))
    return source


def _absolute(source: str | os.PathLike[str]) -> str:
    """Return a name that means the same in every working directory."""
    text = os.fspath(source)
    if text.startswith("memory:"):
        raise ConfigError(
            f"{text} is in the memory of this process, where workers cannot read",
            expected="files, or URLs that workers reach",
            fix="write it to a file, or pass the table itself",
        )
    path = local_path(text)
    return text if path is None else str(path)


def _opened(source: Any) -> Any:
    if isinstance(source, list):
        return [_opened(entry) for entry in source]
    if not isinstance(source, InMemory):
        return source
    with storage_errors(f"reading {source.file}"), Path(source.file).open("rb") as stream:
        return pickle.load(stream)  # noqa: S301  # the run's own file, in its own folder
