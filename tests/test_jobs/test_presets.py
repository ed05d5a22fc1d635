"""A preset is its option values, recorded as such; whatever is given wins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import seedrank

Fuse = Callable[..., Any]
Table = Callable[..., Any]
#: a → b → c → d, and x, which nothing leads to; the graph brings a, b, c, d from the seed a.
CHAIN = pa.table({"src": ["a", "b", "c", "x"], "dst": ["b", "c", "d", "a"]})


PRESETS: Mapping[str, Mapping[str, Any]] = {
    "memgraphrag": {
        "restart": 0.5, "max_iterations": 10, "tolerance": 0.0, "direction": "both", "fallback": "rrf",
        "include_seeds": True,
    },
    "hipporag": {"restart": 0.5, "direction": "both", "source_normalization": "none", "include_seeds": True},
}  # fmt: skip


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_is_its_options(fuse: Fuse, preset: str) -> None:
    hits = [("c", "dense", 0.5), ("x", "entities", 3.0), ("c", "entities", 1.0)]
    named, spelled = fuse(hits, CHAIN, preset=preset), fuse(hits, CHAIN, **PRESETS[preset])
    assert named.files == spelled.files
    assert named.files != fuse(hits, CHAIN).files
    options = named.run.manifest.options
    assert {name: record.value for name, record in options.items() if record.origin == "preset"} == PRESETS[preset]
    assert (options["preset"].value, options["preset"].origin) == (preset, "argument")
    if preset == "memgraphrag":
        assert named.rows["q"]["iterations"] == 10


def test_an_option_wins_over_the_preset(
    fuse: Fuse, seedrank_command: Callable[..., Any], write: Callable[..., Path], hit_table: Table, tmp_path: Path
) -> None:
    hits = [("c", "dense", 0.5)]
    options = fuse(hits, CHAIN, preset="memgraphrag", max_iterations=3, damping=0.2).run.manifest.options
    assert (options["max_iterations"].value, options["max_iterations"].origin) == (3, "argument")
    assert (options["restart"].value, options["restart"].origin) == (0.8, "argument")
    assert (options["tolerance"].value, options["tolerance"].origin) == (0.0, "preset")
    out = tmp_path / "by-command"
    arguments = [write("e.parquet", CHAIN), "--queries", write("h.parquet", hit_table(hits)), "--out", out]
    assert seedrank_command("score", *arguments, "--preset", "hipporag", "--exclude-seeds").code == 0
    options = seedrank.open_run(out).manifest.options
    assert {name: options[name].origin for name in ("preset", "include_seeds", "direction", "top_k")} == {
        "preset": "flag", "include_seeds": "flag", "direction": "preset", "top_k": "default",
    }  # fmt: skip
    explained = seedrank.explain(out, query="q", node="d")
    assert explained.candidate
