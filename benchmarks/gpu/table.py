"""The tables of benchmarks/README.md, from the results that there are; a figure that is missing is a dash.

python benchmarks/gpu/table.py                 # results/gpu_*.json
python benchmarks/gpu/table.py --prefix quick_
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parents[1] / "results"
WIDTHS = ("32", "64", "128", "256")


def load(name: str) -> dict[str, Any]:
    """A result file; nothing where there is none."""
    path = RESULTS / f"{name}.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return found


def shown(value: Any, factor: float = 1.0, digits: int = 2) -> str:
    """A number, or a dash for what was not measured or failed."""
    return f"{value * factor:,.{digits}f}" if isinstance(value, int | float) else "–"


def ratio(one: Any, other: Any) -> str:
    """How many times longer the first one took."""
    known = isinstance(one, int | float) and isinstance(other, int | float) and other > 0
    return f"{one / other:.1f}x" if known else "–"


def graphs_of(document: dict[str, Any]) -> list[str]:
    """Names of the graphs in a result."""
    return sorted(name for name in document if name.startswith("rmat"))


def where(document: dict[str, Any]) -> str:
    """Card, versions, date."""
    if not document:
        return "not measured"
    driver, cuda = (
        f"{version // 1000}.{version % 1000 // 10}" for version in (document["cuda_of_driver"], document["cuda"])
    )
    unfinished = "" if document["complete"] else "; cut short or with failures"
    card = f"{document['device']}, CUDA {cuda}, driver for {driver}, CuPy {document['cupy']}"
    return f"{card}, {document['date']}{unfinished}"


def steps(document: dict[str, Any]) -> Iterator[str]:
    """The step beside cuSPARSE and the floor."""
    yield (
        "| graph, queries | step, ms | G edge-columns/s | useful bytes, share of a copy | floor, ms | cuSPARSE "
        "column-major | row-major |"
    )
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for graph in graphs_of(document):
        for width in WIDTHS:
            row = document[graph].get(width, {})
            step = row.get("step_s")
            yield (
                f"| {graph}, {width} | {shown(step, 1e3, 3)} | {shown(row.get('edge_columns_per_s'), 1e-9, 1)} | "
                f"{shown(row.get('useful_bytes_per_copied'))} | {shown(row.get('floor_s'), 1e3, 3)} | "
                f"{ratio(row.get('cusparse_column_major_s'), step)} | {ratio(row.get('cusparse_row_major_s'), step)} |"
            )


def selections(document: dict[str, Any]) -> Iterator[str]:
    """The selection beside others."""
    yield "| graph, queries | top 100, ms | torch.topk | NumPy's argpartition | CuPy's argpartition |"
    yield "| --- | --- | --- | --- | --- |"
    for graph in graphs_of(document):
        for width in WIDTHS:
            row = document[graph].get(width, {})
            own = row.get("select_s")
            others = " | ".join(ratio(row.get(f"{name}_s"), own) for name in ("torch", "numpy", "cupy"))
            yield f"| {graph}, {width} | {shown(own, 1e3, 3)} | {others} |"


def jobs(documents: list[dict[str, Any]]) -> Iterator[str]:
    """Whole jobs."""
    yield "| graph | queries | gpu, s | cpu, s | times faster | candidates that both have | largest error of a score |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for document in documents:
        for graph in graphs_of(document):
            row = document[graph]
            error = row.get("most_score_error")
            yield (
                f"| {graph} | {document['parameters']['queries']:,} | {shown(row.get('gpu_s'))} | "
                f"{shown(row.get('cpu_s'))} | {ratio(row.get('cpu_s'), row.get('gpu_s'))} | "
                f"{shown(row.get('shared_candidates'), 100, 3)} % | {'–' if error is None else f'{error:.1e}'} |"
            )


def recalls(document: dict[str, Any]) -> Iterator[str]:
    """Walks, traversals and products of vectors."""
    yield "| graph | work | gpu, s | cpu, s | times faster |"
    yield "| --- | --- | --- | --- | --- |"
    parts = {graph: document[graph] for graph in graphs_of(document)} | {"–": {"vectors": document.get("vectors")}}
    for graph, rows in parts.items():
        for work, row in rows.items():
            if isinstance(row, dict):
                gpu, cpu = row["gpu_s"], row["cpu_s"]
                yield f"| {graph} | {work} | {shown(gpu, 1, 3)} | {shown(cpu, 1, 3)} | {ratio(cpu, gpu)} |"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", default="gpu_", help="of the files in benchmarks/results")
    prefix = parser.parse_args().prefix
    scored = [load(file.stem) for file in sorted(RESULTS.glob(f"{prefix}jobs*.json"))]
    sections = (
        ("The step", load(f"{prefix}steps"), steps),
        ("The selection", load(f"{prefix}selection"), selections),
        ("Walks, traversals, vectors", load(f"{prefix}recall"), recalls),
    )
    for title, document, rows in sections:
        print(f"**{title}** ({where(document)}). Others as multiples of its time.\n", *rows(document), "", sep="\n")
    print(f"**Whole jobs** ({where(scored[0] if scored else {})}).\n", *jobs(scored), sep="\n")


if __name__ == "__main__":
    main()
