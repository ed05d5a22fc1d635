"""Draw ``results/peers.json`` and ``results/scaling.json`` as SVG files beside them (needs matplotlib).

python benchmarks/plot.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
from measure import RESULTS

mpl.use("svg")
# Text stays text, and two runs on one result give one file.
mpl.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "seedrank", "font.size": 9}

from matplotlib import pyplot as plt  # noqa: E402  # after the backend is chosen

COLUMNS = 3
OWN, OTHER = "#1f6f8b", "#b8b8b8"


def save(figure: Any, name: str) -> Path:
    """Write a figure without the date that would make it new every time."""
    path = RESULTS / f"{name}.svg"
    figure.savefig(path, metadata={"Date": None}, bbox_inches="tight")
    plt.close(figure)
    return path


def peers(document: dict[str, Any]) -> Path:
    """One panel of bars per graph: milliseconds a query, logarithmic."""
    results = document["graphs"]
    lines = -(-len(results) // COLUMNS)
    figure, panels = plt.subplots(
        lines, COLUMNS, figsize=(5 * COLUMNS, 3.4 * lines), squeeze=False, layout="constrained"
    )
    for panel in panels.flat[len(results) :]:
        panel.remove()
    for panel, result in zip(panels.flat, results, strict=False):
        rows = sorted(result["rows"], key=lambda row: -float(row["milliseconds"]))
        names = [row["program"] for row in rows]
        colours = [OWN if name.startswith("seedrank") else OTHER for name in names]
        bars = panel.barh(names, [row["milliseconds"] for row in rows], color=colours)
        panel.bar_label(bars, [shown(row["milliseconds"]) for row in rows], padding=3)
        panel.set_xscale("log")
        panel.margins(x=0.25)
        panel.set_title(f"{result['graph']['name']}, {result['graph']['edges']:,} edges")
        panel.set_xlabel("milliseconds a query")
        panel.spines[["top", "right"]].set_visible(False)
    return save(figure, "peers")


def shown(value: float) -> str:
    """Three digits, or whole."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def scaling(document: dict[str, Any]) -> Path:
    """One panel per curve."""
    curves = document["curves"]
    figure, panels = plt.subplots(1, len(curves), figsize=(3 * len(curves), 2.6), squeeze=False, layout="constrained")
    for panel, curve in zip(panels[0], curves, strict=True):
        values, times = zip(*curve["milliseconds_a_query"], strict=True)
        panel.plot(values, times, marker="o", color=OWN)
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_ylim(min(times) / 2, max(times) * 2)
        panel.minorticks_off()
        panel.set_xticks(values, [f"{value / 1e6:.0f} M" if value >= 5e5 else f"{value:,g}" for value in values])
        ends = [max(times)] if max(times) < 1.2 * min(times) else [min(times), max(times)]
        panel.set_yticks(ends, [shown(value) for value in ends])
        panel.set_title(f"{curve['curve']} (exponent {curve['exponent']:.2f})")
        panel.set_xlabel(curve["unit"])
        panel.spines[["top", "right"]].set_visible(False)
    panels[0][0].set_ylabel("milliseconds a query")
    return save(figure, "scaling")


def main() -> None:
    """Draw what there is."""
    for name, draw in (("peers", peers), ("scaling", scaling)):
        file = RESULTS / f"{name}.json"
        if file.is_file():
            print(draw(json.loads(file.read_text(encoding="utf-8"))))


if __name__ == "__main__":
    main()
