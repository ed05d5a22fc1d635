"""Going on where a run ended: whether there is one, and which of its parts are as they were written."""

from __future__ import annotations

import logging
from collections.abc import Callable

from seedrank.errors import ConfigError, InputDataError
from seedrank.io.records import PartRecord, RunManifest
from seedrank.io.run_store import RunStore

log = logging.getLogger(__name__)


def run_to_go_on_with(name: str, read: Callable[[], RunManifest | None]) -> RunManifest:
    """Return the manifest of the run that stands at a place where there are parts.

    Parameters
    ----------
    name : the place, for the message.
    read : reads the manifest.

    Raises
    ------
    ConfigError
        Nothing that can be read says of which run the parts are.
    """
    try:
        manifest = read()
    except InputDataError:
        manifest = None
    if manifest is None:
        raise ConfigError(
            f"--out {name} holds the parts of a run, but its run.json cannot be read",
            expected="run.json as this version of seedrank writes it",
            fix="pass --overwrite to replace the run, or choose another --out",
        )
    return manifest


def intact_parts(folder: RunStore, earlier: RunManifest) -> list[PartRecord]:
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
