"""What every backend must fulfil. A new backend adds its name to `BACKENDS`, nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from seedrank.kernels.arrays import Float64Array, Precision
from seedrank.kernels.backend import Backend, QueryBlock
from seedrank.kernels.backends.resolver import create_backend
from seedrank.kernels.ppr import personalized_pagerank
from seedrank.testing.harness import KernelGraph, kernel_graph, kernel_personalized_pagerank, query_block
from seedrank.testing.parity import assert_scores_close
from seedrank.testing.reference import reference_personalized_pagerank
from seedrank.testing.toys import K2, TOYS, Edge, ToyGraph

BACKENDS = ("scipy", "cpu", "gpu", "cugraph")


def hub_edges(*, weighted: bool) -> list[Edge]:
    """20,000 nodes: node 0 has 3,000 predecessors, the others a few; one in five is dangling."""
    random = np.random.default_rng(42)
    pairs = [(node, 0) for node in range(1, 3001)]
    sources = random.integers(0, 16_000, 40_000).tolist()
    pairs += zip(sources, random.integers(0, 20_000, 40_000).tolist(), strict=True)
    if not weighted:
        return [*pairs]
    return [(*pair, weight) for pair, weight in zip(pairs, random.random(len(pairs)).tolist(), strict=True)]


@pytest.fixture(scope="module", params=["plain", "weighted"])
def hub(request: pytest.FixtureRequest) -> KernelGraph:
    return kernel_graph(hub_edges(weighted=request.param == "weighted"), nodes=range(20_000))


def vectors(backend: Backend, block: QueryBlock, columns: range, nodes: int) -> Float64Array:
    """Full vectors of some columns in internal order, through `select`."""
    selection = backend.select(np.array(columns), k=nodes, eligible=None, min_score=0.0)
    result = np.zeros((len(columns), nodes))
    for row in range(len(columns)):
        count = selection.counts[row]
        result[row, selection.nodes[row, :count]] = selection.scores[row, :count]
    return result


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("name", BACKENDS)
class TestBackendContract:
    """Runs for each backend in both precisions."""

    @pytest.mark.parametrize("toy", TOYS, ids=lambda toy: toy.name)
    def test_known_answers(self, name: str, precision: Precision, toy: ToyGraph) -> None:
        (query,) = kernel_personalized_pagerank(
            create_backend(name),
            toy.edges,
            [toy.seeds],
            damping=toy.damping,
            direction=toy.direction,
            type_weights=toy.type_weights,
            precision=precision,
            tolerance=1e-9,
        )
        assert_scores_close(query.scores, toy.expected, query.error_bound)
        assert set(query.scores) == set(toy.expected)

    def test_selects_what_a_column_may_reach(self, name: str, precision: Precision, hub: KernelGraph) -> None:
        """Bits go with columns of the block as it was started, also after others have been given up."""
        random = np.random.default_rng(7)
        backend = create_backend(name)
        backend.load(hub.transition(), precision=precision, order=hub.adjacency.order)
        seeds = hub.seeds([{node + 40 * i: 1.0 for i in range(30)} for node in range(40)])
        plain = query_block(seeds, 0, 40)
        reachable = random.integers(0, 2**64, 20_000, dtype=np.uint64)
        eligible = random.random(20_000) < 0.5
        columns = np.array([1, 2, 5, 33, 39])
        found = {}
        for block in (plain, replace(plain, reachable=reachable)):
            backend.start(block, restart=0.25)
            for _ in range(3):
                backend.step()
            backend.keep(columns)
            found[block.reachable is None] = [
                backend.select(columns, k=k, eligible=eligible, min_score=0.0) for k in (20_000, 3)
            ]
        (every, _), (near, best) = found[True], found[False]
        for row, column in enumerate(columns):
            nodes, scores = every.nodes[row, : every.counts[row]], every.scores[row, : every.counts[row]]
            may = (reachable[nodes] >> np.uint64(column)) & np.uint64(1) == 1
            assert 3 < may.sum() < len(nodes)
            assert near.nodes[row, : near.counts[row]].tolist() == nodes[may].tolist()
            assert near.scores[row, : near.counts[row]].tolist() == scores[may].tolist()
            assert best.nodes[row].tolist() == nodes[may][:3].tolist()

    def test_starts_at_the_seeds_and_reports_column_sums(self, name: str, precision: Precision) -> None:
        graph = kernel_graph(K2.edges)
        backend = create_backend(name)
        transition = graph.transition()
        backend.load(transition, precision=precision, order=graph.adjacency.order)
        block = query_block(graph.seeds([{"A": 3, "C": 1}, {"B": 1}]), 0, 2)
        backend.start(block, restart=0.25)
        before = vectors(backend, block, range(2), 4)
        a, b, c = graph.internal("ABC")
        assert before[0, [a, c]].tolist() == [0.75, 0.25]
        assert before[1].tolist() == [float(node == b) for node in range(4)]
        for _ in range(4):
            report = backend.step()
            after = vectors(backend, block, range(2), 4)
            np.testing.assert_allclose(report.mass, after.sum(axis=1), rtol=1e-15)
            np.testing.assert_allclose(
                report.dangling_mass, after[:, transition.dangling_nodes].sum(axis=1), rtol=1e-15
            )
            np.testing.assert_allclose(report.difference, np.abs(after - before).sum(axis=1), rtol=1e-14)
            assert {array.dtype for array in (report.mass, report.dangling_mass, report.difference)} == {
                np.dtype(np.float64)
            }
            before = after

    @pytest.mark.parametrize("dangling", ["seeds", "self", "uniform"])
    @pytest.mark.parametrize("direction", ["out", "in", "both"])
    def test_width_and_company_do_not_change_a_bit(
        self, name: str, precision: Precision, hub: KernelGraph, direction: Any, dangling: Any
    ) -> None:
        """Long rows, several tiles, columns that finish at different steps, blocks of 9, 4 and 1."""
        if name == "cugraph" and (dangling == "uniform" or direction != "both"):
            pytest.skip("refused by the command, or the same again: cuGraph takes one query at a time")
        backend = create_backend(name)
        backend.load(
            hub.transition(direction=direction, dangling=dangling),
            precision=precision,
            order=hub.adjacency.order,
        )
        seeds = hub.seeds([{7 * query: 1.0, 16_000 + query: 0.5 * query} for query in range(9)])
        results = []
        for width in (9, 4, 1):
            found = []
            for start in range(0, 9, width):
                block = query_block(seeds, start, min(start + width, 9))
                result = personalized_pagerank(
                    backend, block, restart=0.4, max_iterations=12, tolerance=1e-3, k=50, precision=precision
                )
                found += [
                    (
                        result.nodes[row].tobytes(),
                        result.scores[row].tobytes(),
                        int(result.iterations[row]),
                        float(result.error_bound[row]),
                    )
                    for row in range(block.width)
                ]
            results.append(found)
        assert results[0] == results[1] == results[2]

    def test_keep_knows_columns_by_their_first_position(
        self, name: str, precision: Precision, hub: KernelGraph
    ) -> None:
        backend = create_backend(name)
        backend.load(hub.transition(), precision=precision, order=hub.adjacency.order)
        seeds = hub.seeds([{node: 1.0} for node in range(6)])
        everything = query_block(seeds, 0, 6)
        backend.start(everything, restart=0.5)
        for _ in range(4):
            report = backend.step()
        whole = vectors(backend, everything, range(6), 20_000)
        backend.start(everything, restart=0.5)
        backend.step()
        backend.keep(np.array([1, 3, 4, 5]))
        backend.step()
        backend.keep(np.array([1, 4]))
        backend.step()
        kept_report = backend.step()
        assert kept_report.mass.tobytes() == report.mass[[1, 4]].tobytes()
        assert kept_report.difference.tobytes() == report.difference[[1, 4]].tobytes()
        assert vectors(backend, everything, range(4, 5), 20_000).tobytes() == whole[4:5].tobytes()
        assert vectors(backend, everything, range(1, 2), 20_000).tobytes() == whole[1:2].tobytes()

    def test_select_filters_before_the_cut_and_pads(self, name: str, precision: Precision) -> None:
        graph = kernel_graph([("A", leaf) for leaf in "bcdef"])
        backend = create_backend(name)
        backend.load(graph.transition(), precision=precision, order=graph.adjacency.order)
        block = query_block(
            graph.seeds([{"A": 1}, {"A": 1}]), 0, 2, excluded=[graph.internal("Ab"), graph.internal("")]
        )
        backend.start(block, restart=0.5)
        backend.step()
        eligible = np.zeros(6, np.bool_)
        eligible[graph.internal("Abdf")] = True
        both = np.arange(2)
        selection = backend.select(both, k=3, eligible=eligible, min_score=0.0)
        ids = [[graph.ids[graph.adjacency.order[node]] for node in row if node >= 0] for row in selection.nodes]
        assert ids == [["d", "f"], ["A", "b", "d"]]
        assert selection.counts.tolist() == [2, 3]
        assert selection.nodes[0, 2] == -1
        assert selection.scores[0, 2] == 0
        assert selection.nodes.dtype == selection.counts.dtype == np.int32
        assert selection.scores.dtype == np.dtype(precision)
        high = backend.select(both[1:], k=3, eligible=None, min_score=0.3)
        assert high.counts.tolist() == [1]

    def test_matches_the_reference_on_long_rows(self, name: str, precision: Precision) -> None:
        """A star of 700 leaves that point at the centre and back: rows longer than any stretch."""
        edges: list[Edge] = [(leaf, 0, 1.0 + leaf % 5) for leaf in range(1, 701)]
        edges += [(0, leaf, 1.0 + leaf % 7) for leaf in range(1, 701)]
        options: dict[str, Any] = {"damping": 0.85, "direction": "out"}
        (result,) = kernel_personalized_pagerank(
            create_backend(name), edges, [{3: 1, 5: 2}], precision=precision, tolerance=1e-12, **options
        )
        expected = reference_personalized_pagerank(edges, {3: 1, 5: 2}, **options)
        scores = result.scores
        error = sum(abs(scores.get(node, 0.0) - score) for node, score in expected.items())
        assert error <= result.error_bound

    def test_takes_one_graph_after_the_other(self, name: str, precision: Precision) -> None:
        backend = create_backend(name)
        for toy in (TOYS[0], TOYS[6], TOYS[1], TOYS[11]):
            (query,) = kernel_personalized_pagerank(
                backend,
                toy.edges,
                [toy.seeds],
                damping=toy.damping,
                direction=toy.direction,
                precision=precision,
                tolerance=1e-9,
            )
            assert_scores_close(query.scores, toy.expected, query.error_bound)

    def test_memory_of_a_column_is_at_least_its_vectors(self, name: str, precision: Precision) -> None:
        """Case 54: asked before any graph is loaded, also where nodes × queries exceed 2**31."""
        backend = create_backend(name)
        per_query = backend.bytes_per_query(40_000_000, precision)
        assert per_query >= 2 * np.dtype(precision).itemsize * 40_000_000
        assert 64 * per_query > 2**31
        assert backend.name == name
