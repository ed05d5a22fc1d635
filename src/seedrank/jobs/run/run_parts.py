"""The files of single parts of a run, here or on an object store, and whether they are still what was written."""

from __future__ import annotations

from pathlib import Path

from seedrank.io.records import PartRecord
from seedrank.io.run.part_files import file_damage, files_of, part_name
from seedrank.io.storage.objects import object_folder
from seedrank.io.storage.retried_stream import object_damage
from seedrank.io.uri import InputFile
from seedrank.jobs.results import Run


def part_file(run: Run, table: str, record: PartRecord) -> Path | InputFile:
    """Return the file of ``candidates`` or ``queries`` of a part."""
    name = f"{table}/{part_name(record.part)}"
    if run.url is None:
        return run.path / name
    written = {folder: file for folder, file, _ in files_of(record)}[table]
    return object_folder(run.url, what="the run").file(name, size=written.bytes)


def part_damage(run: Run, record: PartRecord) -> str:
    """Say what is wrong with the files of a part, which are read completely; "" if they are what was written.

    Raises
    ------
    StorageError
        An object cannot be read.
    """
    for table, written, rows in files_of(record):
        file = part_file(run, table, record)
        if isinstance(file, Path):
            found = file_damage(file, written, rows=rows, name=str(file))
        else:
            found = object_damage(file, written)
        if found:
            return found
    return ""
