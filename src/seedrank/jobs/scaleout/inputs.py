"""Inputs on their way to workers: paths and URLs go as they are, what is in memory is written down once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from seedrank.errors import ConfigError
from seedrank.io.matrix import is_pair, read_matrix
from seedrank.io.storage.files import storage_errors
from seedrank.jobs.inputs import DESCRIPTIONS, QUERY_INPUTS, JobInputs
from seedrank.jobs.locations import local_path


@dataclass(frozen=True)
class InMemory:
    """A table, or ids and an array, that was in the memory of the process that owns the run.

    Attributes
    ----------
    table : Arrow file of the table, or of the ids.
    array : ``.npy`` file of the array; None for a table.
    """

    table: str
    array: str | None = None


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
    InputDataError
        An array, or its ids, are none.
    """
    sources = {name: getattr(inputs, name) for name in QUERY_INPUTS}
    return ShippedInputs(
        {name: _shipped(source, folder / name, name) for name, source in sources.items() if source is not None}
    )


def _shipped(source: Any, file: Path, name: str) -> Any:
    if isinstance(source, (str, os.PathLike)):
        return _absolute(source)
    if isinstance(source, (list, tuple)) and not is_pair(source):
        return [_shipped(entry, file.with_name(f"{file.name}-{place}"), name) for place, entry in enumerate(source)]
    table_file, array_file = file.with_suffix(".arrow").absolute(), file.with_suffix(".npy").absolute()
    if isinstance(source, pa.Table):
        _write_table(table_file, source)
        return InMemory(str(table_file))
    matrix = read_matrix(source, what=DESCRIPTIONS[name], id_column="id", only_ids=True)
    _write_table(table_file, pa.table({"id": matrix.ids}))
    with storage_errors(f"writing {array_file}"), array_file.open("wb") as stream:
        np.save(stream, matrix.rows, allow_pickle=False)
    return InMemory(str(table_file), str(array_file))


def _write_table(file: Path, table: pa.Table) -> None:
    with storage_errors(f"writing {file}"), pa.ipc.new_file(str(file), table.schema) as writer:
        writer.write_table(table)


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
    with storage_errors(f"reading {source.table}"), pa.memory_map(source.table) as stream:
        table = pa.ipc.open_file(stream).read_all()
    if source.array is None:
        return table
    with storage_errors(f"reading {source.array}"):
        return table.column("id").combine_chunks(), np.load(source.array, allow_pickle=False)
