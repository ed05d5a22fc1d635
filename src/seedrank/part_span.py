"""Some consecutive parts of a run, as ``--parts`` names them: what one of several machines computes."""

from __future__ import annotations

import re
from dataclasses import dataclass

_SPAN = re.compile(r"(?P<first>\d*)(?P<colon>:?)(?P<last>\d*)", re.ASCII)
_NAME = re.compile(r"parts-(?P<first>\d+)-(?P<last>\d+|end)", re.ASCII)
#: Part numbers have at most this many digits: parts hold at least one query, and queries are numbered with 32 bits.
_DIGITS = 10


@dataclass(frozen=True)
class PartSpan:
    """The parts ``first`` … ``last - 1``, counted from 0; without ``last`` all from ``first`` on."""

    first: int
    last: int | None

    def __str__(self) -> str:
        return f"{self.first}:{'' if self.last is None else self.last}"

    @property
    def name(self) -> str:
        """What its files are called; spans that are written alike sort by their first part."""
        return f"parts-{self.first:05d}-{'end' if self.last is None else format(self.last, '05d')}"

    def has(self, part: int) -> bool:
        """Whether it has that part."""
        return self.first <= part and (self.last is None or part < self.last)

    def overlaps(self, other: PartSpan) -> bool:
        """Whether the two have a part in common."""
        return (other.last is None or self.first < other.last) and (self.last is None or other.first < self.last)

    def of(self, parts: int) -> range:
        """Return the numbers that it has of so many parts; empty where it begins behind the last."""
        return range(self.first, parts if self.last is None else min(self.last, parts))


def parse_part_span(text: str) -> PartSpan:
    """Read ``A:B`` (half open), ``A:``, ``:B``, or ``A`` for that part alone.

    Raises
    ------
    ValueError
        Anything else, and a span without a part.
    """
    found = _SPAN.fullmatch(text.strip())
    first, last = (found["first"], found["last"]) if found else ("", "")
    if not (first or last) or max(len(first), len(last)) > _DIGITS:
        msg = f"part numbers from 0: A:B (without B), A:, :B, or A for one part; not {text!r}"
        raise ValueError(msg)
    begin = int(first or 0)
    if found is None or not found["colon"]:
        return PartSpan(begin, begin + 1)
    if last and int(last) <= begin:
        msg = f"a range with a part in it: {text!r} ends before it begins, as B itself is left out"
        raise ValueError(msg)
    return PartSpan(begin, int(last) if last else None)


def span_of_name(name: str) -> PartSpan | None:
    """Read back `PartSpan.name`; None for any other name."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    return PartSpan(int(found["first"]), None if found["last"] == "end" else int(found["last"]))
