"""Pieces of Markdown that every section of the report is made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from measure import RESULTS

OWN_PACKAGES = {"python", "seedrank", "numpy", "scipy", "numba", "llvmlite"}

Document = dict[str, Any]


def table(header: list[str], rows: list[list[str]], *, column: str = "---:") -> Iterator[str]:
    """Lines of a Markdown table; all columns but the first are aligned as `column` says."""
    yield "| " + " | ".join(header) + " |"
    yield "| --- " + f"| {column} " * (len(header) - 1) + "|"
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def cells(row: Document, **formats: str) -> list[str]:
    """Values of a row by their names, each in its format; an empty one is that of ``str``."""
    return [format(row[name], specification) for name, specification in formats.items()]


def ratio(value: float) -> str:
    """A ratio in three digits or whole."""
    return f"{value:,.0f}x" if value >= 100 else f"{value:.3g}x"


def where(document: Document) -> str:
    """One sentence on when and where it was measured; programs that the section does not run are not named."""
    machine = document["machine"]
    versions = ", ".join(
        f"{name} {number}"
        for name, number in document["versions"].items()
        if document["benchmark"].startswith("peers") or name in OWN_PACKAGES
    )
    return (
        f"Measured {document['date'][:10]} at {document['revision']} on {machine['processor']}, "
        f"{machine['processors_usable']} processors, {machine['memory_gb']} GB, load "
        f"{machine['load_average_at_the_end'][0]} at the end; {versions}."
    )


def plot(name: str) -> Iterator[str]:
    """The picture that plot.py drew, if it did."""
    if (RESULTS / f"{name}.svg").is_file():
        yield from ("", f"![{name}](results/{name}.svg)")


def graph_title(graph: Document) -> str:
    """A graph's name and size."""
    kind = "undirected, both ways counted" if graph["undirected"] else "directed"
    counts = f"{graph['nodes']:,} nodes, {graph['edges']:,} edges ({kind}), {graph['dangling']:,} dangling"
    return f"**{graph['name']}**: {counts}"
