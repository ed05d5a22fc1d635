"""Which lines of the kernels a process has run: what gcov says of sanitized kernels."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import shim


def counting_environment(folder: Path) -> dict[str, str]:
    """Environment of a process whose sanitized kernels write their counts into a folder."""
    return {"GCOV_PREFIX": str(folder)}


def counted_lines(source: str, folder: Path) -> dict[tuple[str, int], int]:
    """How often each line with code ran, by function (each instance of a template on its own) and line of the source.

    Parameters
    ----------
    source : str
        Of the kernels that were run.
    folder : Path
        Where their counts are.
    """
    notes = shim.build(source, sanitized=True).with_suffix(".gcno")
    counts: dict[tuple[str, int], int] = {}
    for data in folder.rglob("*.gcda"):
        shutil.copy(notes, data.with_suffix(".gcno"))
        command = ["gcov", "--json-format", "--stdout", "--demangled-names", data.name]
        said = subprocess.run(command, cwd=data.parent, capture_output=True, text=True, check=True).stdout
        for file in json.loads(said)["files"]:
            if file["file"] != "kernels.cu":
                continue
            names = {function["name"]: function["demangled_name"] for function in file["functions"]}
            for line in file["lines"]:
                place = names.get(line.get("function_name", ""), ""), line["line_number"]
                counts[place] = counts.get(place, 0) + line["count"]
    return counts
