"""The threshold top-k of the compiled backend against `top_k` of one column: exact to the last tie, on any threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from seedrank.kernels._cpu.select import STRIP, select_columns
from seedrank.kernels.arrays import BoolArray, Int32Array, Precision, ScoreArray
from seedrank.kernels.backends.cpu import CpuBackend
from seedrank.kernels.topk import top_k
from seedrank.testing.harness import kernel_graph, query_block

PRECISIONS: tuple[Precision, ...] = ("float32", "float64")
#: More threads than strips of columns: rows are scanned in bands; more bands than rows, too.
THREADS = (1, 2, 3, 5, 40)
ROWS = 3_000

Levels = npt.NDArray[np.float64]


def few_levels(random: np.random.Generator) -> Levels:
    """Scores of seven values, a third of them 0: ties everywhere, also at every cut."""
    return random.integers(0, 7, ROWS).clip(2) - 2.0


def rising(random: np.random.Generator) -> Levels:
    """Every row beats all rows before it, so the candidates are cut back again and again."""
    return np.arange(ROWS) / ROWS


def falling(random: np.random.Generator) -> Levels:
    return 1.0 - np.arange(ROWS) / ROWS


def equal(random: np.random.Generator) -> Levels:
    return np.full(ROWS, 0.25)


def nothing(random: np.random.Generator) -> Levels:
    return np.zeros(ROWS)


def any_values(random: np.random.Generator) -> Levels:
    return random.random(ROWS) ** 8


KINDS = (few_levels, rising, falling, equal, nothing, any_values)


def random_block(precision: Precision, width: int) -> tuple[ScoreArray, ScoreArray, Int32Array, BoolArray]:
    """Block of all kinds of columns, factors by row, tie ranks, eligible rows (two in three)."""
    random = np.random.default_rng(width)
    columns = [KINDS[column % len(KINDS)](random) for column in range(width)]
    block = np.ascontiguousarray(np.stack(columns, axis=1).astype(precision))
    unscale = (2.0 ** random.integers(0, 3, ROWS)).astype(precision)
    ranks = random.permutation(ROWS).astype(np.int32)
    return block, unscale, ranks, random.random(ROWS) < 2 / 3


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("width", [16, 32, 64])
@pytest.mark.parametrize("k", [1, 10, 100, ROWS - 1, ROWS, ROWS + 7])
@pytest.mark.parametrize("filtered", [False, True], ids=["all rows", "filtered"])
def test_is_the_top_k_of_every_column(precision: Precision, width: int, k: int, filtered: bool) -> None:
    block, unscale, ranks, eligible = random_block(precision, width)
    random = np.random.default_rng(k)
    wanted = np.sort(random.choice(width, width * 2 // 3, replace=False))
    # Unsorted and with repeats; without filters and for every fourth column none.
    sizes = [500 if filtered and column % 4 else 0 for column in range(len(wanted))]
    excluded = [random.integers(0, ROWS, size).astype(np.int32) for size in sizes]
    mask, least = (eligible, 0.125) if filtered else (None, 0.0)
    found = [
        select_columns(
            block, wanted, unscale=unscale, ranks=ranks, eligible=mask, excluded=excluded, k=k, min_score=least,
            threads=threads,
        )
        for threads in THREADS
    ]  # fmt: skip
    for other in found[1:]:
        assert [array.tobytes() for array in other] == [array.tobytes() for array in found[0]]
    rows, scores, counts = found[0]
    assert rows.shape == scores.shape == (len(wanted), k)
    assert rows.dtype == counts.dtype == np.int32
    assert scores.dtype == np.dtype(precision)
    for line, column in enumerate(wanted):
        nodes, values = top_k(
            block[:, column] * unscale, k=k, order=ranks, eligible=mask, excluded=excluded[line], min_score=least
        )
        assert counts[line] == len(nodes)
        assert rows[line, : len(nodes)].tolist() == nodes.tolist()
        assert scores[line, : len(nodes)].tolist() == values.tolist()
        assert (rows[line, len(nodes) :] == -1).all()
        assert not scores[line, len(nodes) :].any()


def test_a_strip_divides_every_width() -> None:
    assert [width % STRIP for width in (16, 32, 64)] == [0, 0, 0]


@pytest.mark.parametrize("precision", PRECISIONS)
def test_of_ten_thousand_equal_scores_the_lowest_ids_are_taken(precision: Precision) -> None:
    """A cycle on which every node is a seed: all scores are equal, whatever happens."""
    nodes = 10_000
    # Internal order and tie ranks differ, because a few nodes have one more edge.
    edges = [*((node, (node + 1) % nodes) for node in range(nodes)), *((node, node) for node in range(9_000, 9_010))]
    graph = kernel_graph(edges)
    assert graph.adjacency.order[0] == 9_000
    backend = CpuBackend()
    backend.load(graph.transition(), precision=precision, order=graph.adjacency.order)
    everyone: dict[Any, float] = dict.fromkeys(range(nodes), 1.0)
    excluded = [graph.internal([]), graph.internal(range(0, nodes, 2))]
    block = query_block(graph.seeds([everyone, everyone]), 0, 2, excluded=excluded)
    backend.start(block, restart=0.5)
    selection = backend.select(np.arange(2), k=100, eligible=None, min_score=0.0)
    assert graph.adjacency.order[selection.nodes[0]].tolist() == list(range(100))
    assert graph.adjacency.order[selection.nodes[1]].tolist() == list(range(1, 201, 2))
    assert len(set(selection.scores.ravel().tolist())) == 1
    eligible = np.zeros(nodes, np.bool_)
    eligible[graph.internal(range(5_000, 5_030))] = True
    selection = backend.select(np.arange(1), k=100, eligible=eligible, min_score=0.0)
    assert selection.counts.tolist() == [30]
    assert graph.adjacency.order[selection.nodes[0, :30]].tolist() == list(range(5_000, 5_030))
