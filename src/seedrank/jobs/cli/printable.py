"""Text from data on its way to a terminal or a log: names of files, columns and nodes may hold anything."""

from __future__ import annotations

import re

#: Control characters but tab and line feed; what turns the direction of the text; halves of characters that stand for
#: bytes of a name that is not UTF-8.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str, *, one_line: bool = False) -> str:
    r"""Write what could move the cursor, colour the screen or reorder the text as an escape, such as ``\x1b``.

    Parameters
    ----------
    text : str
    one_line : bool
        Whether line feeds become escapes, too.
    """
    shown = _UNPRINTABLE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
    return shown.replace("\n", "\\n") if one_line else shown
