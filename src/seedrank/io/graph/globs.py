"""Path globs as regular expressions for Arrow (RE2)."""

from __future__ import annotations

import re
from collections.abc import Sequence

_IN_CLASS = str.maketrans({character: f"\\{character}" for character in "\\[]^&~|"})


def globs_pattern(globs: Sequence[str]) -> str:
    """Return a regular expression that matches a whole path exactly when one of some globs does.

    A path consists of components with ``/`` between them, whatever the machine. Case matters.

    - ``*`` is any text, ``?`` one character, ``[a-z]`` one of some and ``[!a-z]`` none of them; none of these is a
      ``/``. A ``[`` without its ``]`` stands for itself.
    - ``**`` as a whole component is any number of components, none included; at the end, at least one: ``src/**`` is
      everything below ``src``. Inside a component it is ``*``.
    - Every other character stands for itself, a leading ``/`` or ``./`` included.

    Parameters
    ----------
    globs : at least one.

    Returns
    -------
    Pattern in the syntax of RE2, anchored at both ends.
    """
    return r"(?s)\A(?:" + "|".join(map(_translated, globs)) + r")\z"


def _translated(glob: str) -> str:
    *parents, name = glob.split("/")
    before = "".join("(?:[^/]*/)*" if part == "**" else f"{_component(part)}/" for part in parents)
    return before + (".*" if name == "**" else _component(name))


def _component(text: str) -> str:
    """Translate what stands between two slashes."""
    pieces = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character == "*":
            pieces.append("[^/]*")
        elif character == "?":
            pieces.append("[^/]")
        elif character == "[" and (end := _end_of_class(text, position)) > 0:
            pieces.append(_character_class(text[position:end]))
            position = end + 1
        else:
            pieces.append(re.escape(character))
    return "".join(pieces)


def _end_of_class(text: str, start: int) -> int:
    """Position of the ``]`` that ends a class, which may begin with one; -1 if there is none."""
    return text.find("]", start + (2 if text.startswith("!", start) else 1))


def _character_class(content: str) -> str:
    if content.startswith("!"):
        return f"[^/{content[1:].translate(_IN_CLASS)}]"
    return f"[{content.translate(_IN_CLASS)}]"
