"""Which kind of store each source is."""

from __future__ import annotations

from collections.abc import Sequence

from seedrank.config import ScoreOptions
from seedrank.config.names import ROLES_BY_NAME, SourceRole
from seedrank.jobs.queries.hit_lists import check_source_names


def source_roles(names: Sequence[str], options: ScoreOptions, hits: str) -> tuple[SourceRole | None, ...]:
    """Return the role of every source: as ``--source-role`` says, else its own name if that is one; None without.

    ``hits`` is what messages call the hits.

    Raises
    ------
    InputDataError
        The option names a source that no hit has.
    """
    check_source_names("--source-role", list(options.source_role), names, hits)
    return tuple(options.source_role.get(name, ROLES_BY_NAME.get(name)) for name in names)
