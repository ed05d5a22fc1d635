"""Which kind of store each source is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from seedrank.config import ScoreOptions
from seedrank.config.names import SourceRole
from seedrank.jobs.hit_lists import check_source_names

#: Sources that have a role by their name alone. A source that is called as the channel of the graph is refused anyway.
_BY_NAME: Mapping[str, SourceRole] = {"dense": "dense", "sparse": "sparse"}


def source_roles(names: Sequence[str], options: ScoreOptions) -> tuple[SourceRole | None, ...]:
    """Return the role of every source: as ``--source-role`` says, else its own name if that is one; None without.

    Raises
    ------
    InputDataError
        The option names a source that no hit has.
    """
    check_source_names("--source-role", list(options.source_role), names)
    return tuple(options.source_role.get(name, _BY_NAME.get(name)) for name in names)
