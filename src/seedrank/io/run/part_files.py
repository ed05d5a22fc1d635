"""The two files of a part: their names, and whether they are still what was written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from seedrank.io.records import PartRecord, StoredFile
from seedrank.io.storage.files import hash_file

#: Folder of the manifests and locks of ranges (`seedrank.part_span`), until the whole run has taken them over.
RANGES_FOLDER = "_ranges"


def part_name(part: int) -> str:
    """Name of both files of a part."""
    return f"part-{part:05d}.parquet"


def part_number(name: str) -> int:
    """Number of the part that a file of this name belongs to; 0 or more."""
    return int(name.removeprefix("part-").removesuffix(".parquet"))


def files_of(record: PartRecord) -> Iterator[tuple[str, StoredFile, int]]:
    """Yield the folder of every file of a part, what was written there, and its number of rows."""
    yield "candidates", record.candidates_file, record.candidates
    yield "queries", record.queries_file, sum(record.by_status.values())


def file_damage(file: Path, written: StoredFile, *, rows: int, name: str) -> str:
    """Say what is wrong with a file, which is read completely; "" if it is what was written.

    Parameters
    ----------
    file : where it is now.
    written, rows : what it was, as recorded.
    name : what messages call it.
    """
    if not file.is_file():
        return f"{name} is missing"
    size = file.stat().st_size
    if size != written.bytes:
        return f"{name} has {size} bytes instead of {written.bytes}"
    if hash_file(file) != written.xxh3_128:
        return f"{name} has another content"
    # The file is as it was written; the record may not be.
    with pa.OSFile(str(file)) as stream:
        found = pq.read_metadata(stream).num_rows
    return "" if found == rows else f"{name} has {found} rows instead of {rows}"
