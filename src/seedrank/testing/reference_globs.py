"""A slow, obvious definition of path globs: component by component."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence


def reference_glob(path: str, glob: str) -> bool:
    """Whether a glob matches a whole path; `seedrank.io.graph.globs` states the rules.

    Parameters
    ----------
    path, glob : components with ``/`` between them.
    """
    return _match(path.split("/"), glob.split("/"))


def _match(components: Sequence[str], patterns: Sequence[str]) -> bool:
    if not patterns:
        return not components
    first, *rest = patterns
    if first != "**":
        return bool(components) and fnmatch.fnmatchcase(components[0], first) and _match(components[1:], rest)
    if not rest:
        return bool(components)
    return any(_match(components[skipped:], rest) for skipped in range(len(components) + 1))
