"""A graph that is read in slabs gives the bytes of the one in memory, whatever the slabs are."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from seedrank.kernels._cpu import pushed_rows, row_order
from seedrank.kernels.arrays import Precision
from seedrank.kernels.backends.cpu import CpuBackend
from seedrank.kernels.backends.scipy import ScipyBackend
from seedrank.kernels.building.adjacency import Adjacency, build_adjacency
from seedrank.kernels.ppr import BlockResult, personalized_pagerank
from seedrank.kernels.ppr_shared import personalized_pageranks
from seedrank.kernels.relaxation import Relaxation, choose_relaxation
from seedrank.kernels.selected_entries import counts_rows
from seedrank.kernels.streamed_transition import StreamedTransition, survey_transition
from seedrank.kernels.transition import Transition, build_transition
from seedrank.testing.harness import KernelGraph, query_block

NODES, QUERIES, HUB = 3_000, 20, 1_500


@dataclass
class Entries:
    """Entries of an adjacency in memory, handed out as copies, with a record of what was asked for."""

    adjacency: Adjacency
    largest: int = 0

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        return self.adjacency.offsets

    @property
    def weighted(self) -> bool:
        return self.adjacency.weights is not None

    @property
    def typed(self) -> bool:
        return self.adjacency.types is not None

    def read(self, first: int, last: int) -> tuple[Any, Any, Any]:
        self.largest = max(self.largest, last - first)
        arrays = (self.adjacency.neighbors, self.adjacency.weights, self.adjacency.types)
        neighbors, weights, types = (None if array is None else array[first:last].copy() for array in arrays)
        return neighbors, weights, types


@dataclass
class Slabs:
    """A store in memory; what a reader has done with is overwritten, and so is the padding."""

    written: list[tuple[int, Any, Any]] = field(default_factory=list)
    passes: list[list[tuple[int, int]]] = field(default_factory=list)

    def write(self, first: int, columns: Any, values: Any) -> None:
        self.written.append((first, columns.copy(), None if values is None else values.copy()))

    def slabs(self, bounds: Sequence[tuple[int, int]], *, padding: int) -> Iterator[tuple[Any, Any]]:
        ordered = sorted((write for write in self.written if len(write[1])), key=lambda write: write[0])
        columns = np.concatenate([np.zeros(0, np.int32), *(write[1] for write in ordered)])
        weighted = any(write[2] is not None for write in self.written)
        values = np.concatenate([write[2] for write in ordered]) if weighted and ordered else None
        assert [write[0] for write in ordered] == [0, *np.cumsum([len(write[1]) for write in ordered])[:-1]][
            : len(ordered)
        ]
        self.passes.append(list(bounds))
        for first, last in bounds:
            slab = np.concatenate((columns[first:last], np.full(padding, 1 << 30, np.int32)))
            part = None if values is None else values[first:last].copy()
            yield slab, part
            slab[:] = 0
            if part is not None:
                part[:] = np.nan


def graph_of(kind: str) -> KernelGraph:
    """3,000 nodes: hubs in and out, loops, nodes without entries; one in five is dangling.

    ``plain`` has no weights, ``weighted`` has, ``counted`` has whole numbers that are few above 1, ``typed`` weights
    and three types, ``types`` three types alone.
    """
    random = np.random.default_rng([11, len(kind)])
    source = random.integers(0, NODES * 4 // 5, 24_000)
    target = (NODES * random.random(24_000) ** 2).astype(np.int64)
    leaves = np.arange(1, HUB + 1)
    loops = np.arange(0, 300, 3)
    source = np.concatenate((source, leaves, np.zeros(HUB, np.int64), loops))
    target = np.concatenate((target, np.full(HUB, 17), leaves + 500, loops))
    if kind in ("plain", "types"):
        source, target = np.unique(np.stack((source, target)), axis=1)
    weight = random.uniform(0.1, 9.0, len(source)) if kind in ("weighted", "typed") else None
    types = random.integers(0, 3, len(source)).astype(np.int32) if kind in ("typed", "types") else None
    pair = build_adjacency(
        source.astype(np.int32), target.astype(np.int32), weight, types, nodes=NODES, duplicate_edges="sum"
    )
    return KernelGraph(list(range(NODES)), {node: node for node in range(NODES)}, [0, 1, 2], pair)


#: kind, direction, type weights, dangling rule, precision, sweeps
SETTINGS: tuple[tuple[str, Any, list[float] | None, Any, Precision, Relaxation | None], ...] = (
    ("plain", "out", None, "seeds", "float32", None),
    ("plain", "both", None, "seeds", "float32", Relaxation(1.07, 5)),
    ("plain", "in", None, "self", "float64", Relaxation(1.07, 3)),
    ("weighted", "out", None, "uniform", "float32", None),
    ("weighted", "both", None, "self", "float32", Relaxation(1.2, 4)),
    ("counted", "out", None, "seeds", "float32", None),
    ("counted", "both", None, "seeds", "float64", None),
    ("typed", "both", [0.0, 2.0, 3.0], "seeds", "float64", None),
    ("typed", "out", [1.0, 0.0, 0.5], "drop", "float32", None),
    ("types", "in", [0.0, 1.0, 1.0], "seeds", "float32", Relaxation(1.07, 3)),
    ("types", "both", [0.5, 1.0, 2.0], "uniform", "float32", None),
    ("types", "out", [0.0, 0.0, 0.0], "seeds", "float32", None),
)


def both_transitions(setting: Any, range_entries: int) -> tuple[KernelGraph, Transition, StreamedTransition]:
    """Return the transition in memory and the streamed one."""
    kind, direction, type_weights, dangling, *_ = setting
    graph = graph_of(kind)
    options: dict[str, Any] = {
        "direction": direction,
        "type_weights": None if type_weights is None else np.array(type_weights),
        "dangling": dangling,
    }
    pair = graph.adjacency
    resident = build_transition(pair.by_source, pair.by_destination, **options)
    streamed = survey_transition(
        Entries(pair.by_source), Entries(pair.by_destination), range_entries=range_entries, **options
    )
    return graph, resident, streamed


def scored(backend: Any, graph: KernelGraph, setting: Any) -> list[bytes]:
    """All numbers of 20 queries in two blocks, one of them of another width."""
    *_, dangling, precision, sweeps = setting
    seeds = graph.seeds([{(311 * q + 977 * i) % NODES: 1.0 + i for i in range(q % 5)} for q in range(QUERIES)])
    found: list[BlockResult] = []
    for first, last in ((0, 3), (3, QUERIES)):
        block = query_block(seeds, first, last)
        options: dict[str, Any] = {"max_iterations": 25, "tolerance": 1e-4, "k": 60, "precision": precision}
        if dangling == "drop":
            found += personalized_pageranks(backend, block, restarts=(0.3, 0.6), loses_mass=True, **options)
        else:
            found.append(personalized_pagerank(backend, block, restart=0.3, relaxation=sweeps, **options))
    return [
        getattr(result, name).tobytes()
        for result in found
        for name in ("nodes", "scores", "counts", "iterations", "error_bound", "converged")
    ]


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many chunks in a small graph, and rows that are longer than one."""
    monkeypatch.setattr(row_order, "CHUNK_COST", 700)


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
@pytest.mark.parametrize("range_entries", [1, 997, 1 << 20])
def test_the_survey_finds_what_the_transition_holds(setting: Any, range_entries: int) -> None:
    """Out-weights, probabilities and row lengths to the last bit, for ranges of one row, of some, of all."""
    graph, resident, streamed = both_transitions(setting, range_entries)
    np.testing.assert_array_equal(streamed.out_weight, resident.out_weight)
    np.testing.assert_array_equal(streamed.inverse_out_weight, resident.inverse_out_weight)
    np.testing.assert_array_equal(streamed.dangling_nodes, resident.dangling_nodes)
    assert streamed.entries == resident.entries
    assert streamed.weighted == (resident.products[0].probabilities is not None)
    np.testing.assert_array_equal(streamed.lengths, sum(np.diff(rows.offsets) for rows in resident.products))
    ranges = list(streamed.ranges())
    assert ranges[0][0] == 0
    assert ranges[-1][1] == NODES
    if range_entries == 997:
        for number, rows in enumerate(resident.products):
            read = [streamed.read(first, last)[number] for first, last in ranges]
            np.testing.assert_array_equal(np.concatenate([part.columns for part, _ in read]), rows.columns)
            if rows.probabilities is not None:
                found = np.concatenate([values for _, values in read if values is not None])
                np.testing.assert_array_equal(found, rows.probabilities)
        longest = max(int(np.diff(rows.source.offsets).max()) for rows in streamed.incoming + streamed.outgoing)
        for part in streamed.incoming + streamed.outgoing:
            assert isinstance(part.source, Entries)
            assert part.source.largest <= max(range_entries, longest)
    assert graph.adjacency.self_loops > 50


def test_counted_weights_are_in_the_matrix() -> None:
    """The graph of counts is one whose entries are repeated, the others are not."""
    _, resident, streamed = both_transitions(SETTINGS[5], 997)
    assert streamed.repeated
    assert not streamed.weighted
    assert resident.products[0].probabilities is None
    assert not both_transitions(SETTINGS[3], 997)[2].repeated
    assert counts_rows(streamed.incoming[0].select(0, NODES))


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_slabs_change_no_bit(setting: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slabs of one chunk, rows that are longer than a slab among them, and of some; every kind of run."""
    graph, resident, streamed = both_transitions(setting, 997)
    # Rows of a push are read in several stretches, several columns at a time.
    monkeypatch.setattr(pushed_rows, "GAP", 5)
    monkeypatch.setattr(pushed_rows, "RANGE_ENTRIES", 50)
    precision = setting[4]
    backend = CpuBackend()
    backend.load(resident, precision=precision, order=graph.adjacency.order)
    expected = scored(backend, graph, setting)
    # Slabs of several chunks for the sweeps alone: a step treats all chunks alike.
    for slab_entries in (1,) if setting[5] is None else (1, 12_000):
        store = Slabs()
        other = CpuBackend()
        other.load_streamed(
            streamed, store, precision=precision, order=graph.adjacency.order, slab_entries=slab_entries
        )
        assert scored(other, graph, setting) == expected
        if slab_entries == 1 and resident.entries:
            assert max(len(bounds) for bounds in store.passes) > 10
            assert max(last - first for bounds in store.passes for first, last in bounds) > 700


@pytest.mark.parametrize("name", ["cpu", "scipy", "gpu"])
@pytest.mark.parametrize("setting", [SETTINGS[0], (*SETTINGS[4][:5], None)], ids=str)
def test_slabs_of_a_thousand_entries_give_the_bytes_of_one(name: str, setting: Any) -> None:
    """Slabs end at 2**31 entries at most; here so early that a small graph has many. A GPU cuts what it copies only."""
    graph, resident, streamed = both_transitions(setting, 997)
    load: dict[str, Any] = {"precision": setting[4], "order": graph.adjacency.order}
    assert resident.entries > 20 * 1024
    found = []
    for cut in (False, True):
        backend: Any
        if name == "gpu":
            gpu = importlib.import_module("seedrank.kernels.backends.gpu")
            backend = gpu.GpuBackend(piece_bytes=1024 * 4 if cut else 1 << 24)
        else:
            backend = CpuBackend() if name == "cpu" else ScipyBackend(max_slab_entries=1024 if cut else 2**31 - 1)
        if name == "cpu" and cut:
            backend.load_streamed(streamed, Slabs(), slab_entries=1024, **load)
        else:
            backend.load(resident, **load)
        found.append(scored(backend, graph, setting))
    assert found[0] == found[1]


def test_whether_to_sweep_is_decided_alike() -> None:
    """The probe of the solver is a run like any other."""
    graph, resident, streamed = both_transitions(SETTINGS[1], 997)
    options: dict[str, Any] = {"restart": 0.15, "tolerance": 1e-6, "max_iterations": 100, "symmetric": True}
    backend, other = CpuBackend(), CpuBackend()
    backend.load(resident, precision="float32", order=graph.adjacency.order)
    other.load_streamed(streamed, Slabs(), precision="float32", order=graph.adjacency.order, slab_entries=5_000)
    assert choose_relaxation(other, streamed, **options) == choose_relaxation(backend, resident, **options)


def test_products_read_to_and_fro_and_sweeps_forward() -> None:
    """What was read last is in the system's cache; a sweep has an order."""
    graph, _, streamed = both_transitions(SETTINGS[1], 997)
    store, backend = Slabs(), CpuBackend()
    backend.load_streamed(streamed, store, precision="float32", order=graph.adjacency.order, slab_entries=5_000)
    backend.start(query_block(graph.seeds([dict.fromkeys(range(200), 1.0)]), 0, 1), restart=0.5)
    for _ in range(2):
        backend.step()
    backend.relax(2, np.array([1.1]))
    backend.step()
    up, down, *sweeps, last = [bounds[-1] > bounds[0] for bounds in store.passes[-5:]]
    assert up != down
    assert sweeps == [True, True]
    assert not last
    assert all(len(bounds) > 2 for bounds in store.passes[-5:])
