"""The driver: when queries end, what it reports, and that it does not believe a backend blindly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from seedrank.errors import ConfigError, KernelError
from seedrank.kernels.arrays import Int64Array
from seedrank.kernels.backend import StepReport, StepSums
from seedrank.kernels.backends.resolver import BackendDecision, create_backend, resolve_backend
from seedrank.kernels.backends.scipy import ScipyBackend
from seedrank.kernels.building.adjacency import build_adjacency
from seedrank.kernels.ppr import BlockResult, StepProgress, personalized_pagerank
from seedrank.testing.harness import KernelGraph, kernel_graph, query_block
from seedrank.testing.toys import K10

# 1 → 2 → … → 9 → 1 and a node 0 with a loop: seed 0 is finished after one step, seeds on the cycle later.
EDGES = [*((node, node % 9 + 1) for node in range(1, 10)), (0, 0)]


class Recorder(ScipyBackend):
    """Counts the columns of every step; can spoil the mass."""

    def __init__(self, spoil: float = 1.0) -> None:
        super().__init__()
        self.widths: list[int] = []
        self.kept: list[list[int]] = []
        self.spoil = spoil

    def step(self, *, measure: bool = True) -> StepReport:
        report = super().step(measure=measure)
        self.widths.append(len(report.mass))
        return StepSums(report.mass * self.spoil, report.dangling_mass, report.difference)

    def keep(self, columns: Int64Array) -> None:
        self.kept.append(columns.tolist())
        super().keep(columns)


def run(backend: ScipyBackend, graph: KernelGraph, queries: list[dict[Any, float]], **options: Any) -> BlockResult:
    backend.load(graph.transition(), precision="float64", order=graph.adjacency.order)
    arguments: dict[str, Any] = {"restart": 0.5, "max_iterations": 100, "tolerance": 1e-6, "k": 3}
    block = query_block(graph.seeds(queries), 0, len(queries))
    return personalized_pagerank(backend, block, precision="float64", **(arguments | options))


def test_finished_queries_are_given_up_once_they_are_half() -> None:
    backend = Recorder()
    progress: list[StepProgress] = []
    result = run(backend, kernel_graph(EDGES), [{0: 1}, {99: 1}, {1: 1}, {0: 2}], on_step=progress.append)
    assert backend.kept == [[0, 2, 3], [2]]
    assert backend.widths[:2] == [3, 1]
    assert result.iterations.tolist() == [1, 0, len(progress), 1]
    assert result.converged.all()
    assert [step.running for step in progress] == [1] * (len(progress) - 1) + [0]
    assert progress[-1].largest_truncation <= 1e-6 < progress[-2].largest_truncation
    assert result.counts.tolist() == [1, 0, 3, 1]
    assert result.nodes[1].tolist() == [-1, -1, -1]
    assert result.scores[1].tolist() == [0, 0, 0]


def test_convergence_at_the_last_allowed_step_counts() -> None:
    graph = kernel_graph(EDGES)
    needed = int(run(ScipyBackend(), graph, [{1: 1}]).iterations[0])
    assert run(ScipyBackend(), graph, [{1: 1}], max_iterations=needed).converged.all()
    short = run(ScipyBackend(), graph, [{1: 1}], max_iterations=needed - 1)
    assert not short.converged.any()
    assert short.iterations.tolist() == [needed - 1]
    assert short.error_bound[0] > 1e-6
    assert short.counts.tolist() == [3]


def test_tolerance_zero_is_exactly_the_number_of_steps() -> None:
    result = run(ScipyBackend(), kernel_graph(EDGES), [{0: 1}, {1: 1}], tolerance=0, max_iterations=7)
    assert result.iterations.tolist() == [7, 7]
    assert result.converged.all()
    # On the long cycle a step moves αᵏ from one node to the next, so both forms of the bound are 2 αᵏ.
    assert result.error_bound[1] == pytest.approx(2 * 0.5**7, rel=1e-9)


def test_restart_one_is_the_seed_vector() -> None:
    result = run(ScipyBackend(), kernel_graph(K10.edges), [{1: 3, 2: 1}], restart=1.0)
    assert result.scores.tolist() == [[0.75, 0.25, 0.0]]
    assert result.iterations.tolist() == [1]


def test_stop_flag_delivers_what_was_computed() -> None:
    calls = iter([False, False, False, True])
    result = run(ScipyBackend(), kernel_graph(EDGES), [{0: 1}, {1: 1}], should_stop=lambda: next(calls))
    assert result.stopped.tolist() == [False, True]
    assert result.converged.tolist() == [True, False]
    assert result.iterations.tolist() == [1, 3]
    assert result.error_bound[1] == pytest.approx(2 * 0.5**3, rel=1e-9)
    assert result.counts[1] == 3
    at_once = run(ScipyBackend(), kernel_graph(EDGES), [{1: 1}], should_stop=lambda: True)
    assert at_once.iterations.tolist() == [0]
    assert at_once.error_bound[0] >= 2


@pytest.mark.parametrize("spoil", [0.999, 1.001, float("nan")])
def test_case_55_a_backend_that_loses_mass_is_caught(spoil: float) -> None:
    with pytest.raises(KernelError, match="lost or gained mass") as caught:
        run(Recorder(spoil), kernel_graph(EDGES), [{1: 1}])
    assert caught.value.exit_code == 1


@pytest.mark.parametrize(
    ("tolerance", "step"), [(1e-9, 3), (0.0, 8)], ids=["every step is measured", "the last two of nine are"]
)
@pytest.mark.parametrize("name", ["scipy", "cpu", "gpu"])
def test_case_2_forgotten_dangling_nodes_are_caught(name: str, tolerance: float, step: int) -> None:
    """A backend that takes the last node of a → b → c for one that passes its mass on: with step 3 it is lost."""
    graph = kernel_graph([("a", "b"), ("b", "c")])
    backend = create_backend(name)
    forgetful = replace(graph.transition(), dangling_nodes=np.zeros(0, np.int32))
    backend.load(forgetful, precision="float64", order=graph.adjacency.order)
    block = query_block(graph.seeds([{"a": 1}]), 0, 1)
    with pytest.raises(KernelError, match=f"after step {step}, 1 of 1"):
        personalized_pagerank(
            backend, block, restart=0.15, max_iterations=9, tolerance=tolerance, k=3, precision="float64"
        )


def test_case_55_tall_block() -> None:
    """1.2 million nodes in a cycle, 8 seeds, 5 steps: each seed's mass has moved 0 to 5 places."""
    nodes = 1_200_000
    source = np.arange(nodes, dtype=np.int32)
    target = np.roll(source, -1)
    pair = build_adjacency(source, target, None, None, nodes=nodes, duplicate_edges="sum")
    graph = KernelGraph([], {place: place for place in range(0, nodes, nodes // 8)}, [], pair)
    result = run(
        ScipyBackend(),
        graph,
        [{place: 1} for place in range(0, nodes, nodes // 8)],
        tolerance=0,
        max_iterations=5,
        k=10,
    )
    assert result.counts.tolist() == [6] * 8
    for query, place in enumerate(range(0, nodes, nodes // 8)):
        moved = pair.order[result.nodes[query, :6]] - place
        scores = dict(zip(moved.tolist(), result.scores[query].tolist(), strict=False))
        assert scores == {0: 0.5, 1: 0.25, 2: 0.125, 3: 0.0625, 4: 0.03125, 5: 0.03125}


def test_backend_is_resolved_by_name_only() -> None:
    decision = resolve_backend("auto")
    assert (decision.name, decision.requested) == ("cpu", "auto")
    assert "GPU" in decision.reason
    for name in ("cpu", "scipy"):
        assert resolve_backend(name) == BackendDecision(name, name, "asked for by name")
        assert create_backend(name).name == name
    assert create_backend("auto").name == "cpu"
    with pytest.raises(ConfigError, match="'tpu' does not exist") as caught:
        create_backend("tpu")
    assert caught.value.exit_code == 2


def test_backend_refuses_to_work_out_of_turn() -> None:
    with pytest.raises(RuntimeError, match="load comes first"):
        ScipyBackend().start(query_block(kernel_graph(EDGES).seeds([{1: 1}]), 0, 1), restart=0.5)
    with pytest.raises(RuntimeError, match="start comes first"):
        ScipyBackend().keep(np.zeros(1, np.int64))


@pytest.mark.parametrize(("tolerance", "before"), [(0.0, 7), (1e-9, 1)], ids=["fixed", "certified"])
def test_the_host_works_once_before_it_waits_for_the_first_sums(tolerance: float, before: int) -> None:
    """Under a fixed number of steps all but the last two have been asked for by then."""
    graph = kernel_graph([(0, 1), (1, 2), (2, 0), (0, 2)])
    backend, steps = Recorder(), []
    run(
        backend, graph, [{0: 1.0}], restart=0.3, tolerance=tolerance, max_iterations=8, k=3,
        meanwhile=lambda: steps.append(len(backend.widths)),
    )  # fmt: skip
    assert steps == [before]
    assert len(backend.widths) == 8
