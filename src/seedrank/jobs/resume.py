"""Going on where a run ended: whether there is one, and which of its parts are as they were written."""

from __future__ import annotations

import logging
from pathlib import Path

from seedrank.config import ScoreOptions
from seedrank.errors import ConfigError, InputDataError
from seedrank.io.records import PartRecord, RunManifest
from seedrank.io.runfolder import RunFolder, check_run_replaceable, has_parts, read_manifest

log = logging.getLogger(__name__)


def run_to_go_on_with(path: Path, options: ScoreOptions) -> RunManifest | None:
    """Return the manifest of the run that stands at a path, or None where a run has to begin from nothing.

    Raises
    ------
    ConfigError
        There are parts, but nothing that can be read says of which run.
    """
    if options.overwrite or options.resume == "never" or not has_parts(path):
        return None
    check_run_replaceable(path, overwrite=True)
    try:
        return read_manifest(path)
    except InputDataError:
        raise ConfigError(
            f"--out {path} holds the parts of a run, but its run.json cannot be read",
            expected="run.json as this version of seedrank writes it",
            fix="pass --overwrite to replace the run, or choose another --out",
        ) from None


def intact_parts(folder: RunFolder, earlier: RunManifest) -> list[PartRecord]:
    """Return the parts that need not be computed again; every byte of their files is compared with what was written.

    Left out are damaged parts, those with queries that failed or that the deadline cut, and those that were published
    but not recorded before the run was killed.
    """
    intact = []
    for record in earlier.parts:
        if record.unfinished_queries:
            reason = f"{record.unfinished_queries} queries failed or were cut by the deadline"
            log.info("part_unfinished", extra={"part": record.part, "reason": reason})
        elif damage := folder.damage(record):
            log.warning("part_damaged", extra={"part": record.part, "reason": damage})
        else:
            intact.append(record)
    return intact
