"""The formulas of docs/scale.md against what stores, layouts and blocks really take."""

from __future__ import annotations

import dataclasses
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import seedrank
from seedrank.jobs.graphs.followed_graph import adjacency
from seedrank.kernels._cpu.layout import lay_out
from seedrank.kernels.backends.cpu import CpuBackend
from seedrank.kernels.transition import build_transition

FORMULAS = Path(__file__).parents[1] / "benchmarks" / "scale_formulas.py"
if not FORMULAS.is_file():
    pytest.skip("needs a checkout, not only the installed package", allow_module_level=True)

MODEL: dict[str, Any] = runpy.run_path(str(FORMULAS))
NODES, EDGES = 20_000, 100_000


def test_bytes_of_store_layout_and_block(tmp_path: Path) -> None:
    numbers = np.arange(EDGES)
    edges = pa.table({"src": numbers % NODES, "dst": (numbers * 7 + numbers // NODES) % NODES})
    store = seedrank.build(edges, out=tmp_path / "graph")
    graph = MODEL["Graph"]("", NODES, store.facts.edges)
    assert (store.facts.nodes, store.facts.weighted) == (NODES, False)
    assert graph.store_bytes == pytest.approx(store.store_bytes, rel=0.01)
    assert graph.column_bytes == CpuBackend().bytes_per_query(NODES, "float32")
    transition = build_transition(
        adjacency(store.by_source),
        adjacency(store.by_destination),
        direction="out",
        type_weights=None,
        dangling="seeds",
    )
    layout = lay_out(transition, "float32")
    assert graph.cpu_bytes == pytest.approx(array_bytes(layout), rel=0.05)


def array_bytes(value: Any) -> int:
    """Bytes of all arrays of a dataclass, those inside it included."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if not dataclasses.is_dataclass(value):
        return 0
    return sum(array_bytes(getattr(value, field.name)) for field in dataclasses.fields(value))


def test_a_machine_takes_what_fits() -> None:
    graph = MODEL["Graph"]("", 8, 100)
    # 568 bytes of graph, 65 of a column, of which the free memory may hold 85 %.
    sizes = {567: 0, 568 + 76: 0, 568 + 77: 1, 568 + 153: 2, 10**9: 64}
    for memory, width in sizes.items():
        device = MODEL["Machine"]("", memory, 1.0, 1.0, gpu=True)
        assert device.width(graph) == width
        if 0 < width < 64:
            # The largest graph of that shape that takes such a block is this one, or a little larger.
            assert 100 <= device.largest(width, 100 / 8) < 100 * 1.01
    assert device.product_seconds(graph, 64) == 100 * (4 + 256) + 64 * 64
    assert device.product_seconds(graph, 1) == 100 * (4 + 32) + 64
