"""Going on where a run ended: which of its parts are as they were written."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from seedrank.errors import ConfigError
from seedrank.io.records import PartRecord
from seedrank.io.run.run_store import RunStore

log = logging.getLogger(__name__)


def unreadable_run(name: str) -> ConfigError:
    """Return the error for parts of which nothing that can be read says of which run they are.

    Parameters
    ----------
    name : the place, for the message.
    """
    return ConfigError(
        f"--out {name} holds the parts of a run, but its run.json cannot be read",
        expected="run.json as this version of seedrank writes it",
        fix="pass --overwrite to replace the run, or choose another --out",
    )


def intact_parts(folder: RunStore, records: Iterable[PartRecord]) -> list[PartRecord]:
    """Return the parts that need not be computed again; every byte of their files is compared with what was written.

    Left out are damaged parts, those with queries that failed or that the deadline cut, and those that were published
    but not recorded before the run was killed. Of a part that is recorded twice the first record that holds is taken.
    """
    intact: dict[int, PartRecord] = {}
    for record in records:
        if record.part in intact:
            continue
        if record.unfinished_queries:
            reason = f"{record.unfinished_queries} queries failed or were cut by the deadline"
            log.info("part_unfinished", extra={"part": record.part, "reason": reason})
        elif damage := folder.damage(record):
            log.warning("part_damaged", extra={"part": record.part, "reason": damage})
        else:
            intact[record.part] = record
    return [intact[part] for part in sorted(intact)]
