"""Print the results of the benchmarks as Markdown, or put them into README.md.

Reads the files of ``results/`` that are there; with ``--quick`` those of the quick runs. ``--update`` replaces what
stands between the two markers in README.md instead of printing.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from bars import bars
from markdown_parts import table, where
from measure import RESULTS
from report_sections import SECTIONS

README = RESULTS.parent / "README.md"
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"


def asked_for() -> Iterator[str]:
    """The bars, and why those are missed that are."""
    lines = list(bars(RESULTS))
    if lines:
        yield from ("### What the design asks for", "")
        rows = [[bar.work, bar.wanted, bar.figure, "yes" if bar.met else "**no**", bar.date] for bar in lines]
        yield from table(["work", "bar", "found", "met", "measured"], rows, column="---")
        yield ""
        for why in dict.fromkeys(bar.why for bar in lines if bar.why):
            missed = "; ".join(bar.work for bar in lines if bar.why == why)
            yield f"- missed ({missed}): {why}."
        yield ""


def report(*, quick: bool) -> str:
    """All sections whose results are there."""
    lines: list[str] = [] if quick else list(asked_for())
    for name, (title, section) in SECTIONS.items():
        file = RESULTS / (f"{name}-quick.json" if quick else f"{name}.json")
        if file.is_file():
            document = json.loads(file.read_text(encoding="utf-8"))
            lines += [f"### {title}", "", where(document), "", *section(document), ""]
    while lines and not lines[-1]:
        lines.pop()
    return "\n".join(lines) if lines else "No results yet."


def update(readme: Path, text: str) -> None:
    """Replace what stands between the markers."""
    before, rest = readme.read_text(encoding="utf-8").split(BEGIN)
    _, after = rest.split(END)
    readme.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")


def main() -> None:
    """Print or write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="results of the --quick runs")
    parser.add_argument("--update", action="store_true", help="write into README.md")
    chosen = parser.parse_args()
    text = report(quick=chosen.quick)
    if chosen.update:
        update(README, text)
    else:
        print(text)


if __name__ == "__main__":
    main()
