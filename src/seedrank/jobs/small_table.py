"""A result that is one small Parquet file of its own, outside a run folder."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from seedrank.io.candidates import write_table
from seedrank.io.storage.files import publish, storage_errors


def write_small_table(path: Path, table: pa.Table) -> None:
    """Write a file that is there whole or not at all; one of the same name is replaced.

    Raises
    ------
    StorageError
        The file could not be written.
    """
    staged = path.with_name(f".{path.name}.staged")
    with storage_errors(f"writing {path}"):
        staged.unlink(missing_ok=True)
        write_table(staged, table)
        publish(staged, path)
